import ChatJSON
import LeanCloudWire
import UnifiedChat

/// The order of messages everywhere: time, then the bytes of the id.
struct Place: Hashable, Comparable, Sendable {
  var timestamp: Int64
  var id: Key

  static func < (left: Place, right: Place) -> Bool {
    left.timestamp == right.timestamp ? left.id < right.id : left.timestamp < right.timestamp
  }
}

struct StoredMessage: Sendable {
  var id: String
  var from: String
  var timestamp: Int64
  var data: String
  var isBinary = false
  var patchTimestamp: Int64?
  var isRecalled = false
  var mentions: [String] = []
  var mentionsAll = false
  /// The first delivery to a device.
  var ackAt: Int64?
  var wantsReceipt = false
  /// The only ones who get it, in a service conversation.
  var receivers: [String] = []
  /// The address of the sender's request, for REST history.
  var fromIP = "127.0.0.1"

  /// From a subscriber to a service conversation.
  var isUplink = false

  var place: Place { Place(timestamp: timestamp, id: Key(id)) }
}

/// How far one client is in one conversation.
struct Marks: Sendable {
  /// Everything up to here is read; nil: nothing was read since the client is a member.
  var read: Place?
  var delivered: Place?
}

/// One conversation of the current model, or a pair or room of the 2014 model.
final class Conversation {
  enum Kind: String, Sendable {
    case normal, room, service, temporary
    /// The 2014 model: two peers, and an AVGroup.
    case pair, group

    var isFirstModel: Bool { self == .pair || self == .group }
    /// `convType` of pushes and `conv_type` of objects.
    var number: Int64 {
      switch self {
      case .normal, .pair, .group: 1
      case .room: 2
      case .service: 3
      case .temporary: 4
      }
    }
  }

  let id: String
  let kind: Kind
  /// `name`, `attr` and whatever else an app wrote.
  var columns = JSONObject()
  var creator = ""
  /// Members; of a service conversation, its subscribers.
  var members = OrderedKeys()
  var pushMuted = OrderedKeys()
  var createdAt: Int64
  var updatedAt: Int64
  var lastMessageAt: Int64?
  var isUnique = false
  var uniqueID: String?
  /// When a temporary one ends.
  var expiresAt: Int64?
  var ttl: Int64?
  /// An open group of the 2014 model.
  var isTransientGroup = false

  /// Ascending by place.
  var messages: [StoredMessage] = []
  var timeByID: [Key: Int64] = [:]
  /// `sender` and `dt` of accepted messages, to their ids.
  var tokens: [Key: String] = [:]
  var marks: [Key: Marks] = [:]
  /// Read marks of members that never read anything start here: what was imported counts as known.
  var lastImported: Place?
  var joinedAt: [Key: Int64] = [:]
  var roles: [Key: (role: String, infoID: String)] = [:]
  var blocked = OrderedKeys()
  /// Until when a client may not send; `.max` means without end.
  var silenced: [Key: Int64] = [:]
  /// Who is in a chat room now.
  var present = OrderedKeys()
  /// Edits and recalls by time, for replay after a reconnect.
  var patches: [(time: Int64, id: Key)] = []

  init(id: String, kind: Kind, createdAt: Int64) {
    self.id = id
    self.kind = kind
    self.createdAt = createdAt
    updatedAt = createdAt
  }

  // MARK: Messages

