import ChatCache
import ChatClient
import Foundation
import Synchronization
import UnifiedChat

/// What a case works with: its own service, its own users and caches, and words for what it expects.
final class CaseContext: Sendable {
  let id: String
  let harness: any ConformanceHarness
  /// Its faults change what is in frames.
  private let usesJSON: Bool
  private let directory: URL
  /// Multiplies what a case of stress takes.
  let scale: Int
  private let state = Mutex(State())

  /// One installation of the client.
  struct Device: Sendable {
    var chat: Chat
    var user: TestUser
    var clock: DeviceClock
    var folder: String
    var identity: CacheIdentity
  }

  private struct State {
    var devices: [Device] = []
    var probes: [EventProbe] = []
    var users: [TestUser] = []
    var numbers = 0
    var step = 0
    var declared: Set<DeclaredDifference> = []
    var exempt: Set<String> = []
    var log: [String] = []
    var secrets: Set<String> = []
  }

  init(id: String, harness: any ConformanceHarness, directory: URL, usesJSON: Bool = false, scale: Int = 1) {
    self.id = id
    self.scale = scale
    self.usesJSON = usesJSON
    self.harness = harness
    self.directory = directory
  }

  /// A path of this case's own, removed when it ends.
  func file(_ name: String) -> String { directory.appendingPathComponent(name).path }

  private func nextNumber() -> Int {
    state.withLock { state in
      state.numbers += 1
      return state.numbers
    }
  }

  // MARK: Actors

  func user(_ name: String) async throws -> TestUser {
    let user = try await harness.makeUser("\(id.lowercased())-\(nextNumber())-\(name)")
    know(user)
    return user
  }

  /// A user of exactly this id; of a live service there is none, since what a run makes there has its prefix.
  func user(exactly id: String) async throws -> TestUser {
    if harness.target == .live { throw CaseSkip(reason: .rule("users are made under a prefix of the run")) }
    let user = try await harness.makeUser(id)
    know(user)
    return user
  }

  private func know(_ user: TestUser) {
    state.withLock { state in
      state.users.append(user)
      if case .token(let token) = user.credential { state.secrets.insert(token) }
    }
  }

  /// What must appear in no log and no error.
  func plant(secret: String) { state.withLock { _ = $0.secrets.insert(secret) } }

  /// One device with its own cache; not connected. The same name again is the same installation, started anew.
  func device(
    _ user: TestUser, _ name: String = "phone", credentials: (any CredentialProvider)? = nil, isExclusive: Bool = false,
    change: (inout ChatOptions) -> Void = { _ in }
  ) async throws -> Chat {
    let number = nextNumber()
    let clock = DeviceClock(harness.clock)
    let log: @Sendable (Profile.LogLevel, String) -> Void = { [weak self] _, line in self?.note(line) }
    // A name that every vendor takes, and the same whenever the same installation starts.
    let place = state.withLock { state in state.users.firstIndex { $0.id == user.id } ?? 0 }
    let adapter = try await harness.makeAdapter(
      TestDevice(
        name: "\(id.lowercased())-\(place)-\(name)", clock: clock, credentials: credentials, isExclusive: isExclusive,
        usesJSON: usesJSON, log: log))
    let folder = directory.appendingPathComponent("\(place)-\(name)").path
    let ids = LocalIDs(prefix: "\(id.lowercased())-\(number)")
    var options = ChatOptions(
      cacheLocation: .directory(folder), makeID: { ids.next() }, seed: harness.seed &+ UInt64(number), log: log)
    change(&options)
    harness.adjust(&options)
    let chat = Chat(adapter: adapter, clock: clock, options: options)
    let place2 = if case .directory(let chosen) = options.cacheLocation { chosen } else { folder }
    let device = Device(
      chat: chat, user: user, clock: clock, folder: place2,
      identity: CacheIdentity(vendor: chat.vendor, app: options.app, user: user.id))
    state.withLock { $0.devices.append(device) }
    // What must hold of events holds of every device; a case that looks into the cache meanwhile attaches its own.
    _ = probe(chat, readsCache: false)
    return chat
  }

  /// A connected device.
  func online(
    _ user: TestUser, _ name: String = "phone", credentials: (any CredentialProvider)? = nil, isExclusive: Bool = false,
    change: (inout ChatOptions) -> Void = { _ in }
  ) async throws -> Chat {
    let chat = try await device(user, name, credentials: credentials, isExclusive: isExclusive, change: change)
    _ = try await chat.connect(as: user.id, credential: user.credential)
    return chat
  }

  func details(of chat: Chat) throws -> Device {
    guard let device = state.withLock({ $0.devices.last { $0.chat === chat } }) else {
      throw failure("a device of this case", "another")
    }
    return device
  }

  /// The clock of a device, to make it wrong.
  func clock(of chat: Chat) throws -> DeviceClock { try details(of: chat).clock }

