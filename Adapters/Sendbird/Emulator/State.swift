import ChatJSON
import SendbirdWire
import UnifiedChat

/// A text compared by its bytes: keys of tables.
struct Key: OpaqueID {
  let rawValue: String
  init(_ rawValue: String) { self.rawValue = rawValue }
}

/// A user of the application.
final class Person {
  let id: UserID
  /// Creation counter: the order of lists.
  let order: Int64
  var nickname = ""
  var profileURL = ""
  var metadata = JSONObject()
  var isActive = true
  /// Seconds.
  var createdAt: Int64
  /// Milliseconds.
  var lastSeenAt: Int64 = 0
  var hasEverLoggedIn = false
  var accessToken: String?
  /// Expiry in ms by token.
  var sessionTokens: [Key: Int64] = [:]
  var preferredLanguages: [JSONValue] = []
  var discoveryKeys: [JSONValue] = []
  var autoAccept = true
  var pushPreference = Person.defaultPushPreference
  var pushTemplate = "default"
  /// Device tokens by kind: `gcm`, `apns`, `huawei`.
  var pushTokens: [String: [Key]] = [:]
  var blocked: Set<UserID> = []
  /// Channels in which the user is joined or invited.
  var rooms: [ChannelID: Room] = [:]
  /// Channels that the user lost, with the number and time of the change.
  var lost: [ChannelID: (number: Int64, at: Int64)] = [:]
  /// In the order in which they came.
  var friends: [UserID] = []
  /// Who came or went, ascending by number.
  var friendChanges: [(number: Int64, user: UserID)] = []
  /// Names by discovery key.
  var discoveries = JSONObject()
  var allowsDiscovery = true
  /// The unread numbers that were told last, and their time; ms.
  var toldUnread: (count: JSONObject, at: Int64) = (JSONObject(), 0)
  /// The settings of a bot; nil for people.
  var bot: JSONObject?

  static let defaultPushPreference: JSONObject = [
    "push_trigger_option": "all", "do_not_disturb": false, "start_hour": 0, "start_min": 0, "end_hour": 0,
    "end_min": 0, "timezone": "UTC", "snooze_enabled": false, "snooze_start_ts": 0, "snooze_end_ts": 0,
    "push_sound": "default", "block_push_from_bots": false,
  ]

  init(id: UserID, order: Int64, createdAt: Int64) {
    self.id = id
    self.order = order
    self.createdAt = createdAt
  }

  /// Where each one's change is numbered or told, so that every run does the same.
  var roomsInOrder: [Room] { rooms.values.sorted { $0.url < $1.url } }
}

/// One user's place in one group channel.
final class Membership {
  let person: Person
  /// `joined` or `invited`.
  var state: String
  var isOperator = false
  /// Milliseconds.
  var joinedAt: Int64
  var invitedAt: Int64 = 0
  var inviter: UserID?
  /// nil once it is answered.
  var invitation: Invitation?
  /// Everything created up to here is read; ms.
  var readAt: Int64
  var deliveredAt: Int64
  var unread: Int64 = 0
  var mentions: Int64 = 0
  var hiddenState = "unhidden"
  /// What is older is not shown to this user; ms.
  var historyOffset: Int64 = 0
  var pushTrigger = "default"
  var pushSound = "default"
  var countPreference = "all"

  init(_ person: Person, state: String, at now: Int64) {
    self.person = person
    self.state = state
    joinedAt = now
    readAt = now
    deliveredAt = now
  }

  var isJoined: Bool { state == "joined" }
}

/// A mute or a ban.
struct Restriction {
  var startAt: Int64
  /// -1: for ever.
  var endAt: Int64
  var description: String

  func isOver(at now: Int64) -> Bool { endAt >= 0 && endAt <= now }
}

