import ChatCrypto
import ChatInterchange
import ChatJSON
import LeanCloudWire
import UnifiedChat

/// An app's own table of messages of the 2014 model, whose library kept none: CSV with a header, or JSON.
///
/// Columns, by name, whatever their case, `_`, `-` and spaces: who sent (`fromPeerId`), to whom (`toPeerId`) or into which
/// group (`groupId`), `message`, `timestamp` in milliseconds or as ISO 8601 in UTC, and `messageId` where the app kept it.
/// Aliases are below. Other columns are kept with the message as received.
struct LeanCloudPeerTable: Sendable {
  /// Files of JSON whose names begin so hold such rows.
  static let className = "peer-messages"
  private var seen: [[UInt8]: Int] = [:]

  enum Column: String, CaseIterable {
    case from = "fromPeerId"
    case to = "toPeerId"
    case group = "groupId"
    case message
    case timestamp
    case id = "messageId"

    fileprivate var names: [String] {
      switch self {
      case .from: ["frompeerid", "frompeer", "from", "sender", "senderid"]
      case .to: ["topeerid", "topeerids", "topeer", "to", "receiver", "receiverid"]
      case .group: ["groupid", "group", "roomid", "room"]
      case .message: ["message", "msg", "payload", "content", "text", "body"]
      case .timestamp: ["timestamp", "servertimestamp", "time", "ts", "sentat", "createdat"]
      case .id: ["messageid", "msgid", "id", "uid"]
      }
    }

    fileprivate init?(named name: String) {
      let plain = name.lowercased().filter { !"_- ".contains($0) }
      guard let column = Self.allCases.first(where: { $0.names.contains(plain) }) else { return nil }
      self = column
    }
  }

  /// What tells two messages apart where no id does.
  struct Content: Hashable, Sendable {
    private var parts: [[UInt8]]

    /// Of a message of such a table whose id was made up; nil for any other.
    init?(_ item: JSONValue) {
      guard item[SecondHand.member]?["unnamed"]?.bool == true else { return nil }
      self.init(any: item)
    }

    init?(any item: JSONValue) {
      guard let time = item["timestamp"]?.int, let data = item["data"]?.string else { return nil }
      parts = [Array(String(time).utf8), Array((item["from"]?.string ?? "").utf8), Array(data.utf8)]
    }
  }

  /// Whether the header names nobody who sent.
  static func isForeign(_ bytes: [UInt8]) -> Bool {
    var table = LeanCloudCSV(bytes, "")
    return (try? table.next())?.fields.contains { Column(named: $0) == .from } != true
  }

  static func isTable(_ name: String) -> Bool { name.hasSuffix(".csv") || name.hasSuffix(".csv.gz") }

  /// Whether a JSON object of a file without a telling name is such a row.
  static func isRow(_ object: JSONObject) -> Bool {
    guard object["msg-id"] == nil else { return false }
    let names = Set(object.keys.map { $0.lowercased().filter { !"_- ".contains($0) } })
    let isFromPeer = !names.isDisjoint(with: ["frompeerid", "frompeer"])
    return isFromPeer && !names.isDisjoint(with: Column.to.names + Column.group.names)
  }

  // MARK: JSON

  mutating func item(of line: ArraySlice<UInt8>, _ place: String) throws(ChatError) -> JSONObject {
    guard let object = (try? JSONValue(parsing: Array(line), limits: LeanCloudJSON.limits))?.object else {
      throw Self.wrong(place, "is no JSON object", "write one object a line")
    }
    return try item(of: object, place)
  }

  mutating func item(of object: JSONObject, _ place: String) throws(ChatError) -> JSONObject {
    var fields: [Column: String] = [:]
    var rest = JSONObject()
    for member in object {
      guard let column = Column(named: member.key), fields[column] == nil else {
        rest[member.key] = member.value
        continue
      }
      switch member.value {
      case .null: continue
      case .string(let text): fields[column] = text
      case .int(let number): fields[column] = String(number)
      case .array(let values) where values.count == 1 && values[0].string != nil: fields[column] = values[0].string
      // A body that is JSON itself.
      case .object where column == .message: fields[column] = member.value.text()
      default: throw Self.wrong(place, "\(member.key) is no text", "write one text or whole number there")
      }
    }
    return try item(of: fields, rest, place)
  }

  // MARK: CSV

  /// - Throws: `.invalidArgument(field: "path")` for the first thing that is wrong, with file and line.
  mutating func read(csv bytes: [UInt8], _ file: String) throws(ChatError) -> [JSONObject] {
    var table = LeanCloudCSV(bytes, file)
    guard let header = try table.next() else { throw Self.wrong(file, "is empty", "write a header and one row a message") }
    let columns = header.fields.map { Column(named: $0) }
    for column in Column.allCases where columns.count(where: { $0 == column }) > 1 {
      throw Self.wrong("\(file): line 1", "two columns are \(column.rawValue)", "name one of them otherwise")
    }
    for column in [Column.from, .message, .timestamp] where !columns.contains(column) {
      throw Self.wrong("\(file): line 1", "the header names no \(column.rawValue)", "rename the column that holds it")
    }
    guard columns.contains(.to) || columns.contains(.group) else {
      throw Self.wrong("\(file): line 1", "the header names neither toPeerId nor groupId", "rename the column that holds it")
    }
    var items: [JSONObject] = []
    while let row = try table.next() {
      let place = "\(file): line \(row.line)"
      guard row.fields.count == columns.count else {
        throw Self.wrong(
          place, "has \(row.fields.count) fields where the header has \(columns.count)",
          "put texts with commas, quotes or line breaks into \"double quotes\"")
      }
      var fields: [Column: String] = [:]
      var rest = JSONObject()
      for (index, text) in row.fields.enumerated() {
        if let column = columns[index] { fields[column] = text } else { rest[header.fields[index]] = .string(text) }
      }
      items.append(try item(of: fields, rest, place))
    }
    return items
  }

