import ChatClient
import ChatConformance
import UnifiedChat

/// A harness whose clients break one rule.
struct MutantHarness: ConformanceHarness {
  let base: any ConformanceHarness
  var wrap: @Sendable (any ChatAdapter, TestDevice) -> any ChatAdapter = { adapter, _ in adapter }
  var name: @Sendable (String) -> String = { $0 }
  var listen: @Sendable (Chat) -> any ChatListening = { $0 }
  var destination: @Sendable (any ChatDestination) -> any ChatDestination = { $0 }
  var betweenStatements: (@Sendable (_ run: (String) throws(ChatError) -> Void) -> Void)?

  var target: ConformanceTarget { base.target }
  var capabilities: CapabilitySet { base.capabilities }
  var differences: Set<DeclaredDifference> { base.differences }
  var declaredSkips: [String: String] { base.declaredSkips }
  var limits: [String: Int64] { base.limits }
  var paths: [String: String] { base.paths }
  var odd: [String: [String: String]] { base.odd }
  var codes: [Int: String] { base.codes }
  var errorBody: (text: String, code: String)? { base.errorBody }
  var signingSecret: String? { base.signingSecret }
  var clock: any ChatClock { base.clock }
  var seed: UInt64 { base.seed }
  var faults: (any FaultControl)? { base.faults }
  var acts: (any VendorActs)? { base.acts }

  func makeUser(_ name: String) async throws -> TestUser { try await base.makeUser(self.name(name)) }
  func issueCredential(for user: UserID) async throws -> Credential { try await base.issueCredential(for: user) }
  func makeAdapter(_ device: TestDevice) async throws -> any ChatAdapter {
    wrap(try await base.makeAdapter(device), device)
  }
  func makeSource() async throws -> any ChatSource { try await base.makeSource() }
  func makeDestination() async throws -> any ChatDestination { destination(try await base.makeDestination()) }
  func settle() async { await base.settle() }
  func pass(_ duration: Duration) async { await base.pass(duration) }
  func leftovers() async -> [String] { await base.leftovers() }
  func unexpectedCalls() async -> [String] { await base.unexpectedCalls() }
  func transcript(limit: Int) async -> [String] { await base.transcript(limit: limit) }
  func adjust(_ options: inout ChatOptions) { base.adjust(&options) }
  func listening(to chat: Chat) -> any ChatListening { listen(chat) }
  func cleanUp() async { await base.cleanUp() }
}
