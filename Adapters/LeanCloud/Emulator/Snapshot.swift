import ChatCrypto
import ChatJSON
import ChatTransport
import LeanCloudWire

// The state as one JSON value. Sockets are gone in a restored machine; tokens stay, so that clients reopen.

extension LeanCloudEmulator {
  public func snapshot() -> JSONValue {
    var object = JSONObject()
    object["format"] = 1
    object["users"] = .array(userOrder.compactMap { users[Key($0)] }.map(Self.json))
    object["files"] = .array(files.values.sorted { $0.objectID < $1.objectID }.map(Self.json))
    object["fileOrder"] = .strings(fileOrder)
    object["conversations"] = .array(conversationOrder.compactMap { conversation($0) }.map(Self.json))
    object["forgotten"] = .array(forgotten.sorted { $0.key < $1.key }.map { Self.json($0.value) })
    object["tokens"] = .object(JSONObject(tokens.sorted { $0.key < $1.key }.map { ($0.key.text, Self.json($0.value)) }))
    object["undelivered"] = .object(
      JSONObject(
        undelivered.sorted { $0.key < $1.key }.map { entry in
          (entry.key.text, .array(entry.value.map { [.string($0.conversation), .string($0.id)] }))
        }))
    object["notifications"] = .object(
      JSONObject(
        notifications.sorted { $0.key < $1.key }.map { ($0.key.text, .array($0.value.map { .object($0) })) }))
    object["installations"] = Self.rows(installations)
    object["relations"] = Self.rows(relations)
    object["broadcasts"] = .array(
      broadcasts.map { item in
        [
          "conversation": .string(item.conversation), "message": Self.json(item.message),
          "validUntil": .int(item.validUntil),
        ]
      })
    object["toldBroadcasts"] = Self.lists(toldBroadcasts.mapValues { $0.sorted().map(\.text) })
    object["blockedByClient"] = Self.lists(blockedByClient.mapValues(\.list))
    object["disabled"] = .strings(disabled.sorted().map(\.text))
    object["aliases"] = .object(JSONObject(aliases.sorted { $0.key < $1.key }.map { ($0.key.text, .string($0.value)) }))
    return .object(object)
  }

  public func restore(_ snapshot: JSONValue) throws(EmulatorError) {
    guard snapshot["format"]?.int == 1 else {
      throw EmulatorError(
        .invalidSnapshot, "the snapshot's format is \(snapshot["format"]?.text() ?? "missing"), 1 is known")
    }
    reset()
    do throws(JSONError) {
      for row in try snapshot.requireArray("users") { addUser(try Self.user(row)) }
      for row in try snapshot.requireArray("files") {
        let file = try Self.file(row)
        files[Key(file.objectID)] = file
        if file.bytes != nil { filesByKey[Key(file.key)] = file.objectID }
        if let token = file.token { filesByToken[Key(token)] = file.objectID }
      }
      fileOrder = try snapshot.requireArray("fileOrder").compactMap(\.string)
      for row in try snapshot.requireArray("conversations") { add(try restored(row)) }
      for member in try snapshot.requireObject("tokens") {
        tokens[Key(member.key)] = IssuedToken(
          peer: try member.value.requireString("peer"), tag: member.value["tag"]?.string,
          deviceID: member.value["device"]?.string, expiresAt: try member.value.requireInt("expiresAt"),
          room: member.value["room"]?.string, roomUntil: member.value["roomUntil"]?.int ?? 0)
      }
      try restoreServices(snapshot)
    } catch { throw EmulatorError(.invalidSnapshot, error.description) }
    restoreQueues(snapshot)
  }

  private static func lists(_ lists: [Key: [String]]) -> JSONValue {
    .object(JSONObject(lists.sorted { $0.key < $1.key }.map { ($0.key.text, .strings($0.value)) }))
  }

