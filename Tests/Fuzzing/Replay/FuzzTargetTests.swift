import ChatFuzzing
import Testing

@Suite("No bytes bring a parser down")
struct FuzzTargetTests {
  /// Enough to reach most branches near the seeds; the hours of libFuzzer are for the rest.
  private static let runs = 1_500

  @Test("seeds and their mutations keep every law", arguments: FuzzTarget.all.map(\.name))
  func mutations(of name: String) async throws {
    let target = try #require(FuzzTarget.all.first { $0.name == name })
    for seed in target.seeds { try await check(target, seed) }
    // Whole servers and files cost more than parsers.
    let runs = target.readsFiles ? Self.runs / 30 : name.hasPrefix("emulator.") ? Self.runs / 10 : Self.runs
    var mutator = Mutator(seed: 2026)
    for _ in 0..<runs { try await check(target, mutator.variant(of: target.seeds)) }
  }

  private func check(_ target: FuzzTarget, _ bytes: [UInt8]) async throws {
    do { try await target.run(bytes) } catch {
      Issue.record("\(target.name): \(error); input \(bytes)")
      throw error
    }
  }
}
