import ChatInterchange
import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

/// Reads what was exported by hand, without any account: files of the dashboard (`_Conversation`, `_User`,
/// `_ConversationMemberInfo`, `AVOSRealtimeGroups`; as they are `_Installation`, `_Followee` and others) and saved pages of
/// REST history; beside them, what devices still have: databases of the official client libraries, and an app's own table
/// of the 2014 model. What the service told stands above what a device kept (`SecondHand`).
///
/// Merged with what is read over REST by putting both into one archive: ids tell what is the same.
public struct LeanCloudExport: ChatSource {
  public let vendor: VendorName = "leancloud"
  public let capabilities = LeanCloudCapabilities.conversation
  private let files: LeanCloudExportFiles
  private let options: LeanCloudSourceOptions
  private let envelopes: EnvelopeReader
  private let http: any HTTPClient
  private let timeout: Duration
  /// The last row of each conversation, in the order of ids.
  private let conversations: [(id: ChannelID, row: LeanCloudExportFiles.Row)]
  private let roles: [ChannelID: [UserID: MemberRole]]
  private let messages: [ChannelID: [Item]]
  private let orphans: [ChannelRecord]
  private let faults: [UnreadableRecord]
  private static let pageSize = 1000

  private struct Item: Sendable {
    var timestamp: Int64
    var id: MessageID
    var row: LeanCloudExportFiles.Row
    /// When its keeper knew it to be changed last; nil: as the service told it.
    var knownAt: Int64?
    /// Its id was made up here, since the table that it is from has none.
    var content: LeanCloudPeerTable.Content?
  }

  /// - Parameters:
  ///   - path: a file or a folder; see `LeanCloudExportFiles`.
  ///   - http: fetches the bytes of attachments, whose addresses need no account.
  /// - Throws: `.notFound`, or `.invalidArgument(field: "path")` when nothing in it belongs to chat.
  public init(
    path: String, http: any HTTPClient, envelopes: EnvelopeReader = EnvelopeReader(key: nil)
  ) throws(ChatError) {
    try self.init(
      path: path, http: http, options: LeanCloudSourceOptions(), timeout: .seconds(30), envelopes: envelopes)
  }

  init(
    path: String, http: any HTTPClient, options: LeanCloudSourceOptions, timeout: Duration,
    envelopes: EnvelopeReader = EnvelopeReader(key: nil)
  ) throws(ChatError) {
    let files = try LeanCloudExportFiles(path: path)
    self.files = files
    self.http = http
    self.options = options
    self.envelopes = envelopes
    self.timeout = timeout
    var faults = files.unreadable
    conversations = Self.conversations(files, &faults)
    roles = Self.roles(files)
    let read = Self.messages(files, &faults)
    messages = read.messages
    let named = Set(conversations.map(\.id))
    orphans = read.traces.list.map(\.record)
      .filter { !named.contains($0.channel.id) }.sorted { $0.channel.id < $1.channel.id }
    self.faults = faults
  }

  // MARK: Index

  private static func conversations(
    _ files: LeanCloudExportFiles, _ faults: inout [UnreadableRecord]
  ) -> [(id: ChannelID, row: LeanCloudExportFiles.Row)] {
    var last: [ChannelID: (row: LeanCloudExportFiles.Row, updated: Timestamp, isTold: Bool)] = [:]
    for name in ["AVOSRealtimeGroups", "_Conversation"] {
      for row in files.rows[name] ?? [] {
        guard let value = files.value(row), let id = value["objectId"]?.string, !id.isEmpty else {
          faults.append(
            LeanCloudExportFiles.unreadable(
              "a row without objectId", name, files.value(row).map { JSONText(unchecked: $0.text()) }))
          continue
        }
        let updated = LeanCloudConversation.date(value["updatedAt"]) ?? Timestamp(milliseconds: .min)
        let isTold = value[SecondHand.member] == nil
        if let known = last[ChannelID(id)] {
          if known.isTold != isTold ? known.isTold : known.updated > updated { continue }
        }
        last[ChannelID(id)] = (row, updated, isTold)
      }
    }
    return last.map { ($0.key, $0.value.row) }.sorted { $0.0 < $1.0 }
  }

  private static func roles(_ files: LeanCloudExportFiles) -> [ChannelID: [UserID: MemberRole]] {
    var roles: [ChannelID: [UserID: MemberRole]] = [:]
    for row in files.rows["_ConversationMemberInfo"] ?? [] {
      guard let value = files.value(row), let channel = value["cid"]?.string, let client = value["clientId"]?.string,
        let role = value["role"]?.string
      else { continue }
      roles[ChannelID(channel), default: [:]][UserID(client)] = LeanCloudConversation.role(named: role)
    }
    return roles
  }

