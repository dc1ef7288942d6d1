import UnifiedChat

/// One channel while its messages are written.
struct ChannelWork: Sendable {
  let channel: Int64
  let original: ChannelID
  let destination: ChannelID
  var watermark: Int64
  let form: DestinationForm
  /// Where the last look at the destination ended.
  var lookedUpTo: Cursor?
  var written = 0
}

/// Messages on their way, with what is known of each.
private struct Batch {
  var records: [MessageRecord]
  var outcomes: [MessageID: PutOutcome<MessageID>] = [:]
  var tally = LoadTally()

  var open: [MessageRecord] { records.filter { $0.message.id.map { outcomes[$0] == nil } ?? false } }
}

extension Loader {
  /// Writes the next messages and moves the watermark. False at the end of the channel.
  func loadBatch(_ work: inout ChannelWork) async throws(ChatError) -> Bool {
    if Task.isCancelled { throw .cancelled(.writeDestination) }
    let page = try await archive.messages(
      in: work.channel, after: work.watermark, limit: max(1, destination.limits.batch))
    guard let last = page.last else { return false }
    let originals = try page.map { stored throws(ChatError) in try stored.stored.message() }
    let users = try await directory.destinations(of: Set(originals.flatMap(\.message.namedUsers)))
    var batch = Batch(records: originals.map { work.form.message($0, users: users) })
    for (id, found) in try await ledger.destinations(of: page.map(\.id), in: work.channel) {
      batch.outcomes[id] = .existed(found)
    }
    try await putAttachments(of: &batch, work)
    try await write(&batch, &work)
    account(&batch, work)
    let ids = batch.outcomes.compactMapValues(\.id)
    try await ledger.commit(work.channel, upTo: last.ordinal, ids: ids, batch.tally)
    work.watermark = last.ordinal
    progress.add(page.count)
    return true
  }

  private func account(_ batch: inout Batch, _ work: ChannelWork) {
    for record in batch.records {
      guard let id = record.message.id, let outcome = batch.outcomes[id] else { continue }
      switch outcome {
      case .written, .existed:
        batch.tally.crossed += 1
        for loss in destination.losses(of: .message(record)) { batch.tally.add(loss, of: id.rawValue) }
      case .refused(let error):
        batch.tally.add(
          LoadException(
            kind: "message", outcome: .refused, channel: work.channel, id: id.rawValue, reason: error.description))
      case .skipped(let loss):
        batch.tally.add(loss, of: id.rawValue)
        batch.tally.add(
          LoadException(
            kind: "message", outcome: .skipped, channel: work.channel, id: id.rawValue, reason: loss.explanation))
      }
    }
  }

  // MARK: Writing

  /// Until each message of the batch has an outcome, in order.
  private func write(_ batch: inout Batch, _ work: inout ChannelWork) async throws(ChatError) {
    var groups: [[MessageRecord]] = [batch.open]
    var attempt = 0
    while let group = groups.popLast() {
      let open = group.filter { $0.message.id.map { batch.outcomes[$0] == nil } ?? false }
      guard !open.isEmpty else { continue }
      try await pacer.admit(.writeDestination)
      do throws(ChatError) {
        let outcomes = try await destination.putMessages(open, in: work.destination)
        guard outcomes.count == open.count else { throw .outcomesMissing }
        await pacer.succeeded()
        if let passing = take(outcomes, of: open, &batch, &work) {
          attempt += 1
          try await pacer.recover(from: passing, attempt: attempt)
          groups.append(open)
        } else {
          attempt = 0
        }
      } catch {
        if error.isOfItems, open.count == 1 {
          batch.outcomes[open[0].message.id ?? ""] = .refused(error)
          continue
        }
        if error.isOfItems {
          groups.append(Array(open[(open.count / 2)...]))
          groups.append(Array(open[..<(open.count / 2)]))
        } else {
          attempt += 1
          try await pacer.recover(from: error, attempt: attempt)
          groups.append(open)
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
        if case .written = outcome { work.written += 1 }
        batch.outcomes[id] = outcome
      }
    }
    return passing
  }

  // MARK: What is there already

  /// Tells the ledger what the destination holds of the channel. Not needed where writing twice is harmless.
  func look(_ work: inout ChannelWork) async throws(ChatError) {
    guard destination.capabilities[.destinationIdempotent] != .native else { return }
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
      if !found.isEmpty { try await ledger.commit(found: found, in: work.channel) }
      // The last page is asked for again by a later look, which then finds what has come since.
      guard let next = page.next, next != asked else { return }
      work.lookedUpTo = next
    }
  }

  private func look(_ work: inout ChannelWork, for batch: inout Batch) async throws(ChatError) {
    try await look(&work)
    let open = batch.open.compactMap(\.message.id)
    for (id, found) in try await ledger.destinations(of: open, in: work.channel) {
      batch.outcomes[id] = .existed(found)
    }
  }

  // MARK: Attachments

  private func putAttachments(of batch: inout Batch, _ work: ChannelWork) async throws(ChatError) {
    for index in batch.records.indices {
      let message = batch.records[index].message
      guard let id = message.id, batch.outcomes[id] == nil, !message.content.attachments.isEmpty else { continue }
      var placed: [Attachment] = []
      for attachment in message.content.attachments {
        placed.append(try await put(attachment, of: id, work, &batch.tally))
      }
      var next = 0
      batch.records[index].message.content = message.content.mappingAttachments { attachment in
        defer { next += 1 }
        return placed.indices.contains(next) ? placed[next] : attachment
      }
    }
  }

  /// The attachment as the destination has it; as it was where there are no bytes, or the destination refuses them.
  private func put(
    _ attachment: Attachment, of message: MessageID, _ work: ChannelWork, _ tally: inout LoadTally
  ) async throws(ChatError) -> Attachment {
    guard let sha256 = attachment.sha256, let bytes = try archive.files.bytes(of: sha256) else {
      tally.add(.missingBytes, of: message.rawValue)
      return attachment
    }
    do throws(ChatError) {
      if let limit = destination.limits.attachmentBytes, Int64(bytes.count) > limit {
        throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: .upload, detail: "\(bytes.count) bytes")
      }
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
