import ChatCrypto
import ChatInterchange
import ChatJSON
import LeanCloudWire
import UnifiedChat

/// What a client library kept on a device, in the forms in which the service tells it: rows of `_Conversation`, items of
/// REST history. Both are marked as second hand.
struct LeanCloudDeviceRows {
  private(set) var channels: [JSONObject] = []
  private(set) var messages: [JSONObject] = []
  private(set) var unreadable: [UnreadableRecord] = []
  /// What is in the database and is no message of the service, and what is missing there.
  private(set) var leftOut: [String] = []
  private let library: LeanCloudDeviceLibrary
  private let file: String
  private var gaps = LeanCloudDeviceGaps()
  private var unsent = 0

  typealias Value = LeanCloudDeviceDatabase.Value

  /// nil for a database of no known library.
  init?(_ database: LeanCloudDeviceDatabase) throws(ChatError) {
    guard let library = LeanCloudDeviceLibrary(database) else { return nil }
    self.library = library
    file = database.name
    try database.read(library.channelTable, columns: library.channelColumns) { row in addChannel(row) }
    let names = library.messages
    try database.read(
      library.messageTable, columns: names.all, orderedBy: [names.channel, names.time, names.id]
    ) { row in addMessage(row, isOfHistory: true) }
    if library == .swift { try readLastMessages(database) }
    if unsent > 0 {
      leftOut.append("\(file): \(unsent) messages that never reached the service (failed on the device)")
    }
    leftOut += gaps.notes(file)
  }

  // MARK: Channels

  private mutating func addChannel(_ row: [String: Value]) {
    guard let id = row[library == .swift ? "id" : "conversation_id"]?.text, !id.isEmpty else {
      return fault("channel", nil, nil, "a conversation without an id", row)
    }
    var object: JSONObject
    switch library {
    case .swift:
      guard let raw = row["raw_data"]?.json?.object else {
        return fault("channel", id, id, "raw_data is no JSON object", row)
      }
      object = raw
    case .objc: object = LeanCloudDeviceChannel.objectiveC(row)
    case .java: object = LeanCloudDeviceChannel.java(row)
    }
    object["objectId"] = .string(id)
    let written = LeanCloudConversation.date(object["updatedAt"]) ?? LeanCloudConversation.date(object["createdAt"])
    channels.append(
      SecondHand.mark(object, at: written?.milliseconds ?? 0, ["of": .string(library.rawValue)]))
    addNewest(of: object, id)
  }

  /// The newest message, which the service told with the conversation and a device may have never opened.
  private mutating func addNewest(of object: JSONObject, _ channel: String) {
    guard let id = object["msg_mid"]?.string, !id.isEmpty, let text = object["msg"]?.string,
      let time = object["msg_timestamp"]?.wholeNumber, LeanCloudDeviceTime.isPlausible(time)
    else { return }
    let patched = object["patch_timestamp"]?.wholeNumber.flatMap { $0 > 0 ? $0 : nil }
    var item: JSONObject = [
      "msg-id": .string(id), "conv-id": .string(channel), "timestamp": .int(time),
      "from": .string(object["msg_from"]?.string ?? ""), "bin": .bool(object["bin"]?.bool ?? false),
      "data": .string(text),
    ]
    if let patched { item["patch-timestamp"] = .int(patched) }
    item["mention-pids"] = object["mention_pids"]?.array.map { .array($0) }
    item["mention-all"] = object["mention_all"]?.bool.map { .bool($0) }
    messages.append(SecondHand.mark(item, at: patched ?? 0, ["of": .string(library.rawValue)]))
  }

  // MARK: Messages

  private mutating func addMessage(_ row: [String: Value], isOfHistory: Bool) {
    let names = library.messages
    let channel = row[names.channel]?.text ?? ""
    let id = row[names.id]?.text ?? ""
    let status = row[names.status]?.number
    let token = names.token.flatMap { row[$0]?.text } ?? ""
    // Its id is one that the client made up, or none.
    if status == library.failed || id.isEmpty || id == token {
      unsent += isOfHistory ? 1 : 0
      return
    }
    guard !channel.isEmpty else { return fault("message", id, nil, "a message without a conversation", row) }
    guard let time = row[names.time]?.number, LeanCloudDeviceTime.isPlausible(time) else {
      return fault("message", id, channel, "\(names.time) is no time in milliseconds", row)
    }
    let isBinary = names.binary.flatMap { row[$0]?.number } == 1
    guard let body = body(row[names.body], isBinary, isRecalled: status != nil && status == library.recalled) else {
      return fault("message", id, channel, "the library kept no readable \(names.body)", row)
    }
    let patched = row[names.patched]?.number.flatMap { $0 > 0 ? $0 : nil }
    var item: JSONObject = [
      "msg-id": .string(id), "conv-id": .string(channel), "timestamp": .int(time),
      "from": .string(row[names.sender]?.text ?? ""), "bin": .bool(isBinary), "data": .string(body),
    ]
    if let patched { item["patch-timestamp"] = .int(patched) }
    let mentions = mentions(row[names.mentions])
    if !mentions.isEmpty { item["mention-pids"] = .strings(mentions) }
    if let all = row[names.mentionsAll]?.number, all != 0 { item["mention-all"] = true }
    messages.append(SecondHand.mark(item, at: patched ?? 0, details(row, status)))
    if isOfHistory {
      gaps.add(channel, time, isMarked: (row[names.breakpoint]?.number ?? 0) != 0, library)
    }
  }

