import UnifiedChat

/// One channel while its messages are written.
struct ChannelWork: Sendable {
  let channel: Int64
  let original: ChannelID
  let destination: ChannelID
  var watermark: Int64
  /// A run with this ledger has been at the channel before, so that what is there may be its own.
  let isBegun: Bool
  let form: DestinationForm
  /// Where the last look at the destination ended.
  var lookedUpTo: Cursor?
  var written = 0
}

/// Messages on their way, with what is known of each.
private struct Batch {
  var records: [MessageRecord]
  var outcomes: [MessageID: PutOutcome<MessageID>] = [:]
  /// Originals of those that this run wrote.
  var own: Set<MessageID> = []
  var tally = LoadTally()
  /// Ids at the destination of earlier messages that these answer.
  var earlier: [MessageID: MessageID] = [:]
  /// Those that were written when what they answer was not there.
  var astray: [MessageID: [Loss]] = [:]

  var open: [MessageRecord] { records.filter(isOpen) }

  func isOpen(_ record: MessageRecord) -> Bool { record.message.id.map { outcomes[$0] == nil } ?? false }

  /// Ids at the destination of what is written, by original id.
  var places: [MessageID: MessageID] {
    outcomes.compactMapValues(\.id).merging(earlier) { written, _ in written }
  }

  /// What may be written in one call. Who answers one that is not written yet has to wait, wherever in the batch that is:
  /// an answer names the id that its target got. Messages of one millisecond keep their order whatever the destination
  /// does with times.
  func next(atMost limit: Int, inAnyOrder: Bool) -> [MessageRecord] {
    let open = open
    let present = Set(open.compactMap(\.message.id))
    var now: [MessageRecord] = []
    var times: Set<Timestamp> = []
    for record in open {
      let waits = record.message.targets.contains { present.contains($0) && $0 != record.message.id }
      let isBehind = inAnyOrder ? times.contains(record.message.createdAt) : !times.isEmpty
      if waits || isBehind { times.insert(record.message.createdAt) } else { now.append(record) }
    }
    // Two that answer each other, or an answer before its target where the order counts, would wait for ever.
    return Array((now.isEmpty ? open.prefix(1) : now.prefix(limit)))
  }
}

extension Message {
  /// The messages of its channel that it answers.
  var targets: [MessageID] { [replyTo?.id, threadParent].compactMap(\.self) }

  /// What is lost of its links where only these messages have places.
  func astray(_ places: [MessageID: MessageID]) -> [Loss] {
    var losses: [Loss] = []
    if let target = replyTo?.id, places[target] == nil { losses.append(.answerAstray) }
    if let target = threadParent, places[target] == nil { losses.append(.replyAstray) }
    return losses
  }
}

extension MessageRecord {
  /// With the ids that the destination gave to the messages which it answers; what is not there keeps its own id.
  func answering(_ places: [MessageID: MessageID]) -> MessageRecord {
    var copy = self
    if let reply = message.replyTo, let place = places[reply.id] {
      copy.message.replyTo?.id = place
      if reply.quoted?.id == reply.id { copy.message.replyTo?.quoted?.id = place }
    }
    copy.message.threadParent = message.threadParent.map { places[$0] ?? $0 }
    return copy
  }
}

extension Loader {
  /// Writes the next messages and moves the watermark. False at the end of the channel.
  func loadBatch(_ work: inout ChannelWork) async throws(ChatError) -> Bool {
    if Task.isCancelled { throw .cancelled(.writeDestination) }
    var page = try await archive.messages(
      in: work.channel, after: work.watermark, limit: max(1, destination.limits.batch))
    guard !page.isEmpty else { return false }
    let granted = try await budget.reserve(messages: page.count)
    page = Array(page.prefix(granted))
    let originals = try page.map { stored throws(ChatError) in try stored.stored.message() }
    let users = try await directory.destinations(of: Set(originals.flatMap(\.message.namedUsers)))
    var batch = Batch(
      records: originals.flatMap {
        [work.form.message($0, users: users)] + work.form.reactions(of: $0, users: users)
      })
    await budget.spend(messages: batch.records.count - originals.count)
    for (id, found) in try await ledger.destinations(of: batch.records.compactMap(\.message.id), in: work.channel) {
      batch.outcomes[id] = .existed(found)
    }
    for original in originals {
      guard let id = original.message.id else { continue }
      if !work.form.reactions(of: original, users: users).isEmpty { batch.tally.add(.reactionMessages, of: id.rawValue) }
      guard work.form.rules.admits(original.message) else {
        if batch.outcomes[id] == nil { batch.outcomes[id] = .skipped(.filtered) }
        continue
      }
      // What a look found after a kill counts too: each batch is committed once.
      if work.form.isPutInWords(original.message) { batch.tally.add(.noticeInWords, of: id.rawValue) }
      if work.form.rules.rewritesMentions, work.form.rewrites(original.message, users: users) {
        batch.tally.add(.rewrittenMention, of: id.rawValue)
      }
    }
    for index in batch.records.indices where batch.records[index].message.id.map({ batch.outcomes[$0] == nil }) ?? false {
      batch.records[index] = try await placingAttachments(of: batch.records[index], work, &batch.tally)
    }
    try await write(&batch, &work)
    try await noteAstray(&batch, work)
    account(&batch, work)
    let ids = batch.outcomes.compactMapValues(\.id)
    let last = page.last?.ordinal ?? work.watermark
    try await ledger.commit(work.channel, upTo: last, ids: ids, own: batch.own, batch.tally)
    work.watermark = last
    progress.add(page.count)
    return true
  }

