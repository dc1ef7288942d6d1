import UnifiedChat

extension SQLiteLedger {
  public func register(_ channels: [ChannelExtent]) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for extent in channels {
        try database.run(
          "INSERT OR IGNORE INTO channels (channel, state) VALUES (?, 'pending')", .integer(extent.channel))
        try database.run(
          "UPDATE channels SET state = 'created' WHERE channel = ? AND state = 'finished' AND watermark < ?",
          .integer(extent.channel), .integer(extent.lastMessage))
      }
      // What was refused may have been mended at the destination since.
      try database.run("UPDATE channels SET state = 'pending' WHERE state = 'refused'")
    }
  }

  public func lease(by owner: String) throws(ChatError) -> ChannelUnit? {
    let unit = try database.first(
      Self.selectUnits + " WHERE owner IS NULL AND state IN ('pending', 'created') ORDER BY channel LIMIT 1",
      read: Self.unit)
    if let unit {
      try database.run("UPDATE channels SET owner = ? WHERE channel = ?", .text(owner), .integer(unit.channel))
    }
    return unit
  }

  public func release(_ channel: Int64) throws(ChatError) {
    try database.run("UPDATE channels SET owner = NULL WHERE channel = ?", .integer(channel))
  }

  public func unit(_ channel: Int64) throws(ChatError) -> ChannelUnit? {
    try database.first(Self.selectUnits + " WHERE channel = ?", .integer(channel), read: Self.unit)
  }

  private static let selectUnits = "SELECT channel, state, destination, is_group, watermark FROM channels"

  private static func unit(_ row: Row) -> ChannelUnit {
    ChannelUnit(
      channel: row.integer(0), state: ChannelUnit.State(rawValue: row.text(1)) ?? .pending,
      destination: row.optionalText(2).map { ChannelID($0) }, isGroup: row.integer(3) != 0,
      watermark: row.integer(4))
  }

  public func commit(
    _ channel: Int64, createdAs destination: ChannelID, asGroup: Bool, _ tally: LoadTally
  ) throws(ChatError) {
    if let owner = try original(ofChannel: destination), owner != channel {
      throw ChatError(
        .conflict, operation: .writeDestination, detail: "channels \(owner) and \(channel) would both be \(destination)"
      )
    }
    try database.transaction { () throws(ChatError) in
      let isFirst = try unit(channel)?.state == .pending
      try database.run(
        """
        UPDATE channels SET state = CASE state WHEN 'pending' THEN 'created' ELSE state END, destination = ?,
          is_group = ? WHERE channel = ?
        """, .text(destination.rawValue), .integer(asGroup ? 1 : 0), .integer(channel))
      try database.run("DELETE FROM exceptions WHERE kind = 'channel' AND channel = ?", .integer(channel))
      // A later run completes the channel again; its losses count once.
      if isFirst { try put(tally) }
    }
  }

  public func commit(
    _ channel: Int64, endedAs state: ChannelUnit.State, _ tally: LoadTally
  ) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      try database.run(
        "UPDATE channels SET state = ?, owner = NULL WHERE channel = ?", .text(state.rawValue), .integer(channel))
      try put(tally)
    }
  }

  public func original(ofChannel destination: ChannelID) throws(ChatError) -> Int64? {
    try database.first(
      "SELECT channel FROM channels WHERE destination = ?", .text(destination.rawValue)
    ) { row in row.integer(0) }
  }

  // MARK: Messages

  public func destinations(
    of messages: [MessageID], in channel: Int64
  ) throws(ChatError) -> [MessageID: MessageID] {
    try lookUp("SELECT destination FROM messages WHERE channel = ? AND original = ?", messages, channel)
  }

  public func originals(
    of messages: [MessageID], in channel: Int64
  ) throws(ChatError) -> [MessageID: MessageID] {
    try lookUp("SELECT original FROM messages WHERE channel = ? AND destination = ?", messages, channel)
  }

  private func lookUp(
    _ sql: String, _ messages: [MessageID], _ channel: Int64
  ) throws(ChatError) -> [MessageID: MessageID] {
    var found: [MessageID: MessageID] = [:]
    for message in messages where found[message] == nil {
      found[message] = try database.first(sql, .integer(channel), .text(message.rawValue)) { row in
        MessageID(row.text(0))
      }
    }
    return found
  }

  public func commit(found: [MessageID: MessageID], in channel: Int64) throws(ChatError) {
    try database.transaction { () throws(ChatError) in try put(found, in: channel) }
  }

  public func commit(
    _ channel: Int64, upTo ordinal: Int64, ids: [MessageID: MessageID], _ tally: LoadTally
  ) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      try put(ids, in: channel)
      try database.run(
        "UPDATE channels SET watermark = max(watermark, ?) WHERE channel = ?", .integer(ordinal), .integer(channel))
      try put(tally)
    }
  }

  private func put(_ ids: [MessageID: MessageID], in channel: Int64) throws(ChatError) {
    for (original, destination) in ids {
      try database.run(
        "INSERT OR REPLACE INTO messages VALUES (?, ?, ?)", .integer(channel), .text(original.rawValue),
        .text(destination.rawValue))
    }
  }

  // MARK: Accounts

  func put(_ tally: LoadTally) throws(ChatError) {
    for counted in tally.losses.values { try put(counted) }
    for exception in tally.exceptions {
      try database.run(
        "INSERT OR IGNORE INTO exceptions (kind, outcome, channel, id, reason) VALUES (?, ?, ?, ?, ?)",
        .text(exception.kind), .text(exception.outcome.rawValue), .integer(exception.channel), .text(exception.id),
        .text(exception.reason))
    }
  }

  private func put(_ counted: CountedLoss) throws(ChatError) {
    let number = try database.first(
      """
      INSERT INTO losses (field, treatment, explanation, count) VALUES (?, ?, ?, ?)
      ON CONFLICT (field, treatment, explanation) DO UPDATE SET count = count + excluded.count RETURNING number
      """, .text(counted.loss.field), .text(counted.loss.treatment.rawValue), .text(counted.loss.explanation),
      .integer(counted.count)
    ) { row in row.integer(0) }
    guard let number else { return }
    var room = LoadTally.exampleLimit
    room -= try database.count("SELECT count(*) FROM loss_examples WHERE loss = ?", .integer(number))
    for example in counted.examples.prefix(max(room, 0)) {
      try database.run("INSERT OR IGNORE INTO loss_examples VALUES (?, ?)", .integer(number), .text(example))
    }
  }

  public func losses() throws(ChatError) -> [CountedLoss] {
    let rows = try database.rows(
      "SELECT number, field, treatment, explanation, count FROM losses ORDER BY field, treatment, explanation"
    ) { row in
      let loss = Loss(
        field: row.text(1), treatment: Loss.Treatment(rawValue: row.text(2)) ?? .dropped, explanation: row.text(3))
      return (row.integer(0), CountedLoss(loss: loss, count: Int(row.integer(4)), examples: []))
    }
    var losses: [CountedLoss] = []
    for (number, row) in rows {
      var loss = row
      loss.examples = try database.rows(
        "SELECT id FROM loss_examples WHERE loss = ? ORDER BY id", .integer(number)
      ) { row in row.text(0) }
      losses.append(loss)
    }
    return losses
  }

  private static let selectExceptions = "SELECT number, kind, outcome, channel, id, reason FROM exceptions"

  private static func exception(_ row: Row) -> LoadException {
    LoadException(
      kind: row.text(1), outcome: LoadException.Outcome(rawValue: row.text(2)) ?? .refused, channel: row.integer(3),
      id: row.text(4), reason: row.text(5), number: row.integer(0))
  }

  public func exceptions(after number: Int64, limit: Int) throws(ChatError) -> [LoadException] {
    try database.rows(
      Self.selectExceptions + " WHERE number > ? ORDER BY number LIMIT ?", .integer(number), .integer(limit),
      read: Self.exception)
  }

  public func exception(
    of kind: String, _ id: String, in channel: Int64
  ) throws(ChatError) -> LoadException? {
    try database.first(
      Self.selectExceptions + " WHERE kind = ? AND channel = ? AND id = ?", .text(kind), .integer(channel),
      .text(id), read: Self.exception)
  }

  public func counts() throws(ChatError) -> LoadCounts {
    var counts = LoadCounts()
    counts.users = Int(try runValue("crossed.users") ?? "") ?? 0
    counts.channels = try database.count("SELECT count(*) FROM channels WHERE destination IS NOT NULL")
    counts.finishedChannels = try database.count("SELECT count(*) FROM channels WHERE state = 'finished'")
    counts.messages = try database.count("SELECT count(*) FROM messages")
    counts.refused = try database.count("SELECT count(*) FROM exceptions WHERE outcome = 'refused'")
    counts.skipped = try database.count("SELECT count(*) FROM exceptions WHERE outcome = 'skipped'")
    return counts
  }
}
