import ChatJSON
import UnifiedChat

/// How many rows of one list of the vendor an archive keeps.
public struct VendorRowCount: Sendable, Hashable {
  /// The vendor's name of the list: `_Installation`.
  public var kind: String
  /// At least one.
  public var count: Int

  public init(kind: String, count: Int) {
    self.kind = kind
    self.count = count
  }

  func json() -> JSONValue { ["kind": .string(kind), "count": JSONValue(count)] }
}

/// What an archive keeps of a vendor that is no record: rows as received, and the names of what was not read.
extension Archive {
  /// False for an archive of an earlier version on a disk that may not be written.
  private var hasRows: Bool { get throws(ChatError) { try database.count("PRAGMA user_version") >= 3 } }

  /// How many rows there are of each kind, by kind.
  public func rowCounts() throws(ChatError) -> [VendorRowCount] {
    guard try hasRows else { return [] }
    return try database.rows("SELECT kind, count(*) FROM vendor_rows GROUP BY kind ORDER BY kind") { row in
      VendorRowCount(kind: row.text(0), count: Int(row.integer(1)))
    }
  }

  /// By kind and id, ascending by bytes.
  /// - Parameter kind: only rows of this kind; nil: all.
  public func rows(
    of kind: String? = nil, after last: VendorRow? = nil, limit: Int
  ) throws(ChatError) -> [VendorRow] {
    guard try hasRows else { return [] }
    return try database.rows(
      """
      SELECT kind, id, user, channel, raw FROM vendor_rows
      WHERE (kind, id) > (?1, ?2) AND (?3 IS NULL OR kind = ?3) ORDER BY kind, id LIMIT ?4
      """, .text(last?.kind ?? kind ?? ""), .text(last?.id ?? ""), .text(kind), .integer(limit)
    ) { row in
      VendorRow(
        kind: row.text(0), id: row.text(1), user: row.optionalText(2).map { UserID($0) },
        channel: row.optionalText(3).map { ChannelID($0) }, raw: JSONText(unchecked: row.text(4)))
    }
  }

  /// Within a transaction. True for a row that was not here.
  /// - Parameter replaces: whether one that is here takes the new form.
  @discardableResult
  func put(_ row: VendorRow, replaces: Bool) throws(ChatError) -> Bool {
    let known = try database.count(
      "SELECT count(*) FROM vendor_rows WHERE kind = ? AND id = ?", .text(row.kind), .text(row.id))
    if known > 0, !replaces { return false }
    try database.run(
      "INSERT OR REPLACE INTO vendor_rows VALUES (?, ?, ?, ?, ?)", .text(row.kind), .text(row.id),
      .text(row.user?.rawValue), .text(row.channel?.rawValue), .text(row.raw.text))
    return known == 0
  }

  func put(rows: [VendorRow], replaces: Bool) throws(ChatError) -> Int {
    try database.transaction { () throws(ChatError) in
      var new = 0
      for row in rows where try put(row, replaces: replaces) { new += 1 }
      return new
    }
  }

  /// nil without rows, so that an archive that has none is equal to one of an earlier version.
  func vendorRowsDigest() throws(ChatError) -> String? {
    var digest = LineDigest()
    var last: VendorRow?
    while true {
      let page = try rows(after: last, limit: 1000)
      for row in page { digest.add(row.line) }
      guard let end = page.last else { return last == nil ? nil : digest.value }
      last = end
    }
  }

  // MARK: What was not read

  /// What of the app is not here, because the source does not read it.
  public func leftOut() throws(ChatError) -> [String] {
    guard let text = try manifestValue("left_out") else { return [] }
    return ((try? JSONValue(parsing: text))?.array ?? []).compactMap(\.string)
  }

  /// - Parameter replaces: whether what was said before is forgotten.
  func put(leftOut things: [String], replaces: Bool) throws(ChatError) {
    var all = replaces ? [] : try leftOut()
    for thing in things where !all.contains(thing) { all.append(thing) }
    try setManifest("left_out", all.isEmpty ? nil : JSONValue.array(all.map { .string($0) }).text())
  }
}

extension VendorRow {
  /// Canonical JSON, as `archive export` writes it; `raw` is a text, byte for byte.
  var line: [UInt8] {
    var object = JSONObject()
    object["kind"] = .string(kind)
    object["id"] = .string(id)
    object["user"] = user.map { .string($0.rawValue) }
    object["channel"] = channel.map { .string($0.rawValue) }
    object["raw"] = .string(raw.text)
    return JSONValue.object(object).canonicalBytes()
  }

  init?(line: [UInt8]) {
    guard let json = try? JSONValue(parsing: line, limits: JSONLimits(size: LineReader.maximumLength)),
      let kind = json["kind"]?.string, let id = json["id"]?.string, let raw = json["raw"]?.string
    else { return nil }
    self.init(
      kind: kind, id: id, user: json["user"]?.string.map { UserID($0) },
      channel: json["channel"]?.string.map { ChannelID($0) }, raw: JSONText(unchecked: raw))
  }
}