  /// The same for what an earlier try wrote, of which nobody knows any more what was there: where the order counts,
  /// nothing behind it in the archive; else what stands in one batch with it, unless they answer one another.
  private func noteAstray(_ batch: inout Batch, _ work: ChannelWork) async throws(ChatError) {
    let found = batch.records.filter { record in
      guard let id = record.message.id, batch.astray[id] == nil, case .existed? = batch.outcomes[id] else { return false }
      return !record.message.targets.isEmpty && ReactionForm.message(of: id) == nil
    }
    guard !found.isEmpty else { return }
    let named = found.flatMap(\.message.targets) + found.compactMap(\.message.id)
    let ordinals = try await archive.ordinals(of: named, in: work.channel)
    let beside = destination.limits.takesAnyOrder ? Set(batch.records.compactMap(\.message.id)) : []
    for record in found {
      guard let id = record.message.id, let ordinal = ordinals[id] else { continue }
      var places = batch.places
      for target in record.message.targets {
        let isBefore = ordinals[target].map { $0 < ordinal } ?? false
        if !isBefore, target == id || !beside.contains(target) { places[target] = nil }
      }
      batch.astray[id] = record.message.astray(places)
    }
  }

  private func account(_ batch: inout Batch, _ work: ChannelWork) {
    for record in batch.records {
      guard let id = record.message.id, let outcome = batch.outcomes[id] else { continue }
      switch outcome {
      case .written, .existed:
        batch.tally.crossed += 1
        // What was lost of a reaction is told with its message.
        guard ReactionForm.message(of: id) == nil else { continue }
        for loss in destination.losses(of: .message(record)) { batch.tally.add(loss, of: id.rawValue) }
        for loss in batch.astray[id] ?? [] { batch.tally.add(loss, of: id.rawValue) }
      case .refused(let error):
        batch.tally.add(
          LoadException(
            kind: "message", outcome: .refused, channel: work.channel, id: id.rawValue, reason: error.description))
      case .skipped(let loss):
        batch.tally.skip(loss, kind: "message", id: id.rawValue, channel: work.channel)
      }
    }
  }

  // MARK: Writing

  /// Writes `records` in order, each once, however often an answer is lost.
  /// - Returns: the ids of those that are there.
  func put(_ records: [MessageRecord], _ work: ChannelWork) async throws(ChatError) -> [MessageID: MessageID] {
    var batch = Batch(records: records)
    var work = work
    // What a look finds behind the place of the last one is what this call wrote.
    try await write(&batch, &work)
    return batch.outcomes.compactMapValues(\.id)
  }

  /// Until each message of the batch has an outcome, in order.
  private func write(_ batch: inout Batch, _ work: inout ChannelWork) async throws(ChatError) {
    let places = Set(batch.records.compactMap(\.message.id))
    let targets = batch.records.flatMap(\.message.targets).filter { !places.contains($0) }
    batch.earlier = try await ledger.destinations(of: targets, in: work.channel)
    // Of a call that failed, until the culprit is alone.
    var parts: [[MessageRecord]] = []
    var attempt = 0
    var settled = batch.outcomes.count
    while true {
      // Only tries that bring nothing forward count: a batch may meet a passing error more than once.
      if batch.outcomes.count > settled { (attempt, settled) = (0, batch.outcomes.count) }
      skipReactions(in: &batch)
      let part = parts.popLast()
      let open =
        part?.filter(batch.isOpen)
        ?? batch.next(atMost: max(1, destination.limits.batch), inAnyOrder: destination.limits.takesAnyOrder)
      if open.isEmpty {
        if part == nil { return }
        continue
      }
      try await pacer.admit(.writeDestination)
      do throws(ChatError) {
        let places = batch.places
        let outcomes = try await destination.putMessages(open.map { $0.answering(places) }, in: work.destination)
        for record in open { record.message.id.map { batch.astray[$0] = record.message.astray(places) } }
        guard outcomes.count == open.count else { throw .outcomesMissing }
        await pacer.succeeded()
        if let passing = take(outcomes, of: open, &batch, &work) {
          attempt += 1
          try await pacer.recover(from: passing, attempt: attempt)
          parts.append(open)
        }
      } catch {
        if error.isOfItems, open.count == 1 {
          batch.outcomes[open[0].message.id ?? ""] = .refused(error)
          continue
        }
        if error.isOfItems {
          parts.append(Array(open[(open.count / 2)...]))
          parts.append(Array(open[..<(open.count / 2)]))
        } else {
          attempt += 1
          try await pacer.recover(from: error, attempt: attempt)
          parts.append(open)
        }
        // Some of them may have been written before the failure, or its news.
        try await look(&work, for: &batch)
      }
    }
  }

