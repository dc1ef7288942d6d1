import ChatCache
import UnifiedChat

// After a connect and after missed events: the channel list is compared, then every channel that was read before is
// read on from the newest known message to the end. What is found is told as backfilled, never as received. A link
// that breaks meanwhile leaves exactly the part as a gap that was not fetched.

extension Chat {
  func startSync() {
    guard isActive else { return }
    syncWanted = true
    guard sync == nil else { return }
    sync = Task { [weak self] in await self?.runSync() }
  }

  private func runSync() async {
    while syncWanted, isActive, !Task.isCancelled {
      syncWanted = false
      let epochBefore = epoch
      publish(.syncChanged(.syncing(nil)), .local)
      let isComplete = await syncOnce()
      guard !Task.isCancelled else { return }
      // Lost and back while it ran: what was asked before proves nothing of now.
      // Unless the disk refuses what is found: then the next thing that it takes begins anew.
      if !isComplete, isOnline, epoch != epochBefore, !hasUnstored { syncWanted = true }
      // Incomplete: the next connect goes on where this one stopped.
      publish(.syncChanged(isComplete && !syncWanted ? .upToDate : .idle), .local)
    }
    if !Task.isCancelled { sync = nil }
  }

  /// - Returns: whether everything was fetched.
  private func syncOnce() async -> Bool {
    var missing: [ChannelID] = []
    do throws(ChatError) {
      try openDueGaps()
      let epochBefore = epoch
      let read = try opened(.history).read { session throws(ChatError) in try session.channelsBehind() }
      behind.merge(read) { min($0, $1) }
      missing = behind.keys.sorted()
      if options.syncsChannels { try await syncChannels(epochBefore) }
      try await flushMarks()
      let isComplete = await catchUp(missing)
      return isComplete && epoch == epochBefore
    } catch {
      if error.kind != .cancelled { log(.info, "sync stopped: \(error)") }
      if case .storage = error.kind {
        for channel in missing { doubt(channel, from: .highest) }
        // Not even the list was taken down: that is begun again with the next change that the disk takes.
        if missing.isEmpty { isLossDue = true }
      }
      return false
    }
  }

  // MARK: Channels

  /// Reads the whole list and tells what is new, changed and gone.
  private func syncChannels(_ epochBefore: Int) async throws(ChatError) {
    // A channel that was made or joined after the list was asked for need not stand in it.
    let before = try opened(.listChannels).read { session throws(ChatError) in Set(try session.channels().map(\.id)) }
    joinedMeanwhile = []
    var seen: Set<ChannelID> = []
    var token: PageToken?
    var walk = PageWalk()
    repeat {
      let page = try await ask(await adapter.channels(ChannelQuery(includesHidden: true, limit: 100), page: token))
      for channel in page.items {
        seen.insert(channel.id)
        for told in stored(ChatEvent(.channelChanged(channel), source: .catchUp)) { publish(told.kind, told.source) }
        if isOnline, epoch == epochBefore { try noteNewest(channel) }
      }
      if let next = page.next { try walk.advance(to: next.rawValue, .listChannels) }
      token = page.next
    } while token != nil
    // Lost meanwhile, or another session: this list proves nothing, and is asked for again.
    guard epoch == epochBefore else { return }
    try leaveUnlisted(before.subtracting(seen).subtracting(joinedMeanwhile))
  }

  /// What the list calls the newest message is so until events say otherwise. A channel that was read before is
  /// caught up with first, unless nothing came.
  private func noteNewest(_ channel: Channel) throws(ChatError) {
    guard let last = channel.lastMessage, let position = last.position, last.threadParent == nil else { return }
    let start = behind[channel.id]
    let expected = unannounced[channel.id]
    let isCaughtUp = try store { session throws(ChatError) in
      let from = try start.map { hint throws(ChatError) in try session.catchUpStart(of: channel.id, from: hint) }
      if let from, from < position { return false }
      try session.cover(CachedRange(low: from ?? position, high: .highest), in: channel.id)
      if let expected { try session.noteAhead(Self.islands(expected), of: channel.id) }
      return true
    }
    if isCaughtUp, behind[channel.id] == start { behind[channel.id] = nil }
  }