  /// By channel in the order of time and id; the same message of two files is one.
  private static func messages(
    _ files: LeanCloudExportFiles, _ faults: inout [UnreadableRecord]
  ) -> (messages: [ChannelID: [Item]], traces: LeanCloudTraces) {
    var found: [ChannelID: [Item]] = [:]
    var traces = LeanCloudTraces([])
    for row in files.rows[LeanCloudExportFiles.history] ?? [] {
      guard let value = files.value(row), let name = value["conv-id"]?.string, let id = value["msg-id"]?.string,
        let time = value["timestamp"]?.int
      else {
        faults.append(
          LeanCloudExportFiles.unreadable(
            "a message without conv-id, msg-id or timestamp", LeanCloudExportFiles.history,
            files.value(row).map { JSONText(unchecked: $0.text()) }))
        continue
      }
      traces.add(value)
      let item = Item(
        timestamp: time, id: MessageID(id), row: row, knownAt: value[SecondHand.member].map { $0["at"]?.int ?? 0 },
        content: LeanCloudPeerTable.Content(value))
      found[ChannelID(name), default: []].append(item)
    }
    let unique = found.mapValues { items in Self.distinct(items) { files.value($0.row) } }
    var named: [ChannelID: [Item]] = [:]
    for trace in traces.list { named[trace.channel.id] = unique[ChannelID(trace.id)] }
    return (named, traces)
  }

  /// By id, in the order of time and id. A message that was edited between two exports keeps its id: what the service told
  /// stands above what a device kept, of two devices the later change, of two exports the file read last.
  private static func distinct(_ items: [Item], value: (Item) -> JSONValue?) -> [Item] {
    var best: [MessageID: Item] = [:]
    for item in items {
      guard let known = best[item.id] else {
        best[item.id] = item
        continue
      }
      switch (known.knownAt, item.knownAt) {
      case (nil, .some): continue
      case (.some(let old), .some(let new)) where new <= old: continue
      default: best[item.id] = item
      }
    }
    let sorted = best.values.sorted { ($0.timestamp, $0.id) < ($1.timestamp, $1.id) }
    guard sorted.contains(where: { $0.content != nil }) else { return sorted }
    // Where the service or another table tells the id, the made up one is of the same message.
    let named = Set(sorted.filter { $0.content == nil }.compactMap(value).compactMap(LeanCloudPeerTable.Content.init(any:)))
    return sorted.filter { $0.content.map { !named.contains($0) } ?? true }
  }

  // MARK: Source

  public func check() async throws(ChatError) -> SourceCheck {
    let all = messages.values.flatMap { [$0.first, $0.last] }.compactMap(\.?.timestamp)
    var notes = options.notes
    if let first = all.min(), let last = all.max() {
      notes.append(
        "messages in the files: from \(Timestamp(milliseconds: first)) to \(Timestamp(milliseconds: last))")
    } else {
      notes.append("the files hold no messages: the dashboard exports none, REST history does")
    }
    let leftOut = files.rows.keys.sorted().filter { !Self.understood.contains($0) }.map { name in
      "\(files.rows[name]?.count ?? 0) rows of \(name.isEmpty ? "an unknown class" : name): no part of chat"
    }
    let unnamed = messages.values.reduce(0) { $0 + $1.count { $0.content != nil } }
    if unnamed > 0 {
      notes.append(
        "\(unnamed) messages of the 2014 model come without an id: what the service has of them too is told apart only "
          + "where it lies in the same folder as saved pages of history")
    }
    return SourceCheck(
      users: files.rows["_User"]?.count ?? 0, channels: conversations.count + orphans.count,
      messages: messages.values.reduce(0) { $0 + $1.count }, notes: notes, leftOut: leftOut + files.leftOut)
  }

  private static let understood = Set(
    ["_User", "_Conversation", "_ConversationMemberInfo", "AVOSRealtimeGroups", LeanCloudExportFiles.history]
      + LeanCloudVendorRows.classes)

  private static func start(_ cursor: Cursor?) throws(ChatError) -> Int {
    guard let cursor else { return 0 }
    guard let number = Int(cursor.rawValue), number >= 0 else {
      throw ChatError(.invalidArgument(field: "cursor"), operation: .readSource, detail: "no cursor of this source")
    }
    return number
  }

