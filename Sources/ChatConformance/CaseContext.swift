import ChatCache
import ChatClient
import Foundation
import Synchronization
import UnifiedChat

/// What a case works with: its own service, its own users and caches, and words for what it expects.
final class CaseContext: Sendable {
  let id: String
  let harness: any ConformanceHarness
  private let directory: URL
  private let state = Mutex(State())

  private struct State {
    var chats: [Chat] = []
    var probes: [EventProbe] = []
    var users = 0
    var devices = 0
    var step = 0
  }

  init(id: String, harness: any ConformanceHarness, directory: URL) {
    self.id = id
    self.harness = harness
    self.directory = directory
  }

  /// A path of this case's own, removed when it ends.
  func file(_ name: String) -> String { directory.appendingPathComponent(name).path }

  // MARK: Actors

  func user(_ name: String) async throws -> TestUser {
    let number = state.withLock { state in
      state.users += 1
      return state.users
    }
    return try await harness.makeUser("\(id.lowercased())-\(number)-\(name)")
  }

  /// One device with its own cache; not connected.
  func device(_ user: TestUser, _ name: String = "phone") async throws -> Chat {
    let adapter = try await harness.makeAdapter(device: "\(user.id)-\(name)")
    let folder = directory.appendingPathComponent("\(user.id.rawValue)-\(name)")
    let number = state.withLock { state in
      state.devices += 1
      return state.devices
    }
    let ids = LocalIDs(prefix: "\(id.lowercased())-\(number)")
    let chat = Chat(
      adapter: adapter, clock: harness.clock,
      options: ChatOptions(
        cacheLocation: .directory(folder.path), makeID: { ids.next() }, seed: harness.seed &+ UInt64(number)))
    state.withLock { $0.chats.append(chat) }
    return chat
  }

  /// A connected device.
  func online(_ user: TestUser, _ name: String = "phone") async throws -> Chat {
    let chat = try await device(user, name)
    _ = try await chat.connect(as: user.id, credential: user.credential)
    return chat
  }

  /// Two connected users in a group channel.
  func pair() async throws -> (alice: Chat, bob: Chat, channel: Channel, users: (a: TestUser, b: TestUser)) {
    let a = try await user("alice")
    let b = try await user("bob")
    let alice = try await online(a)
    let bob = try await online(b)
    let channel = try await alice.createChannel(ChannelDraft(kind: .group, members: [b.id], name: "pair"))
    try await eventually("bob is in the channel") { (try? await bob.channel(channel.id)) != nil }
    return (alice, bob, channel, (a, b))
  }

  func probe(_ chat: Chat) -> EventProbe {
    let probe = EventProbe(chat)
    state.withLock { $0.probes.append(probe) }
    return probe
  }

  // MARK: Time

  /// Waits until `condition` holds, lets work go on and then time pass.
  /// - Throws: `CaseFailure` when it never does.
  func eventually(
    _ expected: String, within limit: Duration = .seconds(60), _ condition: @Sendable () async throws -> Bool
  ) async throws {
    var passed = Duration.zero
    while true {
      for turn in 0..<40 {
        if try await condition() { return }
        await harness.settle()
        // Tasks run on other threads too: a virtual second must not pass before they had a real moment.
        if turn >= 10 { try await Task.sleep(for: .milliseconds(1)) }
      }
      guard passed < limit else { throw failure(expected, "not so after \(limit)") }
      await harness.pass(.milliseconds(250))
      passed += .milliseconds(250)
    }
  }

  /// Runs `body`, letting time pass while it waits for a back-off or an answer.
  func whileTimePasses<Value: Sendable>(
    within limit: Duration = .seconds(60), _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let outcome = Mutex<Result<Value, any Error>?>(nil)
    let task = Task {
      do {
        let value = try await body()
        outcome.withLock { $0 = .success(value) }
      } catch {
        outcome.withLock { $0 = .failure(error) }
      }
    }
    defer { task.cancel() }
    try await eventually("the call ends", within: limit) { outcome.withLock { $0 != nil } }
    guard let result = outcome.withLock({ $0 }) else { throw failure("the call ends", "it did not") }
    return try result.get()
  }

