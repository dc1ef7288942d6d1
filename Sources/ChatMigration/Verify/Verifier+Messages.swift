import ChatCrypto
import ChatInterchange
import ChatJSON
import UnifiedChat

/// A walk through the messages of one channel at the destination.
private struct MessageWalk {
  let channel: ArchivedChannel
  let form: DestinationForm
  var marks: ReadMarkWalk
  var lastOrdinal: Int64 = 0
  /// Messages that reactions became, of the messages that were found, and how many of them were found.
  var reactionsExpected = 0
  var reactionsFound = 0
  var expected = LineDigest()
  var actual = LineDigest()
}

extension Verifier {
  func verifyMessages(
    of channel: ArchivedChannel, at place: ChannelID, _ form: DestinationForm, _ scratch: VerifyScratch,
    _ marks: inout [ReadMark], _ result: inout ChannelVerification, _ tally: inout VerifyTally
  ) async throws(ChatError) {
    var walk = MessageWalk(channel: channel, form: form, marks: ReadMarkWalk(marks))
    try await forEachPage({ cursor throws(ChatError) in try await readBack.messages(in: place, after: cursor) }) {
      page throws(ChatError) in
      let unread = tally.sorting(page.unreadable)
      result.unverified += unread.count
      for record in unread {
        result.note(VerifyFinding(kind: "message", sign: .failed, id: record.id ?? "", what: record.reason))
      }
      try await verify(page.items, scratch, &walk, &result, &tally)
      progress.add(page.items.count)
    }
    walk.marks.finish()
    marks = walk.marks.marks
    try await findMissing(scratch, walk, &result)
    result.actualDigest = walk.actual.value
    // The walk went in the destination's order, which is the archive's unless something was found to differ.
    let sameOrder = result.missing + result.outOfOrder + result.doubled + result.extra == 0
    result.expectedDigest = sameOrder ? walk.expected.value : try await archiveDigest(of: walk)
  }