  /// What the device knows beside the message: when it was delivered and read, in milliseconds.
  private func details(_ row: [String: Value], _ status: Int64?) -> JSONObject {
    var details: JSONObject = ["of": .string(library.rawValue)]
    details["status"] = status.map { .int($0) }
    for (key, column) in [("delivered", library.messages.delivered), ("read", library.messages.read)] {
      if let time = row[column]?.number, time > 0 { details[key] = .int(time) }
    }
    return details
  }

  /// The body as REST history has it, where bytes are base64.
  private func body(_ value: Value?, _ isBinary: Bool, isRecalled: Bool) -> String? {
    guard let bytes = value?.bytes else { return isRecalled ? LeanCloudBody.recalledText : nil }
    if isBinary { return Base64.encode(bytes) }
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    guard isRecalled, (try? JSONValue(parsing: text, limits: LeanCloudJSON.limits))?["_lctype"]?.int != -127 else {
      return text
    }
    return LeanCloudBody.recalledText
  }

  /// A JSON array (Swift), a keyed archive of one (Objective-C), ids joined by commas (Java).
  private func mentions(_ value: Value?) -> [String] {
    guard let bytes = value?.bytes, !bytes.isEmpty else { return [] }
    switch library {
    case .swift: return value?.json?.array?.compactMap(\.string) ?? []
    case .objc: return LeanCloudKeyedArchive.value(of: bytes)?.array?.compactMap(\.string) ?? []
    case .java:
      // As the library reads it: white space parts as well.
      return (value?.text ?? "").split { $0 == "," || $0.isWhitespace }.map(String.init)
    }
  }

  /// The newest message of each conversation, with the columns of the table as members of a JSON object. The library
  /// stores no others of conversations that the user has never opened.
  private mutating func readLastMessages(_ database: LeanCloudDeviceDatabase) throws(ChatError) {
    try database.read("last_message", columns: ["conversation_id", "raw_data"]) { row in
      guard let object = row["raw_data"]?.json?.object else {
        let id = row["conversation_id"]?.text
        return fault("message", nil, id, "the last message is no JSON object", row)
      }
      var values: [String: Value] = [:]
      for member in object { values[member.key] = Value(member.value) }
      addMessage(values, isOfHistory: false)
    }
  }

  // MARK: Faults

  private mutating func fault(
    _ kind: String, _ id: String?, _ channel: String?, _ reason: String, _ row: [String: Value]
  ) {
    var raw = JSONObject()
    for (column, value) in row.sorted(by: { $0.key < $1.key }) { raw[column] = value.shown }
    unreadable.append(
      UnreadableRecord(
        kind: kind, id: id.flatMap { $0.isEmpty ? nil : $0 }, channel: channel.map { ChannelID($0) },
        reason: "\(file): \(reason)", raw: JSONText(unchecked: JSONValue.object(raw).text())))
  }
}

/// Where a database says that it may lack messages.
struct LeanCloudDeviceGaps {
  private struct Found {
    var channel: String
    var count = 0
    var from: Int64 = 0
    var until: Int64 = 0
  }

  private var found: [Found] = []
  private var beginnings = 0
  private var last: (channel: String, time: Int64, isMarked: Bool)?
  private static let shown = 100

  /// In the order of channels and times.
  mutating func add(_ channel: String, _ time: Int64, isMarked: Bool, _ library: LeanCloudDeviceLibrary) {
    defer { last = (channel, time, isMarked) }
    guard let last, last.channel.utf8.elementsEqual(channel.utf8) else {
      if isMarked { beginnings += 1 }
      return
    }
    guard library.isGap(before: isMarked, after: last.isMarked) else { return }
    if found.last?.channel.utf8.elementsEqual(channel.utf8) != true { found.append(Found(channel: channel, from: last.time)) }
    found[found.count - 1].count += 1
    found[found.count - 1].until = time
  }

  /// One line a channel.
  func notes(_ file: String) -> [String] {
    var notes = found.prefix(Self.shown).map { gap in
      "\(file): of conversation \(gap.channel) the device may lack messages at \(gap.count) places, from "
        + "\(Timestamp(milliseconds: gap.from)) to \(Timestamp(milliseconds: gap.until))"
    }
    if found.count > Self.shown {
      notes.append("\(file): of \(found.count - Self.shown) more conversations the device may lack messages in between")
    }
    if beginnings > 0 {
      notes.append("\(file): of \(beginnings) conversations there may be messages before the first one that the device has")
    }
    return notes
  }
}

