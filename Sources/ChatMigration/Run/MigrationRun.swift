import UnifiedChat

public struct MigrationOptions: Sendable {
  public var extraction: ExtractionOptions
  public var load: LoadOptions
  public var verify: VerifyOptions
  /// Whether a run ends with reading the destination back, if it can be.
  public var verifies: Bool
  /// Whether a destination that holds channels already, and none of this ledger's, is left alone.
  public var refusesNonEmpty: Bool
  /// Whether several processes work on the ledger at once.
  public var sharesLedger: Bool
  /// Where each write is told, one JSON line each; nil: nowhere.
  public var auditPath: String?
  /// Whether a destination is gone on with that another admin secret, or a version that did not sign, has written to.
  /// Source and destination have to be made with the same choice in their environment.
  public var trustsUnsignedEnvelopes = false

  public init(
    extraction: ExtractionOptions = ExtractionOptions(), load: LoadOptions = LoadOptions(),
    verify: VerifyOptions = VerifyOptions(), verifies: Bool = true, refusesNonEmpty: Bool = false,
    sharesLedger: Bool = false, auditPath: String? = nil
  ) {
    self.extraction = extraction
    self.load = load
    self.verify = verify
    self.verifies = verifies
    self.refusesNonEmpty = refusesNonEmpty
    self.sharesLedger = sharesLedger
    self.auditPath = auditPath
  }
}

/// From a source through an archive to a destination, and back to look.
///
/// ```swift
/// let run = MigrationRun(
///   source: source, archive: "chats.archive", destination: destination, readBack: destinationSource)
/// let report = try await run.run()
/// print(report.sentence)
/// ```
/// Every step goes on where it was stopped: to resume is to call it again. Cancelling the task ends a step as soon as
/// the request on its way answers, with everything confirmed so far stored; killing the process at any moment is safe
/// too, so that an impatient caller may simply exit.
public struct MigrationRun: Sendable {
  public let archivePath: String
  public let ledgerPath: String
  public let progress: ProgressReporter
  private let source: (any ChatSource)?
  private let destination: (any ChatDestination)?
  private let readBack: (any ChatSource)?
  private let app: String?
  private let tool: String
  private let options: MigrationOptions
  let clock: any ChatClock

  /// - Parameters:
  ///   - source: nil when the archive is there already.
  ///   - app: the app's id at the source, kept in the archive.
  ///   - destination: nil to pull only.
  ///   - readBack: the source of the destination's vendor, for verification.
  ///   - ledger: nil: `<archive>.<destination's vendor>.ledger`.
  public init(
    source: (any ChatSource)? = nil, app: String? = nil, archive: String, destination: (any ChatDestination)? = nil,
    readBack: (any ChatSource)? = nil, ledger: String? = nil, options: MigrationOptions = MigrationOptions(),
    tool: String = "unifiedchat", clock: any ChatClock = SystemClock()
  ) {
    self.source = source
    self.app = app
    self.destination = destination
    self.readBack = readBack
    self.options = options
    self.tool = tool
    self.clock = clock
    archivePath = archive
    ledgerPath = ledger ?? "\(archive).\(destination?.vendor.rawValue ?? "none").ledger"
    progress = ProgressReporter(clock: clock)
  }

  /// False where the archive is all there is.
  public var hasSource: Bool { source != nil }

  // MARK: Steps

  /// Reads the source into the archive.
  public func pull() async throws(ChatError) -> ExtractionSummary {
    try await pull(refreshes: options.extraction.refreshes, rereads: options.extraction.rereads)
  }

  func pull(refreshes: Bool, rereads: Bool) async throws(ChatError) -> ExtractionSummary {
    let source = try need(source, "source", .readSource)
    let identity = Archive.Identity(tool: tool, vendor: source.vendor, app: app, createdAt: clock.now)
    let archive = try Archive.openOrCreate(at: archivePath, identity)
    return try await closing(archive) { () throws(ChatError) in
      try await archive.require(vendor: source.vendor, app: app)
      var extraction = options.extraction
      if options.load.rules == nil { extraction.filter = try await rememberedFilter() ?? extraction.filter }
      extraction.refreshes = refreshes
      extraction.rereads = rereads
      return try await Extractor(
        source: source, archive: archive, options: extraction, clock: clock, progress: progress
      ).run()
    }
  }

  /// Of an earlier run, whose rules hold where nothing else is said.
  private func rememberedFilter() async throws(ChatError) -> MigrationFilter? {
    guard destination != nil, PrivateFile.exists(ledgerPath) else { return nil }
    // One note is read; the load that follows looks for damage.
    let ledger = try SQLiteLedger(at: ledgerPath, isShared: options.sharesLedger, checks: false)
    let rules = try await LoadRules.stored(in: ledger)
    try await ledger.close()
    return rules.filter
  }

