import UnifiedChat

public struct LoadOptions: Sendable {
  public var users: UserMapping
  /// nil: those that the ledger remembers.
  public var rules: LoadRules?
  public var limits: RunLimits
  /// nil: as many channels at once as the destination says.
  public var parallelChannels: Int?
  public var pace: PaceSettings

  public init(
    users: UserMapping = UserMapping(), rules: LoadRules? = nil, limits: RunLimits = RunLimits(),
    parallelChannels: Int? = nil, pace: PaceSettings = PaceSettings()
  ) {
    self.users = users
    self.rules = rules
    self.limits = limits
    self.parallelChannels = parallelChannels
    self.pace = pace
  }
}

public struct LoadSummary: Sendable, Hashable {
  public var counts: LoadCounts
  public var losses: [CountedLoss]
  /// Messages that this run wrote.
  public var written: Int
  /// Messages that this run changed or removed, because they had changed or gone at their source.
  public var changed = 0
  /// How often the destination asked for patience.
  public var slowDowns: Int
}

/// Writes an archive to a destination, and goes on where it was stopped.
///
/// Order within a channel is kept; channels go side by side. What the destination refuses is listed in the ledger and
/// the run goes on.
public struct Loader: Sendable {
  let archive: Archive
  let destination: any ChatDestination
  let ledger: any Ledger
  let options: LoadOptions
  let clock: any ChatClock
  let progress: ProgressReporter
  let pacer: Pacer
  let directory: UserDirectory
  let budget: RunBudget
  let changeCount = ChangeCount()
  /// Users a call.
  static let userBatch = 100

  public init(
    archive: Archive, destination: any ChatDestination, ledger: any Ledger, options: LoadOptions = LoadOptions(),
    clock: any ChatClock = SystemClock(), progress: ProgressReporter? = nil
  ) {
    self.archive = archive
    self.destination = destination
    self.ledger = ledger
    self.options = options
    self.clock = clock
    self.progress = progress ?? ProgressReporter(clock: clock)
    pacer = Pacer(clock: clock, settings: options.pace)
    directory = UserDirectory(ledger: ledger, mapping: options.users, limits: destination.limits)
    budget = RunBudget(options.limits, clock: clock)
  }

  /// Writes what is not yet written. Cancelling stops it after the batch that is on its way; a later call goes on.
  /// - Throws: `.conflict` for an archive that is not complete or a ledger of another; what the destination throws
  ///   and no later try mends.
  public func run() async throws(ChatError) -> LoadSummary {
    guard try await archive.isComplete() else {
      throw ChatError(
        .conflict, operation: .writeDestination,
        detail: "\(archive.path) is not complete; run the pull again before loading")
    }
    let identity = try await archive.identity()
    let rules: LoadRules
    if let wanted = options.rules { rules = wanted } else { rules = try await LoadRules.stored(in: ledger) }
    try await ledger.bind(
      archive: try await archive.stamp(), vendor: identity.vendor, destination: destination.vendor, rules: rules.text)
    let form = DestinationForm(vendor: identity.vendor, rules: rules)
    while try await !ledger.claim("users") {
      // Another process is at them; channels need them all.
      do { try await clock.sleep(for: .milliseconds(500)) } catch { throw .cancelled(.writeDestination) }
    }
    try await loadUsers(form)
    try await changeUsers(form)
    try await ledger.abandon("users")
    let written = try await loadChannels(form)
    return LoadSummary(
      counts: try await ledger.counts(), losses: try await ledger.losses(), written: written,
      changed: changeCount.value, slowDowns: await pacer.refusals)
  }

  // MARK: Users

  private func loadUsers(_ form: DestinationForm) async throws(ChatError) {
    var watermark = try await ledger.userWatermark()
    if watermark == 0, try await ledger.note("changes.users") == nil {
      // What is not written yet is read as it is now.
      try await ledger.setNote("changes.users", "\(try await archive.lastChange(of: 0))")
    }
    let before = try await ledger.counts().users
    progress.begin(.loadUsers, total: try await archive.counts().users, head: before)
    while true {
      if Task.isCancelled { throw .cancelled(.writeDestination) }
      var page = try await archive.users(after: watermark, limit: Self.userBatch)
      guard !page.isEmpty else { break }
      page = Array(page.prefix(try await budget.reserve(users: page.count)))
      var work = UserWork()
      try await load(page.map { stored throws(ChatError) in try stored.stored.user() }, form, &work)
      watermark = page.last?.ordinal ?? watermark
      try await ledger.commit(usersUpTo: watermark, created: work.created, work.tally)
      progress.add(page.count)
    }
    progress.end()
  }

  /// What is known of a page of users.
  struct UserWork {
    var tally = LoadTally()
    /// Original ids of those whose accounts are new.
    var created: [UserID] = []
    /// Not written before: another id may be tried.
    var isFirst = true
  }

