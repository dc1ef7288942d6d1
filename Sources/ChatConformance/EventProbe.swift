import ChatCache
import Synchronization
import UnifiedChat

/// Everything that one subscriber is told, kept in order.
final class EventProbe: Sendable {
  private let collector: Collector
  private let task: Task<Void, Never>

  /// - Parameter cache: where the events' subject must be readable at the moment they arrive.
  init(_ source: some ChatListening, cache: (identity: CacheIdentity, folder: String)? = nil) {
    let events = source.events()
    let collected = Collector(cache)
    collector = collected
    task = Task { for await event in events { collected.append(event) } }
  }

  private final class Collector: Sendable {
    let events = Mutex<[ChatEvent]>([])
    let missing = Mutex<[Message]>([])
    private let place: (identity: CacheIdentity, folder: String)?
    private let cache = Mutex<LocalCache?>(nil)

    init(_ place: (identity: CacheIdentity, folder: String)?) {
      self.place = place
      // Before anything is told: opening takes longer than a client needs to store.
      if let place, LocalCache.exists(place.identity, at: .directory(place.folder)) { _ = open() }
    }

    deinit { cache.withLock { $0?.close() } }

    func append(_ event: ChatEvent) {
      // Looked for before it is shown: whoever sees the event sees the verdict as well.
      defer { events.withLock { $0.append(event) } }
      guard place != nil, let message = event.kind.cachedMessage, let id = message.id else { return }
      let found = try? open()?.read { session throws(ChatError) in try session.message(id, in: message.channel) }
      if (found ?? nil) == nil { missing.withLock { $0.append(message) } }
    }

    private func open() -> LocalCache? {
      cache.withLock { cache in
        if cache == nil, let place { cache = try? LocalCache(place.identity, at: .directory(place.folder)) }
        return cache
      }
    }
  }

  /// Messages that were told and could not be read, but for those of channels in which something was taken away.
  func notInCache() -> [Message] {
    let emptied = Set(
      events.compactMap { event -> ChannelID? in
        switch event.kind {
        case .messageHidden(let channel, _), .historyCleared(let channel, _), .channelDeleted(let channel): channel
        default: nil
        }
      })
    return collector.missing.withLock { $0 }.filter { !emptied.contains($0.channel) }
  }

  deinit { task.cancel() }

  var events: [ChatEvent] { collector.events.withLock { $0 } }

  /// What was told after the first `count` events.
  func events(after count: Int) -> [ChatEvent] { Array(events.dropFirst(count)) }

  private func pick<Value>(_ choose: (ChatEvent.Kind) -> Value?) -> [Value] { events.compactMap { choose($0.kind) } }

  /// Received messages of a channel, in the order told.
  func received(in channel: ChannelID) -> [Message] {
    pick { if case .messageReceived(let message) = $0, message.channel == channel { message } else { nil } }
  }

  func sent(in channel: ChannelID) -> [Message] {
    pick { if case .messageSent(let message) = $0, message.channel == channel { message } else { nil } }
  }

  func failed(in channel: ChannelID) -> [Message] {
    pick { if case .messageFailed(let message) = $0, message.channel == channel { message } else { nil } }
  }

  func updated(in channel: ChannelID) -> [Message] {
    pick { if case .messageUpdated(let message) = $0, message.channel == channel { message } else { nil } }
  }

  func recalled(in channel: ChannelID) -> [Message] {
    pick { if case .messageRecalled(let message) = $0, message.channel == channel { message } else { nil } }
  }

  func backfilled(in channel: ChannelID) -> Int {
    pick { if case .messagesBackfilled(channel, let count) = $0 { count } else { nil } }.reduce(0, +)
  }

  func joined(_ channel: ChannelID) -> [Channel] {
    pick { if case .channelJoined(let joined) = $0, joined.id == channel { joined } else { nil } }
  }

  func changed(_ channel: ChannelID) -> [Channel] {
    pick { if case .channelChanged(let changed) = $0, changed.id == channel { changed } else { nil } }
  }

  func left(_ channel: ChannelID) -> [DepartureReason] {
    pick { if case .channelLeft(channel, let reason) = $0 { reason } else { nil } }
  }

  func deleted(_ channel: ChannelID) -> Int { count { if case .channelDeleted(channel) = $0 { true } else { false } } }

  func memberJoined(_ user: UserID, in channel: ChannelID) -> Int {
    count { if case .memberJoined(channel, let member) = $0 { member.user.id == user } else { false } }
  }

  func memberLeft(_ user: UserID, in channel: ChannelID) -> [DepartureReason] {
    pick { if case .memberLeft(channel, user, let reason) = $0 { reason } else { nil } }
  }

  func memberChanges(_ user: UserID, in channel: ChannelID) -> [Member] {
    pick {
      if case .memberChanged(channel, let member) = $0, member.user.id == user { member } else { nil }
    }
  }

  func reads(by user: UserID, in channel: ChannelID) -> [MessagePosition] {
    pick { if case .readChanged(channel, user, let position) = $0 { position } else { nil } }
  }

  func deliveries(to user: UserID, in channel: ChannelID) -> [MessagePosition] {
    pick { if case .deliveredChanged(channel, user, let position) = $0 { position } else { nil } }
  }

  func unread(in channel: ChannelID) -> [UnreadCount] {
    pick { if case .unreadChanged(channel, let count) = $0 { count } else { nil } }
  }

  /// true for a start, false for an end.
  func typing(by user: UserID, in channel: ChannelID) -> [Bool] {
    pick {
      switch $0 {
      case .typingStarted(channel, user): true
      case .typingEnded(channel, user): false
      default: nil
      }
    }
  }

  func reactions(of message: MessageID, in channel: ChannelID) -> [[Reaction]] {
    pick { if case .reactionsChanged(channel, message, let reactions) = $0 { reactions } else { nil } }
  }

  var connectionStates: [ConnectionState] { pick { if case .connectionChanged(let state) = $0 { state } else { nil } } }

  func count(_ matches: (ChatEvent.Kind) -> Bool) -> Int { events.count { matches($0.kind) } }
}

extension ChatEvent.Kind {
  /// A committed message that a listener may look up.
  fileprivate var cachedMessage: Message? {
    switch self {
    case .messageReceived(let message), .messageSent(let message), .messageUpdated(let message):
      message.position == nil ? nil : message
    default: nil
    }
  }
}
