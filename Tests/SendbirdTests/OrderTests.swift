import ChatEmulation
import ChatTransport
import SendbirdAdapter
import Synchronization
import Testing
import UnifiedChat

/// Holds back requests of one kind until it is opened.
final class GatedHTTP: HTTPClient {
  private struct State {
    var isOpen = false
    var waiting: [CheckedContinuation<Void, Never>] = []
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  private let base: any HTTPClient
  private let isHeld: @Sendable (HTTPRequest) -> Bool
  private let state = Mutex(State())

  init(_ base: any HTTPClient, holding isHeld: @escaping @Sendable (HTTPRequest) -> Bool) {
    self.base = base
    self.isHeld = isHeld
  }

  func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse {
    if isHeld(request) { await pass() }
    return try await base.send(request, progress: progress)
  }

  private func pass() async {
    await withCheckedContinuation { continuation in
      let (isOpen, watchers) = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        defer { state.watchers = [] }
        return (state.isOpen, state.watchers)
      }
      for watcher in watchers { watcher.resume() }
      if isOpen { continuation.resume() }
    }
  }

  /// Returns when a request is being held.
  func somebodyWaits() async {
    await withCheckedContinuation { continuation in
      let isNow = state.withLock { state in
        if state.waiting.isEmpty { state.watchers.append(continuation) }
        return !state.waiting.isEmpty
      }
      if isNow { continuation.resume() }
    }
  }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}

@Suite("Sendbird's answers and events", .timeLimit(.minutes(1)))
struct SendbirdOrderTests {
  private actor Log {
    private(set) var lines: [String] = []
    func add(_ line: String) { lines.append(line) }
  }

  /// Bob's adapter learns that he was added to a channel and reads it, which takes as long as the gate is shut.
  private func scene() async throws -> (lab: Lab, bob: SendbirdAdapter, gate: GatedHTTP, old: ChannelID, new: ChannelID)
  {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    try await lab.makeUsers("bob")
    let old = try await ana.createChannel(.direct(with: "bob"))
    let gate = GatedHTTP(lab.host.transports.http) { $0.url.contains("group_channels/slow") && $0.method == "GET" }
    let bob = SendbirdAdapter(
      profile: lab.profile(), environment: AdapterEnvironment(clock: ManualClock()),
      transports: Transports(http: gate, webSocket: lab.host.transports.webSocket))
    _ = try await bob.connect(as: "bob", credential: .none)
    try await lab.rest("POST", "group_channels", ["user_ids": ["ana", "bob"], "channel_url": "slow", "name": "slow"])
    await gate.somebodyWaits()
    return (lab, bob, gate, old.id, "slow")
  }

  @Test("a send and a page return only after the events that came before them were told")
  func answersWait() async throws {
    let (lab, bob, gate, old, new) = try await scene()
    let log = Log()
    let events = bob.events()
    let work = Task {
      _ = try await bob.say("one", in: old, id: "c1")
      await log.add("sent")
      let page = try await bob.history(of: old, .newest(5))
      await log.add("page of \(page.messages.count)")
    }
    // The server has it, and so has answered: what is missing is the turn.
    while try await lab.rest("GET", "group_channels/\(old)/messages/total_count").json["total"]?.int != 1 {
      await Task.yield()
    }
    for _ in 0..<50 { try await lab.rest("GET", "users/bob") }
    await log.add("opened")
    gate.open()
    try await work.value
    #expect(await log.lines == ["opened", "sent", "page of 1"])
    let joined = await events.first { if case .channelJoined(let channel) = $0.kind { channel.id } else { nil } }
    #expect(joined == new)
  }

  @Test("an answer that waits for its turn is not lost by a time-out or by the end of the link")
  func answerIsKnown() async throws {
    let (lab, bob, gate, old, _) = try await scene()
    let work = Task { try await bob.say("one", in: old, id: "c1") }
    while try await lab.rest("GET", "group_channels/\(old)/messages/total_count").json["total"]?.int != 1 {
      await Task.yield()
    }
    // The acknowledgement goes before whatever the server says next: when that has arrived, so has the first.
    let events = bob.events()
    try await EmulatorControl(lab.host).perform(.kickByAdmin(user: "bob"))
    _ = await events.collect(until: .connectionChanged(.refused(.kickedByAdmin)))
    gate.open()
    #expect(try await work.value.content == .text("one"))
  }

  @Test("an event whose handling needs a renewal does not wait for itself")
  func renewalInside() async throws {
    struct Issuer: CredentialProvider {
      let lab: Lab
      func credential(for user: UserID) async throws -> Credential {
        .token(try await lab.rest("POST", "users/\(user)/token", [:]).json["token"]?.string ?? "")
      }
    }
    let lab = try Lab(users: [("bob", "tok")])
    let bob = lab.adapter(credentials: Issuer(lab: lab))
    _ = try await bob.connect(as: "bob", credential: .token("tok"))
    let events = bob.events()
    try await EmulatorControl(lab.host).perform(.expireCredential(user: "bob"))
    try await lab.rest("POST", "group_channels", ["user_ids": ["bob"], "channel_url": "late", "name": ""])
    let joined = await events.first { if case .channelJoined(let channel) = $0.kind { channel.id } else { nil } }
    #expect(joined == "late")
    #expect(try await bob.say("on time", in: "late", id: "c1").content == .text("on time"))
  }
}