  // MARK: Expectations

  func step() { state.withLock { $0.step += 1 } }

  func failure(_ expected: String, _ observed: String) -> CaseFailure {
    CaseFailure(expected: expected, observed: observed, place: "\(id) step \(state.withLock { $0.step })")
  }

  func expect(_ holds: Bool, _ expected: @autoclosure () -> String, observed: @autoclosure () -> String = "not so")
    throws
  {
    step()
    guard holds else { throw failure(expected(), observed()) }
  }

  func expectEqual<Value: Equatable>(_ observed: Value, _ expected: Value, _ what: String) throws {
    step()
    guard observed == expected else {
      throw failure("\(what) = \(String(describing: expected).prefix(300))", String(String(describing: observed).prefix(300)))
    }
  }

  /// Runs `body` and returns the `ChatError` that it must throw.
  @discardableResult
  func expectError(
    _ expected: String, _ body: () async throws -> Void, where matches: (ChatError.Kind) -> Bool
  ) async throws -> ChatError {
    step()
    do { try await body() } catch let error as ChatError {
      guard matches(error.kind) else { throw failure(expected, "\(error)") }
      return error
    }
    throw failure(expected, "no error")
  }

  /// Every message of a channel, read from the service page by page.
  func wholeHistory(of channel: ChannelID, by chat: some ChatMessaging, page: Int, direction: HistoryQuery.Direction = .older)
    async throws -> [Message]
  {
    var all: [Message] = []
    var query = HistoryQuery(
      anchor: direction == .older ? .newest : .oldest, direction: direction, limit: page)
    for _ in 0..<10_000 {
      let result = try await chat.history(of: channel, query)
      all = direction == .older ? result.messages + all : all + result.messages
      guard let next = direction == .older ? result.older : result.newer else { return all }
      query.anchor = .cursor(next)
    }
    throw failure("paging ends", "10,000 pages")
  }

  /// Everything in a channel as the service itself holds it.
  func serverMessages(_ channel: ChannelID) async throws -> [Message] {
    let source = try await harness.makeSource()
    var messages: [Message] = []
    var cursor: Cursor?
    repeat {
      let after = cursor
      let page = try await whileTimePasses { try await source.messages(in: channel, after: after) }
      messages += page.items.map(\.message)
      cursor = page.next
    } while cursor != nil
    // Notices of the service are no messages of users.
    return messages.filter { if case .system = $0.content { false } else { true } }
  }

  // MARK: Invariants

  /// What must hold after every case.
  func checkInvariants() async throws {
    for probe in state.withLock({ $0.probes }) { try check(probe) }
    for chat in state.withLock({ $0.chats }) { await chat.disconnect() }
    if let silent = await harness.faults?.removeRules(), let rule = silent.first {
      throw failure("every fault fires", "never: \(rule)")
    }
  }

  private func check(_ probe: EventProbe) throws {
    var states = probe.connectionStates
    if !states.isEmpty { states.removeFirst() }
    for (before, after) in zip(probe.connectionStates, states) where !before.canMove(to: after) {
      throw failure("G5: a legal transition", "\(before) to \(after)")
    }
    var seen: Set<String> = []
    for event in probe.events {
      guard case .messageReceived(let message) = event.kind, let id = message.id else { continue }
      guard seen.insert("\(message.channel)/\(id)").inserted else {
        throw failure("G1: one event for a message", "a second one for \(id)")
      }
    }
  }

  func end() async {
    for chat in state.withLock({ $0.chats }) { await chat.disconnect() }
    await harness.cleanUp()
    try? FileManager.default.removeItem(at: directory)
  }
}

/// Client ids that a run can repeat, different on every device.
private final class LocalIDs: Sendable {
  private let prefix: String
  private let count = Mutex(0)

  init(prefix: String) { self.prefix = prefix }

  func next() -> String {
    let number = count.withLock { count in
      count += 1
      return count
    }
    return "\(prefix)-\(number)"
  }
}
