import ChatJSON
import LeanCloudWire
import UnifiedChat

/// What belongs to chat and has no place among the records: devices, friends, rows of files, what subscribers wrote to
/// service conversations and what single ones were sent.
enum LeanCloudVendorRows {
  /// Classes that an archive keeps as they are. An app that never used a part of the service lacks its class.
  static let classes = ["_Installation", "_Followee", "_Follower", "_FriendshipRequest", "_SysMessage", "_File"]
  /// What was said to everybody of the app and stands in no history.
  static let broadcast = "broadcast"
  /// What one subscriber of a service conversation was sent or wrote.
  static let subscriberMessage = "subscriber-message"

  /// A row of a class.
  /// - Parameters:
  ///   - idColumn: the column of `_User` that holds client ids; a pointer names the object id.
  ///   - people: client ids by object id, where they are different ones.
  static func row(
    _ row: JSONObject, of name: String, idColumn: String, people: [UserID: UserID] = [:]
  ) -> LeanCloudRows.Read<VendorRow> {
    let raw = JSONText(unchecked: JSONValue.object(row).text())
    guard let id = row["objectId"]?.string, !id.isEmpty else {
      return .failure(UnreadableRecord(kind: "row", reason: "a row of \(name) without objectId", raw: raw))
    }
    let pointer = row["user"]?["className"]?.string == "_User" ? row["user"]?["objectId"]?.string : nil
    let user = name == "_SysMessage" ? row["from"]?.string : idColumn == "objectId" ? pointer : nil
    return .success(
      VendorRow(
        kind: name, id: id, user: user.map { UserID($0) },
        channel: row["conv"]?["objectId"]?.string.map { ChannelID($0) },
        people: users(in: .object(row)).compactMap { people[$0] }, raw: raw))
  }

  /// Object ids of all users that a row points to, wherever in it.
  static func users(in value: JSONValue) -> [UserID] {
    switch value {
    case .array(let items): return items.flatMap(users)
    case .object(let object):
      if object["className"]?.string == "_User", let id = object["objectId"]?.string { return [UserID(id)] }
      return object.flatMap { users(in: $0.value) }
    default: return []
    }
  }

  /// An item of a history that belongs to one client, or to everybody.
  static func item(_ item: JSONValue, _ kind: String, of user: String?, in channel: String) -> LeanCloudRows.Read<VendorRow> {
    let raw = JSONText(unchecked: item.text())
    guard let id = item["msg-id"]?.string, !id.isEmpty else {
      return .failure(
        UnreadableRecord(kind: "row", channel: ChannelID(channel), reason: "a \(kind) without msg-id", raw: raw))
    }
    return .success(
      VendorRow(
        kind: kind, id: [channel, user, id].compactMap(\.self).joined(separator: "/"),
        user: (user ?? item["from"]?.string).map { UserID($0) }, channel: ChannelID(channel), raw: raw))
  }
}

/// Where the reading of rows stands: classes one after the other, then service conversations by id, and of each one its
/// broadcasts and its subscribers.
enum LeanCloudRowPlace: Sendable, Hashable {
  case list(name: String, after: String)
  case service(after: String)
  case broadcasts(channel: String, skipped: Int64)
  case subscriber(channel: String, after: String)
  case messages(channel: String, subscriber: String, timestamp: Int64, id: String)

  /// - Throws: `.invalidArgument(field: "cursor")`.
  init(_ cursor: Cursor) throws(ChatError) {
    let parts = (try? JSONValue(parsing: cursor.rawValue))?.array ?? []
    func text(_ index: Int) -> String { index < parts.count ? parts[index].string ?? "" : "" }
    switch (text(0), parts.count) {
    case ("list", 3) where LeanCloudVendorRows.classes.contains(text(1)): self = .list(name: text(1), after: text(2))
    case ("service", 2): self = .service(after: text(1))
    case ("broadcasts", 3): self = .broadcasts(channel: text(1), skipped: max(0, parts[2].int ?? 0))
    case ("subscriber", 3): self = .subscriber(channel: text(1), after: text(2))
    case ("messages", 5):
      self = .messages(channel: text(1), subscriber: text(2), timestamp: parts[3].int ?? 0, id: text(4))
    default:
      throw ChatError(.invalidArgument(field: "cursor"), operation: .readSource, detail: "no cursor of this source")
    }
  }

  var cursor: Cursor {
    let parts: [JSONValue] =
      switch self {
      case .list(let name, let last): ["list", .string(name), .string(last)]
      case .service(let last): ["service", .string(last)]
      case .broadcasts(let channel, let skipped): ["broadcasts", .string(channel), .int(skipped)]
      case .subscriber(let channel, let last): ["subscriber", .string(channel), .string(last)]
      case .messages(let channel, let client, let time, let id):
        ["messages", .string(channel), .string(client), .int(time), .string(id)]
      }
    return Cursor(JSONValue.array(parts).text())
  }
}

extension LeanCloudSource {
  public func rows(after cursor: Cursor?) async throws(ChatError) -> SourcePage<VendorRow> {
    // Classes belong to no channel: the first of several workers reads them.
    let start: LeanCloudRowPlace =
      options.index == 0 ? .list(name: LeanCloudVendorRows.classes[0], after: "") : .service(after: "")
    var place = start
    if let cursor { place = try LeanCloudRowPlace(cursor) }
    let (items, next) = try await rows(at: place)
    var page = SourcePage<VendorRow>(items: [], next: next?.cursor)
    for item in items { page.add(item) }
    return page
  }

  private typealias Rows = (items: [LeanCloudRows.Read<VendorRow>], next: LeanCloudRowPlace?)

