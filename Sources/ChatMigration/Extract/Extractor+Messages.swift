import UnifiedChat

extension Extractor {
  /// Members and messages of all channels, several channels at once. Returns how many messages were new.
  func readMessages(_ expected: Int?) async throws(ChatError) -> Int {
    progress.begin(.pullMessages, total: expected, head: try await archive.counts().messages)
    let cursor = ChannelCursor(archive: archive)
    let new = try await inParallel(options.parallelChannels) { () async throws(ChatError) -> Int in
      var new = 0
      while let channel = try await cursor.next() {
        if Task.isCancelled { throw .cancelled(.readSource) }
        // Of an earlier pull without the filter: it stays as it is.
        guard options.filter.admits(channel.id) else { continue }
        new += try await read(channel)
      }
      return new
    }
    progress.end()
    return new.reduce(0, +)
  }

  private func read(_ channel: ArchivedChannel) async throws(ChatError) -> Int {
    do throws(ChatError) {
      try await readMembers(of: channel)
      return try await readMessages(of: channel)
    } catch {
      guard error.isOfOneChannel else { throw error }
      try await giveUp(channel, error)
      return 0
    }
  }

  private func readMembers(of channel: ArchivedChannel) async throws(ChatError) {
    try await readList(.members, channel: channel.ordinal) { cursor throws(ChatError) in
      try await source.members(of: channel.id, after: cursor)
    } commit: { items, end throws(ChatError) in
      var end = end
      end.leftOut = items.filter { !options.filter.admits($0.member.user.id) }.map(\.member.user.id.rawValue)
      let wanted = items.filter { options.filter.admits($0.member.user.id) }
      try await archive.commit(members: wanted.map(MemberRow.init), channel: channel.ordinal, end)
    }
  }

  private func readMessages(of channel: ArchivedChannel) async throws(ChatError) -> Int {
    var new = 0
    try await readList(.messages, channel: channel.ordinal) { cursor throws(ChatError) in
      try await source.messages(in: channel.id, after: cursor)
    } commit: { items, end throws(ChatError) in
      var end = end
      end.leftOut = items.filter { !options.filter.admits($0.message) }.compactMap { $0.message.id?.rawValue }
      var rows: [MessageRow] = []
      var files: [FetchedFile] = []
      for record in items where options.filter.admits(record.message) {
        var record = record
        if options.includesFiles {
          files += try await fetchFiles(of: &record, channel: channel, unreadable: &end.unreadable)
        }
        if let row = MessageRow(record) {
          rows.append(row)
        } else {
          end.unreadable.append(
            UnreadableRecord(
              kind: "message", channel: channel.id, reason: "the source gave it no id", raw: record.raw))
        }
      }
      new += try await archive.commit(messages: rows, files: files, channel: channel.ordinal, end)
      progress.add(rows.count)
    }
    return new
  }

  /// The channel stands in the archive without what could not be read, and in the list of unreadable items.
  private func giveUp(_ channel: ArchivedChannel, _ error: ChatError) async throws(ChatError) {
    let record = UnreadableRecord(
      kind: "channel", id: channel.id.rawValue, channel: channel.id, reason: error.description)
    for list in [ArchiveList.members, .messages] {
      let state = try await archive.readingState(of: list, channel: channel.ordinal)
      guard !state.isDone else { continue }
      let end = PageEnd(cursor: state.cursor, next: nil, unreadable: [record], isGivenUp: true)
      switch list {
      case .members: try await archive.commit(members: [], channel: channel.ordinal, end)
      default: try await archive.commit(messages: [], files: [], channel: channel.ordinal, end)
      }
    }
  }
}

extension ChatError {
  /// Whether this is rather why the work failed: others are cancelled because it did.
  fileprivate func tellsMore(than other: ChatError) -> Bool {
    guard other.kind == .cancelled else { return false }
    return kind != .cancelled || (other.detail.isEmpty && !detail.isEmpty)
  }

  /// Whether the failure says something of one item only, so that the others can go on.
  var isOfOneChannel: Bool {
    switch kind {
    case .notFound, .permission, .unsupported: retry == .never
    default: false
    }
  }
}

/// Hands out the channels of an archive, each once.
actor ChannelCursor {
  private let archive: Archive
  private var after: Int64 = 0
  private var page: [ArchivedChannel] = []
  private var isLoading = false

  init(archive: Archive) { self.archive = archive }

  func next() async throws(ChatError) -> ArchivedChannel? {
    if page.isEmpty {
      // Others may ask while this waits: each takes its own page, beginning after what has been taken.
      let from = after
      let fresh = try await archive.channels(after: from, limit: 64)
      if page.isEmpty, after == from {
        page = fresh
        after = fresh.last?.ordinal ?? after
      } else if page.isEmpty {
        return try await next()
      }
    }
    return page.isEmpty ? nil : page.removeFirst()
  }
}

/// Runs `width` copies of `body` at once. The first failure cancels the others and is thrown.
func inParallel<Value: Sendable>(
  _ width: Int, _ body: @escaping @Sendable () async throws(ChatError) -> Value
) async throws(ChatError) -> [Value] {
  let results = await withTaskGroup(of: Result<Value, ChatError>.self) { group in
    for _ in 0..<max(1, width) {
      group.addTask {
        do throws(ChatError) { return .success(try await body()) } catch { return .failure(error) }
      }
    }
    var results: [Result<Value, ChatError>] = []
    for await result in group {
      results.append(result)
      if case .failure = result { group.cancelAll() }
    }
    return results
  }
  // The others end as cancelled, which is not why the work failed.
  var failure: ChatError?
  var values: [Value] = []
  for result in results {
    switch result {
    case .success(let value): values.append(value)
    case .failure(let error): if failure.map({ error.tellsMore(than: $0) }) ?? true { failure = error }
    }
  }
  if let failure { throw failure }
  return values
}
