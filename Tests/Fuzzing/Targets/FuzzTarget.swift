/// One parser, and what must hold for any bytes that it is given.
///
/// The same list serves two callers: the test suite, which mutates the seeds with a seeded generator, and the `fuzz`
/// program, in which libFuzzer steers by coverage. What either finds becomes a seed.
public struct FuzzTarget: Sendable {
  public var name: String
  /// Beginnings for the mutations, each accepted by the parser or once a find.
  public var seeds: [[UInt8]]
  /// Throws `BrokenLaw` where a law does not hold. Errors of the parser are what it should give and end here.
  public var run: @Sendable ([UInt8]) throws(BrokenLaw) -> Void

  public init(_ name: String, seeds: [[UInt8]], run: @escaping @Sendable ([UInt8]) throws(BrokenLaw) -> Void) {
    self.name = name
    self.seeds = seeds
    self.run = run
  }

  public init(_ name: String, seeds: [String], run: @escaping @Sendable ([UInt8]) throws(BrokenLaw) -> Void) {
    self.init(name, seeds: seeds.map { Array($0.utf8) }, run: run)
  }

  /// Every parser of bytes that come from a wire or a file.
  public static let all: [FuzzTarget] =
    codecs + documents + [sendbird, openIM, leanCloud] + servers + emulators
}

/// A parser gave a wrong answer where it should have given an error, or another value.
public struct BrokenLaw: Error, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}

func require(_ holds: Bool, _ law: @autoclosure () -> String) throws(BrokenLaw) {
  if !holds { throw BrokenLaw(law()) }
}