  /// The digest of the archive's own order, for a channel whose messages are not those of the archive.
  private func archiveDigest(of walk: MessageWalk) async throws(ChatError) -> String {
    var digest = LineDigest()
    var after: Int64 = 0
    while true {
      let page = try await archive.messages(in: walk.channel.ordinal, after: after, limit: 500)
      guard let last = page.last else { return digest.value }
      after = last.ordinal
      let forms = try await expectedForms(
        Dictionary(page.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first }), walk.form)
      for message in page {
        guard let form = forms[message.id] else { continue }
        digest.add(JSONValue.object(CarriedForm.message(form.message)).canonicalBytes())
      }
    }
  }

  private func verify(
    _ items: [MessageRecord], _ scratch: VerifyScratch, _ walk: inout MessageWalk,
    _ result: inout ChannelVerification, _ tally: inout VerifyTally
  ) async throws(ChatError) {
    let paired = items.filter { $0.origin?.vendor == walk.form.vendor }
    let ids = paired.compactMap { $0.origin.map { MessageID($0.id) } }
    let archived = try await archive.messages(
      in: walk.channel.ordinal,
      ids: walk.form.rules.reactions == .messages ? ids + ids.compactMap(ReactionForm.message) : ids)
    let expected = try await expectedForms(archived, walk.form)
    let originals = try await self.targets(
      told: items.flatMap(\.message.targets), expected: expected.values.flatMap(\.message.targets),
      ordinals: archived.mapValues(\.ordinal), walk)
    let seen = try await scratch.mark(
      paired.compactMap { archived[MessageID($0.origin?.id ?? "")].map { "\($0.ordinal)" } }, .messages,
      channel: walk.channel.ordinal)
    var next = 0
    for item in items {
      let id = MessageID(item.origin?.id ?? "")
      guard item.origin?.vendor == walk.form.vendor, let stored = archived[id], let original = expected[id] else {
        if item.origin?.vendor == walk.form.vendor, let reaction = expected[id] {
          try await take(reaction: reaction, item, originals, scratch, &walk, &result, &tally)
        } else {
          try await take(foreign: item, &walk, &result)
        }
        continue
      }
      if walk.form.rules.reactions == .messages {
        walk.reactionsExpected += walk.form.reactionCount(of: try stored.stored.message())
      }
      walk.marks.pass(item.message.position, ordinal: stored.ordinal)
      defer { next += 1 }
      if seen[next] {
        result.doubled += 1
        walk.actual.add(JSONValue.object(CarriedForm.message(item.message)).canonicalBytes())
        result.note(VerifyFinding(kind: "message", sign: .different, id: id.rawValue, what: "doubled"))
        continue
      }
      if stored.ordinal < walk.lastOrdinal {
        result.outOfOrder += 1
        result.note(VerifyFinding(kind: "message", sign: .different, id: id.rawValue, what: "order"))
      }
      walk.lastOrdinal = max(walk.lastOrdinal, stored.ordinal)
      result.found += 1
      try await compare(original, item, originals, at: stored.ordinal, &walk, &result, &tally)
    }
  }

  private func expectedForms(
    _ archived: [MessageID: ArchivedMessage], _ form: DestinationForm
  ) async throws(ChatError) -> [MessageID: MessageRecord] {
    var records: [MessageID: MessageRecord] = [:]
    for (id, stored) in archived { records[id] = try stored.stored.message() }
    let people = Set(records.values.flatMap(\.message.namedUsers))
    let users = try await ledger.destinations(of: Array(people))
    var forms = records.mapValues { form.message($0, users: users) }
    for record in records.values {
      for reaction in form.reactions(of: record, users: users) {
        if let id = reaction.message.id { forms[id] = reaction }
      }
    }
    return forms
  }

  /// A message that a reaction became.
  private func take(
    reaction expected: MessageRecord, _ item: MessageRecord, _ originals: Targets,
    _ scratch: VerifyScratch, _ walk: inout MessageWalk, _ result: inout ChannelVerification, _ tally: inout VerifyTally
  ) async throws(ChatError) {
    let id = expected.message.id?.rawValue ?? ""
    guard try await scratch.mark([id], .messages, channel: walk.channel.ordinal) == [false] else {
      result.doubled += 1
      return result.note(VerifyFinding(kind: "message", sign: .different, id: id, what: "doubled"))
    }
    walk.reactionsFound += 1
    try await compare(expected, item, originals, at: 0, &walk, &result, &tally)
  }

  private func take(
    foreign item: MessageRecord, _ walk: inout MessageWalk, _ result: inout ChannelVerification
  ) async throws(ChatError) {
    let id = item.message.id?.rawValue ?? ""
    if item.message.isRecalled,
      try await !ledger.lateLosses(of: LateLoss.removed, id, in: walk.channel.ordinal).isEmpty
    {
      // What the vendor keeps of a message that a run removed again.
      result.notices += 1
    } else if let origin = item.origin, origin.vendor == walk.form.vendor,
      try await !ledger.lateLosses(
        of: "message", (ReactionForm.message(of: MessageID(origin.id)) ?? MessageID(origin.id)).rawValue,
        in: walk.channel.ordinal
      ).isEmpty
    {
      // Gone at its source, and not removable here.
      result.excepted += 1
    } else if item.origin == nil, case .system = item.message.content {
      result.notices += 1
    } else if options.forbidsExtra {
      result.extra += 1
      walk.actual.add(JSONValue.object(CarriedForm.message(item.message)).canonicalBytes())
      result.note(
        VerifyFinding(
          kind: "message", sign: .extra, id: item.message.id?.rawValue ?? "", what: "not in the archive"))
    }
  }

  private func compare(
    _ expected: MessageRecord, _ actual: MessageRecord, _ targets: Targets, at ordinal: Int64,
    _ walk: inout MessageWalk, _ result: inout ChannelVerification, _ tally: inout VerifyTally
  ) async throws(ChatError) {
    let id = expected.message.id?.rawValue ?? ""
    let isReaction = walk.form.rules.reactions == .messages && ReactionForm.message(of: MessageID(id)) != nil
    for field in MessageField.allCases where field.isCompared && !isReaction {
      if expected.message.value(of: field) != nil { tally.fieldCounts["message.\(field.rawValue)", default: 0] += 1 }
    }
    var one = expected.message
    var two = actual.message
    two.replyTo = two.replyTo.map { Reply(id: targets.original($0.id, one.replyTo?.id, of: ordinal)) }
    two.threadParent = two.threadParent.map { targets.original($0, one.threadParent, of: ordinal) }
    if !one.content.attachments.isEmpty {
      let problem = try await align(&one, &two, id: id, walk.channel.ordinal)
      if let problem {
        result.unverified += 1
        result.note(VerifyFinding(kind: "file", sign: .failed, id: id, what: problem))
      }
    }
    let forms = (CarriedForm.message(one), CarriedForm.message(two))
    var comparison = Comparison("message", expected: forms.0, actual: forms.1) {
      destination.losses(of: .message(expected))
    }
    if !comparison.unexplained.isEmpty {
      let late =
        try await ledger.lateLosses(of: "message", id, in: walk.channel.ordinal)
        + ledger.lateLosses(of: LateLoss.touched, id, in: walk.channel.ordinal)
      if !late.isEmpty {
        comparison = Comparison("message", expected: forms.0, actual: forms.1) {
          destination.losses(of: .message(expected)) + late
        }
      }
    }
    tally.add(comparison)
    walk.expected.add(comparison.expectedLine)
    walk.actual.add(comparison.actualLine)
    guard !comparison.unexplained.isEmpty else { return }
    result.different += 1
    for difference in comparison.unexplained {
      result.note(VerifyFinding(kind: "message", sign: .different, id: id, what: difference.path))
    }
  }

  // MARK: Attachments

  /// Puts the SHA-256 of what the destination gives into `actual`, and leaves out what the archive did not know.
  /// Returns why the bytes could not be checked.
  private func align(
    _ expected: inout Message, _ actual: inout Message, id: String, _ channel: Int64
  ) async throws(ChatError) -> String? {
    var known = expected.content.attachments
    var given = actual.content.attachments
    guard known.count == given.count else { return nil }
    let isExcepted = try await ledger.exception(of: "file", id, in: channel) != nil
    var problem: String?
    for index in known.indices {
      if known[index].sha256 == nil || isExcepted {
        known[index].sha256 = nil
        given[index].sha256 = nil
      } else if options.downloadsFiles || given[index].sha256 == nil {
        do throws(ChatError) { try await hash(&given[index]) } catch {
          guard error.isOfItems else { throw error }
          problem = error.description
          known[index].sha256 = nil
          given[index].sha256 = nil
        }
      }
      given[index].hide(unknownTo: known[index])
    }
    expected.content = expected.content.replacingAttachments(known)
    actual.content = actual.content.replacingAttachments(given)
    return problem
  }

  private func hash(_ attachment: inout Attachment) async throws(ChatError) {
    let asked = attachment
    let (digest, size) = try await pacer.perform(.download) { () throws(ChatError) in
      let counter = DigestSink()
      try await readBack.download(asked) { piece throws(ChatError) in await counter.add(piece) }
      return await (counter.sha256, counter.size)
    }
    attachment.sha256 = digest
    attachment.size = size
  }

  // MARK: Missing

  private func findMissing(
    _ scratch: VerifyScratch, _ walk: MessageWalk, _ result: inout ChannelVerification
  ) async throws(ChatError) {
    guard result.found < result.expected || walk.reactionsFound < walk.reactionsExpected else { return }
    let channel = walk.channel.ordinal
    var after: Int64 = 0
    while true {
      let page = try await archive.messages(in: channel, after: after, limit: 500)
      guard let last = page.last else { return }
      after = last.ordinal
      let seen = try await scratch.contains(page.map { "\($0.ordinal)" }, .messages, channel: channel)
      for (message, seen) in zip(page, seen) where !seen {
        guard try await ledger.exception(of: "message", message.id.rawValue, in: channel) == nil else {
          result.excepted += 1
          continue
        }
        result.missing += 1
        result.note(VerifyFinding(kind: "message", sign: .missing, id: message.id.rawValue, what: "missing"))
      }
      if walk.form.rules.reactions == .messages { try await findMissingReactions(page, scratch, walk, &result) }
    }
  }

  private func findMissingReactions(
    _ page: [ArchivedMessage], _ scratch: VerifyScratch, _ walk: MessageWalk, _ result: inout ChannelVerification
  ) async throws(ChatError) {
    let channel = walk.channel.ordinal
    for message in page {
      let ids = walk.form.reactions(of: try message.stored.message(), users: [:]).compactMap(\.message.id?.rawValue)
      for (id, isSeen) in zip(ids, try await scratch.contains(ids, .messages, channel: channel)) where !isSeen {
        guard try await ledger.exception(of: "message", id, in: channel) == nil else { continue }
        let late = try await ledger.lateLosses(of: "message", message.id.rawValue, in: channel)
        guard !late.contains(.lateReactions) else { continue }
        result.missing += 1
        result.note(VerifyFinding(kind: "message", sign: .missing, id: id, what: "a reaction is missing"))
      }
    }
  }
}