  private func leaveUnlisted(_ unlisted: Set<ChannelID>) throws(ChatError) {
    let cache = try opened(.listChannels)
    let gone = try cache.read { session throws(ChatError) in try session.channels() }.filter {
      // Other kinds need not be in the list.
      unlisted.contains($0.id) && ($0.kind == .direct || $0.kind == .group)
    }
    for channel in gone {
      for told in stored(ChatEvent(.channelLeft(channel.id, .unknown), source: .catchUp)) { publish(told.kind, told.source) }
    }
  }

  /// Read marks that were set while offline; of each channel the latest only.
  private func flushMarks() async throws(ChatError) {
    for mark in try opened(.markRead).read({ session throws(ChatError) in try session.dueMarks() }) {
      try await pushMark(mark.position, of: mark.channel)
    }
  }

  // MARK: Messages

  private func catchUp(_ channels: [ChannelID]) async -> Bool {
    await withTaskGroup(of: Bool.self) { group in
      var waiting = channels.makeIterator()
      func startNext() {
        guard let channel = waiting.next() else { return }
        group.addTask { await self.catchUpQuietly(channel) }
      }
      for _ in 0..<options.parallelCatchUps { startNext() }
      var isComplete = true
      for await done in group {
        isComplete = isComplete && done
        startNext()
      }
      return isComplete
    }
  }

  private func catchUpQuietly(_ channel: ChannelID) async -> Bool {
    guard !Task.isCancelled else { return false }
    do throws(ChatError) {
      try await catchUp(channel)
      return true
    } catch {
      switch error.kind {
      // No channel of ours any more: nothing is missing.
      case .notFound, .permission:
        behind[channel] = nil
        return true
      case .storage:
        log(.error, "\(error)")
        // Begun again with the next message that can be stored.
        doubt(channel, from: .highest)
        return false
      default:
        if error.kind != .cancelled { log(.info, "catch-up of a channel stopped: \(error)") }
        return false
      }
    }
  }

  /// Reads a channel again behind a page that was shown from the cache; one at a time per channel.
  func refresh(_ channel: ChannelID) {
    guard refreshes[channel] == nil else { return }
    refreshes[channel] = Task { [weak self] in
      _ = await self?.catchUpQuietly(channel)
      await self?.refreshed(channel)
    }
  }

  private func refreshed(_ channel: ChannelID) {
    if !Task.isCancelled { refreshes[channel] = nil }
  }

  /// Reads a channel from where it was left to its end.
  func catchUp(_ channel: ChannelID) async throws(ChatError) {
    let epochBefore = epoch
    var hint = behind[channel]
    if hint == nil {
      hint = try opened(.history).read { session throws(ChatError) in try session.channelsBehind() }[channel]
    }
    var start: MessagePosition?
    if let hint {
      start = try opened(.history).read { session throws(ChatError) in
        try session.catchUpStart(of: channel, from: hint)
      }
    }
    try await learnChanges(in: channel)
    if let start, start != .highest {
      if try await vendorCapabilities().has(.historyForward) {
        try await readForward(channel, from: start)
      } else {
        try await readBackward(channel, to: start)
      }
    }
    // Lost again meanwhile: there is a new gap to close.
    if epoch == epochBefore { behind[channel] = nil }
    try recountDue(channel)
    do throws(ChatError) { try await learnMarks(in: channel) } catch {
      // All messages are here. Marks that the server keeps to itself for now end nothing.
      switch error.kind {
      case .network, .timeout, .cancelled, .storage: throw error
      default: log(.info, "the marks of a channel were not learnt: \(error)")
      }
    }
  }

  /// A server that does not know yet how far the user has read counts more than is unread.
  private func recountDue(_ channel: ChannelID) throws(ChatError) {
    guard try opened(.unread).read({ session throws(ChatError) in try session.isMarkDue(of: channel) }) else { return }
    let kinds = try store { session throws(ChatError) in try session.recount(channel) }
    for kind in kinds { publish(kind, .catchUp) }
  }

