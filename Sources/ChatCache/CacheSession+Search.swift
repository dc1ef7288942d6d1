import UnifiedChat

/// Which messages to look for.
public struct CacheSearch: Sendable, Hashable {
  /// Words separated by white space; a message must have all of them. Taken to the letter: no operators.
  public var text: String
  public var channel: ChannelID?
  public var sender: UserID?
  /// The values of `MessageContent.kindName`.
  public var kinds: Set<String>?
  public var from: Timestamp?
  public var until: Timestamp?
  public var oldestFirst: Bool
  public var limit: Int

  public init(
    _ text: String, channel: ChannelID? = nil, sender: UserID? = nil, kinds: Set<String>? = nil,
    from: Timestamp? = nil, until: Timestamp? = nil, oldestFirst: Bool = false, limit: Int = 30
  ) {
    self.text = text
    self.channel = channel
    self.sender = sender
    self.kinds = kinds
    self.from = from
    self.until = until
    self.oldestFirst = oldestFirst
    self.limit = limit
  }
}

extension CacheSession {
  /// Known messages in sight that say `query.text`, by server time. What was recalled, hidden or cleared is not found.
  ///
  /// Pages are stable: the token names the last message, so that new messages do not shift what follows.
  /// - Throws: `.invalidArgument` for an empty text, a limit below 1, a foreign page token.
  public func search(_ query: CacheSearch, page: PageToken? = nil) throws(ChatError) -> Page<Message> {
    let words = query.text.split(whereSeparator: \.isWhitespace).map { SearchTerms.folded(String($0)) }
    guard !words.isEmpty else {
      throw ChatError(.invalidArgument(field: "text"), operation: .search, detail: "nothing to search for")
    }
    guard query.limit > 0 else {
      throw ChatError(.invalidArgument(field: "limit"), operation: .search, detail: "at least 1")
    }
    var mark = try page.map { token throws(ChatError) in try SearchMark(token) }
    var found: [Message] = []
    while true {
      let batch = try candidates(query, words: words, after: mark, limit: 200)
      for candidate in batch {
        // The index finds neighbours of terms; only the text itself tells whether the word stands there.
        if Self.says(candidate.message, words), query.kinds?.contains(candidate.message.content.kindName) ?? true {
          if found.count == query.limit { return Page(items: found, next: mark?.token) }
          found.append(candidate.message)
        }
        mark = SearchMark(time: candidate.message.createdAt.milliseconds, row: candidate.row)
      }
      if batch.count < 200 { return Page(items: found, next: nil) }
    }
  }

  private static func says(_ message: Message, _ words: [String]) -> Bool {
    guard let text = message.content.searchableText.map(SearchTerms.folded) else { return false }
    // By bytes: `String` would not find half of a composed character.
    return words.allSatisfy { text.utf8.contains($0.utf8) }
  }

  private func candidates(
    _ query: CacheSearch, words: [String], after mark: SearchMark?, limit: Int64
  ) throws(ChatError) -> [MessageRow] {
    var conditions = ["visibility = 'visible'", "is_recalled = 0"]
    var values: [SQLValue] = []
    func add(_ condition: String, _ value: SQLValue?) {
      guard let value else { return }
      conditions.append(condition)
      values.append(value)
    }
    let terms = words.compactMap { SearchTerms.query($0) }
    add(
      "row IN (SELECT rowid FROM search WHERE search MATCH ?)",
      terms.isEmpty ? nil : .text(terms.joined(separator: " AND ")))
    add("channel = ?", query.channel.map { .text($0.rawValue) })
    add("sender = ?", query.sender.map { .text($0.rawValue) })
    add("created_at >= ?", query.from.map { .int($0.milliseconds) })
    add("created_at < ?", query.until.map { .int($0.milliseconds) })
    if let mark {
      conditions.append("(created_at, row) \(query.oldestFirst ? ">" : "<") (?, ?)")
      values += [.int(mark.time), .int(mark.row)]
    }
    let order = query.oldestFirst ? "created_at, row" : "created_at DESC, row DESC"
    return try database.all(
      """
      SELECT \(MessageRow.columns) FROM messages WHERE \(conditions.joined(separator: " AND "))
      ORDER BY \(order) LIMIT ?
      """, values + [.int(limit)]
    ) { row throws(ChatError) in try MessageRow(row) }
  }

  func index(_ message: Message, row: Int64) throws(ChatError) {
    guard let terms = Self.terms(of: message) else { return }
    try database.run("INSERT INTO search (rowid, terms) VALUES (?, ?)", [.int(row), .text(terms)])
  }

  /// The index holds no text, so that the terms are made again to take them out.
  func unindex(_ row: Int64) throws(ChatError) {
    let known = try database.first("SELECT \(MessageRow.columns) FROM messages WHERE row = ?", [.int(row)]) {
      row throws(ChatError) in try MessageRow(row)
    }
    guard let known, known.visibility == .visible, let terms = Self.terms(of: known.message) else { return }
    try database.run(
      "INSERT INTO search (search, rowid, terms) VALUES ('delete', ?, ?)", [.int(row), .text(terms)])
  }

  private static func terms(of message: Message) -> String? {
    guard let text = message.content.searchableText, !text.isEmpty else { return nil }
    let terms = SearchTerms.index(text)
    return terms.isEmpty ? nil : terms
  }
}

/// Where a page of results ended: server time and row.
private struct SearchMark {
  var time: Int64
  var row: Int64

  init(time: Int64, row: Int64) {
    self.time = time
    self.row = row
  }

  init(_ token: PageToken) throws(ChatError) {
    let parts = token.rawValue.split(separator: "/").map { Int64($0) }
    guard parts.count == 2, let time = parts[0], let row = parts[1] else {
      throw ChatError(.invalidArgument(field: "page"), operation: .search, detail: "not a token of this search")
    }
    self.init(time: time, row: row)
  }

  var token: PageToken { PageToken("\(time)/\(row)") }
}
