import UnifiedChat

/// What to look for in the cache. All conditions have to hold.
public struct CacheSearch: Sendable, Hashable {
  public enum Order: String, Sendable, Hashable, CaseIterable {
    case newestFirst, oldestFirst
    /// The best match first, of the newest 1,000 that match: whole words before beginnings of words, often before
    /// once, short texts before long ones, then the newer.
    case relevance
  }

  /// Words, all of which occur, each by its beginning; in scripts without spaces any part.
  public var text: String
  public var channel: ChannelID?
  public var sender: UserID?
  /// The values of `MessageContent.kindName`.
  public var kinds: Set<String>?
  /// From this time on.
  public var from: Timestamp?
  /// Before this time.
  public var until: Timestamp?
  public var order: Order
  public var limit: Int

  public init(
    _ text: String, channel: ChannelID? = nil, sender: UserID? = nil, kinds: Set<String>? = nil,
    from: Timestamp? = nil, until: Timestamp? = nil, order: Order = .newestFirst, limit: Int = 30
  ) {
    self.text = text
    self.channel = channel
    self.sender = sender
    self.kinds = kinds
    self.from = from
    self.until = until
    self.order = order
    self.limit = limit
  }

  /// Where the words stand in `text`, in order and without overlap: what a view sets off.
  public func highlights(in text: String) -> [Range<String.Index>] { SearchHighlight.ranges(of: words, in: text) }

  /// Folded.
  var words: [String] { text.split(whereSeparator: \.isWhitespace).map { SearchTerms.folded(String($0)) } }
}

extension CacheSession {
  /// Known messages in sight that say `query.text`, by server time. What was recalled, hidden or cleared is not found.
  ///
  /// Pages are stable: the token names the last message, so that new messages do not shift what follows.
  /// - Throws: `.invalidArgument` for an empty text, a limit below 1, a foreign page token.
  public func search(_ query: CacheSearch, page: PageToken? = nil) throws(ChatError) -> Page<Message> {
    let words = query.words
    guard !words.isEmpty else {
      throw ChatError(.invalidArgument(field: "text"), operation: .search, detail: "nothing to search for")
    }
    guard query.limit > 0 else {
      throw ChatError(.invalidArgument(field: "limit"), operation: .search, detail: "at least 1")
    }
    let mark = try page.map { token throws(ChatError) in try SearchMark(token) }
    if query.order == .relevance { return try ranked(query, words, mark) }
    let found = try hits(query, words, beyond: mark?.row, limit: query.limit == .max ? .max : query.limit + 1)
    let items = found.prefix(query.limit)
    let hasMore = found.count > query.limit
    return Page(
      items: items.map(\.message), next: hasMore ? items.last.map { SearchMark(row: $0.row, skipped: 0).token } : nil)
  }

  /// The best of the newest hits. The token keeps where the first page began, so that new messages change nothing.
  private func ranked(_ query: CacheSearch, _ words: [String], _ mark: SearchMark?) throws(ChatError) -> Page<Message> {
    let newest = try hits(query, words, beyond: mark.map { $0.row == .max ? .max : $0.row + 1 }, limit: 1000)
    let scored = newest.map { (row: $0, score: SearchRank.score($0.message.content.searchableText ?? "", words)) }
      .sorted { $0.score == $1.score ? $0.row.row > $1.row.row : $0.score > $1.score }
    let skipped = mark?.skipped ?? 0
    let items = scored.dropFirst(skipped).prefix(query.limit)
    let end = skipped + items.count
    let top = newest.first?.row ?? 0
    return Page(
      items: items.map(\.row.message), next: end < scored.count ? SearchMark(row: top, skipped: end).token : nil)
  }

  /// Hits in the order of rows, which is that of time.
  private func hits(
    _ query: CacheSearch, _ words: [String], beyond mark: Int64?, limit: Int
  ) throws(ChatError) -> [MessageRow] {
    var mark = mark
    var found: [MessageRow] = []
    let terms = words.compactMap { SearchTerms.query($0) }
    let exact = Self.match(query, terms.map(\.exact))
    let quick = terms.contains { $0.quick != nil } ? Self.match(query, terms.map { $0.quick ?? $0.exact }) : nil
    // Most of what the index finds is a hit: the first look is for no more than is wanted.
    let isTight = terms.allSatisfy { $0.quick == nil || $0.isQuickTight }
    var batch = min(max(isTight ? limit : limit.multipliedSaturated(by: 4), 16), 500)
    var match = quick ?? exact
    while true {
      let candidates = try candidates(match, query, beyond: mark, limit: batch)
      for candidate in candidates {
        // The index finds neighbours of terms; only the text itself tells whether the word stands there.
        if matches(candidate.message, query, words) {
          found.append(candidate)
          if found.count == limit { return found }
        }
      }
      guard candidates.count == batch, let last = candidates.last else { return found }
      mark = last.row
      batch = 500
      // The word is rare among those that begin like it: reading all of it is little.
      if !isTight { match = exact }
    }
  }

