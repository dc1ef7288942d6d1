import Synchronization

/// For those who like delegates: every method has an empty default. Registered by identifier; the same identifier
/// again replaces the earlier listener. Methods are called in the order of the events, on no particular thread.
public protocol ConnectionListener: Sendable {
  func connectionChanged(_ state: ConnectionState) async
  func syncChanged(_ state: SyncState) async
}

public protocol ChannelListener: Sendable {
  func channelJoined(_ channel: Channel) async
  func channelLeft(_ channel: ChannelID, reason: DepartureReason) async
  func channelChanged(_ channel: Channel) async
  func channelDeleted(_ channel: ChannelID) async
  func memberJoined(_ member: Member, in channel: ChannelID) async
  func memberLeft(_ user: UserID, in channel: ChannelID, reason: DepartureReason) async
  func unreadChanged(_ count: UnreadCount, in channel: ChannelID) async
  func typingChanged(_ user: UserID, in channel: ChannelID, isTyping: Bool) async
}

public protocol MessageListener: Sendable {
  func messageReceived(_ message: Message) async
  func messageSent(_ message: Message) async
  func messageFailed(_ message: Message) async
  func messageUpdated(_ message: Message) async
  func messageRecalled(_ message: Message) async
  func readChanged(by user: UserID, in channel: ChannelID, upTo position: MessagePosition) async
}

extension ConnectionListener {
  public func connectionChanged(_ state: ConnectionState) async {}
  public func syncChanged(_ state: SyncState) async {}
}

extension ChannelListener {
  public func channelJoined(_ channel: Channel) async {}
  public func channelLeft(_ channel: ChannelID, reason: DepartureReason) async {}
  public func channelChanged(_ channel: Channel) async {}
  public func channelDeleted(_ channel: ChannelID) async {}
  public func memberJoined(_ member: Member, in channel: ChannelID) async {}
  public func memberLeft(_ user: UserID, in channel: ChannelID, reason: DepartureReason) async {}
  public func unreadChanged(_ count: UnreadCount, in channel: ChannelID) async {}
  public func typingChanged(_ user: UserID, in channel: ChannelID, isTyping: Bool) async {}
}

extension MessageListener {
  public func messageReceived(_ message: Message) async {}
  public func messageSent(_ message: Message) async {}
  public func messageFailed(_ message: Message) async {}
  public func messageUpdated(_ message: Message) async {}
  public func messageRecalled(_ message: Message) async {}
  public func readChanged(by user: UserID, in channel: ChannelID, upTo position: MessagePosition) async {}
}

/// Runs listeners over one stream of events.
public final class ListenerRegistry: Sendable {
  private enum Kind: CaseIterable { case connection, channel, message }

  /// One object may listen in several ways under one name.
  private struct Key: Hashable {
    var kind: Kind
    var identifier: String
  }

  private struct State {
    var tasks: [Key: Task<Void, Never>] = [:]
  }

  private let hub: EventHub
  private let state = Mutex(State())

  public init(hub: EventHub) { self.hub = hub }

  deinit { removeAll() }

  public func add(_ listener: some ConnectionListener, identifier: String) {
    run(Key(kind: .connection, identifier: identifier)) { event in
      switch event.kind {
      case .connectionChanged(let state): await listener.connectionChanged(state)
      case .syncChanged(let state): await listener.syncChanged(state)
      default: break
      }
    }
  }

  public func add(_ listener: some ChannelListener, identifier: String) {
    run(Key(kind: .channel, identifier: identifier)) { event in
      switch event.kind {
      case .channelJoined(let channel): await listener.channelJoined(channel)
      case .channelLeft(let channel, let reason): await listener.channelLeft(channel, reason: reason)
      case .channelChanged(let channel): await listener.channelChanged(channel)
      case .channelDeleted(let channel): await listener.channelDeleted(channel)
      case .memberJoined(let channel, let member): await listener.memberJoined(member, in: channel)
      case .memberLeft(let channel, let user, let reason):
        await listener.memberLeft(user, in: channel, reason: reason)
      case .unreadChanged(let channel, let count): await listener.unreadChanged(count, in: channel)
      case .typingStarted(let channel, let user): await listener.typingChanged(user, in: channel, isTyping: true)
      case .typingEnded(let channel, let user): await listener.typingChanged(user, in: channel, isTyping: false)
      default: break
      }
    }
  }

  public func add(_ listener: some MessageListener, identifier: String) {
    run(Key(kind: .message, identifier: identifier)) { event in
      switch event.kind {
      case .messageReceived(let message): await listener.messageReceived(message)
      case .messageSent(let message): await listener.messageSent(message)
      case .messageFailed(let message): await listener.messageFailed(message)
      case .messageUpdated(let message): await listener.messageUpdated(message)
      case .messageRecalled(let message): await listener.messageRecalled(message)
      case .readChanged(let channel, let user, let position):
        await listener.readChanged(by: user, in: channel, upTo: position)
      default: break
      }
    }
  }

  public func remove(identifier: String) {
    let tasks = state.withLock { state in
      Kind.allCases.compactMap { state.tasks.removeValue(forKey: Key(kind: $0, identifier: identifier)) }
    }
    for task in tasks { task.cancel() }
  }

  public func removeAll() {
    let tasks = state.withLock { state in
      let tasks = state.tasks.values
      state.tasks = [:]
      return Array(tasks)
    }
    for task in tasks { task.cancel() }
  }

  private func run(_ key: Key, _ body: @escaping @Sendable (ChatEvent) async -> Void) {
    // The stream is opened before the task starts, so that no event in between is lost.
    let events = hub.events()
    let task = Task { for await event in events { await body(event) } }
    state.withLock { $0.tasks.updateValue(task, forKey: key) }?.cancel()
  }
}