  /// Returns a refusal that passes, if there is one: its item stays open.
  private func take(
    _ outcomes: [PutOutcome<MessageID>], of open: [MessageRecord], _ batch: inout Batch, _ work: inout ChannelWork
  ) -> ChatError? {
    var passing: ChatError?
    for (record, outcome) in zip(open, outcomes) {
      guard let id = record.message.id else { continue }
      if case .refused(let error) = outcome, !error.isFinalForItem {
        passing = passing ?? error
      } else {
        switch outcome {
        case .written:
          work.written += 1
          batch.own.insert(id)
        case .existed where work.isBegun: batch.own.insert(id)
        default: break
        }
        batch.outcomes[id] = outcome
      }
    }
    return passing
  }

  /// A reaction that became a message says nothing without the one that it answers.
  private func skipReactions(in batch: inout Batch) {
    for record in batch.open {
      guard let id = record.message.id, let target = ReactionForm.message(of: id) else { continue }
      switch batch.outcomes[target] {
      case .refused, .skipped: batch.outcomes[id] = .skipped(.lostReactions)
      default: break
      }
    }
  }

  // MARK: What is there already

  /// Tells the ledger what the destination holds of the channel. Not needed where writing twice is harmless.
  /// - Parameter areOwn: whether what is found for the first time was written by this ledger's run.
  func look(_ work: inout ChannelWork, areOwn: Bool) async throws(ChatError) {
    guard destination.capabilities[.destinationIdempotent] != .native else { return }
    var walk = try CursorWalk("what the destination holds of \(work.original)", .writeDestination, from: work.lookedUpTo)
    while true {
      let asked = work.lookedUpTo
      let page = try await pacer.perform(.writeDestination) { [place = work.destination] () throws(ChatError) in
        try await destination.existing(in: place, after: asked)
      }
      var found: [MessageID: MessageID] = [:]
      for item in page.items where item.origin.vendor == work.form.vendor {
        if let channel = item.origin.channel, channel != work.original { continue }
        found[MessageID(item.origin.id)] = item.id
      }
      if !found.isEmpty { try await ledger.commit(found: found, in: work.channel, areOwn: areOwn) }
      // The last page is asked for again by a later look, which then finds what has come since.
      guard let next = page.next, next != asked else { return }
      try walk.go(to: next)
      work.lookedUpTo = next
    }
  }

  private func look(_ work: inout ChannelWork, for batch: inout Batch) async throws(ChatError) {
    try await look(&work, areOwn: true)
    let open = batch.open.compactMap(\.message.id)
    for (id, found) in try await ledger.destinations(of: open, in: work.channel) {
      batch.outcomes[id] = .existed(found)
    }
  }

  // MARK: Attachments

  /// The message with its attachments as the destination has them.
  func placingAttachments(
    of record: MessageRecord, _ work: ChannelWork, _ tally: inout LoadTally
  ) async throws(ChatError) -> MessageRecord {
    guard let id = record.message.id, !record.message.content.attachments.isEmpty else { return record }
    var placed: [Attachment] = []
    for attachment in record.message.content.attachments {
      placed.append(try await put(attachment, of: id, work, &tally))
    }
    var next = 0
    var copy = record
    copy.message.content = record.message.content.mappingAttachments { attachment in
      defer { next += 1 }
      return placed.indices.contains(next) ? placed[next] : attachment
    }
    return copy
  }

  /// The attachment as the destination has it; as it was where there are no bytes, or the destination refuses them.
  private func put(
    _ attachment: Attachment, of message: MessageID, _ work: ChannelWork, _ tally: inout LoadTally
  ) async throws(ChatError) -> Attachment {
    if work.form.rules.attachments == .link {
      tally.skip(.linkedBytes, kind: "file", id: message.rawValue, channel: work.channel)
      var copy = attachment
      copy.sha256 = nil
      return copy
    }
    guard let sha256 = attachment.sha256, let bytes = try archive.files.bytes(of: sha256) else {
      tally.add(.missingBytes, of: message.rawValue)
      return attachment
    }
    do throws(ChatError) {
      if let limit = destination.limits.attachmentBytes, Int64(bytes.count) > limit {
        throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: .upload, detail: "\(bytes.count) bytes")
      }
      try await budget.reserve(bytes: Int64(bytes.count))
      return try await pacer.perform(.upload) { [place = work.destination] () throws(ChatError) in
        try await destination.putAttachment(attachment, bytes: bytes, in: place)
      }
    } catch {
      guard error.isOfItems else { throw error }
      tally.add(.refusedBytes, of: message.rawValue)
      tally.add(
        LoadException(
          kind: "file", outcome: .refused, channel: work.channel, id: message.rawValue, reason: error.description))
      var copy = attachment
      copy.sha256 = nil
      return copy
    }
  }
}

extension Array {
  /// In order, each but the last of `size` elements.
  func chunks(of size: Int) -> [[Element]] {
    stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min(count, $0 + size)]) }
  }
}