/// The digest of a download, and its length.
private actor DigestSink {
  private var digest = RunningDigest(.sha256)
  private(set) var size: Int64 = 0

  func add(_ piece: [UInt8]) {
    digest.update(piece)
    size += Int64(piece.count)
  }

  var sha256: String { Hex.encode(digest.value) }
}

extension Attachment {
  /// What the archive does not know of an attachment, the destination may have found out.
  fileprivate mutating func hide(unknownTo known: Attachment) {
    if known.name == nil { name = nil }
    if known.size == nil { size = nil }
    if known.mimeType == nil { mimeType = nil }
    if known.width == nil { width = nil }
    if known.height == nil { height = nil }
    if known.durationMilliseconds == nil { durationMilliseconds = nil }
    if known.sha256 == nil { sha256 = nil }
  }
}

extension MessageContent {
  fileprivate func replacingAttachments(_ attachments: [Attachment]) -> MessageContent {
    var index = 0
    return mappingAttachments { old in
      defer { index += 1 }
      return attachments.indices.contains(index) ? attachments[index] : old
    }
  }
}

/// What messages of a page answer: as the destination tells it, and as the archive has it.
private struct Targets {
  /// Of ids of the destination.
  var originals: [MessageID: MessageID]
  /// Of ids of the archive.
  var places: [MessageID: MessageID]
  var ordinals: [MessageID: Int64]
  /// Ids of the destination that a run took away again.
  var removed: Set<MessageID>

