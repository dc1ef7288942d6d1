import ChatJSON
import SendbirdWire
import UnifiedChat

/// Pages of any size out of the vendor's lists around a point, which have neither token nor has-more.
///
/// Inside a page the anchor is a message id, so that any number of messages of one millisecond page completely.
struct SendbirdHistory: Sendable {
  typealias Item = (wire: SendbirdMessage, raw: JSONObject)
  typealias Fetch = @Sendable (SendbirdQuery) async throws(ChatError) -> [JSONValue]

  struct Result: Sendable {
    var messages: [Item]
    var older: Cursor?
    var newer: Cursor?
  }

  /// The parent whose replies are read; nil: the channel.
  let thread: Int64?
  let fetch: Fetch

  static func addShape(_ query: inout SendbirdQuery) {
    query.add("is_sdk", true)
    query.add("with_sorted_meta_array", true)
    query.add("include_reactions", true)
    query.add("include_thread_info", true)
    query.add("include_reply_type", "all")
    query.add("include_parent_message_info", true)
  }

  static func position(_ item: Item) -> MessagePosition {
    MessagePosition(time: Timestamp(milliseconds: item.wire.createdAt), number: item.wire.id)
  }

  func page(_ query: HistoryQuery) async throws(ChatError) -> Result {
    let anchor = try anchor(query)
    let limit = max(1, query.limit)
    let includes = query.isInclusive && anchor.isExact
    let first = try await around(
      anchor.position, before: query.direction == .older ? limit + 1 : 1,
      after: query.direction == .newer ? limit + 1 : 1)
    var older = first.filter { Self.position($0) < anchor.position }
    var newer = first.filter { Self.position($0) > anchor.position }
    let own = first.filter { Self.position($0) == anchor.position }
    if query.direction == .older {
      let hasNewer = !newer.isEmpty || (!includes && !own.isEmpty)
      if includes { older += own }
      older = try await extend(older, to: limit + 1, .older)
      let page = Array(older.suffix(limit))
      return result(page, hasOlder: older.count > limit, hasNewer: hasNewer, anchor: anchor.position)
    }
    let hasOlder = !older.isEmpty || (!includes && !own.isEmpty)
    if includes { newer = own + newer }
    newer = try await extend(newer, to: limit + 1, .newer)
    return result(
      Array(newer.prefix(limit)), hasOlder: hasOlder, hasNewer: newer.count > limit, anchor: anchor.position)
  }

  private func result(_ page: [Item], hasOlder: Bool, hasNewer: Bool, anchor: MessagePosition) -> Result {
    let first = page.first.map(Self.position) ?? anchor
    let last = page.last.map(Self.position) ?? anchor
    return Result(
      messages: page, older: hasOlder ? Cursor(first.description) : nil,
      newer: hasNewer ? Cursor(last.description) : nil)
  }

  private func anchor(_ query: HistoryQuery) throws(ChatError) -> (position: MessagePosition, isExact: Bool) {
    switch query.anchor {
    case .newest: return (MessagePosition(major: SendbirdLimits.newestTime, minor: .max, tail: ""), false)
    case .oldest: return (MessagePosition(major: 0, minor: 0, tail: ""), false)
    case .position(let position): return (position, true)
    case .cursor(let cursor):
      guard let position = MessagePosition(cursor.rawValue) else {
        throw ChatError(.invalidArgument(field: "cursor"), operation: .history, detail: "no cursor of this vendor")
      }
      return (position, false)
    }
  }

  /// More of one direction until `count` are there or nothing is left.
  private func extend(
    _ items: [Item], to count: Int, _ direction: HistoryQuery.Direction
  ) async throws(ChatError) -> [Item] {
    var items = items
    while items.count < count, let edge = direction == .older ? items.first : items.last {
      let wanted = count - items.count
      let more = try await list(
        anchorID: edge.wire.id, time: edge.wire.createdAt, before: direction == .older ? wanted : 0,
        after: direction == .newer ? wanted : 0, include: false)
      if more.isEmpty { break }
      items = direction == .older ? more + items : items + more
    }
    return items
  }

  /// What lies around a position: by id where there is one and the message exists, else by time.
  private func around(_ position: MessagePosition, before: Int, after: Int) async throws(ChatError) -> [Item] {
    if position.minor > 0, position.minor < .max {
      do {
        return try await list(
          anchorID: position.minor, time: position.major, before: before, after: after, include: true)
      } catch {
        // Deleted meanwhile, or a position of another kind: the time leads to the same place.
        guard error.kind == .notFound else { throw error }
      }
    }
    return try await list(anchorID: nil, time: position.major, before: before, after: after, include: true)
  }

  private func list(
    anchorID: Int64?, time: Int64, before: Int, after: Int, include: Bool
  ) async throws(ChatError) -> [Item] {
    var query = SendbirdQuery()
    query.add("prev_limit", Int64(min(before, SendbirdLimits.messagePage)))
    query.add("next_limit", Int64(min(after, SendbirdLimits.messagePage)))
    query.add("include", include)
    query.add("reverse", false)
    if let anchorID { query.add("message_id", anchorID) } else { query.add("message_ts", max(0, time)) }
    query.add("custom_types", "*")
    if let thread { query.add("parent_message_id", thread) }
    Self.addShape(&query)
    let found = try await fetch(query).compactMap { value -> Item? in
      guard let raw = value.object, let wire = SendbirdMessage(raw), wire.id != thread else { return nil }
      return (wire, raw)
    }
    // Whatever order a page comes in.
    return found.sorted { ($0.wire.createdAt, $0.wire.id) < ($1.wire.createdAt, $1.wire.id) }
  }
}
