import Testing
import UnifiedChat

/// Answers, throws, or hangs while its clock stands.
private struct Scripted: CredentialProvider {
  struct Broken: Error {}
  enum Way: Sendable { case answers, throwsError, hangs }

  let way: Way
  let clock: ManualClock

  func credential(for user: UserID) async throws -> Credential {
    try await act()
    return .token("fresh")
  }

  func sign(_ operation: String, fields: [String], for user: UserID) async throws -> SignedOperation? {
    try await act()
    return SignedOperation(signature: fields.joined(), timestamp: 1, nonce: operation)
  }

  private func act() async throws {
    switch way {
    case .answers: break
    case .throwsError: throw Broken()
    case .hangs: try await clock.sleep(for: .seconds(86_400))
    }
  }
}

@Suite("A credential provider is waited for within a limit", .timeLimit(.minutes(1)))
struct BoundedProviderTests {
  private let clock = ManualClock()

  private func waitUntilNobodySleeps() async throws {
    // Real time: nothing depends on how long it is.
    while clock.nextWakeUp != nil { try await Task.sleep(for: .milliseconds(1)) }
  }

  @Test("an answer in time is given as it is")
  func answers() async throws {
    let provider = Scripted(way: .answers, clock: clock)
    #expect(try await provider.credential(for: "a", within: .seconds(30), on: clock) == .token("fresh"))
    let signed = try await provider.sign("login", fields: ["x", "y"], for: "a", within: .seconds(30), on: clock)
    #expect(signed == SignedOperation(signature: "xy", timestamp: 1, nonce: "login"))
    try await waitUntilNobodySleeps()
  }

  @Test("one that throws is an authentication error")
  func throwing() async throws {
    let provider = Scripted(way: .throwsError, clock: clock)
    let error = await #expect(throws: ChatError.self) {
      try await provider.credential(for: "a", within: .seconds(30), on: clock)
    }
    #expect(error?.kind == .authentication)
    try await waitUntilNobodySleeps()
  }

  @Test("one that hangs is given up at the limit, and not before", arguments: [true, false])
  func hanging(isCancelled: Bool) async throws {
    let provider = Scripted(way: .hangs, clock: clock)
    let asking = Task { try await provider.credential(for: "a", within: .seconds(30), on: clock) }
    while clock.nextWakeUp != clock.now + .seconds(30) { try await Task.sleep(for: .milliseconds(1)) }
    if isCancelled {
      asking.cancel()
    } else {
      clock.advance(by: .seconds(29))
      #expect(clock.nextWakeUp == clock.now + .seconds(1))
      clock.advance(by: .seconds(1))
    }
    let error = await #expect(throws: ChatError.self) { try await asking.value }
    #expect(error?.kind == (isCancelled ? .cancelled : .timeout))
    try await waitUntilNobodySleeps()
  }
}