  /// The original id of what an answer of this ordinal names; `told` where it names anything else.
  func original(_ told: MessageID, _ expected: MessageID?, of ordinal: Int64) -> MessageID {
    guard let expected else { return originals[told] ?? told }
    if let place = places[expected] {
      if told == place { return expected }
      // It was written before what it answers, which only has a place since.
      let isEarly = told == expected && ordinals[expected].map { $0 >= ordinal } ?? false
      if isEarly { return expected }
      // Not the message of that id which the destination has.
      return told == expected ? MessageID("\(told.rawValue), unknown there") : originals[told] ?? told
    }
    if told == expected { return expected }
    return removed.contains(told) && ordinals[expected] == nil ? expected : originals[told] ?? told
  }
}

extension Verifier {
  /// - Parameter ordinals: of the messages of the archive that are here already.
  fileprivate func targets(
    told: [MessageID], expected: [MessageID], ordinals: [MessageID: Int64], _ walk: MessageWalk
  ) async throws(ChatError) -> Targets {
    let channel = walk.channel.ordinal
    let originals = try await ledger.originals(of: told, in: channel)
    let places = try await ledger.destinations(of: expected, in: channel)
    let others = expected.filter { ordinals[$0] == nil }
    let ordinals = ordinals.merging(try await archive.ordinals(of: others, in: channel)) { here, _ in here }
    var removed: Set<MessageID> = []
    // What was taken away explains only what neither the ledger nor the archive knows any more.
    if others.contains(where: { places[$0] == nil && ordinals[$0] == nil }) {
      for id in Set(told) where originals[id] == nil {
        if try await !ledger.lateLosses(of: LateLoss.removed, id.rawValue, in: channel).isEmpty { removed.insert(id) }
      }
    }
    return Targets(originals: originals, places: places, ordinals: ordinals, removed: removed)
  }
}