final class StoredMessage {
  let id: Int64
  let createdAt: Int64
  var type: String
  var requestID = ""
  var updatedAt: Int64 = 0
  var text = ""
  var data = ""
  var customType = ""
  var sender: Person?
  var mentionType = "users"
  var mentions: [UserID] = []
  var file: SendbirdFile?
  var metaArrays: [SendbirdMetaArray] = []
  var reactions: [SendbirdReaction] = []
  var parentID: Int64 = 0
  var isReplyToChannel = false
  /// Ids of the direct replies, ascending.
  var replies: [Int64] = []
  var isSilent = false
  var isRemoved = false
  /// Texts by language.
  var translations = JSONObject()
  var mentionTemplate = ""
  /// Of the sending alone: no part of what is kept.
  var pushes = false

  init(id: Int64, type: String, createdAt: Int64) {
    self.id = id
    self.type = type
    self.createdAt = createdAt
  }

  func mentions(_ user: UserID) -> Bool { mentionType == "channel" || mentions.contains(user) }
}

/// One entry of a channel's message changelog.
struct Change {
  var number: Int64
  var at: Int64
  var messageID: Int64
}

/// A group or open channel.
final class Room {
  let url: ChannelID
  let number: Int64
  let isOpen: Bool
  var name = ""
  var coverURL = ""
  var data = ""
  var customType = ""
  /// Milliseconds; the wire has seconds.
  var createdAt: Int64
  var createdBy: UserID?
  var isDistinct = false
  var isSuper = false
  var isBroadcast = false
  var isPublic = false
  var isDiscoverable = false
  var isEphemeral = false
  var accessCode = ""
  var isFrozen = false
  var survivalSeconds: Int64 = -1
  var metadata = JSONObject()
  var counters = JSONObject()
  var members: [UserID: Membership] = [:]
  var operators: [UserID] = []
  var muted: [UserID: Restriction] = [:]
  var banned: [UserID: Restriction] = [:]
  /// Sockets of those who are in an open channel.
  var participants: [UserID: Set<UInt64>] = [:]
  /// Ascending by time, then id.
  var messages: [StoredMessage] = []
  var messageByID: [Int64: StoredMessage] = [:]
  var changes: [Change] = []
  /// Ids of pinned messages, in the order in which they were pinned.
  var pinned: [Int64] = []
  /// The number of the last change that a channel changelog shows.
  var lastChange: Int64
  var lastChangeAt: Int64
  /// Client ids seen, by sender: for `dedupRequestID`.
  var requestIDs: [Key: Int64] = [:]
  /// `dedup_id`s of the migration call.
  var dedupIDs: Set<Key> = []

  init(url: ChannelID, number: Int64, isOpen: Bool, createdAt: Int64, change: Int64) {
    self.url = url
    self.number = number
    self.isOpen = isOpen
    self.createdAt = createdAt
    lastChange = change
    lastChangeAt = createdAt
  }

  var joinedCount: Int64 { Int64(members.values.count { $0.isJoined }) }

  /// The newest message that counts as one: not removed, not silent.
  var lastMessage: StoredMessage? {
    messages.last { !$0.isRemoved && !$0.isSilent && ($0.parentID == 0 || $0.isReplyToChannel) }
  }

  /// The index of the first message at or after (`time`, `id`).
  func index(of time: Int64, _ id: Int64) -> Int {
    var (low, high) = (0, messages.count)
    while low < high {
      let middle = (low + high) / 2
      let message = messages[middle]
      if (message.createdAt, message.id) < (time, id) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  func insert(_ message: StoredMessage) {
    messageByID[message.id] = message
    if let last = messages.last, (last.createdAt, last.id) > (message.createdAt, message.id) {
      messages.insert(message, at: index(of: message.createdAt, message.id))
    } else {
      messages.append(message)
    }
    if let parent = messageByID[message.parentID] { parent.replies.append(message.id) }
  }
}

/// A session key and whose it is.
struct Session {
  var user: UserID
  var isExpiring: Bool
  /// nil: good. Else the code that its use answers with.
  var fault: Int64?
}

/// One logged-in WebSocket.
struct Connection {
  var user: UserID
  var key: Key
  /// Open channels that were entered by it, also those that were left since.
  var entered: Set<ChannelID> = []
}