enum LeanCloudDeviceTime {
  /// From 2001 to 9999, in milliseconds: seconds are none.
  static func isPlausible(_ time: Int64) -> Bool { (978_307_200_000...253_402_300_799_999).contains(time) }
}

/// Conversations of the two libraries that do not keep the service's row as JSON alone.
enum LeanCloudDeviceChannel {
  private typealias Value = LeanCloudDeviceDatabase.Value

  /// The row itself is a keyed archive; older versions have the columns alone, with times in seconds and members joined
  /// by commas.
  static func objectiveC(_ row: [String: LeanCloudDeviceDatabase.Value]) -> JSONObject {
    var object = row["raw_data"]?.bytes.flatMap(LeanCloudKeyedArchive.value(of:))?.object ?? JSONObject()
    if object["name"] == nil { object["name"] = row["name"]?.text.map { .string($0) } }
    if object["c"] == nil { object["c"] = row["creator"]?.text.map { .string($0) } }
    if object["m"] == nil, let names = row["members"]?.text {
      object["m"] = .strings(names.split(separator: ",").map(String.init))
    }
    if object["tr"] == nil, row["transient"]?.number == 1 { object["tr"] = true }
    if object["attr"] == nil {
      object["attr"] = row["attr"]?.bytes.flatMap(LeanCloudKeyedArchive.value(of:))?.object.map { .object($0) }
    }
    for (key, column) in [("createdAt", "create_at"), ("updatedAt", "update_at"), ("lm", "last_message_at")] {
      guard object[key] == nil, let seconds = row[column]?.real, seconds > 0,
        let time = Int64(exactly: (seconds * 1000).rounded())
      else { continue }
      object[key] = .string(LeanCloudID.iso(time))
    }
    return object
  }

  /// `instanceData` is the service's row as JSON; columns beside it hold parts of it.
  static func java(_ row: [String: LeanCloudDeviceDatabase.Value]) -> JSONObject {
    var object = row["instanceData"]?.json?.object ?? JSONObject()
    if object["attr"] == nil, let attributes = row["attr"]?.json?.object, !attributes.isEmpty {
      object["attr"] = .object(attributes)
    }
    if let members = row["members"]?.json?.array { object["m"] = .array(members) }
    if object["c"] == nil { object["c"] = row["creator"]?.text.map { .string($0) } }
    for key in ["createdAt", "updatedAt"] where object[key] == nil {
      object[key] = row[key]?.text.flatMap { $0.isEmpty ? nil : .string($0) }
    }
    if object["lm"] == nil, let time = row["lm"]?.number, time > 0 { object["lm"] = .string(LeanCloudID.iso(time)) }
    for (key, column) in [("tr", "isTransient"), ("sys", "sys"), ("temp", "temp")]
    where object[key] == nil && row[column]?.number == 1 { object[key] = true }
    return object
  }
}

extension LeanCloudDeviceDatabase.Value {
  init(_ json: JSONValue) {
    switch json {
    case .string(let text): self = .text(Array(text.utf8))
    case .int(let number): self = .integer(number)
    case .bool(let value): self = .integer(value ? 1 : 0)
    case .null: self = .null
    default: if let number = json.double { self = .real(number) } else { self = .text(json.bytes()) }
    }
  }

  /// Columns of texts hold blobs in some versions, and the other way round.
  var bytes: [UInt8]? {
    switch self {
    case .text(let bytes), .blob(let bytes): bytes
    default: nil
    }
  }

  var text: String? {
    switch self {
    case .text(let bytes), .blob(let bytes): String(validating: bytes, as: UTF8.self)
    case .integer(let number): String(number)
    default: nil
    }
  }

  /// Of a column of real numbers the whole one next to it.
  var number: Int64? {
    switch self {
    case .integer(let number): number
    case .real(let number): Int64(exactly: number.rounded())
    case .text(let bytes): Int64(String(decoding: bytes, as: UTF8.self))
    default: nil
    }
  }

  var real: Double? {
    switch self {
    case .integer(let number): Double(number)
    case .real(let number): number
    default: nil
    }
  }

  var json: JSONValue? { bytes.flatMap { try? JSONValue(parsing: $0, limits: LeanCloudJSON.limits) } }

  /// For a list of what could not be read: bytes as base64, and of long ones the beginning.
  fileprivate var shown: JSONValue {
    switch self {
    case .null: .null
    case .integer(let number): .int(number)
    case .real(let number): number.isFinite ? JSONValue(number) : .null
    case .text(let bytes): .string(String(decoding: bytes.prefix(4096), as: UTF8.self))
    case .blob(let bytes): .string("base64:" + Base64.encode(Array(bytes.prefix(3072))))
    }
  }
}

extension JSONValue {
  /// One library writes whole numbers as `1.0`.
  fileprivate var wholeNumber: Int64? { int ?? double.flatMap { Int64(exactly: $0.rounded()) } }
}
