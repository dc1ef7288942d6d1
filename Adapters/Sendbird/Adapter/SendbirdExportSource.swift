import ChatInterchange
import ChatJSON
import ChatTransport
import Foundation
import SendbirdWire
import UnifiedChat

/// Everything that stands in files of the vendor's data export: zip files as they came from the export link, or the
/// JSON documents inside them. No server is asked, but for the bytes of attachments.
///
/// Users, channels and messages may lie in several files whose times overlap: of two copies of a message the one that
/// changed last counts. All of it is held in memory. Users and channels that no file lists are taken from the messages
/// that name them. What the vendor leaves out of exports (reactions, threads' summaries) is absent here.
public actor SendbirdExportSource: ChatSource {
  public nonisolated var vendor: VendorName { SendbirdErrors.vendor }
  public nonisolated var capabilities: CapabilitySet { SendbirdCapabilities.all }

  private let http: any HTTPClient
  private let envelopes: EnvelopeReader
  private let users: [JSONObject]
  private let channels: [JSONObject]
  private let places: [ChannelID: Int]
  /// By channel, ascending by time, then id.
  private let messages: [ChannelID: [JSONObject]]
  private let unread: [UnreadableRecord]
  private static let page = 500

  /// - Parameter files: contents of zip files or JSON documents, in any order, with names for error messages.
  /// - Throws: `.invalidArgument(field: "exportFiles")` with the file's name, for what is neither.
  public init(
    files: [(name: String, bytes: [UInt8])], http: any HTTPClient, envelopes: EnvelopeReader = EnvelopeReader(key: nil)
  ) throws(ChatError) {
    var reader = Reader()
    for file in files { try reader.read(file.name, file.bytes) }
    self.http = http
    self.envelopes = envelopes
    users = reader.users.values
    let all = reader.channels.values
    channels = all
    places = Dictionary(
      all.indices.map { (ChannelID(all[$0].text("channel_url") ?? ""), $0) }, uniquingKeysWith: { first, _ in first })
    messages = reader.messages.mapValues { Self.sorted($0.values) }
    unread = reader.unreadable
  }

  /// `option` is a path, or a list of paths.
  init(option: JSONText, _ environment: AdapterEnvironment, _ transports: Transports) throws(ChatError) {
    let json = try? JSONValue(parsing: option.text)
    let paths = json?.array?.compactMap(\.string) ?? [json?.string].compactMap(\.self)
    guard !paths.isEmpty else { throw Self.wrong("must be a path or a list of paths") }
    try self.init(paths: paths, environment, transports)
  }

  /// `path` is a file, or a folder of which every `.zip` and `.json` is read.
  init(path: String, _ environment: AdapterEnvironment, _ transports: Transports) throws(ChatError) {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
      throw ChatError(.notFound, operation: .readSource, detail: "there is no file \(path)")
    }
    var paths = [path]
    if isFolder.boolValue {
      let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
      paths = names.filter(Self.isExport).sorted().map { path + "/" + $0 }
    }
    guard !paths.isEmpty else { throw Self.wrong("there are no files of an export in \(path)") }
    try self.init(paths: paths, environment, transports)
  }

  private static func isExport(_ name: String) -> Bool {
    let lower = name.lowercased()
    return lower.hasSuffix(".zip") || lower.hasSuffix(".json")
  }

  private init(paths: [String], _ environment: AdapterEnvironment, _ transports: Transports) throws(ChatError) {
    var files: [(String, [UInt8])] = []
    for path in paths {
      guard let data = FileManager.default.contents(atPath: path) else { throw Self.wrong("cannot read \(path)") }
      files.append((path, [UInt8](data)))
    }
    try self.init(files: files, http: transports.http, envelopes: EnvelopeReader(environment))
  }

  private static func wrong(_ detail: String) -> ChatError {
    ChatError(.invalidArgument(field: "exportFiles"), operation: .readSource, detail: detail)
  }

  private static func sorted(_ messages: [JSONObject]) -> [JSONObject] {
    let timed = messages.map { (at: $0.number("created_at") ?? 0, id: $0.number("message_id") ?? 0, json: $0) }
    return timed.sorted { ($0.at, $0.id) < ($1.at, $1.id) }.map(\.json)
  }

  // MARK: Files

  /// Items by id in the order in which the first copy of each came.
  private struct Shelf {
    private var places: [Key: Int] = [:]
    private(set) var values: [JSONObject] = []

    mutating func put(_ id: String, _ item: JSONObject, isBetter: (JSONObject) -> Bool) {
      if let place = places[Key(id)] {
        if isBetter(values[place]) { values[place] = item }
      } else {
        places[Key(id)] = values.count
        values.append(item)
      }
    }
  }

  private struct Reader {
    var users = Shelf()
    var channels = Shelf()
    var messages: [ChannelID: Shelf] = [:]
    var unreadable: [UnreadableRecord] = []

    mutating func read(_ name: String, _ bytes: [UInt8]) throws(ChatError) {
      guard SendbirdZip.isZip(bytes) else { return try readDocument(name, bytes) }
      do throws(SendbirdZip.Failure) {
        let entries = try SendbirdZip.read(bytes)
        for entry in entries where entry.name.lowercased().hasSuffix(".json") {
          do { try readDocument("\(name)/\(entry.name)", entry.bytes) } catch {
            unreadable.append(UnreadableRecord(kind: "file", id: entry.name, reason: error.detail))
          }
        }
      } catch {
        throw SendbirdExportSource.wrong("\(name): \(error)")
      }
    }

    mutating func readDocument(_ name: String, _ bytes: [UInt8]) throws(ChatError) {
      let document: JSONValue
      do { document = try JSONValue(parsing: bytes, limits: JSONLimits(size: .max, loneSurrogates: .replace)) } catch {
        throw SendbirdExportSource.wrong("\(name): \(error)")
      }
      let known = ["messages", "channel", "group_channels", "open_channels", "active_users", "deactivated_users"]
      guard let json = document.object, known.contains(where: { json[$0] != nil }) else {
        throw SendbirdExportSource.wrong("\(name): not a document of a data export")
      }
      for list in ["active_users", "deactivated_users"] {
        for user in json.list(list) { add(user: user, isFull: true) }
      }
      for list in ["group_channels", "open_channels"] {
        for item in json.list(list) { add(channel: item, isFull: true) }
      }
      if let channel = json["channel"] { add(channel: channel, isFull: false) }
      let url = json["channel"]?["channel_url"]?.string
      for message in json.list("messages") { add(message: message, in: url) }
    }

    private mutating func add(user value: JSONValue, isFull: Bool) {
      guard let json = value.object, let id = json.text("user_id"), !id.isEmpty else {
        if isFull { unreadable.append(SendbirdExportSource.unreadable("user", value, "no user_id")) }
        return
      }
      users.put(id, json) { _ in isFull }
    }

    private mutating func add(channel value: JSONValue, isFull: Bool) {
      guard let json = value.object, let url = json.text("channel_url"), !url.isEmpty else {
        unreadable.append(SendbirdExportSource.unreadable("channel", value, "no channel_url"))
        return
      }
      for list in ["members", "operators"] { for user in json.list(list) { add(user: user, isFull: false) } }
      // Documents of messages have the members in full; lists of channels know them by their short form.
      channels.put(url, json) { $0.list("members").count < json.list("members").count }
    }

    private mutating func add(message value: JSONValue, in url: String?) {
      guard let json = value.object, let id = json.number("message_id"), let url = json.text("channel_url") ?? url
      else {
        unreadable.append(SendbirdExportSource.unreadable("message", value, "no message_id or channel_url"))
        return
      }
      if let sender = json["user"] { add(user: sender, isFull: false) }
      let changed = json.number("updated_at") ?? 0
      messages[ChannelID(url), default: Shelf()].put(String(id), json) { known in
        changed > known.number("updated_at") ?? 0
          || (json.flag("is_removed") == true && known.flag("is_removed") != true)
      }
      channels.put(url, ["channel_url": .string(url), "member_count": 0]) { _ in false }
    }
  }

  private static func unreadable(_ kind: String, _ value: JSONValue, _ reason: String) -> UnreadableRecord {
    UnreadableRecord(kind: kind, reason: reason, raw: JSONText(unchecked: value.text()))
  }

  // MARK: Reading

  public func check() async throws(ChatError) -> SourceCheck {
    SourceCheck(
      users: users.count, channels: channels.count, messages: messages.values.reduce(0) { $0 + $1.count },
      notes: ["read from files of a data export: reactions and threads' summaries are not in them"])
  }

  /// A cursor is the number of items that have been read: files do not change.
  private func slice(_ items: [JSONObject], _ cursor: Cursor?) throws(ChatError) -> (
    part: ArraySlice<JSONObject>, next: Cursor?
  ) {
    let start = cursor.map { Int($0.rawValue) ?? -1 } ?? 0
    guard start >= 0, start <= items.count else {
      throw ChatError(.invalidArgument(field: "cursor"), operation: .readSource, detail: "no cursor of these files")
    }
    let end = min(items.count, start + Self.page)
    return (items[start..<end], end < items.count ? Cursor(String(end)) : nil)
  }

  public func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    let (part, next) = try slice(users, cursor)
    var page = SourcePage<UserRecord>(items: [], next: next)
    if cursor == nil { page.unreadable = unread }
    for raw in part {
      guard let wire = SendbirdUser(raw) else { continue }
      var (record, finding) = SendbirdMapping.userRecord(
        wire, raw: raw.without(["access_token", "session_tokens"]), .tool(envelopes))
      record.user.presence = nil
      if let finding { page.unreadable.append(UnreadableRecord(envelopeOf: "user", id: wire.id.rawValue, finding)) }
      page.items.append(record)
    }
    return page
  }

  public func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    let (part, next) = try slice(channels, cursor)
    var page = SourcePage<ChannelRecord>(items: [], next: next)
    for raw in part {
      do {
        guard let wire = SendbirdChannel(raw) else { throw RecordError(path: "/channel_url", reason: "missing") }
        let found = try SendbirdMapping.channelRecord(
          wire, raw: raw.without(["last_message", "members"]), .tool(envelopes))
        page.items.append(found.record)
        if let finding = found.finding {
          page.unreadable.append(UnreadableRecord(envelopeOf: "channel", id: wire.url.rawValue, finding))
        }
      } catch {
        page.unreadable.append(Self.unreadable("channel", .object(raw), "\(error)"))
      }
    }
    return page
  }

  private func channel(_ id: ChannelID) throws(ChatError) -> JSONObject {
    guard let place = places[id] else {
      throw ChatError(.notFound, operation: .readSource, detail: "no file holds this channel")
    }
    return channels[place]
  }

  public func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord>
  {
    let json = try self.channel(channel)
    var notes = SendbirdChannelNotes()
    var isImported = false
    if let wire = SendbirdChannel(json),
      let found = try? SendbirdMapping.channelRecord(wire, raw: json, .tool(envelopes))
    {
      (notes, isImported) = (found.notes, found.record.origin != nil)
    }
    let receipts = json.object("read_receipt") ?? JSONObject()
    let operators = Set(json.list("operators").compactMap { $0["user_id"]?.string.map { UserID($0) } })
    var page = SourcePage<MemberRecord>(items: [], next: nil)
    for value in json.list("members") {
      do {
        guard var wire = value.object.flatMap(SendbirdMember.init) else {
          throw RecordError(path: "/user_id", reason: "missing")
        }
        if notes.guests.contains(wire.user.id) { continue }
        wire.readAt = wire.readAt ?? receipts.number(wire.user.id.rawValue)
        if operators.contains(wire.user.id) { wire.role = "operator" }
        page.items.append(
          try SendbirdMapping.memberRecord(wire, channel: channel, notes: notes, isImported: isImported))
      } catch {
        page.unreadable.append(Self.unreadable("member", value, "\(error)"))
      }
    }
    do { page.items += try SendbirdMapping.absentMembers(notes, channel: channel, present: []) } catch {
      page.unreadable.append(UnreadableRecord(kind: "member", channel: channel, reason: "\(error)"))
    }
    return page
  }

  public func messages(
    in channel: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<MessageRecord> {
    _ = try self.channel(channel)
    let (part, next) = try slice(messages[channel] ?? [], cursor)
    var page = SourcePage<MessageRecord>(items: [], next: next)
    for raw in part {
      do {
        guard var wire = SendbirdMessage(raw) else { throw RecordError(path: "/message_id", reason: "missing") }
        wire.channelURL = channel
        let (record, finding) = try SendbirdMapping.record(wire, raw: raw, .tool(envelopes))
        page.items.append(record)
        if let finding {
          page.unreadable.append(
            UnreadableRecord(envelopeOf: "message", id: record.message.id?.rawValue, channel: channel, finding))
        }
      } catch {
        page.unreadable.append(Self.unreadable("message", .object(raw), "\(error)"))
      }
    }
    return page
  }

  public func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    guard let url = attachment.url else {
      throw ChatError(.invalidArgument(field: "url"), operation: .download, detail: "the attachment has no URL")
    }
    var rest = try await SendbirdREST.download(url, limit: .max, by: http, timeout: .seconds(60))[...]
    while !rest.isEmpty {
      try await sink(Array(rest.prefix(1 << 20)))
      rest = rest.dropFirst(1 << 20)
    }
  }
}
