import ChatConformance
import ChatHarness
import Testing
import UnifiedChat

/// A suite that cannot fail proves nothing: each of these clients breaks one rule, and the cases named for it fail.
@Suite("The suite notices each broken rule", .serialized)
struct MutantTests {
  /// Some at a time: a case that waits for what never comes takes no power of the machine.
  @Test("a mutant is caught by the cases named for it")
  func caught() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      var waiting = Mutant.all.makeIterator()
      for _ in 0..<6 {
        guard let mutant = waiting.next() else { break }
        group.addTask { try await Self.isCaught(mutant) }
      }
      while try await group.next() != nil {
        if let mutant = waiting.next() { group.addTask { try await Self.isCaught(mutant) } }
      }
    }
  }

  private static func isCaught(_ mutant: Mutant) async throws {
    let known = Set(ConformanceSuite.written.map(\.id))
    #expect(Set(mutant.cases).isSubset(of: known), "cases that exist")
    var options = ConformanceOptions()
    options.cases = Set(mutant.cases)
    options.transcriptLines = 0
    let report = await ConformanceRunner(options: options).run(
      adapter: mutant.base, target: mutant.base == "ideal" ? .ideal : .inproc
    ) { seed in
      if mutant.base == "ideal" { return mutant.make(IdealHarness(seed: seed)) }
      return mutant.make(try await EmulatorHarness(vendor: mutant.base, model: nil, target: .inproc, seed: seed))
    }
    for result in report.results {
      guard case .fail(let failure) = result.verdict else {
        Issue.record("\(mutant.id) (\(mutant.breaks)) passes \(result.id): \(result.verdict)")
        continue
      }
      #expect(mutant.sign.isEmpty || "\(failure)".contains(mutant.sign), "\(mutant.id): \(failure)")
    }
    #expect(report.results.count == mutant.cases.count)
  }

  @Test("ids are unique, and each rule is broken once")
  func ids() {
    #expect(Set(Mutant.all.map(\.id)).count == Mutant.all.count)
    #expect(Set(Mutant.all.map(\.breaks)).count == Mutant.all.count)
  }
}
