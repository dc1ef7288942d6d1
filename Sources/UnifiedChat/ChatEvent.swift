/// Something that changed, told once to each subscriber.
public struct ChatEvent: Sendable, Hashable {
  public enum Source: String, Sendable, Hashable, CaseIterable { case live, echo, catchUp, backfill, local }

  public enum Kind: Sendable, Hashable {
    case connectionChanged(ConnectionState)
    case syncChanged(SyncState)
    case credentialRequested, credentialRenewed
    /// The link is open again: whatever happened meanwhile was not told. Emitted by adapters, before any later event,
    /// so that the client opens a gap in every channel; nil means all.
    case missedEvents(in: [ChannelID]?)

    /// Emitted by the client alone: an outgoing message was stored.
    case messagePending(Message)
    case messageSent(Message)
    case messageFailed(Message)
    case messageCancelled(Message)
    case messageReceived(Message)
    /// Edited, or its vendor fields changed: the whole new message.
    case messageUpdated(Message)
    /// The tombstone: same id and position, content `.recalled`.
    case messageRecalled(Message)
    /// Gone for this user alone.
    case messageHidden(ChannelID, MessageID)
    case messagesBackfilled(ChannelID, count: Int)
    case historyCleared(ChannelID, upTo: MessagePosition)
    case reactionsChanged(ChannelID, MessageID, [Reaction])

    /// This user became a member (or the channel was seen first).
    case channelJoined(Channel)
    case channelLeft(ChannelID, DepartureReason)
    case channelChanged(Channel)
    case channelDeleted(ChannelID)
    case invited(ChannelID, by: UserID?)
    case memberJoined(ChannelID, Member)
    case memberLeft(ChannelID, UserID, DepartureReason)
    case memberChanged(ChannelID, Member)

    case readChanged(ChannelID, UserID, MessagePosition)
    case deliveredChanged(ChannelID, UserID, MessagePosition)
    case unreadChanged(ChannelID, UnreadCount)
    case totalUnreadChanged(UnreadCount)
    case typingStarted(ChannelID, UserID)
    case typingEnded(ChannelID, UserID)
    case presenceChanged(UserID, Presence)

    /// This subscriber was too slow and lost so many events: read again what is shown.
    case overflow(dropped: Int)
  }

  public var kind: Kind
  public var source: Source
  /// Where the changes of messages stand once this event and all before it are stored, for
  /// `continueChanges(from:)` in a later process. Set by adapters whose vendor replays edits and recalls at a login.
  public var cursor: Cursor?

  public init(_ kind: Kind, source: Source = .live, cursor: Cursor? = nil) {
    self.kind = kind
    self.source = source
    self.cursor = cursor
  }
}

/// Why a member is gone.
public enum DepartureReason: Sendable, Hashable {
  case left
  case removed(by: UserID?)
  case banned(by: UserID?)
  case channelDeleted
  case unknown
}