  private func matches(_ message: Message, _ query: CacheSearch, _ words: [String]) -> Bool {
    if let channel = query.channel, message.channel != channel { return false }
    if let sender = query.sender, message.sender != sender { return false }
    if let kinds = query.kinds, !kinds.contains(message.content.kindName) { return false }
    if let from = query.from, message.createdAt < from { return false }
    if let until = query.until, message.createdAt >= until { return false }
    guard let text = message.content.searchableText.map(SearchTerms.folded) else { return false }
    return words.allSatisfy { SearchTerms.stands($0, in: text) }
  }

  private func candidates(
    _ match: String?, _ query: CacheSearch, beyond mark: Int64?, limit: Int
  ) throws(ChatError) -> [MessageRow] {
    var (low, high) = (Int64.min, Int64.max)
    if let from = query.from { low = MessageRow.rows(at: from).lowerBound }
    if let until = query.until { high = MessageRow.rows(at: until).upperBound }
    let isForward = query.order == .oldestFirst
    if let mark { if isForward { low = max(low, mark &+ 1) } else { high = min(high, mark &- 1) } }
    let order = isForward ? "" : " DESC"
    let bounds: [SQLValue] = [.int(low), .int(high), .int(Int64(clamping: limit))]
    guard let match else {
      // Nothing of it is in the index, a lone "%" for example: the texts themselves are read.
      return try database.all(
        """
        SELECT \(MessageRow.columns) FROM messages
        WHERE visibility = 'visible' AND is_recalled = 0 AND row BETWEEN ? AND ? ORDER BY row\(order) LIMIT ?
        """, bounds
      ) { row throws(ChatError) in try MessageRow(row) }
    }
    return try database.all(
      """
      SELECT \(MessageRow.columns) FROM
        (SELECT rowid AS hit FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid\(order) LIMIT ?)
        CROSS JOIN messages ON row = hit ORDER BY hit\(order)
      """, [.text(match)] + bounds
    ) { row throws(ChatError) in try MessageRow(row) }
  }

  /// The query of the index; nil when no word has anything that is indexed.
  private static func match(_ query: CacheSearch, _ terms: [String]) -> String? {
    guard !terms.isEmpty else { return nil }
    var parts = terms
    if let channel = query.channel { parts.append("tags : \"\(SearchTag.channel(channel))\"") }
    if let sender = query.sender { parts.append("tags : \"\(SearchTag.sender(sender))\"") }
    if let kinds = query.kinds, !kinds.isEmpty {
      let any = kinds.sorted().map { "\"\(SearchTag.kind($0))\"" }.joined(separator: " OR ")
      parts.append("tags : (\(any))")
    }
    return parts.map { "(\($0))" }.joined(separator: " AND ")
  }

  // MARK: The index

  func index(_ message: Message, row: Int64) throws(ChatError) {
    guard let entry = Self.entry(of: message) else { return }
    try database.run(
      "INSERT INTO search (rowid, terms, tags) VALUES (?, ?, ?)", [.int(row), .text(entry.terms), .text(entry.tags)])
  }

  /// The index holds no text, so that the terms are made again to take them out.
  /// - Returns: whether the message was in sight; no other is in the index.
  @discardableResult
  func unindex(_ row: Int64) throws(ChatError) -> Bool {
    let known = try database.first("SELECT \(MessageRow.columns) FROM messages WHERE row = ?", [.int(row)]) {
      row throws(ChatError) in try MessageRow(row)
    }
    guard let known, known.visibility == .visible else { return false }
    guard let entry = Self.entry(of: known.message) else { return true }
    try database.run(
      "INSERT INTO search (search, rowid, terms, tags) VALUES ('delete', ?, ?, ?)",
      [.int(row), .text(entry.terms), .text(entry.tags)])
    return true
  }

  private static func entry(of message: Message) -> (terms: String, tags: String)? {
    guard let text = message.content.searchableText, !text.isEmpty else { return nil }
    let entry = SearchTerms.entry(text)
    guard !entry.terms.isEmpty else { return nil }
    // Sorted: the same entry is made again to take it out.
    return (entry.terms, (SearchTag.all(of: message) + entry.heads.sorted()).joined(separator: " "))
  }
}

/// Where a page of results ended.
private struct SearchMark {
  var row: Int64
  /// Of a ranked search: results that were given already.
  var skipped: Int

  init(row: Int64, skipped: Int) {
    self.row = row
    self.skipped = skipped
  }

  init(_ token: PageToken) throws(ChatError) {
    let parts = token.rawValue.split(separator: "/").map { Int64($0) }
    guard parts.count == 2, let row = parts[0], let skipped = parts[1].flatMap({ Int(exactly: $0) }), skipped >= 0 else {
      throw ChatError(.invalidArgument(field: "page"), operation: .search, detail: "not a token of this search")
    }
    self.init(row: row, skipped: skipped)
  }

  var token: PageToken { PageToken("\(row)/\(skipped)") }
}

extension Int {
  fileprivate func multipliedSaturated(by other: Int) -> Int {
    let (product, overflow) = multipliedReportingOverflow(by: other)
    return overflow ? .max : product
  }
}