  private static func rows(_ rows: [Key: ClassRow]) -> JSONValue {
    .array(
      rows.sorted { $0.key < $1.key }.map { entry in
        let row = entry.value
        return [
          "id": .string(row.objectID), "class": .string(row.className), "columns": .object(row.columns),
          "createdAt": .int(row.createdAt), "updatedAt": .int(row.updatedAt),
        ]
      })
  }

  private static func rows(_ value: JSONValue?, _ className: String) throws(JSONError) -> [Key: ClassRow] {
    var rows: [Key: ClassRow] = [:]
    for row in value?.array ?? [] {
      let id = try row.requireString("id")
      rows[Key(id)] = ClassRow(
        className: row["class"]?.string ?? className, objectID: id, columns: try row.requireObject("columns"),
        createdAt: try row.requireInt("createdAt"), updatedAt: try row.requireInt("updatedAt"))
    }
    return rows
  }

  private func restoreServices(_ snapshot: JSONValue) throws(JSONError) {
    for row in snapshot["forgotten"]?.array ?? [] {
      // Its members may have another unique conversation now.
      var object = row.object ?? JSONObject()
      object["unique"] = false
      let conversation = try restored(.object(object))
      forgotten[Key(conversation.id)] = conversation
    }
    installations = try Self.rows(snapshot["installations"], "_Installation")
    relations = try Self.rows(snapshot["relations"], "")
    for item in snapshot["broadcasts"]?.array ?? [] {
      broadcasts.append(
        Broadcast(
          conversation: try item.requireString("conversation"), message: try Self.message(item["message"] ?? .null),
          validUntil: try item.requireInt("validUntil")))
    }
    for member in snapshot["toldBroadcasts"]?.object ?? JSONObject() {
      toldBroadcasts[Key(member.key)] = Set((member.value.array ?? []).compactMap { $0.string.map(Key.init) })
    }
    for member in snapshot["blockedByClient"]?.object ?? JSONObject() {
      blockedByClient[Key(member.key)] = OrderedKeys((member.value.array ?? []).compactMap(\.string))
    }
  }

  private func reset() {
    forgotten = [:]
    installations = [:]
    relations = [:]
    broadcasts = []
    toldBroadcasts = [:]
    blockedByClient = [:]
    connections = [:]
    online = [:]
    tokens = [:]
    watchers = [:]
    undelivered = [:]
    disabled = []
    conversations = [:]
    conversationOrder = []
    conversationsOfClient = [:]
    uniqueConversations = [:]
    aliases = [:]
    users = [:]
    userOrder = []
    files = [:]
    fileOrder = []
    filesByKey = [:]
    filesByToken = [:]
    notifications = [:]
    appHistory = []
    appHistoryIsStale = true
  }

  private func restoreQueues(_ snapshot: JSONValue) {
    for member in snapshot["undelivered"]?.object ?? JSONObject() {
      undelivered[Key(member.key)] = (member.value.array ?? []).compactMap { pair in
        guard let conversation = pair[0]?.string, let id = pair[1]?.string else { return nil }
        return (conversation, id)
      }
    }
    for member in snapshot["notifications"]?.object ?? JSONObject() {
      notifications[Key(member.key)] = (member.value.array ?? []).compactMap(\.object)
    }
    for user in snapshot["disabled"]?.array ?? [] { if let text = user.string { disabled.insert(Key(text)) } }
    for member in snapshot["aliases"]?.object ?? JSONObject() { aliases[Key(member.key)] = member.value.string }
  }

  // MARK: Rows

  private static func json(_ user: UserRow) -> JSONValue {
    var object = JSONObject()
    object["id"] = .string(user.objectID)
    object["username"] = .string(user.username)
    object["columns"] = .object(user.columns)
    object["token"] = user.sessionToken.map { .string($0) }
    object["createdAt"] = .int(user.createdAt)
    object["updatedAt"] = .int(user.updatedAt)
    return .object(object)
  }

