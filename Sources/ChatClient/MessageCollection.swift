import ChatCache
import UnifiedChat

/// A live list of the messages of a channel.
///
/// It shows a part of the channel without holes and grows in both directions. What it shows is always what the cache
/// holds: each change of the cache is read again, never applied by guess, so that a list that missed an event and one
/// that saw it twice end the same. One that reaches the newest message follows the channel; what this device has not
/// got confirmed stands at its end.
public actor MessageCollection {
  public nonisolated let channel: ChannelID
  private let chat: Chat
  private let options: MessageListOptions
  private nonisolated let state = LiveState(MessageListSnapshot())

  /// The oldest shown position; nil while nothing is loaded.
  private var low: MessagePosition?
  /// The newest shown position; nil: as far as is known.
  private var high: MessagePosition?
  /// Where a thread goes on.
  private var threadCursor: Cursor?
  private var typing: Set<UserID> = []
  private var problem: ChatError?
  private var pump: Task<Void, Never>?
  private var loading: Task<Void, Never>?
  private var isRefreshing = false
  private var needsRefresh = false

  init(chat: Chat, channel: ChannelID, options: MessageListOptions) {
    self.chat = chat
    self.channel = channel
    self.options = options
  }

  deinit {
    pump?.cancel()
    loading?.cancel()
    state.finish()
  }

  /// The present state and then every change, in batches; each call is an own subscription, and keeps the list alive.
  public nonisolated var updates: ListUpdates<MessageListSnapshot> { ListUpdates(state: state, list: self) }
  public nonisolated var snapshot: MessageListSnapshot { state.value }
  public nonisolated var items: [MessageItem] { state.value.items }

  /// Ends the updates of all subscribers.
  public func close() {
    pump?.cancel()
    loading?.cancel()
    state.finish()
  }

  /// Waits for the first page; from the cache, it is there at once.
  /// - Throws: what reading it throws.
  public func load() async throws(ChatError) {
    beginLoading()
    await loading?.value
    if low == nil, let problem { throw problem }
  }

  /// Begins to follow events, then to load.
  func start() {
    let events = chat.events()
    pump = Task { [weak self] in
      for await event in events {
        guard let self else { return }
        await self.receive(event)
      }
    }
    beginLoading()
  }

  // MARK: Growing

  /// Shows older messages: at least one more that passes the filter, unless there is none.
  /// - Returns: how many more are shown.
  /// - Throws: what reading across a gap throws.
  @discardableResult
  public func loadOlder() async throws(ChatError) -> Int {
    try await load()
    let before = items.count
    while let low, state.value.hasOlder {
      if options.thread != nil {
        try await loadOlderReplies()
      } else {
        let page = try await chat.placedHistory(of: channel, .before(low, limit: options.pageSize))
        self.low = page.older == nil ? .lowest : page.messages.first?.position ?? low
      }
      try await readAgain()
      // Nothing in sight came: on, unless the place did not move.
      if items.count > before || self.low == low { break }
    }
    return items.count - before
  }

  /// Shows newer messages of a list that began in the past; the last step makes it follow the channel.
  /// - Returns: how many more are shown.
  @discardableResult
  public func loadNewer() async throws(ChatError) -> Int {
    try await load()
    let before = items.count
    while let high {
      let page = try await chat.placedHistory(of: channel, .after(high, limit: options.pageSize))
      self.high = page.newer == nil ? nil : page.messages.last?.position ?? high
      try await readAgain()
      if items.count > before || self.high == high { break }
    }
    return items.count - before
  }

  /// Shows another part of the channel.
  public func jump(to start: MessageListOptions.Start) async throws(ChatError) {
    loading?.cancel()
    await loading?.value
    try await loadFirst(start)
  }

  /// Everything that is shown is read.
  public func markRead() async throws(ChatError) {
    // Own messages may stand behind a hole: what is in it has not been seen.
    let hasHole = state.value.hasNewer
    let newest = items.last { $0.message.position != nil && !(hasHole && $0.isOwn) }?.message.position
    guard let newest else { return }
    try await chat.markRead(channel, upTo: newest)
  }

  // MARK: Loading

  private func beginLoading() {
    guard low == nil, loading == nil else { return }
    loading = Task { [weak self, options] in
      guard let self else { return }
      do throws(ChatError) { try await self.loadFirst(options.start) } catch { await self.failed(error) }
      await self.loadingEnded()
    }
  }

  private func loadingEnded() { loading = nil }

  private func failed(_ error: ChatError) async {
    problem = error
    // What waits to be sent is shown all the same.
    await refresh()
  }

  private func loadFirst(_ start: MessageListOptions.Start) async throws(ChatError) {
    if let parent = options.thread { try await loadReplies(under: parent) } else {
      switch start {
      case .newest:
        let page = try await chat.placedHistory(of: channel, .newest(options.pageSize))
        low = page.older == nil ? .lowest : page.messages.first?.position ?? .lowest
        high = nil
      case .message(let id):
        guard let position = try await chat.message(id, in: channel).position else {
          throw ChatError(.notFound, operation: .history, detail: "it has no place in the channel yet")
        }
        try await loadAround(position)
      case .position(let position): try await loadAround(position)
      case .time(let time): try await loadAround(try await chat.position(at: time, in: channel))
      }
    }
    problem = nil
    try await readAgain()
  }

  private func loadAround(_ position: MessagePosition) async throws(ChatError) {
    let half = (options.pageSize + 1) / 2
    let newer = try await chat.placedHistory(
      of: channel, HistoryQuery(anchor: .position(position), direction: .newer, limit: half, isInclusive: true))
    // From a message on, so that both halves touch.
    let middle = newer.messages.first?.position ?? position
    let older = try await chat.placedHistory(of: channel, .before(middle, limit: half))
    low = older.older == nil ? .lowest : older.messages.first?.position ?? middle
    high = newer.newer == nil ? nil : newer.messages.last?.position ?? middle
  }

  private func loadReplies(under parent: Message) async throws(ChatError) {
    let page = try await chat.thread(under: parent, .newest(options.pageSize))
    threadCursor = page.older
    low = page.older == nil ? .lowest : page.messages.first?.position ?? .lowest
  }

  private func loadOlderReplies() async throws(ChatError) {
    guard let parent = options.thread, let cursor = threadCursor else { return }
    let page = try await chat.thread(
      under: parent, HistoryQuery(anchor: .cursor(cursor), direction: .older, limit: options.pageSize))
    threadCursor = page.older == cursor ? nil : page.older
    low = threadCursor == nil ? .lowest : page.messages.first?.position ?? low
  }

  // MARK: Events

  private func receive(_ event: ChatEvent) async {
    switch event.kind {
    case .typingStarted(let id, let user) where id == channel: typing.insert(user)
    case .typingEnded(let id, let user) where id == channel: typing.remove(user)
    case .overflow: typing = []
    case .connectionChanged(.connected), .syncChanged(.upToDate): break
    default: guard event.kind.channel == channel else { return }
    }
    // What could not be loaded before may be there now: the link is back, the channel was joined.
    if low == nil { beginLoading() }
    await refresh()
  }

  /// Reads again; what comes while it reads is one more reading after it, not one each.
  private func refresh() async {
    needsRefresh = true
    guard !isRefreshing else { return }
    isRefreshing = true
    defer { isRefreshing = false }
    while needsRefresh {
      needsRefresh = false
      do throws(ChatError) { try await readAgain() } catch { problem = error }
    }
  }

  private func readAgain() async throws(ChatError) {
    var (from, to) = (low, high)
    var reading = try await chat.reading(of: channel, from: from, to: to, thread: options.thread?.id)
    // Moved while it was read: that reading says nothing of the new place.
    while (from, to) != (low, high) {
      (from, to) = (low, high)
      reading = try await chat.reading(of: channel, from: from, to: to, thread: options.thread?.id)
    }
    if low != nil, reading.window == nil {
      // What was shown is not known any more: evicted, or the channel is gone. It begins anew.
      low = nil
      high = nil
      beginLoading()
    }
    publish(reading)
  }

  private func publish(_ reading: MessageReading) {
    var snapshot = MessageListSnapshot()
    // What waits is newer than everything: a list that ends in the past does not show it.
    let waiting = high == nil ? reading.waiting : []
    // Nothing can be read: what this device has alone is shown all the same.
    let shown = reading.window?.messages ?? (problem == nil ? [] : reading.local)
    snapshot.items = (shown + waiting).filter(options.filter.admits).map {
      item($0, reading)
    }
    snapshot.hasOlder = options.thread == nil ? reading.window?.hasOlder ?? false : threadCursor != nil
    snapshot.hasNewer = reading.window?.hasNewer ?? false
    snapshot.isLoaded = low != nil
    snapshot.typing = typing
    snapshot.problem = problem
    state.set(snapshot)
  }

  private func item(_ message: Message, _ reading: MessageReading) -> MessageItem {
    var item = MessageItem(
      id: MessageItemID(message), message: message, isOwn: message.sender == reading.owner, deliveredTo: [], readBy: [])
    guard item.isOwn, let position = message.position else { return item }
    for mark in reading.marks {
      if let read = mark.read, read >= position { item.readBy.insert(mark.user) }
      if let delivered = mark.delivered, delivered >= position { item.deliveredTo.insert(mark.user) }
    }
    item.deliveredTo.formUnion(item.readBy)
    return item
  }
}