  private static func page<Value: Sendable>(_ all: Int, after cursor: Cursor?) throws(ChatError) -> (
    range: Range<Int>, page: SourcePage<Value>
  ) {
    let first = min(try start(cursor), all)
    let end = min(first + pageSize, all)
    return (first..<end, SourcePage(items: [], next: end < all ? Cursor(String(end)) : nil))
  }

  public func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    let rows = files.rows["_User"] ?? []
    var (range, page): (Range<Int>, SourcePage<UserRecord>) = try Self.page(rows.count, after: cursor)
    if cursor == nil { page.unreadable = faults }
    for row in rows[range] {
      guard let object = files.value(row)?.object else {
        page.unreadable.append(LeanCloudExportFiles.unreadable("a line that is no JSON object", "_User", nil))
        continue
      }
      page.add(LeanCloudRows.user(object, options, envelopes))
    }
    return page
  }

  public func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    var (range, page): (Range<Int>, SourcePage<ChannelRecord>) = try Self.page(
      conversations.count + orphans.count, after: cursor)
    for index in range {
      if index >= conversations.count {
        page.items.append(orphans[index - conversations.count])
        continue
      }
      guard let object = files.value(conversations[index].row)?.object else { continue }
      page.add(LeanCloudRows.channel(object, envelopes))
    }
    return page
  }

  public func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord>
  {
    if let peers = LeanCloudPair.peers(of: channel) { return Self.page(of: peers, in: channel, [:]) }
    guard let row = row(of: channel), let value = files.value(row) else {
      return Self.page(of: authors(of: channel), in: channel, [:])
    }
    let names = value["m"]?.array?.compactMap(\.string) ?? []
    return Self.page(of: names.map { UserID($0) }, in: channel, roles[channel] ?? [:])
  }

  private static func page(
    of users: [UserID], in channel: ChannelID, _ roles: [UserID: MemberRole]
  ) -> SourcePage<MemberRecord> {
    SourcePage(
      items: users.map { id in
        MemberRecord(channel: channel, member: Member(user: User(id: id), role: roles[id] ?? .member))
      }, next: nil)
  }

  private func row(of channel: ChannelID) -> LeanCloudExportFiles.Row? {
    var low = 0
    var high = conversations.count
    while low < high {
      let middle = (low + high) / 2
      if conversations[middle].id < channel { low = middle + 1 } else { high = middle }
    }
    return low < conversations.count && conversations[low].id == channel ? conversations[low].row : nil
  }

  /// Of a conversation without a row, those who wrote in it.
  private func authors(of channel: ChannelID) -> [UserID] {
    var seen: Set<UserID> = []
    for item in messages[channel] ?? [] {
      if let name = files.value(item.row)?["from"]?.string, !name.isEmpty { seen.insert(UserID(name)) }
    }
    return seen.sorted()
  }

  public func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<
    MessageRecord
  > {
    let all = messages[channel] ?? []
    var (range, page): (Range<Int>, SourcePage<MessageRecord>) = try Self.page(all.count, after: cursor)
    for item in all[range] {
      let time = Timestamp(milliseconds: item.timestamp)
      if let from = options.from, time < from { continue }
      if let until = options.until, time >= until { continue }
      guard let value = files.value(item.row) else { continue }
      page.add(LeanCloudRows.message(value, in: channel, envelopes))
    }
    return page
  }

  /// Of the same row in several files the one read last.
  public func rows(after cursor: Cursor?) async throws(ChatError) -> SourcePage<VendorRow> {
    let all = LeanCloudVendorRows.classes.flatMap { name in (files.rows[name] ?? []).map { (name: name, row: $0) } }
    var (range, page): (Range<Int>, SourcePage<VendorRow>) = try Self.page(all.count, after: cursor)
    for item in all[range] {
      guard let object = files.value(item.row)?.object else {
        page.unreadable.append(LeanCloudExportFiles.unreadable("a line that is no JSON object", item.name, nil))
        continue
      }
      page.add(LeanCloudVendorRows.row(object, of: item.name, idColumn: options.userIDColumn))
    }
    return page
  }

  public func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    let bytes = try await LeanCloudFiles.fetch(
      attachment, limit: .max, http: http, timeout: timeout, operation: .download)
    var rest = bytes[...]
    repeat {
      try await sink(Array(rest.prefix(1 << 20)))
      rest = rest.dropFirst(1 << 20)
    } while !rest.isEmpty
  }
}
