import UnifiedChat

/// What is read, and how.
public struct ExtractionOptions: Sendable {
  /// Channels read at once.
  public var parallelChannels: Int
  /// Whether the bytes of attachments come along; their addresses may die with the service.
  public var includesFiles: Bool
  /// A larger attachment is listed and not fetched; nil: no limit.
  public var maximumFileBytes: Int64?
  public var filter: MigrationFilter
  /// Whether an archive that is complete is read on: new users, channels and messages.
  public var refreshes: Bool
  /// Whether such a second reading begins each list at its start, so that edited, recalled and deleted messages, moved
  /// read marks and members who left are found too. Costs as much as the first reading.
  public var rereads: Bool
  public var pace: PaceSettings

  public init(
    parallelChannels: Int = 4, includesFiles: Bool = true, maximumFileBytes: Int64? = nil,
    filter: MigrationFilter = MigrationFilter(), refreshes: Bool = false, rereads: Bool = false,
    pace: PaceSettings = PaceSettings()
  ) {
    self.parallelChannels = parallelChannels
    self.includesFiles = includesFiles
    self.maximumFileBytes = maximumFileBytes
    self.filter = filter
    self.refreshes = refreshes
    self.rereads = rereads
    self.pace = pace
  }
}

public struct ExtractionSummary: Sendable, Hashable {
  public var counts: ArchiveCounts
  public var digest: String?
  /// Messages that this run added.
  public var newMessages: Int
  /// Items that it found different from what was here.
  public var changed = 0
  /// Messages and members that are no longer at the source, and channels that it no longer lists.
  public var removed = 0

  /// Whether the source held nothing that was not here.
  public var isUnchanged: Bool { newMessages + changed + removed == 0 }
}

/// Reads a source into an archive, page by page, and goes on where it was stopped.
public struct Extractor: Sendable {
  let source: any ChatSource
  let archive: Archive
  let options: ExtractionOptions
  let clock: any ChatClock
  let progress: ProgressReporter
  let pacer: Pacer

  public init(
    source: any ChatSource, archive: Archive, options: ExtractionOptions = ExtractionOptions(),
    clock: any ChatClock = SystemClock(), progress: ProgressReporter? = nil
  ) {
    self.source = source
    self.archive = archive
    self.options = options
    self.clock = clock
    self.progress = progress ?? ProgressReporter(clock: clock)
    pacer = Pacer(clock: clock, settings: options.pace)
  }

  /// Reads what is not yet read. Cancelling stops it after the page that is on its way; a later call goes on.
  /// - Throws: what the source throws and no later try mends; `.storage` of the archive.
  public func run() async throws(ChatError) -> ExtractionSummary {
    // Two readings of one archive would write each other's pages.
    let lock = try ProcessLock(archive.path + ".lock", operation: .archive)
    defer { lock.release(removesFile: true) }
    let before = try await archive.lastChange()
    let hasOtherFilter = try await hasOtherFilter()
    if try await archive.isComplete() {
      guard options.refreshes || options.rereads else { return try await summary(new: 0, since: before) }
      try await archive.reopen(rereading: options.rereads)
    } else if hasOtherFilter {
      try await archive.reopen(rereading: true)
    }
    try await archive.setManifest("filter", filterText)
    archive.files.removeUnfinished()
    let expected = try await pacer.perform(.readSource) { () throws(ChatError) in try await source.check() }
    try await archive.put(leftOut: expected.leftOut, replaces: options.rereads)
    try await readUsers(expected.users)
    try await readChannels(expected.channels)
    let new = try await readMessages(expected.messages)
    try await readRows()
    progress.begin(.sealArchive, total: 1)
    try await archive.complete(at: clock.now)
    progress.add(1)
    progress.end()
    return try await summary(new: new, since: before)
  }

  /// Nil where nothing is left out.
  private var filterText: String? {
    options.filter == MigrationFilter() ? nil : LoadRules(filter: options.filter).text
  }

  /// An archive that was read with a filter is a part that counts as the whole of what the filter lets through. Who
  /// wants another part, or all, reads it again from its start.
  private func hasOtherFilter() async throws(ChatError) -> Bool {
    guard let known = try await archive.manifestValue("filter"), known != filterText else { return false }
    guard options.rereads else {
      throw ChatError(
        .conflict, operation: .readSource,
        detail: "\(archive.path) was read with another filter; repeat that one, say --delta to read it all again, "
          + "or name another archive")
    }
    return true
  }

  private func summary(new: Int, since change: Int64) async throws(ChatError) -> ExtractionSummary {
    let (changed, removed) = try await archive.changeCounts(after: change)
    return ExtractionSummary(
      counts: try await archive.counts(), digest: try await archive.digest(), newMessages: new, changed: changed,
      removed: removed)
  }

  private func readUsers(_ expected: Int?) async throws(ChatError) {
    progress.begin(.pullUsers, total: expected, head: try await archive.counts().users)
    try await readList(.users) { cursor throws(ChatError) in
      try await source.users(after: cursor)
    } commit: { items, end throws(ChatError) in
      try await archive.commit(users: items.filter { options.filter.admits($0.user.id) }.map(UserRow.init), end)
      progress.add(items.count)
    }
    progress.end()
  }

  private func readChannels(_ expected: Int?) async throws(ChatError) {
    progress.begin(.pullChannels, total: expected, head: try await archive.counts().channels)
    try await readList(.channels) { cursor throws(ChatError) in
      try await source.channels(after: cursor)
    } commit: { items, end throws(ChatError) in
      var end = end
      end.leftOut = items.filter { !options.filter.admits($0.channel.id) }.map(\.channel.id.rawValue)
      let wanted = items.filter { options.filter.admits($0.channel.id) }
      try await archive.commit(channels: wanted.map(ChannelRow.init), end)
      progress.add(items.count)
    }
    progress.end()
  }

  /// Last, since what people wrote goes first where time is short.
  private func readRows() async throws(ChatError) {
    progress.begin(.pullRows, total: nil, head: try await archive.rowCounts().reduce(0) { $0 + $1.count })
    try await readList(.rows) { cursor throws(ChatError) in
      try await source.rows(after: cursor)
    } commit: { items, end throws(ChatError) in
      try await archive.commit(rows: items.filter { options.filter.admits($0) }, end)
      progress.add(items.count)
    }
    progress.end()
  }

  /// Pages of one list until its end, each committed with the cursor that follows it.
  func readList<Item: Sendable>(
    _ list: ArchiveList, channel: Int64 = 0,
    read: (Cursor?) async throws(ChatError) -> SourcePage<Item>,
    commit: ([Item], PageEnd) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    var state = try await archive.readingState(of: list, channel: channel)
    if state.isDone { return }
    var walk = try CursorWalk("the source's list of \(list.rawValue)", .readSource, from: state.cursor)
    while !state.isDone {
      let asked = walk.cursor
      let page = try await pacer.perform(.readSource) { () throws(ChatError) in try await read(asked) }
      try walk.go(to: page.next)
      try await commit(page.items, PageEnd(cursor: asked, next: page.next, unreadable: page.unreadable))
      state = ReadingState(cursor: page.next, isDone: page.next == nil)
    }
  }
}