  private static func user(_ json: JSONValue) throws(JSONError) -> UserRow {
    UserRow(
      objectID: try json.requireString("id"), username: try json.requireString("username"),
      columns: try json.requireObject("columns"), sessionToken: json["token"]?.string,
      createdAt: try json.requireInt("createdAt"), updatedAt: try json.requireInt("updatedAt"))
  }

  private static func json(_ file: FileRow) -> JSONValue {
    var object = JSONObject()
    object["id"] = .string(file.objectID)
    object["key"] = .string(file.key)
    object["name"] = .string(file.name)
    object["mimeType"] = .string(file.mimeType)
    object["url"] = file.url.map { .string($0) }
    object["metaData"] = .object(file.metaData)
    object["bytes"] = file.bytes.map { .string(Base64.encode($0)) }
    object["token"] = file.token.map { .string($0) }
    object["createdAt"] = .int(file.createdAt)
    return .object(object)
  }

  private static func file(_ json: JSONValue) throws(JSONError) -> FileRow {
    FileRow(
      objectID: try json.requireString("id"), key: try json.requireString("key"), name: try json.requireString("name"),
      mimeType: try json.requireString("mimeType"), url: json["url"]?.string,
      metaData: try json.requireObject("metaData"), bytes: json["bytes"]?.string.flatMap { Base64.decode($0) },
      token: json["token"]?.string, createdAt: try json.requireInt("createdAt"))
  }

  private static func json(_ token: IssuedToken) -> JSONValue {
    var object = JSONObject()
    object["peer"] = .string(token.peer)
    object["tag"] = token.tag.map { .string($0) }
    object["device"] = token.deviceID.map { .string($0) }
    object["expiresAt"] = .int(token.expiresAt)
    object["room"] = token.room.map { .string($0) }
    object["roomUntil"] = .int(token.roomUntil)
    return .object(object)
  }

  private static func json(_ place: Place?) -> JSONValue? { place.map { [.int($0.timestamp), .string($0.id.text)] } }

  private static func place(_ json: JSONValue?) -> Place? {
    guard let time = json?[0]?.int, let id = json?[1]?.string else { return nil }
    return Place(timestamp: time, id: Key(id))
  }

  private static func json(_ conversation: Conversation) -> JSONValue {
    var object = JSONObject()
    object["id"] = .string(conversation.id)
    object["kind"] = .string(conversation.kind.rawValue)
    object["columns"] = .object(conversation.columns)
    object["creator"] = .string(conversation.creator)
    object["members"] = .array(conversation.members.list.map { memberJSON($0, conversation) })
    object["pushMuted"] = .strings(conversation.pushMuted.list)
    object["blocked"] = .strings(conversation.blocked.list)
    object["createdAt"] = .int(conversation.createdAt)
    object["updatedAt"] = .int(conversation.updatedAt)
    object["unique"] = .bool(conversation.isUnique)
    object["expiresAt"] = conversation.expiresAt.map { .int($0) }
    object["ttl"] = conversation.ttl.map { .int($0) }
    object["transientGroup"] = .bool(conversation.isTransientGroup)
    object["lastImported"] = json(conversation.lastImported)
    object["silenced"] = .object(
      JSONObject(conversation.silenced.sorted { $0.key < $1.key }.map { ($0.key.text, .int($0.value)) }))
    object["dt"] = .object(
      JSONObject(conversation.tokens.sorted { $0.key < $1.key }.map { ($0.key.text, .string($0.value)) }))
    object["messages"] = .array(conversation.messages.map(json))
    return .object(object)
  }

  private static func memberJSON(_ client: String, _ conversation: Conversation) -> JSONValue {
    let key = Key(client)
    var object = JSONObject()
    object["id"] = .string(client)
    object["joinedAt"] = conversation.joinedAt[key].map { .int($0) }
    object["read"] = json(conversation.marks[key]?.read)
    object["delivered"] = json(conversation.marks[key]?.delivered)
    object["role"] = conversation.roles[key].map { .string($0.role) }
    object["info"] = conversation.roles[key].map { .string($0.infoID) }
    return .object(object)
  }

