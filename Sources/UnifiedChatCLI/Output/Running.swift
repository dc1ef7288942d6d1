import ChatMigration
import Dispatch
import Foundation
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
      for await update in updates {
        line.show(update.phase.rawValue, done: update.done, total: update.total, unit: update.phase.unit)
      }
      line.end()
    }
    let work = Task { try await body() }
    let sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { work.cancel() }
      source.resume()
      return source
    }
    defer { for source in sources { source.cancel() } }
    let result = await work.result
    reporter.finish()
    await showing.value
    return try result.get()
  }
}
