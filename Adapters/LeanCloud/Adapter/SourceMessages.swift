import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

extension LeanCloudSource {
  public func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<
    MessageRecord
  > {
    if let place = try LeanCloudCursor(cursor) { return try await history(in: channel, kind: place.kind, after: place) }
    guard LeanCloudPair.peers(of: channel) == nil else {
      return try await history(in: channel, kind: "logs", after: nil)
    }
    let row = try await object(channel)
    var page = try await history(in: channel, kind: Self.kind(of: row, model), after: nil)
    if options.from == nil, options.until == nil, let row, let gap = gap(row, channel, page) {
      page.unreadable.append(gap)
    }
    return page
  }

  /// By which endpoint a history is read. `logs` takes any id, also one whose conversation is gone, and the vendor
  /// names no other one for a service conversation.
  private static func kind(of row: JSONObject?, _ model: LeanCloudModel) -> String {
    guard let row, model == .conversation, row["sys"]?.bool != true,
      row["c"] != nil || row["conv_type"] != nil || row["m"] != nil
    else { return "logs" }
    return row["tr"]?.bool == true ? "chatrooms" : "conversations"
  }

  private func gap(
    _ row: JSONObject, _ channel: ChannelID, _ page: SourcePage<MessageRecord>
  ) -> UnreadableRecord? {
    LeanCloudRetention.gap(
      of: .init(
        createdAt: LeanCloudConversation.date(row["createdAt"]), lastMessageAt: LeanCloudConversation.date(row["lm"])),
      first: page.items.first?.message.createdAt, channel: channel, now: clock.now)
  }

  private func path(_ channel: ChannelID, _ kind: String) -> (path: String, query: [(String, String)]) {
    if kind == "logs" { return ("/1.1/rtm/messages/history", [("convid", LeanCloudPair.historyID(of: channel))]) }
    return ("/1.2/rtm/\(kind)/\(LeanCloudREST.percent(channel.rawValue))/messages", [])
  }

  /// Oldest first. Ends with an empty page, since a server may give fewer than asked.
  private func history(
    in channel: ChannelID, kind: String, after place: LeanCloudCursor?
  ) async throws(ChatError) -> SourcePage<MessageRecord> {
    let (path, fixed) = path(channel, kind)
    var query = fixed + [("reversed", "true"), ("limit", String(Self.pageSize))]
    // The two generations of the interface have two names for the start.
    let start = kind == "logs" ? "max_ts" : "timestamp"
    if let place {
      query.append((start, String(place.timestamp)))
      if !place.id.isEmpty { query.append(("msgid", place.id)) }
    } else if let from = options.from {
      query.append((start, String(from.milliseconds &- 1)))
    }
    if let until = options.until { query.append(("till_timestamp", String(until.milliseconds))) }
    let rows: [JSONValue]
    do { rows = try await metered(path, query: query) } catch {
      // A kind of conversation whose own endpoint the server does not have.
      guard error.kind == .notFound, kind != "logs", place == nil else { throw error }
      return try await history(in: channel, kind: "logs", after: nil)
    }
    return page(of: rows, in: channel, kind: kind)
  }

  private func page(of rows: [JSONValue], in channel: ChannelID, kind: String) -> SourcePage<MessageRecord> {
    var page = SourcePage<MessageRecord>(items: [], next: nil)
    for row in rows {
      let time = row["timestamp"]?.int.map { Timestamp(milliseconds: $0) }
      if let time, let until = options.until, time >= until { continue }
      page.add(LeanCloudRows.message(row, in: channel, rest.envelopes))
      if let time, let id = row["msg-id"]?.string {
        page.next = LeanCloudCursor(kind: kind, timestamp: time.milliseconds, id: id).cursor
      }
    }
    return page
  }

  // MARK: Files

  /// A message keeps the address that its file had when it was sent; where that is dead, the file's row says where the
  /// file is now.
  public func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    let files = LeanCloudFiles(rest: rest)
    var bytes: [UInt8]
    do { bytes = try await files.download(attachment, limit: .max, operation: .download) } catch {
      guard error.kind != .cancelled, let moved = try await presentAddress(of: attachment), moved != attachment.url
      else {
        throw error
      }
      var attachment = attachment
      attachment.url = moved
      bytes = try await files.download(attachment, limit: .max, operation: .download)
    }
    var rest = bytes[...]
    repeat {
      try await sink(Array(rest.prefix(1 << 20)))
      rest = rest.dropFirst(1 << 20)
    } while !rest.isEmpty
    bytes = []
  }

  /// From the row of `_File` that the message names, or whose key is the last part of the old address; nil: unknown.
  private func presentAddress(of attachment: Attachment) async throws(ChatError) -> String? {
    let row: JSONObject?
    let vendor = attachment.metadata.flatMap { try? JSONValue(parsing: $0.text) }
    if let id = vendor?["objId"]?.string {
      row = try await optionalRows("_File", after: nil, where: ["objectId": .string(id)]).rows.first
    } else if let key = Self.key(of: attachment.url) {
      row = try await optionalRows("_File", after: nil, where: ["key": .string(key)]).rows.first
    } else {
      row = nil
    }
    guard let row else { return nil }
    if let domain = options.fileDomain, let key = row["key"]?.string, !key.isEmpty {
      return domain + (domain.hasSuffix("/") ? "" : "/") + key
    }
    return row["url"]?.string
  }

  /// The path of an address without its host, percent escapes left as they are.
  static func key(of url: String?) -> String? {
    guard let url, let scheme = url.range(of: "://"), let slash = url[scheme.upperBound...].firstIndex(of: "/") else {
      return nil
    }
    let key = url[url.index(after: slash)...].prefix { $0 != "?" && $0 != "#" }
    return key.isEmpty ? nil : String(key)
  }
}

/// Where the reading of a history stopped: `conversations/1700000000000/<message id>`.
struct LeanCloudCursor: Sendable, Hashable {
  var kind: String
  var timestamp: Int64
  var id: String

  init(kind: String, timestamp: Int64, id: String) {
    self.kind = kind
    self.timestamp = timestamp
    self.id = id
  }

  init?(_ cursor: Cursor?) throws(ChatError) {
    guard let cursor else { return nil }
    let parts = cursor.rawValue.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let time = Int64(parts[1]) else {
      throw ChatError(.invalidArgument(field: "cursor"), operation: .readSource, detail: "no cursor of this source")
    }
    self.init(kind: String(parts[0]), timestamp: time, id: String(parts[2]))
  }

  var cursor: Cursor { Cursor("\(kind)/\(timestamp)/\(id)") }
}

extension LeanCloudStoredMessage {
  /// An item of REST history; its keys have hyphens. Patch time and mentions are in it where the server tells them.
  init?(history row: JSONValue, channel: String) {
    guard let id = row["msg-id"]?.string, let time = row["timestamp"]?.int, let data = row["data"]?.string else {
      return nil
    }
    self.init(
      channel: channel, id: id, from: row["from"]?.string ?? "", timestamp: time, data: data,
      isBinary: row["bin"]?.bool ?? false, patchTimestamp: row["patch-timestamp"]?.int,
      mentions: row["mention-pids"]?.array?.compactMap(\.string) ?? [],
      mentionsAll: row["mention-all"]?.bool ?? false)
  }
}
