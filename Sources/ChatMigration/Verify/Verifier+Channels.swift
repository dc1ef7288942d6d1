import Synchronization
import UnifiedChat

extension Verifier {
  /// What the list of channels says, by the archive's number; a channel without an entry was not listed.
  func verifyChannelRecords(
    _ tally: inout VerifyTally, _ form: DestinationForm, _ scratch: VerifyScratch
  ) async throws(ChatError) -> ChannelProblems {
    let problems = ChannelProblems()
    try await forEachPage({ cursor throws(ChatError) in try await readBack.channels(after: cursor) }) {
      page throws(ChatError) in
      _ = tally.sorting(page.unreadable)
      for actual in page.items {
        guard let ordinal = try await ledger.original(ofChannel: actual.channel.id),
          let archived = try await archive.channel(ordinal), let unit = try await ledger.unit(ordinal)
        else { continue }
        if try await scratch.mark(["\(ordinal)"], .channels) == [true] {
          problems.add("doubled", to: ordinal)
          continue
        }
        let comparison = try await compare(try archived.stored.channel(), actual, asGroup: unit.isGroup, form)
        tally.add(comparison)
        for difference in comparison.unexplained { problems.add(difference.path, to: ordinal) }
      }
    }
    return problems
  }

  private func compare(
    _ original: ChannelRecord, _ actual: ChannelRecord, asGroup: Bool, _ form: DestinationForm
  ) async throws(ChatError) -> Comparison {
    let people = [original.channel.createdBy, original.channel.peer].compactMap(\.self)
    let expected = form.channel(original, asGroup: asGroup, users: try await ledger.destinations(of: people))
    return Comparison(
      "channel", expected: CarriedForm.channel(expected.channel), actual: CarriedForm.channel(actual.channel)
    ) { destination.losses(of: .channel(expected)) }
  }

  func verifyChannels(
    _ result: inout VerifyResult, _ tally: inout VerifyTally, _ problems: ChannelProblems, _ form: DestinationForm,
    _ scratch: VerifyScratch
  ) async throws(ChatError) {
    progress.begin(.verifyChannels, total: try await archive.counts().messages)
    let cursor = ChannelCursor(archive: archive)
    let parts = try await inParallel(options.parallelChannels) {
      () async throws(ChatError) -> ([ChannelVerification], VerifyTally) in
      var verified: [ChannelVerification] = []
      var tally = VerifyTally()
      while let channel = try await cursor.next() {
        if Task.isCancelled { throw .cancelled(.verify) }
        verified.append(try await verify(channel, problems, form, scratch, &tally))
      }
      return (verified, tally)
    }
    for (verified, part) in parts {
      for channel in verified.sorted(by: { $0.channel < $1.channel }) { result.add(channel) }
      tally.merge(part)
    }
    result.channels.sort { $0.channel < $1.channel }
    progress.end()
  }

  private func verify(
    _ channel: ArchivedChannel, _ problems: ChannelProblems, _ form: DestinationForm, _ scratch: VerifyScratch,
    _ tally: inout VerifyTally
  ) async throws(ChatError) -> ChannelVerification {
    var result = ChannelVerification(channel: channel.id)
    result.expected = try await archive.messageCount(of: channel.ordinal)
    let unit = try await ledger.unit(channel.ordinal)
    if let unit, unit.state == .skipped || unit.state == .refused {
      // Listed as a whole when it was to be written.
      result.excepted = max(result.expected, 1)
      progress.add(result.expected)
      return result
    }
    guard let destination = unit?.destination else {
      result.missing = result.expected
      result.channelProblems = result.expected == 0 ? 1 : 0
      result.note(VerifyFinding(kind: "channel", sign: .missing, id: channel.id.rawValue, what: "missing"))
      progress.add(result.expected)
      return result
    }
    result.destination = destination
    for what in problems.of(channel.ordinal) {
      result.channelProblems += 1
      result.note(VerifyFinding(kind: "channel", sign: .different, id: channel.id.rawValue, what: what))
    }
    do throws(ChatError) {
      if try await scratch.contains(["\(channel.ordinal)"], .channels) == [false] {
        result.channelProblems += 1
        result.note(VerifyFinding(kind: "channel", sign: .missing, id: channel.id.rawValue, what: "not listed"))
      }
      var marks: [ReadMark] = []
      try await verifyMembers(of: channel, at: destination, form, scratch, &marks, &result, &tally)
      try await verifyMessages(of: channel, at: destination, form, scratch, &marks, &result, &tally)
      for mark in marks { try await verify(mark, in: channel, scratch, &result, &tally) }
    } catch {
      guard error.isOfOneChannel else { throw error }
      result.failure = error.description
    }
    return result
  }