  /// Writes the archive to the destination.
  /// - Throws: `.conflict` for users whom the mapping would melt into one, and for a destination that is not empty.
  public func load() async throws(ChatError) -> LoadSummary {
    let destination = try audited(try need(destination, "destination", .writeDestination))
    return try await withLedger { archive, ledger throws(ChatError) in
      try await refuseCollisions(archive, destination)
      try await refuseNonEmpty(ledger)
      try await refuseOtherKey(ledger, destination, .writeDestination)
      let summary = try await Loader(
        archive: archive, destination: destination, ledger: ledger, options: options.load, clock: clock,
        progress: progress
      ).run()
      // What an earlier reading back found is of another time now.
      if summary.written + summary.changed > 0 { try await ledger.setNote("verification", nil) }
      return summary
    }
  }

  private func audited(_ destination: any ChatDestination) throws(ChatError) -> any ChatDestination {
    guard let path = options.auditPath else { return destination }
    return AuditedDestination(inner: destination, log: try AuditLog(appendingTo: path, clock: clock))
  }

  private func refuseCollisions(
    _ archive: Archive, _ destination: any ChatDestination
  ) async throws(ChatError) {
    let found = try await options.load.users.collisions(in: archive, limits: destination.limits)
    guard !found.isEmpty else { return }
    let list = found.prefix(20).map(\.description).joined(separator: "; ")
    throw ChatError(
      .conflict, operation: .plan,
      detail: "the mapping of users gives \(found.count) ids to more than one: \(list); mend the file or the rule")
  }

  /// A destination without a channel is empty: accounts may well be there before.
  private func refuseNonEmpty(_ ledger: any Ledger) async throws(ChatError) {
    guard options.refusesNonEmpty, let readBack, try await ledger.note("admitted") == nil,
      try await ledger.counts().channels == 0
    else { return }
    var cursor: Cursor?
    var pages = 0
    repeat {
      let page = try await readBack.channels(after: cursor)
      guard page.items.isEmpty, page.unreadable.isEmpty else {
        // Another process of this ledger may have begun meanwhile.
        if try await ledger.note("admitted") != nil { return }
        throw ChatError(
          .conflict, operation: .plan,
          detail: "the destination is not empty: it holds channels, \(page.items.first?.channel.id.rawValue ?? "?") "
            + "for example, and this ledger wrote none of them; say --into-existing to write beside them")
      }
      cursor = page.next
      pages += 1
    } while cursor != nil && pages < 50
    try await ledger.setNote("admitted", "1")
  }

  private static let severalKeys = "several"

  /// What was written under another key does not read back as this run's: it would be written, or found missing, a
  /// second time.
  private func refuseOtherKey(
    _ ledger: any Ledger, _ destination: any ChatDestination, _ operation: ChatError.Operation
  ) async throws(ChatError) {
    guard let key = destination.signingKey else { return }
    let known = try await ledger.note("signing.key")
    let counts = try await ledger.counts()
    let isBegun = counts.users + counts.channels + counts.messages > 0
    if !isBegun, operation == .writeDestination { return try await ledger.setNote("signing.key", key) }
    guard known != key, isBegun else { return }
    if options.trustsUnsignedEnvelopes {
      // From the first write on no one key fits all, and each run has to be told so.
      if operation == .writeDestination { try await ledger.setNote("signing.key", Self.severalKeys) }
      return
    }
    let reason =
      switch known {
      case nil: "an earlier version wrote with this ledger and did not sign what it kept"
      case Self.severalKeys: "runs with several admin secrets wrote with this ledger"
      default:
        "the admin secret is not the one that this ledger's runs wrote with, so that what they kept cannot be checked"
      }
    throw ChatError(
      .conflict, operation: operation,
      detail: "\(reason); use the old secret, or say --trust-unsigned-envelopes if no member may have written such "
        + "envelopes")
  }

  /// Reads the destination back and compares.
  public func verify() async throws(ChatError) -> FidelityReport {
    let destination = try need(destination, "destination", .verify)
    let readBack = try need(readBack, "readBack", .verify)
    return try await withLedger(creates: false) { archive, ledger throws(ChatError) in
      try await refuseOtherKey(ledger, destination, .verify)
      let result = try await Verifier(
        archive: archive, ledger: ledger, destination: destination, readBack: readBack, options: options.verify,
        clock: clock, progress: progress
      ).run()
      try await ledger.setNote("verification", result.stored())
      return try await report(archive, ledger, destination, result)
    }
  }

