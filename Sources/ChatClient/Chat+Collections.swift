import ChatCache
import UnifiedChat

/// What a live list of messages reads in one go.
struct MessageReading: Sendable {
  struct Mark: Sendable {
    var user: UserID
    var read: MessagePosition?
    var delivered: MessagePosition?
  }

  var owner: UserID
  /// nil: nothing is known where the list stood.
  var window: CachedWindow?
  var waiting: [Message]
  /// What this device alone has of the main list, while nothing else of it is loaded.
  var local: [Message]
  /// Of others.
  var marks: [Mark]
}

extension Chat {
  /// A live list of the messages of a channel; it shows what is cached at once and needs no connection for that.
  public func messageCollection(
    in channel: ChannelID, _ options: MessageListOptions = MessageListOptions()
  ) async -> MessageCollection {
    let collection = MessageCollection(chat: self, channel: channel, options: options)
    await collection.start()
    return collection
  }

  /// A live list of the channels of the connected user.
  public func channelCollection(_ options: ChannelListOptions = ChannelListOptions()) async -> ChannelCollection {
    let collection = ChannelCollection(chat: self, options: options)
    await collection.start()
    return collection
  }

  func reading(
    of channel: ChannelID, from low: MessagePosition?, to high: MessagePosition?, thread: MessageID?
  ) throws(ChatError) -> MessageReading {
    try opened(.history).read { session throws(ChatError) in
      var window: CachedWindow?
      if let low, let thread {
        let replies = try session.replies(under: thread, in: channel).filter { ($0.position ?? .highest) >= low }
        window = CachedWindow(messages: replies, hasOlder: false, hasNewer: false)
      } else if let low {
        window = try session.window(of: channel, from: low, to: high)
      }
      let marks = try session.members(of: channel).filter { $0.user.id != session.owner }.map {
        MessageReading.Mark(user: $0.user.id, read: $0.readPosition, delivered: $0.deliveredPosition)
      }
      return MessageReading(
        owner: session.owner, window: window,
        waiting: try session.waitingMessages(in: channel).filter { $0.threadParent == thread },
        local: low == nil && thread == nil
          ? try session.localMessages(in: channel, from: LocalPlace(of: .lowest), to: .last).map(\.message) : [],
        marks: marks.filter { $0.read != nil || $0.delivered != nil })
    }
  }

  /// The position of the first message that is not older than `time`, or the end of the channel.
  ///
  /// Found with one or two requests where positions are times, and by halving where they are numbers: vendors name places by
  /// position, not by time.
  /// - Throws: what reading history throws.
  public func position(at time: Timestamp, in channel: ChannelID) async throws(ChatError) -> MessagePosition {
    guard let newest = try await placedHistory(of: channel, .newest(1)).messages.last, let top = newest.position,
      newest.createdAt >= time
    else { return .highest }
    // Where positions are times, the place is known.
    if top.major == newest.createdAt.milliseconds {
      return MessagePosition(major: time.milliseconds, minor: 0, tail: "")
    }
    guard let oldest = try await placedHistory(of: channel, HistoryQuery(anchor: .oldest, direction: .newer, limit: 1))
      .messages.first, let bottom = oldest.position, oldest.createdAt < time
    else { return .lowest }
    // Below `low` everything is older; at `high` nothing is.
    var (low, high) = (bottom.major, top.major)
    var found = top
    // Wrapping, since a server may name any number; and never without end.
    for _ in 0..<64 where low < high {
      let middle = low &+ (high &- low) / 2
      let probe = HistoryQuery(
        anchor: .position(MessagePosition(major: middle, minor: 0, tail: "")), direction: .newer, limit: 1,
        isInclusive: true)
      guard let message = try await placedHistory(of: channel, probe).messages.first, let position = message.position else {
        high = middle
        continue
      }
      if message.createdAt >= time {
        found = min(found, position)
        high = middle
      } else {
        low = max(middle, position.major) &+ 1
      }
    }
    return found
  }

  func channelKeys() throws(ChatError) -> [ChannelKey] {
    try opened(.listChannels).read { session throws(ChatError) in try session.channelKeys() }
  }

  func channelKey(_ id: ChannelID) throws(ChatError) -> ChannelKey? {
    try opened(.listChannels).read { session throws(ChatError) in try session.channelKey(id) }
  }

  func cachedChannels(_ ids: [ChannelID]) throws(ChatError) -> [ChannelID: Channel] {
    try opened(.listChannels).read { session throws(ChatError) in
      var channels: [ChannelID: Channel] = [:]
      for id in ids { channels[id] = try session.channel(id) }
      return channels
    }
  }
}
