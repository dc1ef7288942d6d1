import ChatCache
import UnifiedChat

/// What an app holds: one connection of one user, with everything they have seen and not yet sent in a cache.
///
/// It has the faces of an adapter, so that whatever works with one works with the other, and does once for all
/// vendors what adapters leave out: argument checks, the outbox with its retries, cached pages, gaps and catch-up,
/// one event per change, unread numbers, and what is kept on this device alone.
///
/// Calls are serialised on the actor; waiting for the network does not hold it. An event is published after the
/// cache has it, and after `disconnect()` returned no event comes.
public actor Chat: ChatAdapter {
  /// What a client can have with some vendor; `capabilities` says what it has with this one.
  public static let capabilities = CapabilitySet(
    Dictionary(uniqueKeysWithValues: Capability.allCases.map { ($0, CapabilityLevel.native) }))

  public nonisolated let vendor: VendorName
  /// Delegates by identifier, over the same stream as `events()`.
  public nonisolated let listeners: ListenerRegistry
  nonisolated let adapter: any ChatAdapter
  nonisolated let hub: EventHub
  nonisolated let clock: any ChatClock
  nonisolated let options: ChatOptions

  /// Open from the first `connect` or `open` on, also while disconnected.
  var cache: LocalCache?
  var user: UserID?
  /// Counted up with every opening and clearing of a cache.
  var session = 0
  var pump: Task<Void, Never>?
  /// Events of an earlier pump that are under way count no more.
  var pumpNumber = 0
  /// Between a `connect` and a `disconnect`.
  var isActive = false
  /// The link stands, as far as has been told.
  var isOnline = false
  /// Writing lifts the own read mark (`unread.sendClears`).
  var sendClears = false
  /// Set by `disconnect`: nothing is published any more.
  var isSilent = false
  /// Counted up whenever events may have been missed: what was asked before is not known to be the newest.
  var epoch = 0
  var publishedState = ConnectionState.disconnected(.initial)
  /// When others were last told that this user types, by channel.
  var typingTold: [ChannelID: Timestamp] = [:]

  // Sending
  var workers: [ChannelID: Task<Void, Never>] = [:]
  var waiters: [LocalID: [UInt64: CheckedContinuation<Result<Message, ChatError>, Never>]] = [:]
  var lastWaiter: UInt64 = 0
  var uploadProgress: [LocalID: UploadProgress] = [:]
  var uploads: [LocalID: Task<Result<Attachment, ChatError>, Never>] = [:]
  /// Acknowledged by the server; the disk has still to take that down.
  var acknowledged: [LocalID: Message] = [:]
  var jitter: JitterSource
  /// Written in this process and not settled yet: another one that shares the file may send them.
  var unsettled: Set<LocalID> = []
  /// Waits while another process sends.
  var outboxWatch: Task<Void, Never>?

  // Receiving
  /// Of channels that are being described by the server first.
  var held: [ChannelID: HeldEvents] = [:]
  /// Messages that a list or a page brought before anything told them: their push is still news.
  var unannounced: [ChannelID: [MessageID: Unannounced]] = [:]
  /// Told although the disk refused them: when they are read from the server, they are no news.
  var toldUnstored: [ChannelID: Set<MessageID>] = [:]
  /// Joined, made or heard of live since the channel list was last asked for: that list need not have them.
  var joinedMeanwhile: Set<ChannelID> = []
  /// The newest position announced as received, per channel.
  var lastAnnounced: [ChannelID: MessagePosition] = [:]
  /// The newest position told as backfilled, per channel.
  var lastCounted: [ChannelID: MessagePosition] = [:]
  var typing: [TypingKey: Task<Void, Never>] = [:]

  // Catching up
  var sync: Task<Void, Never>?
  var syncWanted = false
  /// Channels that were live when events were missed, and from where they are to be read on.
  var behind: [ChannelID: MessagePosition] = [:]
  /// Channels of which an event could not be stored: what the cache says of them has a hole that it does not know of,
  /// at the first message that was refused; `.highest` when it was something else.
  var unstored: [ChannelID: MessagePosition] = [:]
  /// The link was lost, and the disk refused to take that down: what the cache calls whole may be so no more.
  var isLossDue = false
  /// An event of this session was not stored, which may have been an edit or a recall.
  var hasLostChanges = false
  /// Words of recalled messages may stand on the disk still: another process was reading when they were to be erased.
  var isPurgeDue = false
  /// Channels whose log of edits is followed, or was tried to be.
  var followed: Set<ChannelID> = []
  var refreshes: [ChannelID: Task<Void, Never>] = [:]

  /// Over an adapter of one's own; a configured app uses `init(configuration:registry:)`.
  public init(adapter: any ChatAdapter, clock: any ChatClock = SystemClock(), options: ChatOptions = ChatOptions()) {
    self.adapter = adapter
    self.clock = clock
    self.options = options
    vendor = adapter.vendor
    hub = EventHub(capacity: options.eventCapacity)
    listeners = ListenerRegistry(hub: hub)
    jitter = JitterSource(seed: options.seed)
  }

  deinit {
    pump?.cancel()
    sync?.cancel()
    for task in workers.values { task.cancel() }
    outboxWatch?.cancel()
    for task in refreshes.values { task.cancel() }
    for task in typing.values { task.cancel() }
    cache?.close()
  }

  public nonisolated func events() -> ChatEventStream { hub.events() }

  public var capabilities: CapabilitySet {
    get async { ClientCapabilities.effective(await adapter.capabilities) }
  }

  public var state: ConnectionState { get async { await adapter.state } }
  public var currentUser: User? { get async { await adapter.currentUser } }

  /// What went wrong when the cache file was opened, and was mended.
  public var cacheRecovery: CacheRecovery? { cache?.recovery }

  func opened(_ operation: ChatError.Operation) throws(ChatError) -> LocalCache {
    guard let cache else {
      throw ChatError(.network(.offline), operation: operation, detail: "no user yet: call connect first")
    }
    return cache
  }

  /// Asks the vendor for somebody. All calls go through here, since while one is under way the user may log out and
  /// another one in: what was asked for the one is not stored, shown or acted on for the other.
  /// - Throws: what the call throws; `.cancelled` when the cache is not the same one any more.
  func ask<Answer>(_ call: @autoclosure () async throws(ChatError) -> Answer) async throws(ChatError) -> Answer {
    let before = session
    let answer: Answer
    do throws(ChatError) { answer = try await call() } catch {
      throw session == before ? error : .cancelled(error.operation)
    }
    guard session == before else { throw .cancelled(.cache) }
    return answer
  }

  /// What the vendor can do for the present user.
  func vendorCapabilities() async throws(ChatError) -> CapabilitySet { try await ask(await adapter.capabilities) }

  /// The same with what the client adds.
  func ownCapabilities() async throws(ChatError) -> CapabilitySet {
    ClientCapabilities.effective(try await vendorCapabilities())
  }

  nonisolated func log(_ level: Profile.LogLevel, _ line: String) { options.log?(level, line) }
}

struct TypingKey: Hashable {
  var channel: ChannelID
  var user: UserID
}

/// Random numbers that a seed makes repeatable.
struct JitterSource {
  private var state: UInt64?

  init(seed: UInt64?) { state = seed }

  /// 0..<1
  mutating func next() -> Double {
    guard var seed = state else { return Double.random(in: 0..<1) }
    // SplitMix64.
    seed &+= 0x9E37_79B9_7F4A_7C15
    state = seed
    var mixed = (seed ^ (seed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return Double((mixed ^ (mixed >> 31)) >> 11) / Double(UInt64(1) << 53)
  }
}