  /// The index of the first message at or after `place`.
  func lowerBound(_ place: Place) -> Int {
    var low = 0
    var high = messages.count
    while low < high {
      let middle = (low + high) / 2
      if messages[middle].place < place { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The index of the first message later than `timestamp`, or at it when `including`.
  func firstIndex(after timestamp: Int64, including: Bool) -> Int {
    var low = 0
    var high = messages.count
    while low < high {
      let middle = (low + high) / 2
      let time = messages[middle].timestamp
      if time < timestamp || (!including && time == timestamp) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  func index(of id: String) -> Int? {
    let key = Key(id)
    guard let time = timeByID[key] else { return nil }
    let place = Place(timestamp: time, id: key)
    let index = lowerBound(place)
    return index < messages.count && messages[index].place == place ? index : nil
  }

  /// False when the id is taken.
  func insert(_ message: StoredMessage) -> Bool {
    let key = Key(message.id)
    guard timeByID.updateValue(message.timestamp, forKey: key) == nil else {
      return false
    }
    if let last = messages.last, last.place > message.place {
      messages.insert(message, at: lowerBound(message.place))
    } else {
      messages.append(message)
    }
    lastMessageAt = max(lastMessageAt ?? .min, message.timestamp)
    return true
  }

  /// What `client` has not read.
  func unread(for client: String) -> (count: Int, mentioned: Bool, last: StoredMessage?) {
    var start = 0
    if let mark = marks[Key(client)]?.read ?? lastImported {
      start = lowerBound(mark)
      if start < messages.count, messages[start].place == mark { start += 1 }
    }
    var count = 0
    var mentioned = false
    var last: StoredMessage?
    let key = Key(client)
    for message in messages[start...] where Key(message.from) != key && !message.isRecalled {
      if !message.receivers.isEmpty, !message.receivers.contains(where: { Key($0) == key }) { continue }
      count += 1
      last = message
      if message.mentionsAll || message.mentions.contains(where: { Key($0) == key }) { mentioned = true }
    }
    return (count, mentioned, last)
  }

  // MARK: As an object

  /// As the storage class and `conv/results` show it. `compact` leaves the members out.
  func object(compact: Bool = false, withLastMessage: Bool = false, viewer: String? = nil) -> JSONObject {
    var object = JSONObject()
    object["objectId"] = .string(id)
    for member in columns { object[member.key] = member.value }
    if !creator.isEmpty { object["c"] = .string(creator) }
    if !compact, kind == .normal || kind == .temporary || kind.isFirstModel { object["m"] = .strings(members.list) }
    if !pushMuted.isEmpty { object["mu"] = .strings(pushMuted.list) }
    object["lm"] = lastMessageAt.map { ["__type": "Date", "iso": .string(LeanCloudID.iso($0))] }
    object["createdAt"] = .string(LeanCloudID.iso(createdAt))
    object["updatedAt"] = .string(LeanCloudID.iso(updatedAt))
    if kind == .normal { object["unique"] = .bool(isUnique) }
    object["uniqueId"] = uniqueID.map { .string($0) }
    if kind == .room { object["tr"] = true }
    if kind == .service { object["sys"] = true }
    if kind == .temporary {
      object["temp"] = true
      object["ttl"] = ttl.map { .int($0) }
    }
    if isTransientGroup { object["tr"] = true }
    object["conv_type"] = .int(kind.number)
    if kind == .service, let viewer {
      object["joined"] = .bool(members.contains(viewer))
      object["joinedAt"] = joinedAt[Key(viewer)].map { .int($0) }
    }
    if withLastMessage, let last = messages.last { writeLastMessage(last, to: &object) }
    return object
  }

  private func writeLastMessage(_ message: StoredMessage, to object: inout JSONObject) {
    object["msg"] = .string(message.data)
    if message.isBinary { object["bin"] = true }
    object["msg_mid"] = .string(message.id)
    object["msg_from"] = .string(message.from)
    object["msg_timestamp"] = .int(message.timestamp)
    object["patch_timestamp"] = message.patchTimestamp.map { .int($0) }
    if message.mentionsAll { object["mention_all"] = true }
    if !message.mentions.isEmpty { object["mention_pids"] = .strings(message.mentions) }
  }
}

/// A row of a class of which the server knows nothing but its columns: a device, a friend.
struct ClassRow: Sendable {
  var className: String
  var objectID: String
  var columns: JSONObject
  var createdAt: Int64
  var updatedAt: Int64

  var object: JSONObject {
    var object = JSONObject()
    object["objectId"] = .string(objectID)
    for member in columns { object[member.key] = member.value }
    object["createdAt"] = .string(LeanCloudID.iso(createdAt))
    object["updatedAt"] = .string(LeanCloudID.iso(updatedAt))
    return object
  }
}

/// A row of `_User`.
struct UserRow: Sendable {
  var objectID: String
  var username: String
  /// Everything but the id, the name and the dates.
  var columns = JSONObject()
  var sessionToken: String?
  var createdAt: Int64
  var updatedAt: Int64

  /// Without the session token, which only a login returns.
  var object: JSONObject {
    var object = JSONObject()
    object["objectId"] = .string(objectID)
    object["username"] = .string(username)
    for member in columns { object[member.key] = member.value }
    object["createdAt"] = .string(LeanCloudID.iso(createdAt))
    object["updatedAt"] = .string(LeanCloudID.iso(updatedAt))
    return object
  }
}

/// A row of `_File`, and its bytes where this server holds them.
struct FileRow: Sendable {
  var objectID: String
  var key: String
  var name: String
  var mimeType: String
  /// Of a file that lies elsewhere.
  var url: String?
  var metaData = JSONObject()
  var bytes: [UInt8]?
  /// An upload that has not been confirmed.
  var token: String?
  var createdAt: Int64
}