  /// What is known without asking anybody: with what the last reading back found, if nothing was written since.
  public func report() async throws(ChatError) -> FidelityReport {
    let destination = try need(destination, "destination", .verify)
    return try await withLedger(creates: false) { archive, ledger throws(ChatError) in
      let result = try await ledger.note("verification").flatMap { VerifyResult(stored: $0) }
      return try await report(archive, ledger, destination, result)
    }
  }

  /// Pulls if there is a source, loads, and verifies if it is wanted and can be.
  public func run() async throws(ChatError) -> FidelityReport {
    if source != nil { _ = try await pull() }
    _ = try await load()
    return try await conclude()
  }

  func conclude() async throws(ChatError) -> FidelityReport {
    readBack == nil || !options.verifies ? try await report() : try await verify()
  }

  /// How much of what is at the destination this ledger's runs made.
  public func own() async throws(ChatError) -> LoadCounts {
    let ledger = try SQLiteLedger(at: ledgerPath, creates: false)
    let counts = try await ledger.ownCounts()
    try await ledger.close()
    return counts
  }

  /// Removes from the destination what the runs of this ledger made there, and nothing else.
  /// - Parameter keepsUsers: whether accounts stay.
  public func rollback(keepsUsers: Bool = false) async throws(ChatError) -> RollbackSummary {
    let destination = try audited(try need(destination, "destination", .writeDestination))
    let ledger = try SQLiteLedger(at: ledgerPath, creates: false)
    let rollback = Rollback(
      ledger: ledger, destination: destination, keepsUsers: keepsUsers,
      pacer: Pacer(clock: clock, settings: options.load.pace), progress: progress)
    let summary: RollbackSummary
    do throws(ChatError) { summary = try await rollback.run() } catch {
      // The first failure is the one to tell.
      try? await ledger.close()
      throw error
    }
    try await ledger.close()
    return summary
  }

  /// The same as `run()`, which goes on wherever an earlier run stopped.
  public func resume() async throws(ChatError) -> FidelityReport { try await run() }

  /// What a run would do, from the archive if it is complete, else from the source itself.
  public func plan() async throws(ChatError) -> MigrationPlan {
    let destination = try need(destination, "destination", .plan)
    let rate = try await readBack?.check().requestsPerSecond
    if PrivateFile.exists(archivePath) {
      let archive = try Archive.open(at: archivePath)
      let isComplete = try await archive.isComplete()
      if isComplete || source == nil {
        return try await closing(archive) { () throws(ChatError) in
          try await Planner.plan(archive, destination, options.load, rate, progress)
        }
      }
      try await archive.close()
    }
    return try await Planner.plan(
      try need(source, "source", .plan), destination, options.load, rate, options.extraction.filter, progress)
  }

  // MARK: Parts

  private func report(
    _ archive: Archive, _ ledger: any Ledger, _ destination: any ChatDestination, _ result: VerifyResult?
  ) async throws(ChatError) -> FidelityReport {
    try await FidelityReport.make(
      archive: archive, ledger: ledger, destination: destination.vendor, verification: result, tool: tool,
      at: clock.now)
  }

  private func need<Part>(
    _ part: Part?, _ name: String, _ operation: ChatError.Operation
  ) throws(ChatError) -> Part {
    guard let part else {
      throw ChatError(.invalidArgument(field: name), operation: operation, detail: "this step needs a \(name)")
    }
    return part
  }

  private func withLedger<Value: Sendable>(
    creates: Bool = true, _ body: (Archive, SQLiteLedger) async throws(ChatError) -> Value
  ) async throws(ChatError) -> Value {
    let archive = try Archive.open(at: archivePath)
    return try await closing(archive) { () throws(ChatError) in
      let ledger = try SQLiteLedger(at: ledgerPath, isShared: options.sharesLedger, creates: creates)
      let value: Value
      do throws(ChatError) { value = try await body(archive, ledger) } catch {
        // The first failure is the one to tell.
        try? await ledger.close()
        throw error
      }
      try await ledger.close()
      return value
    }
  }

  private func closing<Value: Sendable>(
    _ archive: Archive, _ body: () async throws(ChatError) -> Value
  ) async throws(ChatError) -> Value {
    let value: Value
    do throws(ChatError) { value = try await body() } catch {
      // The first failure is the one to tell; what is stored stays stored.
      try? await archive.close()
      throw error
    }
    try await archive.close()
    return value
  }
}

