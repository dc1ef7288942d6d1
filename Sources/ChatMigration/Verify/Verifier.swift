import UnifiedChat

public struct VerifyOptions: Sendable {
  /// Channels read at once.
  public var parallelChannels: Int
  /// Whether attachments are downloaded from the destination and hashed; else the hash that it tells is believed,
  /// and only those without one are downloaded.
  public var downloadsFiles: Bool
  /// Whether messages that the archive does not have are an error: false after the cut-over, when people write there.
  public var forbidsExtra: Bool
  public var pace: PaceSettings

  public init(
    parallelChannels: Int = 4, downloadsFiles: Bool = true, forbidsExtra: Bool = true,
    pace: PaceSettings = PaceSettings()
  ) {
    self.parallelChannels = parallelChannels
    self.downloadsFiles = downloadsFiles
    self.forbidsExtra = forbidsExtra
    self.pace = pace
  }
}

/// Reads a destination back and compares it with the archive, field by field and by an ordered digest per channel.
///
/// Each difference has to be named by `losses(of:)` of the destination; what is kept elsewhere has to read back as it
/// was. Writes nothing, neither here nor there.
public struct Verifier: Sendable {
  let archive: Archive
  let ledger: any Ledger
  let destination: any ChatDestination
  let readBack: any ChatSource
  let options: VerifyOptions
  let progress: ProgressReporter
  let pacer: Pacer

  public init(
    archive: Archive, ledger: any Ledger, destination: any ChatDestination, readBack: any ChatSource,
    options: VerifyOptions = VerifyOptions(), clock: any ChatClock = SystemClock(), progress: ProgressReporter? = nil
  ) {
    self.archive = archive
    self.ledger = ledger
    self.destination = destination
    self.readBack = readBack
    self.options = options
    self.progress = progress ?? ProgressReporter(clock: clock)
    pacer = Pacer(clock: clock, settings: options.pace)
  }

  public func run() async throws(ChatError) -> VerifyResult {
    let identity = try await archive.identity()
    let rules = try await LoadRules.stored(in: ledger)
    try await ledger.bind(
      archive: try await archive.stamp(), vendor: identity.vendor, destination: destination.vendor, rules: rules.text)
    let form = DestinationForm(vendor: identity.vendor, rules: rules)
    let scratch = try VerifyScratch()
    var result = VerifyResult()
    var tally = VerifyTally()
    try await verifyUsers(&result, &tally, form, scratch)
    let problems = try await verifyChannelRecords(&tally, form, scratch)
    try await verifyChannels(&result, &tally, problems, form, scratch)
    result.explained = tally.explained
    result.unexplained = tally.unexplained
    result.fieldCounts = tally.fieldCounts
    result.envelopes = tally.envelopes
    result.envelopeExamples = tally.envelopeExamples
    return result
  }

  /// Each page of a list of the destination.
  func forEachPage<Item: Sendable>(
    _ read: (Cursor?) async throws(ChatError) -> SourcePage<Item>,
    _ body: (SourcePage<Item>) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    var walk = try CursorWalk("a list of the destination", .verify)
    repeat {
      if Task.isCancelled { throw .cancelled(.verify) }
      let asked = walk.cursor
      let page = try await pacer.perform(.verify) { () throws(ChatError) in try await read(asked) }
      try await body(page)
      try walk.go(to: page.next)
    } while walk.cursor != nil
  }

  // MARK: Users

  private func verifyUsers(
    _ result: inout VerifyResult, _ tally: inout VerifyTally, _ form: DestinationForm, _ scratch: VerifyScratch
  ) async throws(ChatError) {
    result.users = try await archive.counts().users
    progress.begin(.verifyUsers, total: result.users)
    try await forEachPage({ cursor throws(ChatError) in try await readBack.users(after: cursor) }) {
      page throws(ChatError) in
      _ = tally.sorting(page.unreadable)
      for record in page.items { try await verify(record, &result, &tally, form, scratch) }
      progress.add(page.items.count)
    }
    try await findMissingUsers(&result, form, scratch)
    progress.end()
  }

  private func verify(
    _ actual: UserRecord, _ result: inout VerifyResult, _ tally: inout VerifyTally, _ form: DestinationForm,
    _ scratch: VerifyScratch
  ) async throws(ChatError) {
    guard let original = try await ledger.original(ofUser: actual.user.id),
      let archived = try await archive.user(original)
    else { return }
    if try await scratch.mark([original.rawValue], .users) == [true] {
      return result.note(VerifyFinding(kind: "user", sign: .different, id: original.rawValue, what: "doubled"))
    }
    result.usersFound += 1
    let record = try archived.stored.user()
    // Of a placeholder only the id is known: whatever the destination says of it is no difference.
    guard !record.isPlaceholder else { return }
    let expected = form.user(record, id: actual.user.id)
    let comparison = Comparison(
      "user", expected: CarriedForm.user(expected.user), actual: CarriedForm.user(actual.user)
    ) { destination.losses(of: .user(expected)) }
    tally.add(comparison)
    guard let first = comparison.unexplained.first else { return }
    result.note(VerifyFinding(kind: "user", sign: .different, id: original.rawValue, what: first.path))
  }

  private func findMissingUsers(
    _ result: inout VerifyResult, _ form: DestinationForm, _ scratch: VerifyScratch
  ) async throws(ChatError) {
    guard result.usersFound < result.users else { return }
    var after: Int64 = 0
    while true {
      let page = try await archive.users(after: after, limit: 500)
      guard let last = page.last else { return }
      after = last.ordinal
      let seen = try await scratch.contains(page.map(\.id.rawValue), .users)
      for (user, seen) in zip(page, seen) where !seen {
        let record = form.user(try user.stored.user(), id: user.id)
        // A vendor may keep no list of users.
        if destination.losses(of: .user(record)).contains(where: { $0.field == "user" }) { continue }
        if try await ledger.exception(of: "user", user.id.rawValue, in: 0) != nil {
          result.excepted += 1
        } else {
          result.note(VerifyFinding(kind: "user", sign: .missing, id: user.id.rawValue, what: "missing"))
        }
      }
    }
  }
}

extension VerifyResult {
  fileprivate mutating func note(_ finding: VerifyFinding) {
    userProblems += 1
    if userExamples.count < ChannelVerification.exampleLimit { userExamples.append(finding) }
  }
}