  /// A device that goes on from a copy of another one's files as they are at this moment: what a killed process
  /// leaves behind.
  func killed(_ chat: Chat, _ name: String) async throws -> Chat {
    let old = try details(of: chat)
    let copy = directory.appendingPathComponent("killed-\(nextNumber())").path
    try FileManager.default.copyItem(atPath: old.folder, toPath: copy)
    return try await device(old.user, name) { $0.cacheLocation = .directory(copy) }
  }

  /// Connected users in a group channel that the first one made.
  func group(_ names: String...) async throws -> (chats: [Chat], users: [TestUser], channel: Channel) {
    var users: [TestUser] = []
    var chats: [Chat] = []
    for name in names {
      users.append(try await user(name))
      chats.append(try await online(users[users.count - 1]))
    }
    let channel = try await chats[0].createChannel(
      ChannelDraft(kind: .group, members: users.dropFirst().map(\.id), name: names.joined(separator: " ")))
    for chat in chats.dropFirst() { try await sees(chat, channel.id) }
    return (chats, users, channel)
  }

  /// Waits until the channel is the member's, as told by the service.
  func sees(_ chat: Chat, _ channel: ChannelID) async throws {
    // Without a list, a device that came later learns of a channel by its messages alone.
    let mustSee = has(.channelQuery)
    do {
      try await eventually("the member sees the channel", within: mustSee ? .seconds(60) : .seconds(1)) {
        try await chat.cachedChannels(ChannelQuery(includesHidden: true, limit: .max)).contains { $0.id == channel }
      }
    } catch let failure as CaseFailure { if mustSee { throw failure } }
  }

  /// Two connected users in a group channel.
  func pair() async throws -> (alice: Chat, bob: Chat, channel: Channel, users: (a: TestUser, b: TestUser)) {
    let (chats, users, channel) = try await group("alice", "bob")
    return (chats[0], chats[1], channel, (users[0], users[1]))
  }

  /// Two connected users in a direct channel.
  func direct() async throws -> (alice: Chat, bob: Chat, channel: Channel, users: (a: TestUser, b: TestUser)) {
    let a = try await user("alice")
    let b = try await user("bob")
    let alice = try await online(a)
    let bob = try await online(b)
    let channel = try await alice.createChannel(.direct(with: b.id))
    _ = try await bob.createChannel(.direct(with: a.id))
    return (alice, bob, channel, (a, b))
  }

  /// - Parameter readsCache: looks up what is told at the moment it is told; keeps the cache file open.
  func probe(_ chat: Chat, readsCache: Bool = true) -> EventProbe {
    let device = !readsCache ? nil : state.withLock { $0.devices.last { $0.chat === chat } }
    let probe = EventProbe(harness.listening(to: chat), cache: device.map { ($0.identity, $0.folder) })
    state.withLock { $0.probes.append(probe) }
    return probe
  }

  // MARK: Saying

  /// Sends texts one after the other.
  @discardableResult
  func say(_ chat: Chat, _ channel: ChannelID, _ texts: [String]) async throws -> [Message] {
    var sent: [Message] = []
    for text in texts {
      // A vendor that marks by time cannot tell what happens within one millisecond.
      await harness.pass(.milliseconds(2))
      sent.append(try await whileTimePasses { try await chat.send(.text(text), to: channel) })
    }
    return sent
  }

  /// "0", "1", …
  @discardableResult
  func say(_ chat: Chat, _ channel: ChannelID, _ count: Int) async throws -> [Message] {
    try await say(chat, channel, (0..<count).map(String.init))
  }

  // MARK: Logs

  private func note(_ line: String) { state.withLock { $0.log.append(line) } }

  var log: [String] { state.withLock { $0.log } }
  var secrets: Set<String> { state.withLock { $0.secrets } }
  var devices: [Device] { state.withLock { $0.devices } }
  var probes: [EventProbe] { state.withLock { $0.probes } }

  // MARK: Differences

  /// True where the vendor declares this difference; the case then passes as declared.
  func differs(_ difference: DeclaredDifference) -> Bool {
    guard harness.differences.contains(difference) else { return false }
    state.withLock { _ = $0.declared.insert(difference) }
    return true
  }

  var declared: [DeclaredDifference] { state.withLock { $0.declared.sorted { $0.rawValue < $1.rawValue } } }

  /// Leaves one invariant out for a case that breaks it on purpose; the reason stands beside the call.
  func exempt(_ invariant: String) { state.withLock { _ = $0.exempt.insert(invariant) } }
  func isExempt(_ invariant: String) -> Bool { state.withLock { $0.exempt.contains(invariant) } }

  /// What an app can do: the adapter's set with what the client adds.
  var capabilities: CapabilitySet { ClientCapabilities.effective(harness.capabilities) }
  func has(_ capability: Capability) -> Bool { capabilities.has(capability) }

  // MARK: Steps

  func step() { state.withLock { $0.step += 1 } }

  func failure(_ expected: String, _ observed: String) -> CaseFailure {
    CaseFailure(expected: expected, observed: observed, place: "\(id) step \(state.withLock { $0.step })")
  }

  func end() async {
    for device in devices { await device.chat.disconnect() }
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
