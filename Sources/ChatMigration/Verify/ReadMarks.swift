import UnifiedChat

/// How far a member has read, on both sides.
///
/// Positions of two services cannot be compared, so the messages are that they cover: the last one of the archive at or
/// before the mark.
struct ReadMark: Sendable {
  /// The original id.
  var user: UserID
  /// As it was handed to the destination.
  var record: MemberRecord
  var expected: MessagePosition
  var actual: MessagePosition?
  /// The archive's number of the last message at or before `actual`; 0 for none.
  var reached: Int64 = 0
}

/// Finds what each mark covers while the messages of the destination pass by in their order.
struct ReadMarkWalk {
  private(set) var marks: [ReadMark]
  private var next = 0
  private var last: Int64 = 0

  init(_ marks: [ReadMark]) {
    // Those without a mark cover nothing.
    self.marks = marks.sorted { left, right in
      guard let two = right.actual else { return false }
      return left.actual.map { $0 < two } ?? true
    }
    next = self.marks.firstIndex { $0.actual != nil } ?? marks.count
  }

  /// - Parameter ordinal: of the message in the archive.
  mutating func pass(_ position: MessagePosition?, ordinal: Int64) {
    if let position {
      while next < marks.count, let mark = marks[next].actual, mark < position { settle() }
    }
    last = max(last, ordinal)
  }

  mutating func finish() { while next < marks.count { settle() } }

  private mutating func settle() {
    marks[next].reached = last
    next += 1
  }
}

extension Verifier {
  func verify(
    _ mark: ReadMark, in channel: ArchivedChannel, _ scratch: VerifyScratch, _ result: inout ChannelVerification,
    _ tally: inout VerifyTally
  ) async throws(ChatError) {
    tally.fieldCounts["member.readPosition", default: 0] += 1
    if try await isKept(mark, in: channel, scratch) { return }
    let losses = destination.losses(of: .member(mark.record)).filter { $0.treatment != .keptElsewhere }
    if let loss = losses.first(where: { "member.readPosition".isPath(within: $0.field) }) {
      tally.explained[loss.field, default: 0] += 1
      return
    }
    tally.unexplained["member.readPosition", default: 0] += 1
    result.memberProblems += 1
    result.note(
      VerifyFinding(kind: "member", sign: .different, id: mark.user.rawValue, what: "member.readPosition"))
  }

  private func isKept(
    _ mark: ReadMark, in channel: ArchivedChannel, _ scratch: VerifyScratch
  ) async throws(ChatError) -> Bool {
    // A destination may keep the original position itself.
    if mark.actual == mark.expected { return true }
    let expected = try await archive.lastMessage(of: channel.ordinal, atOrBefore: mark.expected)
    guard expected >= mark.reached else { return false }
    // What did not cross cannot be read there.
    var after = mark.reached
    while after < expected {
      let page = try await archive.messages(in: channel.ordinal, after: after, limit: 200)
      let between = page.filter { $0.ordinal <= expected }
      guard let last = between.last else { return true }
      let seen = try await scratch.contains(between.map { "\($0.ordinal)" }, .messages, channel: channel.ordinal)
      if seen.contains(true) { return false }
      after = last.ordinal
    }
    return true
  }
}

extension Archive {
  /// The number of the last message of the channel that does not come after `position`; 0 if there is none.
  func lastMessage(of channel: Int64, atOrBefore position: MessagePosition) throws(ChatError) -> Int64 {
    var low: Int64 = 0
    var high = Int64(try database.count("SELECT max(ordinal) FROM messages WHERE channel = ?", .integer(channel)))
    // Numbers may have holes: each step looks at the last message up to the middle.
    while low < high {
      let middle = low + (high - low + 1) / 2
      let found = try database.first(
        "SELECT ordinal, record FROM messages WHERE channel = ? AND ordinal <= ? ORDER BY ordinal DESC LIMIT 1",
        .integer(channel), .integer(middle)
      ) { row in (row.integer(0), StoredRecord(json: row.text(1), raw: nil)) }
      guard let (ordinal, stored) = found, ordinal > low else {
        low = middle
        continue
      }
      let message = try stored.message().message
      let own = message.position ?? MessagePosition(time: message.createdAt, id: message.id ?? "")
      if own <= position { low = middle } else { high = ordinal - 1 }
    }
    return Int64(
      try database.count(
        "SELECT max(ordinal) FROM messages WHERE channel = ? AND ordinal <= ?", .integer(channel), .integer(low)))
  }
}
