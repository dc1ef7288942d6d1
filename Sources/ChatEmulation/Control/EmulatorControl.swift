import ChatJSON
import ChatTransport
import UnifiedChat

/// One WebSocket as the control interface shows it.
public struct EmulatorSession: Sendable, Hashable {
  public var connection: EmulatorConnectionID
  /// Nil before login, or where the emulator does not tell.
  public var user: String?
  /// ms since 1970 on the emulator's clock.
  public var openedAt: Int64
  public var lastActivity: Int64
}

/// What is done to the connections of a user.
public enum EmulatorSessionAction: Sendable, Hashable {
  /// What the vendor itself does.
  case act(FaultRule.UserAction)
  case end(FaultRule.Ending)
  /// Holds all frames in both directions, or in one, until `resume`.
  case stall(FaultRule.Direction? = nil)
  case resume
}

/// Everything that a test or tool does to a live emulator, beside being its client. The same calls are offered over
/// HTTP by `ControlServer`.
public struct EmulatorControl: Sendable {
  public let host: EmulatorHost

  public init(_ host: EmulatorHost) { self.host = host }

  // MARK: Rules

  /// Adds a rule behind the others and gives its number.
  /// - Throws: `.noHook` when this host can't do one of its actions at all.
  @discardableResult
  public func add(_ rule: FaultRule) async throws(EmulatorControlError) -> UInt64 { try await host.add(rule) }

  public func rules() async -> [FaultRuleStatus] { await host.faults.rules }

  public func removeRule(_ id: UInt64) async throws(EmulatorControlError) { try await host.removeRule(id) }

  public func removeRules() async { await host.removeRules() }

  /// Rules that had to fire and did not, or that could not do what they say.
  public func missedRules() async -> [FaultRuleStatus] { await rules().filter(\.isMissed) }

  // MARK: Synchronising

  /// Waits until `count` frames that match were noted after entry `since`; false after `timeout` of real time. Frames
  /// that passed before the call count where the journal still holds them.
  public func wait(
    for match: FaultRule.Match, count: Int = 1, since: UInt64 = 0, timeout: Duration = .seconds(10)
  ) async -> Bool {
    await host.wait(for: match, count: count, since: since, timeout: timeout)
  }

  /// Stops every frame that matches at `phase` until the gate is opened.
  @discardableResult
  public func closeGate(
    _ name: String, _ match: FaultRule.Match, at phase: FaultRule.Phase = .received
  ) async throws(EmulatorControlError) -> UInt64 {
    try await add(FaultRule(match, at: phase, do: .gate(name), times: nil, mustFire: false))
  }

  /// Lets go what the gate holds; later frames pass.
  public func openGate(_ name: String) async { await host.openGate(name) }

  // MARK: Time

  public func now() async -> Int64 { await host.now }

  public func advance(by duration: Duration) async { await host.advance(by: duration) }

  public func setClock(_ time: Int64) async { await host.setClock(time) }

  /// The emulator's own clock runs this much ahead of (or behind) its host's; timers keep their distance.
  public func setSkew(_ skew: Duration) async { await host.setSkew(skew) }

  // MARK: Sessions and credentials

  /// Open WebSockets, oldest first; of one user where `user` is given.
  public func sessions(of user: String? = nil) async -> [EmulatorSession] { await host.sessions(of: user) }

  /// - Throws: `.notFound` when the user has no connection, `.noHook` where it can't be done.
  public func act(_ action: EmulatorSessionAction, on user: String) async throws(EmulatorControlError) {
    try await host.act(action, on: user)
  }

  /// - Throws: `.emulator` where the vendor has no such thing.
  public func perform(_ action: EmulatorAction) async throws(EmulatorControlError) {
    do throws(EmulatorError) {
      try await host.perform(action)
    } catch {
      throw .emulator(error)
    }
  }

  /// Pushes any frame to one connection.
  public func push(_ message: WebSocketMessage, to connection: EmulatorConnectionID) async throws(EmulatorControlError) {
    try await host.push(message, to: connection)
  }

  // MARK: The server

  /// Cuts every connection and starts the machine again; without its state it is as at the beginning.
  public func restart(keepingState: Bool) async throws(EmulatorControlError) {
    try await host.restart(keepingState: keepingState)
  }

  /// Keeps inputs waiting until `resume`.
  public func pause() async { await host.setPaused(true) }

  public func resume() async { await host.setPaused(false) }

  /// New connections are refused as if no server were there; open ones go on.
  public func refuseConnections(_ refuses: Bool) async { await host.setRefusing(refuses) }

  /// Vendor settings by name. The machine starts again with its state, so every connection is cut.
  public func apply(settings: [String: JSONValue]) async throws(EmulatorControlError) {
    try await host.apply(settings: settings)
  }

  // MARK: State

  /// The truth, as neutral records.
  public func records() async -> [JSONValue] { await host.records() }

  public func load(_ record: JSONValue) async throws(EmulatorControlError) {
    do throws(EmulatorError) {
      try await host.load(record)
    } catch {
      throw .emulator(error)
    }
  }

  public func snapshot() async -> JSONValue { await host.snapshot() }

  /// The state of an earlier snapshot; every connection is cut. Nothing changes when the snapshot is refused.
  public func restore(_ snapshot: JSONValue) async throws(EmulatorControlError) {
    do throws(EmulatorError) {
      try await host.restore(snapshot)
    } catch {
      throw .emulator(error)
    }
  }

  /// As at the beginning: state, rules, journal and virtual clock.
  public func reset() async throws(EmulatorControlError) { try await host.reset() }

  public func coverage() async -> [EmulatorCoverage] { await host.coverage }

  // MARK: Journal

  public func setJournal(_ settings: JournalSettings) async { await host.setJournal(settings) }

  /// Entries after `index`, oldest first.
  public func journal(since index: UInt64 = 0) async -> [JournalEntry] { await host.journal.entries(since: index) }

  public func clearJournal() async { await host.clearJournal() }
}
