import ChatCrypto
import ChatJSON
import Foundation
import LeanCloudWire
import UnifiedChat

/// The rows of exported files: JSON Lines (`.jsonl`), JSON arrays and `{"results": […]}` (`.json`), each also with
/// `.gz`, one class a file, or pages of REST history that somebody saved; databases of the official client libraries,
/// known by what is in them (`LeanCloudDeviceDatabase`); and an app's own table of the 2014 model (`LeanCloudPeerTable`).
///
/// Rows stay as bytes, so that an export of many gigabytes of messages takes little more than its own size.
///
/// - Source: wire reference §9.6. A first line `#filetype:JSON-streaming {"type":"Class","class":"…"}` is the form of
///   the vendor's import files.
struct LeanCloudExportFiles: Sendable {
  struct Row: Sendable, Hashable {
    var buffer: Int
    var range: Range<Int>
  }

  private var buffers: [[UInt8]] = []
  /// By class; the items of histories stand under `messages`.
  private(set) var rows: [String: [Row]] = [:]
  /// Lines that are no JSON objects, with the file's name.
  private(set) var unreadable: [UnreadableRecord] = []
  /// What lies there and is not read, and what of it is missing, one thing each.
  private(set) var leftOut: [String] = []
  /// Records of the 2014 model that look the same, by how often they came.
  private var peers = LeanCloudPeerTable()

  static let history = "messages"
  /// Data of one compressed file; a small file can hold gigabytes of nothing.
  private static let gzipLimit = 8 << 30

  /// - Parameter path: one file, or a folder whose files are read in the order of their names.
  init(path: String) throws(ChatError) {
    for file in try Self.files(at: path) {
      try read(file, name: Self.name(of: file, in: path), isAlone: file == path)
    }
    guard !rows.isEmpty else {
      let isNothing = !unreadable.isEmpty && leftOut.isEmpty
      throw ChatError(
        .invalidArgument(field: "path"), operation: .readSource,
        detail: "there are no rows of conversations, users or messages in \(path)"
          + (isNothing ? ": it is neither JSON nor JSON Lines, CSV or a SQLite database" : "")
          + leftOut.map { "; \($0)" }.joined())
    }
  }

  /// Relative to a folder, so that two phones' files of one name can be told apart.
  private static func name(of file: String, in path: String) -> String {
    guard file.hasPrefix(path + "/") else { return file.split(separator: "/").last.map(String.init) ?? file }
    return String(file.dropFirst(path.count + 1))
  }

  func value(_ row: Row) -> JSONValue? { try? JSONValue(parsing: Array(buffers[row.buffer][row.range]), limits: LeanCloudJSON.limits) }

  // MARK: Finding