  func load(_ everybody: [UserRecord], _ form: DestinationForm, _ work: inout UserWork) async throws(ChatError) {
    var users: [UserRecord] = []
    for record in everybody {
      guard form.rules.filter.admits(record.user.id) else {
        work.tally.skip(.filteredUser, kind: "user", id: record.user.id.rawValue, channel: 0)
        continue
      }
      users.append(record)
    }
    guard !users.isEmpty else { return }
    let ids = try await directory.destinations(of: Set(users.map(\.user.id)))
    let put = users.map { form.user($0, id: ids[$0.user.id] ?? $0.user.id) }
    let outcomes = try await write(put) { part throws(ChatError) in try await destination.putUsers(part) }
    for (original, (record, outcome)) in zip(users, zip(put, outcomes)) {
      try await account(outcome, original, record, form, &work)
    }
  }

  private func account(
    _ outcome: PutOutcome<UserID>, _ original: UserRecord, _ record: UserRecord, _ form: DestinationForm,
    _ work: inout UserWork
  ) async throws(ChatError) {
    let id = original.user.id
    switch outcome {
    case .written(let given), .existed(let given):
      do throws(ChatError) {
        try await settle(id, record.user.id, given)
        if case .written = outcome { work.created.append(id) }
        work.tally.crossed += 1
        let losses = destination.losses(of: .user(record))
        for loss in losses { work.tally.add(loss, of: id.rawValue) }
        // The destination may have told why itself.
        if given != id, !losses.contains(where: { $0.field == Loss.mappedUser.field }) {
          work.tally.add(.mappedUser, of: id.rawValue)
        }
      } catch where error.kind == .conflict {
        try await retry(original, form, because: error, &work)
      }
    case .refused(let error): try await retry(original, form, because: error, &work)
    case .skipped(let loss): work.tally.skip(loss, kind: "user", id: id.rawValue, channel: 0)
    }
  }

  private func settle(_ user: UserID, _ assigned: UserID, _ given: UserID) async throws(ChatError) {
    guard given != assigned else { return }
    try await ledger.reassign(user, to: given)
    await directory.forget(user)
  }

  /// Once more with an id that every vendor takes; a second refusal is final.
  private func retry(
    _ original: UserRecord, _ form: DestinationForm, because error: ChatError, _ work: inout UserWork
  ) async throws(ChatError) {
    let id = original.user.id
    for candidate in options.users.derived(for: id, limits: destination.limits) where error.mayBeTheID && work.isFirst {
      guard try await ledger.original(ofUser: candidate) ?? id == id else { continue }
      let record = form.user(original, id: candidate)
      let outcome = try await write([record]) { part throws(ChatError) in try await destination.putUsers(part) }.first
      guard let given = outcome?.id else { break }
      try await ledger.reassign(id, to: given)
      await directory.forget(id)
      if case .written? = outcome { work.created.append(id) }
      work.tally.crossed += 1
      for loss in destination.losses(of: .user(record)) { work.tally.add(loss, of: id.rawValue) }
      return work.tally.add(.mappedUser, of: id.rawValue)
    }
    work.tally.add(LoadException(kind: "user", outcome: .refused, id: id.rawValue, reason: error.description))
  }

  /// Items of a kind that may be put twice: one outcome each. A call that fails because of what it carries is split
  /// until the culprit is alone.
  func write<Item: Sendable, ID: Sendable & Hashable>(
    _ items: [Item], _ put: ([Item]) async throws(ChatError) -> [PutOutcome<ID>]
  ) async throws(ChatError) -> [PutOutcome<ID>] {
    do throws(ChatError) {
      let outcomes = try await pacer.perform(.writeDestination) { () throws(ChatError) in try await put(items) }
      guard outcomes.count == items.count else { throw .outcomesMissing }
      return outcomes
    } catch {
      guard error.isOfItems else { throw error }
      guard items.count > 1 else { return [.refused(error)] }
      let middle = items.count / 2
      return try await write(Array(items[..<middle]), put) + write(Array(items[middle...]), put)
    }
  }
}

extension ChatError {
  static let outcomesMissing = ChatError(
    .protocolViolation, operation: .writeDestination, detail: "the destination gave another number of outcomes")

  /// Whether the failure may lie in one of the items of a call, so that the others can go on without it.
  var isOfItems: Bool {
    guard retry == .never else { return false }
    return switch kind {
    case .invalidArgument, .tooLarge, .conflict, .permission, .notFound, .server, .unsupported: true
    default: false
    }
  }

  /// Whether a refusal of one item is the last word on it. One that came because the run was ending, or because the
  /// service could not be asked, says nothing of the item: a later try or a later run may write it.
  var isFinalForItem: Bool {
    guard retry == .never else { return false }
    return switch kind {
    case .cancelled, .authentication, .network, .timeout, .rateLimited: false
    default: true
    }
  }

  var mayBeTheID: Bool {
    switch kind {
    case .invalidArgument, .tooLarge, .conflict: true
    default: false
    }
  }
}
