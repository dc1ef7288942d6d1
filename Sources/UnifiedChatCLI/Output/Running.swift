import ChatMigration
import Dispatch
import Foundation
import Synchronization
import UnifiedChat

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Long runs: progress while they last, and a clean end at SIGINT and SIGTERM.
enum Running {
  /// Runs `body`, shows its reports, and cancels it at the first signal.
  static func interruptible<Value: Sendable>(
    _ reporter: ProgressReporter, _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let updates = reporter.updates()
    let line = ProgressLine()
    let showing = Task {
      for await update in updates { line.show(update) }
      line.end()
    }
    let ticking = Task {
      while !Task.isCancelled {
        // Real time: a person, or a script that looks for signs of life, waits at the other end.
        try? await Task.sleep(for: .seconds(1))
        line.tick()
      }
    }
    let work = Task { try await body() }
    let signals = SignalCount()
    let sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        // A second one is from somebody who does not want to wait; what is confirmed is stored in any case.
        if signals.isRepeated() { _exit(ExitCode.interrupted.rawValue) }
        work.cancel()
      }
      source.resume()
      return source
    }
    defer { for source in sources { source.cancel() } }
    let result = await work.result
    ticking.cancel()
    reporter.finish()
    await showing.value
    return try result.get()
  }
}

/// How often somebody has asked for the end.
private final class SignalCount: Sendable {
  private let count = Mutex(0)

  /// False for the first.
  func isRepeated() -> Bool {
    count.withLock { count in
      count += 1
      return count > 1
    }
  }
}