  private static func files(at path: String) throws(ChatError) -> [String] {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
      throw ChatError(.notFound, operation: .readSource, detail: "there is no file \(path)")
    }
    guard isFolder.boolValue else { return [path] }
    guard let names = FileManager.default.enumerator(atPath: path)?.compactMap({ $0 as? String }) else {
      throw ChatError(.storage(.denied), operation: .readSource, detail: "the folder \(path) cannot be read")
    }
    return names.sorted().map { path + "/" + $0 }.filter(isExport)
  }

  private static func isExport(_ path: String) -> Bool {
    let plain = path.hasSuffix(".gz") ? String(path.dropLast(3)) : path
    if [".json", ".jsonl", ".csv"].contains(where: plain.hasSuffix) { return true }
    // A log without its database may be all that is left of it.
    if path.hasSuffix("-wal"), let owner = LeanCloudDeviceDatabase.owner(of: path) {
      return !FileManager.default.fileExists(atPath: owner)
    }
    return LeanCloudDeviceDatabase.isDatabase(path)
  }

  private mutating func readDevice(_ file: String, name: String) throws(ChatError) {
    let database = try LeanCloudDeviceDatabase(path: file, name: name)
    guard let found = try LeanCloudDeviceRows(database) else {
      let tables = database.tables.keys.sorted().prefix(8).joined(separator: ", ")
      leftOut.append(
        "\(name): a database of none of LeanCloud's client libraries" + (tables.isEmpty ? "" : " (tables \(tables))"))
      return
    }
    add(found.channels, of: "_Conversation")
    add(found.messages, of: Self.history)
    unreadable += found.unreadable
    leftOut += found.leftOut
  }

  private mutating func add(_ objects: [JSONObject], of className: String) {
    var buffer: [UInt8] = []
    for object in objects {
      let start = buffer.count
      buffer += JSONValue.object(object).bytes()
      rows[className, default: []].append(Row(buffer: buffers.count, range: start..<buffer.count))
    }
    buffers.append(buffer)
  }

  private mutating func read(_ file: String, name: String, isAlone: Bool) throws(ChatError) {
    if LeanCloudDeviceDatabase.isDatabase(file) { return try readDevice(file, name: name) }
    if file.hasSuffix("-wal") {
      leftOut.append("\(name): the log of a database that does not lie beside it")
      return
    }
    var bytes: [UInt8]
    do { bytes = Array(try Data(contentsOf: URL(filePath: file), options: .mappedIfSafe)) } catch {
      throw ChatError(.storage(.denied), operation: .readSource, detail: "\(file) cannot be read")
    }
    // The same row twice in one table is two messages; in two tables it is one, which two phones have.
    peers = LeanCloudPeerTable()
    let path = name
    let name = name.split(separator: "/").last.map(String.init) ?? name
    if bytes.starts(with: [0x1F, 0x8B]) {
      do { bytes = try Gzip.decompress(bytes, limit: Self.gzipLimit) } catch {
        throw ChatError(.protocolViolation, operation: .readSource, detail: "\(name) is damaged gzip: \(error)")
      }
    }
    // A byte order mark is no part of the text.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
    if LeanCloudPeerTable.isTable(name) {
      // Of a folder of many things, tables of something else; whoever names one file means it.
      if !isAlone, LeanCloudPeerTable.isForeign(bytes) {
        leftOut.append("\(path): a table without a column fromPeerId")
        return
      }
      return add(try peers.read(csv: bytes, path), of: Self.history)
    }
    let first = bytes.first { ![32, 9, 10, 13].contains($0) }
    if first == UInt8(ascii: "["), try addWhole(bytes, name, path) { return }
    if first == UInt8(ascii: "{"), try addResults(bytes, name, path) { return }
    try addLines(bytes, name, path)
  }

  // MARK: Forms

  private mutating func addWhole(_ bytes: [UInt8], _ name: String, _ path: String) throws(ChatError) -> Bool {
    guard let array = (try? JSONValue(parsing: bytes, limits: JSONLimits(size: .max, loneSurrogates: .replace)))?.array else { return false }
    try add(array, name, path)
    return true
  }

  /// `{"results": […]}`: what a query of the class answers. Lines of objects are no JSON document as a whole.
  private mutating func addResults(_ bytes: [UInt8], _ name: String, _ path: String) throws(ChatError) -> Bool {
    guard bytes.prefix(64).contains(UInt8(ascii: "r")), let object = (try? JSONValue(parsing: bytes, limits: JSONLimits(size: .max, loneSurrogates: .replace)))?.object else {
      return false
    }
    try add(object["results"]?.array ?? [.object(object)], name, path)
    return true
  }

  private mutating func add(_ values: [JSONValue], _ name: String, _ path: String) throws(ChatError) {
    let className = Self.className(of: name)
    var buffer: [UInt8] = []
    var found: [(String?, Range<Int>)] = []
    var ofPeers: [JSONObject] = []
    for (index, value) in values.enumerated() {
      guard let object = value.object else {
        unreadable.append(Self.unreadable("a value that is no object", name, JSONText(unchecked: value.text())))
        continue
      }
      if className == LeanCloudPeerTable.className || className == nil && LeanCloudPeerTable.isRow(object) {
        ofPeers.append(try peers.item(of: object, "\(path): item \(index + 1)"))
        continue
      }
      let start = buffer.count
      buffer += value.bytes()
      found.append((className ?? Self.className(of: object), start..<buffer.count))
    }
    let number = buffers.count
    buffers.append(buffer)
    for (name, range) in found { rows[name ?? "", default: []].append(Row(buffer: number, range: range)) }
    if !ofPeers.isEmpty { add(ofPeers, of: Self.history) }
  }

  private mutating func addLines(_ bytes: [UInt8], _ name: String, _ path: String) throws(ChatError) {
    let number = buffers.count
    var className = Self.className(of: name)
    var ofPeers: [JSONObject] = []
    var (start, lineNumber) = (0, 0)
    while start < bytes.count {
      let end = bytes[start...].firstIndex(of: 10) ?? bytes.count
      defer { start = end + 1 }
      let line = bytes[start..<end]
      lineNumber += 1
      guard let mark = line.first(where: { ![32, 9, 13].contains($0) }) else { continue }
      if mark == UInt8(ascii: "#") {
        className = Self.className(ofHeader: line) ?? className
        continue
      }
      // With a class that is known already a row is parsed when it is asked for.
      let row = Row(buffer: number, range: start..<end)
      if className == LeanCloudPeerTable.className {
        ofPeers.append(try peers.item(of: line, "\(path): line \(lineNumber)"))
      } else if let className {
        rows[className, default: []].append(row)
      } else if let object = (try? JSONValue(parsing: Array(line), limits: LeanCloudJSON.limits))?.object {
        if LeanCloudPeerTable.isRow(object) {
          ofPeers.append(try peers.item(of: object, "\(path): line \(lineNumber)"))
          continue
        }
        rows[Self.className(of: object) ?? "", default: []].append(row)
      } else {
        unreadable.append(Self.unreadable("a line that is no JSON object", name, Self.text(line)))
      }
    }
    buffers.append(bytes)
    if !ofPeers.isEmpty { add(ofPeers, of: Self.history) }
  }

  static func unreadable(_ reason: String, _ name: String, _ raw: JSONText?) -> UnreadableRecord {
    UnreadableRecord(kind: "file", id: name, reason: reason, raw: raw)
  }

  private static func text(_ line: ArraySlice<UInt8>) -> JSONText {
    JSONText(unchecked: JSONValue.string(String(decoding: line.prefix(4096), as: UTF8.self)).text())
  }

  // MARK: Classes

  /// `_Conversation.jsonl`, `_Conversation.2.json.gz`, `messages-2026-11.json`.
  private static func className(of file: String) -> String? {
    let stem = file.prefix { $0 != "." }
    if stem.hasPrefix(LeanCloudPeerTable.className) { return LeanCloudPeerTable.className }
    if stem.hasPrefix("_") || stem == "AVOSRealtimeGroups" { return String(stem) }
    return stem.hasPrefix(history) ? history : nil
  }

  private static func className(ofHeader line: ArraySlice<UInt8>) -> String? {
    guard let brace = line.firstIndex(of: UInt8(ascii: "{")) else { return nil }
    return (try? JSONValue(parsing: Array(line[brace...])))?["class"]?.string
  }

  /// By what only this class has.
  private static func className(of object: JSONObject) -> String? {
    if object["msg-id"] != nil { return history }
    if let name = object["className"]?.string { return name }
    if object["username"] != nil { return "_User" }
    if object["deviceType"] != nil, object["deviceToken"] ?? object["installationId"] != nil { return "_Installation" }
    if object["followee"] != nil { return "_Followee" }
    if object["follower"] != nil { return "_Follower" }
    if object["friend"] != nil, object["status"] != nil { return "_FriendshipRequest" }
    if object["msgId"] != nil, object["conv"] != nil { return "_SysMessage" }
    if object["clientId"] != nil, object["cid"] != nil { return "_ConversationMemberInfo" }
    if object["key"] != nil, object["mime_type"] != nil { return "_File" }
    let isConversation = ["m", "tr", "sys", "conv_type", "unique"].contains { object[$0] != nil }
    return isConversation ? "_Conversation" : nil
  }
}