extension Planner {
  static func plan(
    _ archive: Archive, _ destination: any ChatDestination, _ load: LoadOptions, _ rate: Double?,
    _ progress: ProgressReporter
  ) async throws(ChatError) -> MigrationPlan {
    let identity = try await archive.identity()
    var planner = Planner(
      source: identity.vendor, destination: destination, users: load.users, rules: load.rules ?? LoadRules(),
      requestsPerSecond: rate, progress: progress)
    let counts = try await archive.counts()
    progress.begin(.planning, total: counts.messages)
    planner.add(unreadable: counts.unreadable, envelopes: counts.envelopes)
    planner.add(notCarried: try await archive.rowCounts(), notRead: try await archive.leftOut())
    planner.add(collisions: try await load.users.collisions(in: archive, limits: destination.limits))
    var after: Int64 = 0
    while let last = try await planner.users(archive, after) { after = last }
    after = 0
    while let channel = try await archive.channels(after: after, limit: 1).first {
      after = channel.ordinal
      guard planner.admits(channel.id) else { continue }
      var members: [MemberRecord] = []
      while true {
        let page = try await archive.members(of: after, after: members.last?.member.user.id, limit: 1000)
        if page.isEmpty { break }
        for stored in page { members.append(try stored.member()) }
      }
      planner.add(try channel.stored.channel(), members: members)
      try await planner.messages(archive, after)
      planner.endChannel(messages: try await archive.messageCount(of: after))
    }
    progress.end()
    return planner.finish()
  }

  /// All of a channel, in the calls in which they are written.
  private mutating func messages(_ archive: Archive, _ channel: Int64) async throws(ChatError) {
    let batch = max(1, destination.limits.batch)
    var ordinal: Int64 = 0
    while true {
      let page = try await archive.messages(in: channel, after: ordinal, limit: batch * max(1, 500 / batch))
      guard let last = page.last else { return }
      ordinal = last.ordinal
      for part in page.chunks(of: batch) {
        let records = try part.map { stored throws(ChatError) in try stored.stored.message() }
        let targets = records.flatMap(\.message.targets)
        add(records)
        guard !targets.isEmpty else { continue }
        addAstray(records, at: part.map(\.ordinal), try await archive.ordinals(of: targets, in: channel))
      }
    }
  }

  private mutating func users(_ archive: Archive, _ after: Int64) async throws(ChatError) -> Int64? {
    let page = try await archive.users(after: after, limit: 500)
    for user in page { add(try user.stored.user()) }
    return page.last?.ordinal
  }

  /// Reads the whole source and stores nothing.
  static func plan(
    _ source: any ChatSource, _ destination: any ChatDestination, _ load: LoadOptions, _ rate: Double?,
    _ filter: MigrationFilter, _ progress: ProgressReporter
  ) async throws(ChatError) -> MigrationPlan {
    let check = try await source.check()
    var planner = Planner(
      source: source.vendor, destination: destination, users: load.users, rules: load.rules ?? LoadRules(),
      requestsPerSecond: rate, progress: progress)
    progress.begin(.planning, total: check.messages)
    planner.add(notCarried: [], notRead: check.leftOut)
    var people: [UserID] = []
    try await walk({ cursor throws(ChatError) in try await source.users(after: cursor) }) { page in
      planner.add(page.unreadable)
      for user in page.items where filter.admits(user.user.id) {
        planner.add(user)
        people.append(user.user.id)
      }
    }
    planner.add(
      collisions: try await load.users.collisions(limits: destination.limits) { [people] after in
        let start = min(Int(clamping: after), people.count)
        return people[start..<min(start + 500, people.count)].enumerated().map { (Int64(start + $0 + 1), $1) }
      })
    var channels: [ChannelRecord] = []
    try await walk({ cursor throws(ChatError) in try await source.channels(after: cursor) }) { page in
      planner.add(page.unreadable)
      channels += page.items.filter { filter.admits($0.channel.id) && planner.admits($0.channel.id) }
    }
    for channel in channels {
      let id = channel.channel.id
      var members: [MemberRecord] = []
      try await walk({ cursor throws(ChatError) in try await source.members(of: id, after: cursor) }) { page in
        planner.add(page.unreadable)
        members += page.items.filter { filter.admits($0.member.user.id) }
      }
      planner.add(channel, members: members)
      var count = 0
      try await walk({ cursor throws(ChatError) in try await source.messages(in: id, after: cursor) }) { page in
        let wanted = page.items.filter { filter.admits($0.message) }
        planner.add(page.unreadable)
        planner.add(wanted)
        count += wanted.count
      }
      planner.endChannel(messages: count)
    }
    progress.end()
    return planner.finish()
  }

  private static func walk<Item: Sendable>(
    _ read: (Cursor?) async throws(ChatError) -> SourcePage<Item>, _ body: (SourcePage<Item>) -> Void
  ) async throws(ChatError) {
    var walk = try CursorWalk("a list of the source", .plan)
    repeat {
      if Task.isCancelled { throw .cancelled(.plan) }
      let page = try await read(walk.cursor)
      body(page)
      try walk.go(to: page.next)
    } while walk.cursor != nil
  }
}