  // MARK: Items

  private mutating func item(
    of fields: [Column: String], _ rest: JSONObject, _ place: String
  ) throws(ChatError) -> JSONObject {
    let from = fields[.from] ?? ""
    let (to, group) = (fields[.to] ?? "", fields[.group] ?? "")
    guard !from.isEmpty else { throw Self.wrong(place, "fromPeerId is empty", "say who sent it") }
    guard to.isEmpty != group.isEmpty else {
      throw Self.wrong(
        place, to.isEmpty ? "toPeerId and groupId are both empty" : "toPeerId and groupId are both there",
        "say to whom it went, or into which group")
    }
    guard let message = fields[.message] else { throw Self.wrong(place, "has no message", "write its text there") }
    let time = try Self.time(fields[.timestamp] ?? "", place)
    let channel = group.isEmpty ? LeanCloudID.pair(from, to) : group
    let key = Array("\(channel)\u{0}\(from)\u{0}\(time)\u{0}\(message)".utf8)
    var details: JSONObject = ["of": "peers"]
    var id = fields[.id] ?? ""
    if id.isEmpty {
      // The same text twice in one millisecond is two messages.
      let number = seen[key, default: 0]
      seen[key] = number + 1
      id = Base64.urlEncode(Digest.md5(Array("peers:\(number):".utf8) + key))
      details["unnamed"] = true
    }
    if !rest.isEmpty { details["row"] = .object(rest) }
    var item: JSONObject = [
      "msg-id": .string(id), "conv-id": .string(channel), "timestamp": .int(time), "from": .string(from),
      "is-conv": false, "is-room": .bool(!group.isEmpty), "bin": false, "data": .string(message),
    ]
    if group.isEmpty { item["to"] = .string(to) }
    return SecondHand.mark(item, at: 0, details)
  }

  private static func time(_ text: String, _ place: String) throws(ChatError) -> Int64 {
    if let number = Int64(text) {
      guard LeanCloudDeviceTime.isPlausible(number) else {
        throw wrong(place, "timestamp \(number) is no time in milliseconds since 1970", "multiply seconds by 1000")
      }
      return number
    }
    guard let time = LeanCloudID.milliseconds(iso: text) else {
      throw wrong(
        place, "timestamp \"\(text.prefix(40))\" is no time",
        "write milliseconds since 1970, or 2014-07-01T08:30:00.000Z")
    }
    return time
  }

  static func wrong(_ place: String, _ what: String, _ mend: String) -> ChatError {
    ChatError(.invalidArgument(field: "path"), operation: .readSource, detail: "\(place): \(what); \(mend)")
  }
}

/// Rows of comma-separated values as RFC 4180 has them; a field in quotes may hold commas, quotes and line breaks.
struct LeanCloudCSV {
  struct Row {
    /// Where it begins, from 1.
    var line: Int
    var fields: [String]
  }

  private let bytes: [UInt8]
  private let file: String
  private var place = 0
  private var line = 1

  init(_ bytes: [UInt8], _ file: String) {
    self.bytes = bytes
    self.file = file
  }

  /// nil at the end. Empty lines are passed over.
  mutating func next() throws(ChatError) -> Row? {
    while place < bytes.count, [10, 13].contains(bytes[place]) {
      if bytes[place] == 10 { line += 1 }
      place += 1
    }
    guard place < bytes.count else { return nil }
    var row = Row(line: line, fields: [])
    while true {
      row.fields.append(try field(row.line))
      guard place < bytes.count else { return row }
      let end = bytes[place]
      place += 1
      if end == UInt8(ascii: ",") { continue }
      if end == 13, place < bytes.count, bytes[place] == 10 { place += 1 }
      line += 1
      return row
    }
  }

  /// Leaves the place at the mark behind the field.
  private mutating func field(_ start: Int) throws(ChatError) -> String {
    var text: [UInt8] = []
    guard place < bytes.count, bytes[place] == UInt8(ascii: "\"") else {
      let rest = bytes[place...]
      let end = rest.firstIndex { [10, 13, UInt8(ascii: ",")].contains($0) } ?? bytes.count
      defer { place = end }
      return try checked(Array(bytes[place..<end]), start)
    }
    place += 1
    while true {
      guard place < bytes.count else {
        throw LeanCloudPeerTable.wrong("\(file): line \(start)", "a quote is opened and never closed", "close it")
      }
      let byte = bytes[place]
      place += 1
      if byte == UInt8(ascii: "\"") {
        guard place < bytes.count, bytes[place] == UInt8(ascii: "\"") else { break }
        place += 1
      }
      if byte == 10 { line += 1 }
      text.append(byte)
    }
    guard place >= bytes.count || [10, 13, UInt8(ascii: ",")].contains(bytes[place]) else {
      throw LeanCloudPeerTable.wrong(
        "\(file): line \(start)", "text stands behind a closing quote", "write a quote within a text twice")
    }
    return try checked(text, start)
  }

  private func checked(_ text: [UInt8], _ start: Int) throws(ChatError) -> String {
    guard let text = String(validating: text, as: UTF8.self) else {
      throw LeanCloudPeerTable.wrong("\(file): line \(start)", "is not UTF-8", "save the file as UTF-8")
    }
    return text
  }
}
