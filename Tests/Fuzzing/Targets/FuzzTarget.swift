import Dispatch
import Synchronization

/// One parser, and what must hold for any bytes that it is given.
///
/// The same list serves two callers: the test suite, which mutates the seeds with a seeded generator, and the `fuzz`
/// program, in which libFuzzer steers by coverage. What either finds becomes a seed.
public struct FuzzTarget: Sendable {
  public var name: String
  /// Beginnings for the mutations, each accepted by the parser or once a find.
  public var seeds: [[UInt8]]
  private let body: Body

  /// Whether each run writes and reads files, which takes far longer than a parser.
  public var readsFiles: Bool { if case .waiting = body { true } else { false } }

  /// A parser of bytes needs no thread but the caller's; what reads files does, since actors do it.
  private enum Body: Sendable {
    case plain(@Sendable ([UInt8]) throws(BrokenLaw) -> Void)
    case waiting(@Sendable ([UInt8]) async throws(BrokenLaw) -> Void)
  }

  public init(_ name: String, seeds: [[UInt8]], run: @escaping @Sendable ([UInt8]) throws(BrokenLaw) -> Void) {
    self.name = name
    self.seeds = seeds
    body = .plain(run)
  }

  /// For what reads files.
  init(_ name: String, seeds: [[UInt8]], reads: @escaping @Sendable ([UInt8]) async throws(BrokenLaw) -> Void) {
    self.name = name
    self.seeds = seeds
    body = .waiting(reads)
  }

  /// Throws `BrokenLaw` where a law does not hold. Errors of the parser are what it should give and end here.
  public func run(_ bytes: [UInt8]) async throws(BrokenLaw) {
    switch body {
    case .plain(let body): try body(bytes)
    case .waiting(let body): try await body(bytes)
    }
  }

  /// The same for a thread that may block.
  public func runHere(_ bytes: [UInt8]) throws(BrokenLaw) {
    switch body {
    case .plain(let body): try body(bytes)
    case .waiting(let body):
      let broken = Broken()
      let done = DispatchSemaphore(value: 0)
      Task.detached {
        do throws(BrokenLaw) { try await body(bytes) } catch { broken.law.withLock { $0 = error } }
        done.signal()
      }
      done.wait()
      if let law = broken.law.withLock({ $0 }) { throw law }
    }
  }

  private final class Broken: Sendable {
    let law = Mutex<BrokenLaw?>(nil)
  }

  public init(_ name: String, seeds: [String], run: @escaping @Sendable ([UInt8]) throws(BrokenLaw) -> Void) {
    self.init(name, seeds: seeds.map { Array($0.utf8) }, run: run)
  }

  /// Every parser of bytes that come from a wire or a file.
  public static let all: [FuzzTarget] =
    codecs + documents + [sendbird, openIM, leanCloud, envelopes] + servers + emulators + files
}

/// A parser gave a wrong answer where it should have given an error, or another value.
public struct BrokenLaw: Error, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}

func require(_ holds: Bool, _ law: @autoclosure () -> String) throws(BrokenLaw) {
  if !holds { throw BrokenLaw(law()) }
}