  private static func json(_ message: StoredMessage) -> JSONValue {
    var object = JSONObject()
    object["id"] = .string(message.id)
    object["from"] = .string(message.from)
    object["timestamp"] = .int(message.timestamp)
    object["data"] = .string(message.data)
    if message.isBinary { object["binary"] = true }
    object["patch"] = message.patchTimestamp.map { .int($0) }
    if message.isRecalled { object["recalled"] = true }
    if !message.mentions.isEmpty { object["mentions"] = .strings(message.mentions) }
    if message.mentionsAll { object["mentionsAll"] = true }
    object["ackAt"] = message.ackAt.map { .int($0) }
    if message.wantsReceipt { object["receipt"] = true }
    if !message.receivers.isEmpty { object["receivers"] = .strings(message.receivers) }
    if message.isUplink { object["uplink"] = true }
    return .object(object)
  }

  private func restored(_ json: JSONValue) throws(JSONError) -> Conversation {
    guard let kind = Conversation.Kind(rawValue: try json.requireString("kind")) else {
      throw JSONError(.wrongType(expected: "kind", found: "another name"), path: "/kind")
    }
    let conversation = Conversation(
      id: try json.requireString("id"), kind: kind, createdAt: try json.requireInt("createdAt"))
    conversation.columns = try json.requireObject("columns")
    conversation.creator = try json.requireString("creator")
    conversation.updatedAt = try json.requireInt("updatedAt")
    conversation.pushMuted = OrderedKeys((json["pushMuted"]?.array ?? []).compactMap(\.string))
    conversation.blocked = OrderedKeys((json["blocked"]?.array ?? []).compactMap(\.string))
    conversation.expiresAt = json["expiresAt"]?.int
    conversation.ttl = json["ttl"]?.int
    conversation.isTransientGroup = json["transientGroup"]?.bool ?? false
    conversation.lastImported = Self.place(json["lastImported"])
    for member in json["silenced"]?.object ?? JSONObject() { conversation.silenced[Key(member.key)] = member.value.int }
    for member in json["dt"]?.object ?? JSONObject() { conversation.tokens[Key(member.key)] = member.value.string }
    for member in try json.requireArray("members") { try restoreMember(member, conversation) }
    for message in try json.requireArray("messages") {
      let stored = try Self.message(message)
      _ = conversation.insert(stored)
      if let time = stored.patchTimestamp { conversation.patches.append((time, Key(stored.id))) }
    }
    conversation.patches.sort { $0.time < $1.time }
    if json["unique"]?.bool == true { makeUnique(conversation) }
    return conversation
  }

  private func restoreMember(_ json: JSONValue, _ conversation: Conversation) throws(JSONError) {
    let client = try json.requireString("id")
    conversation.members.insert(client)
    conversation.joinedAt[Key(client)] = json["joinedAt"]?.int
    conversation.marks[Key(client)] = Marks(read: Self.place(json["read"]), delivered: Self.place(json["delivered"]))
    if let role = json["role"]?.string {
      conversation.roles[Key(client)] = (role, json["info"]?.string ?? newObjectID())
    }
  }

  private static func message(_ json: JSONValue) throws(JSONError) -> StoredMessage {
    var message = StoredMessage(
      id: try json.requireString("id"), from: try json.requireString("from"),
      timestamp: try json.requireInt("timestamp"), data: try json.requireString("data"))
    message.isBinary = json["binary"]?.bool ?? false
    message.patchTimestamp = json["patch"]?.int
    message.isRecalled = json["recalled"]?.bool ?? false
    message.mentions = (json["mentions"]?.array ?? []).compactMap(\.string)
    message.mentionsAll = json["mentionsAll"]?.bool ?? false
    message.ackAt = json["ackAt"]?.int
    message.wantsReceipt = json["receipt"]?.bool ?? false
    message.receivers = (json["receivers"]?.array ?? []).compactMap(\.string)
    message.isUplink = json["uplink"]?.bool ?? false
    return message
  }
}
