import UnifiedChat

extension SQLiteLedger {
  public func register(_ channels: [ChannelExtent]) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for extent in channels {
        try database.run(
          "INSERT OR IGNORE INTO channels (channel, state) VALUES (?, 'pending')", .integer(extent.channel))
        // What has not been begun is read as it is now.
        try database.run(
          "UPDATE channels SET change = ?2 WHERE channel = ?1 AND state = 'pending' AND watermark = 0",
          .integer(extent.channel), .integer(extent.lastChange))
        try database.run(
          """
          UPDATE channels SET state = 'created'
          WHERE channel = ? AND state = 'finished' AND (watermark < ? OR change < ?)
          """, .integer(extent.channel), .integer(extent.lastMessage), .integer(extent.lastChange))
      }
      // What was refused may have been mended at the destination since.
      try database.run("UPDATE channels SET state = 'pending' WHERE state = 'refused' AND owner IS NULL")
    }
  }

  public func lease(by owner: String) throws(ChatError) -> ChannelUnit? {
    try database.transaction { () throws(ChatError) in
      if let unit = try lease() { return unit }
      let others = try database.rows("SELECT DISTINCT owner FROM channels WHERE owner IS NOT NULL") { row in row.text(0) }
      let owners = try leases
      let gone = others.filter { owners.isGone($0) }
      for owner in gone { try database.run("UPDATE channels SET owner = NULL WHERE owner = ?", .text(owner)) }
      return gone.isEmpty ? nil : try lease()
    }
  }

  private func lease() throws(ChatError) -> ChannelUnit? {
    let unit = try database.first(
      Self.selectUnits + " WHERE owner IS NULL AND state IN ('pending', 'created') ORDER BY channel LIMIT 1",
      read: Self.unit)
    if let unit {
      try database.run("UPDATE channels SET owner = ? WHERE channel = ?", .text(try leases.own), .integer(unit.channel))
    }
    return unit
  }

  public func release(_ channel: Int64) throws(ChatError) {
    try database.run("UPDATE channels SET owner = NULL WHERE channel = ?", .integer(channel))
  }

  public func unit(_ channel: Int64) throws(ChatError) -> ChannelUnit? {
    try database.first(Self.selectUnits + " WHERE channel = ?", .integer(channel), read: Self.unit)
  }

  private static let selectUnits = "SELECT channel, state, destination, is_group, watermark, change, intended FROM channels"

  private static func unit(_ row: Row) -> ChannelUnit {
    ChannelUnit(
      channel: row.integer(0), state: ChannelUnit.State(rawValue: row.text(1)) ?? .pending,
      destination: row.optionalText(2).map { ChannelID($0) }, isGroup: row.integer(3) != 0,
      watermark: row.integer(4), change: row.integer(5), isIntended: row.integer(6) != 0)
  }

  public func intend(_ channel: Int64) throws(ChatError) {
    try database.run("UPDATE channels SET intended = 1 WHERE channel = ?", .integer(channel))
  }

  public func commit(
    _ channel: Int64, createdAs destination: ChannelID, asGroup: Bool, isOwn: Bool, _ tally: LoadTally
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
        UPDATE channels SET state = CASE state WHEN 'pending' THEN 'created' ELSE state END, destination = ?2,
          is_group = ?3, own = max(own, ?4) WHERE channel = ?1
        """, .integer(channel), .text(destination.rawValue), .integer(asGroup ? 1 : 0), .integer(isOwn ? 1 : 0))
      try database.run("DELETE FROM exceptions WHERE kind = 'channel' AND channel = ?", .integer(channel))
      // A later run completes the channel again; its losses count once.
      if isFirst { try put(tally) }
    }
  }

  public func commit(
    _ channel: Int64, endedAs state: ChannelUnit.State, change: Int64, _ tally: LoadTally
  ) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      try database.run(
        "UPDATE channels SET state = ?, owner = NULL, change = max(change, ?) WHERE channel = ?",
        .text(state.rawValue), .integer(change), .integer(channel))
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

  public func reactions(to message: MessageID, in channel: Int64) throws(ChatError) -> [MessageID: MessageID] {
    let prefix = message.rawValue + ReactionForm.mark
    let rows = try database.rows(
      "SELECT original, destination FROM messages WHERE channel = ? AND original >= ? AND original < ?",
      .integer(channel), .text(prefix), .text(prefix + "g")
    ) { row in (MessageID(row.text(0)), MessageID(row.text(1))) }
    return Dictionary(rows, uniquingKeysWith: { first, _ in first })
  }

  public func commit(found: [MessageID: MessageID], in channel: Int64, areOwn: Bool) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for (original, destination) in found {
        // Who wrote it is decided when it is first seen.
        try database.run(
          """
          INSERT INTO messages VALUES (?1, ?2, ?3, ?4)
          ON CONFLICT (channel, original) DO UPDATE SET destination = ?3
          """, .integer(channel), .text(original.rawValue), .text(destination.rawValue), .integer(areOwn ? 1 : 0))
      }
    }
  }

  public func commit(
    _ channel: Int64, upTo ordinal: Int64, ids: [MessageID: MessageID], own: Set<MessageID>, _ tally: LoadTally
  ) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      try put(ids, in: channel, own: own)
      try database.run(
        "UPDATE channels SET watermark = max(watermark, ?) WHERE channel = ?", .integer(ordinal), .integer(channel))
      try put(tally)
    }
  }

  private func put(
    _ ids: [MessageID: MessageID], in channel: Int64, own: Set<MessageID>
  ) throws(ChatError) {
    for (original, destination) in ids {
      try database.run(
        """
        INSERT INTO messages VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (channel, original) DO UPDATE SET destination = ?3, own = max(own, ?4)
        """, .integer(channel), .text(original.rawValue), .text(destination.rawValue),
        .integer(own.contains(original) ? 1 : 0))
    }
  }

  // MARK: Changes

  public func commit(
    _ channel: Int64, changesUpTo number: Int64, gone: [MessageID], late: [LateLoss], _ tally: LoadTally
  ) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for id in gone {
        // Of channel 0, which stands for the users: what is refused again is listed again.
        if channel == 0 { try forgetRefusal(ofUser: id.rawValue) } else { try forget(id, in: channel) }
      }
      for item in late {
        try database.run(
          "INSERT OR REPLACE INTO late VALUES (?, ?, ?, ?, ?, ?)", .text(item.kind), .integer(channel),
          .text(item.id), .text(item.loss.field), .text(item.loss.treatment.rawValue), .text(item.loss.explanation))
      }
      try put(tally)
      guard channel != 0 else { return try setNote("changes.users", "\(number)") }
      try database.run(
        "UPDATE channels SET change = max(change, ?) WHERE channel = ?", .integer(number), .integer(channel))
    }
  }

  private func forgetRefusal(ofUser id: String) throws(ChatError) {
    try database.run(
      "DELETE FROM exceptions WHERE kind = 'user' AND outcome = 'refused' AND id = ?", .text(id))
  }

  private func forget(_ message: MessageID, in channel: Int64) throws(ChatError) {
    try database.run(
      "DELETE FROM messages WHERE channel = ? AND original = ?", .integer(channel), .text(message.rawValue))
  }

  public func lateLosses(of kind: String, _ id: String, in channel: Int64) throws(ChatError) -> [Loss] {
    try database.rows(
      "SELECT field, treatment, explanation FROM late WHERE kind = ? AND channel = ? AND id = ?", .text(kind),
      .integer(channel), .text(id)
    ) { row in
      Loss(
        field: row.text(0), treatment: Loss.Treatment(rawValue: row.text(1)) ?? .dropped, explanation: row.text(2))
    }
  }

  // MARK: Taking back

  public func ownChannels(limit: Int) throws(ChatError) -> [OwnChannel] {
    try database.rows(
      """
      SELECT channel, destination, own FROM channels c WHERE destination IS NOT NULL
        AND (own = 1 OR EXISTS (SELECT 1 FROM messages m WHERE m.channel = c.channel AND m.own = 1))
      ORDER BY channel LIMIT ?
      """, .integer(limit)
    ) { row in
      OwnChannel(channel: row.integer(0), destination: ChannelID(row.text(1)), isOwn: row.integer(2) != 0)
    }
  }

  public func ownMessages(in channel: Int64, limit: Int) throws(ChatError) -> [MessageID: MessageID] {
    let rows = try database.rows(
      "SELECT original, destination FROM messages WHERE channel = ? AND own = 1 LIMIT ?", .integer(channel),
      .integer(limit)
    ) { row in (MessageID(row.text(0)), MessageID(row.text(1))) }
    return Dictionary(rows, uniquingKeysWith: { first, _ in first })
  }

  public func ownUsers(limit: Int) throws(ChatError) -> [UserID: UserID] {
    let rows = try database.rows(
      "SELECT original, destination FROM users WHERE own = 1 LIMIT ?", .integer(limit)
    ) { row in (UserID(row.text(0)), UserID(row.text(1))) }
    return Dictionary(rows, uniquingKeysWith: { first, _ in first })
  }

  func ownCounts() throws(ChatError) -> LoadCounts {
    var counts = LoadCounts()
    counts.channels = try database.count("SELECT count(*) FROM channels WHERE own = 1")
    counts.messages = try database.count("SELECT count(*) FROM messages WHERE own = 1")
    counts.users = try database.count("SELECT count(*) FROM users WHERE own = 1")
    return counts
  }

  public func forget(channel: Int64) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      try database.run("DELETE FROM messages WHERE channel = ?", .integer(channel))
      try database.run("DELETE FROM channels WHERE channel = ?", .integer(channel))
    }
  }

  public func forget(messages: [MessageID], in channel: Int64) throws(ChatError) {
    try database.transaction { () throws(ChatError) in for id in messages { try forget(id, in: channel) } }
  }

  public func forget(users: [UserID]) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for user in users { try database.run("DELETE FROM users WHERE original = ?", .text(user.rawValue)) }
    }
  }

  public func reset() throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for table in ["run", "users", "channels", "messages", "losses", "loss_examples", "exceptions", "late"] {
        try database.execute("DELETE FROM \(table)")
      }
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
    counts.users = Int(try note("crossed.users") ?? "") ?? 0
    counts.channels = try database.count("SELECT count(*) FROM channels WHERE destination IS NOT NULL")
    counts.finishedChannels = try database.count("SELECT count(*) FROM channels WHERE state = 'finished'")
    counts.messages = try database.count(
      "SELECT count(*) FROM messages WHERE original NOT LIKE '%\(ReactionForm.mark)%'")
    counts.refused = try database.count("SELECT count(*) FROM exceptions WHERE outcome = 'refused'")
    counts.skipped = try database.count("SELECT count(*) FROM exceptions WHERE outcome = 'skipped'")
    counts.late = try database.count(
      "SELECT count(DISTINCT kind || ' ' || channel || ' ' || id) FROM late WHERE kind NOT IN ('removed', 'touched')")
    return counts
  }
}
