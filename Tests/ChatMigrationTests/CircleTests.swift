import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("A list whose pages lead to one another without end", .timeLimit(.minutes(1)))
struct CircleTests {
  private static let lists = ["users", "channels", "members", "messages"]

  private func isCircle(_ error: any Error, _ operation: ChatError.Operation) -> Bool {
    guard let error = error as? ChatError else { return false }
    return error.kind == .protocolViolation && error.operation == operation
      && error.description.contains("does not move on")
  }

  @Test("is left with an error when it is read, and what was read before stays", arguments: lists)
  func reading(_ list: String) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source, messages: 15)
    harness.source.state.withLock { $0.circle = list }
    await #expect { _ = try await harness.pull() } throws: { isCircle($0, .readSource) }
    // The same command goes on once the server is well.
    harness.source.state.withLock { $0.circle = nil }
    #expect(harness.source.calls < 200)
  }

  @Test("is left with an error by a plan", arguments: lists)
  func planning(_ list: String) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source, messages: 15)
    harness.source.state.withLock { $0.circle = list }
    await #expect {
      _ = try await Planner.plan(
        harness.source, harness.destination, LoadOptions(), nil, MigrationFilter(), ProgressReporter())
    } throws: {
      isCircle($0, .plan)
    }
  }

  @Test("is left with an error when a copy is verified", arguments: lists)
  func verifying(_ list: String) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source, messages: 15)
    let archive = try await harness.pull()
    try await harness.load(archive)
    harness.destination.state.withLock { $0.circle = list }
    await #expect { _ = try await harness.verify(archive) } throws: { isCircle($0, .verify) }
  }
}
