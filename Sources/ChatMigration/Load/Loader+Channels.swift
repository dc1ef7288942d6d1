import UnifiedChat

extension Loader {
  /// Returns how many messages were written.
  func loadChannels(_ form: DestinationForm) async throws(ChatError) -> Int {
    try await registerChannels()
    let repeated = try await archive.repeatedDirectChannels()
    let before = try await ledger.counts().messages
    progress.begin(.loadChannels, total: try await archive.counts().messages, head: before)
    let width = min(options.parallelChannels ?? destination.limits.parallelChannels, destination.limits.parallelChannels)
    let written = try await inParallel(width) { () async throws(ChatError) -> Int in
      var written = 0
      while let unit = try await ledger.lease(by: "run") {
        written += try await load(unit, asGroup: unit.isGroup || repeated.contains(unit.channel), form)
      }
      return written
    }
    progress.end()
    return written.reduce(0, +)
  }

  private func registerChannels() async throws(ChatError) {
    var after: Int64 = 0
    while true {
      let page = try await archive.extents(after: after, limit: 500)
      guard let last = page.last else { return }
      try await ledger.register(page)
      after = last.channel
    }
  }

  private func load(
    _ unit: ChannelUnit, asGroup: Bool, _ form: DestinationForm
  ) async throws(ChatError) -> Int {
    if Task.isCancelled { throw .cancelled(.writeDestination) }
    guard let archived = try await archive.channel(unit.channel) else {
      throw ChatError(
        .storage(.corrupt), operation: .writeDestination, detail: "the ledger knows a channel that the archive lacks")
    }
    guard form.rules.filter.admits(archived.id) else {
      try await end(unit, .skipped, archived.id.rawValue, Loss.filteredChannel.explanation, .filteredChannel)
      return 0
    }
    if unit.state == .pending { try await budget.reserveChannel() }
    let lastChange = try await archive.lastChange(of: unit.channel)
    let original = try archived.stored.channel()
    let members = try await members(of: unit.channel).filter { form.rules.filter.admits($0.member.user.id) }
    guard let place = try await create(unit, original, members, asGroup: asGroup, form) else { return 0 }
    var work = ChannelWork(
      channel: unit.channel, original: archived.id, destination: place.id, watermark: unit.watermark,
      isBegun: unit.isIntended, form: form)
    // Somebody has been here: this run's predecessor, or one whose ledger is lost.
    if place.mayHoldMessages { try await look(&work, areOwn: unit.isIntended) }
    if unit.change < lastChange { try await applyChanges(&work, after: unit.change) }
    while try await loadBatch(&work) {}
    let record = place.record
    try await pacer.perform(.writeDestination) { [members = place.members] () throws(ChatError) in
      try await destination.finishChannel(place.id, original: record, members: members)
    }
    try await ledger.commit(unit.channel, endedAs: .finished, change: lastChange, LoadTally())
    return work.written
  }

  /// Membership is handed over as a whole, as the contract wants it; messages never are.
  private func members(of channel: Int64) async throws(ChatError) -> [MemberRecord] {
    var members: [MemberRecord] = []
    while true {
      let page = try await archive.members(of: channel, after: members.last?.member.user.id, limit: 1000)
      if page.isEmpty { return members }
      for stored in page { members.append(try stored.member()) }
    }
  }

  private struct Place {
    var id: ChannelID
    var record: ChannelRecord
    var members: [MemberRecord]
    var mayHoldMessages: Bool
  }

  /// nil when the channel does not cross; the ledger says why.
  private func create(
    _ unit: ChannelUnit, _ original: ChannelRecord, _ members: [MemberRecord], asGroup: Bool, _ form: DestinationForm
  ) async throws(ChatError) -> Place? {
    let people = [original.channel.createdBy, original.channel.peer].compactMap(\.self)
    let users = try await directory.destinations(of: Set(people + members.map(\.member.user.id)))
    let record = form.channel(original, asGroup: asGroup, users: users)
    let own = members.map { form.member($0, users: users) }
    if !unit.isIntended { try await ledger.intend(unit.channel) }
    if let known = unit.destination, let origin = record.origin { await destination.resume(known, of: origin) }
    let outcome = try await write([record]) { records throws(ChatError) in
      var outcomes: [PutOutcome<ChannelID>] = []
      for record in records { outcomes.append(try await destination.putChannel(record, members: own)) }
      return outcomes
    }.first
    let id = original.channel.id.rawValue
    switch outcome {
    case .written(let given)?, .existed(let given)?:
      var tally = tally(of: record, own, id: id, asGroup: asGroup)
      for member in members where form.rules.roles[member.member.role.recordName] != nil {
        tally.add(.mappedRole, of: "\(id)/\(member.member.user.id)")
      }
      var isOwn = unit.isIntended
      if case .written? = outcome { isOwn = true }
      do throws(ChatError) {
        try await ledger.commit(unit.channel, createdAs: given, asGroup: asGroup, isOwn: isOwn, tally)
      } catch where error.kind == .conflict && original.channel.kind == .direct && !asGroup {
        // The destination has one such channel a pair, and it belongs to another of the archive.
        return try await create(unit, original, members, asGroup: true, form)
      } catch where error.kind == .conflict {
        try await end(unit, .refused, id, error.detail)
        return nil
      }
      var mayHoldMessages = unit.state != .pending
      if case .existed? = outcome { mayHoldMessages = true }
      return Place(id: given, record: record, members: own, mayHoldMessages: mayHoldMessages)
    case .refused(let error)?: try await end(unit, .refused, id, error.description)
    case .skipped(let loss)?: try await end(unit, .skipped, id, loss.explanation, loss)
    case nil: throw .outcomesMissing
    }
    return nil
  }

  private func tally(
    of record: ChannelRecord, _ members: [MemberRecord], id: String, asGroup: Bool
  ) -> LoadTally {
    var tally = LoadTally()
    if asGroup { tally.add(.repeatedDirectChannel, of: id) }
    for loss in destination.losses(of: .channel(record)) { tally.add(loss, of: id) }
    for member in members {
      for loss in destination.losses(of: .member(member)) { tally.add(loss, of: "\(id)/\(member.member.user.id)") }
    }
    return tally
  }

  private func end(
    _ unit: ChannelUnit, _ state: ChannelUnit.State, _ id: String, _ reason: String, _ loss: Loss? = nil
  ) async throws(ChatError) {
    var tally = LoadTally()
    if let loss { tally.add(loss, of: id) }
    tally.add(
      LoadException(
        kind: "channel", outcome: state == .skipped ? .skipped : .refused, channel: unit.channel, id: id,
        reason: reason))
    try await ledger.commit(unit.channel, endedAs: state, change: 0, tally)
    progress.add(try await archive.messageCount(of: unit.channel))
  }
}

extension Archive {
  /// Channels by number, with the numbers of their last message and last change.
  func extents(after channel: Int64, limit: Int) throws(ChatError) -> [ChannelExtent] {
    let hasChanges = try hasChanges
    return try database.rows(
      """
      SELECT ordinal, (SELECT coalesce(max(m.ordinal), 0) FROM messages m WHERE m.channel = c.ordinal),
        \(hasChanges ? "(SELECT coalesce(max(n.number), 0) FROM changes n WHERE n.channel = c.ordinal)" : "0")
      FROM channels c WHERE ordinal > ? ORDER BY ordinal LIMIT ?
      """, .integer(channel), .integer(limit)
    ) { row in ChannelExtent(channel: row.integer(0), lastMessage: row.integer(1), lastChange: row.integer(2)) }
  }
}