  // MARK: Members

  private func verifyMembers(
    of channel: ArchivedChannel, at place: ChannelID, _ form: DestinationForm, _ scratch: VerifyScratch,
    _ marks: inout [ReadMark], _ result: inout ChannelVerification, _ tally: inout VerifyTally
  ) async throws(ChatError) {
    let record = try channel.stored.channel()
    var added = false
    for loss in destination.losses(of: .channel(record)) where loss.field.isPath(within: "channel.members") {
      added = true
    }
    try await forEachPage({ cursor throws(ChatError) in try await readBack.members(of: place, after: cursor) }) {
      page throws(ChatError) in
      _ = tally.sorting(page.unreadable)
      for actual in page.items {
        let original = try await ledger.original(ofUser: actual.member.user.id)
        guard let original, form.rules.filter.admits(original),
          let stored = try await archive.member(original, of: channel.ordinal)
        else {
          if try await !isExpected(extra: original, in: channel, added) {
            result.memberProblems += 1
            result.note(
              VerifyFinding(kind: "member", sign: .extra, id: actual.member.user.id.rawValue, what: "not in the archive"))
          }
          continue
        }
        if try await scratch.mark([original.rawValue], .members, channel: channel.ordinal) == [true] {
          result.memberProblems += 1
          result.note(VerifyFinding(kind: "member", sign: .different, id: original.rawValue, what: "doubled"))
          continue
        }
        let expected = form.member(try stored.member(), users: [original: actual.member.user.id])
        let comparison = Comparison(
          "member", expected: CarriedForm.member(expected), actual: CarriedForm.member(actual)
        ) { destination.losses(of: .member(expected)) }
        tally.add(comparison)
        if let position = expected.member.readPosition {
          marks.append(ReadMark(user: original, record: expected, expected: position, actual: actual.member.readPosition))
        }
        guard let first = comparison.unexplained.first else { continue }
        result.memberProblems += 1
        result.note(VerifyFinding(kind: "member", sign: .different, id: original.rawValue, what: first.path))
      }
    }
    try await findMissingMembers(of: channel, form, scratch, &result)
  }

  /// Whether a member whom the archive does not have may be there: added by the destination, as it declares, or gone
  /// since and not removable.
  private func isExpected(
    extra user: UserID?, in channel: ArchivedChannel, _ addsMembers: Bool
  ) async throws(ChatError) -> Bool {
    if addsMembers { return true }
    guard let user else { return false }
    return try await !ledger.lateLosses(of: "member", user.rawValue, in: channel.ordinal).isEmpty
  }

  private func findMissingMembers(
    of channel: ArchivedChannel, _ form: DestinationForm, _ scratch: VerifyScratch,
    _ result: inout ChannelVerification
  ) async throws(ChatError) {
    var after: UserID?
    while true {
      let page = try await archive.members(of: channel.ordinal, after: after, limit: 500)
      let members = try page.map { stored throws(ChatError) in try stored.member() }
      guard let last = members.last else { return }
      after = last.member.user.id
      let seen = try await scratch.contains(
        members.map(\.member.user.id.rawValue), .members, channel: channel.ordinal)
      for (member, seen) in zip(members, seen) where !seen && form.rules.filter.admits(member.member.user.id) {
        if destination.losses(of: .member(member)).contains(where: { $0.field == "member" }) { continue }
        result.memberProblems += 1
        result.note(
          VerifyFinding(kind: "member", sign: .missing, id: member.member.user.id.rawValue, what: "missing"))
      }
    }
  }
}

/// What is wrong with the records of channels.
final class ChannelProblems: Sendable {
  private let found = Mutex<[Int64: [String]]>([:])

  func add(_ what: String, to channel: Int64) { found.withLock { $0[channel, default: []].append(what) } }
  func of(_ channel: Int64) -> [String] { found.withLock { $0[channel] ?? [] } }
}

extension Archive {
  /// nil for who is no member of the channel.
  public func membership(of user: UserID, in channel: Int64) throws(ChatError) -> MemberRecord? {
    try member(user, of: channel)?.member()
  }

  func member(_ user: UserID, of channel: Int64) throws(ChatError) -> StoredRecord? {
    try database.first(
      "SELECT record, raw FROM members WHERE channel = ? AND user = ?", .integer(channel), .text(user.rawValue)
    ) { row in StoredRecord(json: row.text(0), raw: row.optionalText(1)) }
  }
}