  private func rows(at place: LeanCloudRowPlace) async throws(ChatError) -> Rows {
    switch place {
    case .list(let name, let last): try await classRows(name, after: last)
    case .service(let last): ([], try await service(after: last).map { .broadcasts(channel: $0, skipped: 0) })
    case .broadcasts(let channel, let skipped): try await broadcasts(channel, skipped)
    // A cursor may be of a reading that wanted them.
    case .subscriber(let channel, _) where !options.serviceHistories,
      .messages(let channel, _, _, _) where !options.serviceHistories:
      ([], .service(after: channel))
    case .subscriber(let channel, let last): try await subscriber(of: channel, after: last)
    case .messages(let channel, let client, let time, let id):
      try await personal(channel, client, after: (time, id))
    }
  }

  private func classRows(_ name: String, after last: String) async throws(ChatError) -> Rows {
    let page = try await optionalRows(name, after: last.isEmpty ? nil : Cursor(last))
    let people = try await clientIDs(of: page.rows)
    let items = page.rows.map {
      LeanCloudVendorRows.row($0, of: name, idColumn: options.userIDColumn, people: people)
    }
    if let next = page.next { return (items, .list(name: name, after: next.rawValue)) }
    let names = LeanCloudVendorRows.classes
    let following = (names.firstIndex(of: name) ?? names.count) + 1
    return (items, following < names.count ? .list(name: names[following], after: "") : .service(after: ""))
  }

  /// Client ids by object id of all users that the rows point to, where those are different ones.
  private func clientIDs(of rows: [JSONObject]) async throws(ChatError) -> [UserID: UserID] {
    guard options.userIDColumn != "objectId" else { return [:] }
    let ids = Array(Set(rows.flatMap { LeanCloudVendorRows.users(in: .object($0)) }))
    var people: [UserID: UserID] = [:]
    // An address holds only so many ids.
    for start in stride(from: 0, to: ids.count, by: 100) {
      let some = JSONValue.strings(ids[start..<min(start + 100, ids.count)].map(\.rawValue))
      for row in try await optionalRows("_User", after: nil, where: ["objectId": ["$in": some]]).rows {
        guard let id = row["objectId"]?.string else { continue }
        people[UserID(id)] = LeanCloudUser.user(row, idColumn: options.userIDColumn, .tool(rest.envelopes)).user.id
      }
    }
    return people
  }

  /// The next service conversation of this worker by id; nil: there is none.
  private func service(after last: String) async throws(ChatError) -> String? {
    guard model == .conversation else { return nil }
    var last = last
    var walk = PageWalk()
    while true {
      let page = try await optionalRows("_Conversation", after: last.isEmpty ? nil : Cursor(last), where: ["sys": true])
      for row in page.rows {
        if let id = row["objectId"]?.string, options.includes(ChannelID(id)) { return id }
      }
      guard let next = page.next else { return nil }
      try walk.advance(to: next.rawValue, .readSource)
      last = next.rawValue
    }
  }

  private func broadcasts(_ channel: String, _ skipped: Int64) async throws(ChatError) -> Rows {
    let found: [JSONValue]
    do {
      found = try await metered(
        "/1.2/rtm/broadcasts",
        query: [("conv_id", channel), ("limit", String(Self.pageSize)), ("skip", String(skipped))])
    } catch {
      // A plan without broadcasts has no list of them.
      guard error.kind == .notFound else { throw error }
      found = []
    }
    guard !found.isEmpty else {
      return ([], options.serviceHistories ? .subscriber(channel: channel, after: "") : .service(after: channel))
    }
    let items = found.map { LeanCloudVendorRows.item($0, LeanCloudVendorRows.broadcast, of: nil, in: channel) }
    return (items, .broadcasts(channel: channel, skipped: skipped &+ Int64(found.count)))
  }

  private func subscriber(of channel: String, after last: String) async throws(ChatError) -> Rows {
    var query = [("limit", "1")]
    if !last.isEmpty { query.append(("client_id", last)) }
    let answer: JSONValue
    do {
      answer = try await rest.call(
        "GET", "/1.2/rtm/service-conversations/\(LeanCloudREST.percent(channel))/subscribers", query: query,
        key: .master, operation: .readSource)
    } catch {
      // Deleted since it was listed: a pull goes on behind it.
      guard error.kind == .notFound else { throw error }
      return ([], .service(after: channel))
    }
    guard let client = answer[0]?["subscriber"]?.string, !client.isEmpty else { return ([], .service(after: channel)) }
    return try await personal(channel, client, after: nil)
  }

  /// Oldest first, until an empty page.
  private func personal(
    _ channel: String, _ client: String, after place: (time: Int64, id: String)?
  ) async throws(ChatError) -> Rows {
    var query = [("reversed", "true"), ("limit", String(Self.pageSize))]
    if let place { query += [("timestamp", String(place.time)), ("msgid", place.id)] }
    let found: [JSONValue]
    do {
      found = try await metered(
        "/1.2/rtm/service-conversations/\(LeanCloudREST.percent(channel))/subscribers/\(LeanCloudREST.percent(client))/messages",
        query: query)
    } catch {
      guard error.kind == .notFound else { throw error }
      found = []
    }
    guard let last = found.last, let time = last["timestamp"]?.int, let id = last["msg-id"]?.string else {
      return ([], .subscriber(channel: channel, after: client))
    }
    let items = found.map { LeanCloudVendorRows.item($0, LeanCloudVendorRows.subscriberMessage, of: client, in: channel) }
    return (items, .messages(channel: channel, subscriber: client, timestamp: time, id: id))
  }
}