  private func readForward(_ channel: ChannelID, from start: MessagePosition) async throws(ChatError) {
    var position = start
    var cursor: Cursor?
    var walk = PageWalk()
    while true {
      let epochBefore = epoch
      let anchor: HistoryQuery.Anchor =
        if let cursor { .cursor(cursor) } else if position == .lowest { .oldest } else { .position(position) }
      let page = try await ask(await adapter.history(
        of: channel, HistoryQuery(anchor: anchor, direction: .newer, limit: options.catchUpPage)))
      let last = page.messages.last?.position ?? position
      let isEnd = page.newer == nil && isOnline && epoch == epochBefore
      try absorb(
        page.messages, in: channel, .catchUp,
        covering: CachedRange(low: position, high: isEnd ? .highest : max(last, position)))
      guard let next = page.newer else { return }
      try walk.advance(to: next.rawValue, .history)
      (position, cursor) = (max(last, position), page.messages.isEmpty ? next : nil)
      if try reachesLive(position, in: channel) { return }
    }
  }

  /// What came by events since the link is back begins here: the gap is closed.
  private func reachesLive(_ position: MessagePosition, in channel: ChannelID) throws(ChatError) -> Bool {
    try opened(.history).read { session throws(ChatError) in
      guard let live = try session.ranges(of: channel).last, live.isLive else { return false }
      return live.low <= position
    }
  }

  private func readBackward(_ channel: ChannelID, to end: MessagePosition) async throws(ChatError) {
    var query = HistoryQuery.newest(options.catchUpPage)
    var high: MessagePosition?
    var walk = PageWalk()
    while true {
      let epochBefore = epoch
      let page = try await ask(await adapter.history(of: channel, query))
      let isNewest = query.anchor == .newest && isOnline && epoch == epochBefore
      let top = isNewest ? .highest : high ?? page.messages.last?.position
      let bottom = page.older == nil ? .lowest : page.messages.first?.position
      try absorb(
        page.messages, in: channel, .catchUp,
        covering: bottom.flatMap { low in top.map { CachedRange(low: min(low, $0), high: $0) } })
      guard let next = page.older, (bottom ?? .highest) > end else { return }
      try walk.advance(to: next.rawValue, .history)
      query.anchor = .cursor(next)
      high = bottom ?? high
    }
  }

  // MARK: Edits and recalls

  /// Edits and recalls since the last reading, where the vendor keeps a log of them.
  private func learnChanges(in channel: ChannelID) async throws(ChatError) {
    guard try await vendorCapabilities().has(.historyChangelog) else { return }
    let cache = try opened(.changelog)
    var token = try cache.read { session throws(ChatError) in try session.cursor(Self.changes, of: channel) }
    var walk = PageWalk()
    while true {
      let page = try await changePage(in: channel, since: token)
      try learn(page, in: channel)
      token = page.next
      try cache.write { session throws(ChatError) in try session.setCursor(page.next, Self.changes, of: channel) }
      guard page.hasMore else { return }
      try walk.advance(to: page.next.rawValue, .changelog)
    }
  }

  private func changePage(in channel: ChannelID, since token: Cursor?) async throws(ChatError) -> ChangePage {
    if let token {
      do throws(ChatError) { return try await ask(await adapter.changes(in: channel, since: token)) } catch {
        guard case .invalidArgument = error.kind else { throw error }
      }
    }
    // No token, or one that the server does not know any more: what is cached may be out of date, and is read again.
    // Behind the new token, or a change between the two would be in neither.
    let page = try await ask(await adapter.changes(in: channel, since: nil))
    try await rereadAll(channel)
    return page
  }

  private static let changes = "changes"

  /// From the first reading of a channel on its log of edits is followed, so that those made while the link is lost
  /// can be asked for.
  func followChanges(in channel: ChannelID) {
    guard isOnline, followed.insert(channel).inserted else { return }
    Task { [weak self, session] in
      do throws(ChatError) { try await self?.fetchChangeToken(channel, session) } catch {
        self?.log(.info, "the change log of a channel cannot be followed: \(error)")
      }
    }
  }

  private func fetchChangeToken(_ channel: ChannelID, _ session: Int) async throws(ChatError) {
    guard session == self.session else { return }
    guard try await vendorCapabilities().has(.historyChangelog) else { return }
    let cache = try opened(.changelog)
    // The catch-up, which is due, takes a token of its own, and reads again what is here.
    guard behind[channel] == nil else {
      followed.remove(channel)
      return
    }
    guard try cache.read({ session throws(ChatError) in try session.cursor(Self.changes, of: channel) }) == nil else {
      return
    }
    let epochBefore = epoch
    let page = try await ask(await adapter.changes(in: channel, since: nil))
    // Nobody told of the changes of a time without a link; a token from behind it would hide them.
    guard isOnline, epoch == epochBefore, behind[channel] == nil else {
      followed.remove(channel)
      return
    }
    try cache.write { session throws(ChatError) in try session.setCursor(page.next, Self.changes, of: channel) }
  }

  private func learn(_ page: ChangePage, in channel: ChannelID) throws(ChatError) {
    let kinds = try opened(.changelog).write { session throws(ChatError) in
      var kinds: [ChatEvent.Kind] = []
      // A log may have every version of a message: only the last is news.
      let last = Dictionary(page.updated.enumerated().map { ($1.id, $0) }) { $1 }
      for (place, message) in page.updated.enumerated() where last[message.id] == place {
        // What was never cached is no news of the log: it is read with its page.
        guard let id = message.id, try session.message(id, in: channel) != nil else { continue }
        kinds += try session.events(of: try session.merge(message, from: .read), isNew: false)
      }
      for id in page.removed {
        guard let known = try session.message(id, in: channel), !known.isRecalled else { continue }
        var tombstone = known
        tombstone.content = .recalled(by: nil, at: nil)
        kinds += try session.apply(.messageRecalled(tombstone))
      }
      return kinds
    }
    purgeErased()
    for kind in kinds { publish(kind, .catchUp) }
  }

  /// Reads every cached range again: changed messages are told, vanished ones become tombstones.
  private func rereadAll(_ channel: ChannelID) async throws(ChatError) {
    let (ranges, proven) = try opened(.history).read { session throws(ChatError) in
      // Before the server is asked: what is pushed while a page is under way has not vanished.
      (try session.ranges(of: channel), Set(try session.provenIDs(in: channel)))
    }
    for range in ranges {
      var query = HistoryQuery(
        anchor: range.isAtStart ? .oldest : .position(range.low), direction: .newer,
        limit: range.low == range.high ? 1 : options.catchUpPage, isInclusive: true)
      var low = range.low
      var walk = PageWalk()
      while true {
        let page = try await ask(await adapter.history(of: channel, query))
        let high = page.newer == nil ? range.high : min(page.messages.last?.position ?? low, range.high)
        try compare(page.messages, in: channel, CachedRange(low: low, high: high), proven)
        guard let next = page.newer, high < range.high else { break }
        try walk.advance(to: next.rawValue, .history)
        (low, query.anchor, query.isInclusive) = (high, .cursor(next), false)
      }
    }
  }

  /// - Parameter proven: what was here before the server was asked.
  private func compare(
    _ present: [Message], in channel: ChannelID, _ range: CachedRange, _ proven: Set<MessageID>
  ) throws(ChatError) {
    let ids = Set(present.compactMap(\.id))
    // What is behind the range is new, and is told by the reading that closes the gap.
    let known = present.filter { message in message.position.map { $0 <= range.high } ?? false }
    try absorb(known, in: channel, .catchUp, covering: nil)
    let cached = try opened(.history).read { session throws(ChatError) in
      try session.messages(in: channel, .newer, of: range.low, within: range, limit: .max)
    }
    let vanished = cached.compactMap(\.id).filter { proven.contains($0) && !ids.contains($0) }
    try learn(ChangePage(updated: [], removed: vanished, next: "", hasMore: false), in: channel)
  }
}

extension CacheSession {
  /// From where a channel has to be read on: as far as is known without holes from `hint` on.
  fileprivate func catchUpStart(of channel: ChannelID, from hint: MessagePosition) throws(ChatError) -> MessagePosition {
    try ranges(of: channel).first { $0.contains(hint) }?.high ?? hint
  }
}
