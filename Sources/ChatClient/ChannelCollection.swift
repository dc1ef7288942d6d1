import ChatCache
import UnifiedChat

/// A live list of the connected user's channels, the same for every vendor: ordered, filtered, pinned ones first.
///
/// Keys of all channels are kept in memory, whole channels only of the part that is shown.
public actor ChannelCollection {
  private let chat: Chat
  private let options: ChannelListOptions
  private nonisolated let state = LiveState(ChannelListSnapshot())

  private var order: ChannelOrder
  private var shown: [ChannelID: Channel] = [:]
  private var limit: Int
  private var typing: [ChannelID: Set<UserID>] = [:]
  private var isLoaded = false
  private var problem: ChatError?
  private var token: PageToken?
  private var hasListed = false
  private var pump: Task<Void, Never>?
  /// Channels to be read again.
  private var changed: Set<ChannelID> = []
  private var needsAll = false
  private var isReading = false
  /// Asked for while it was reading.
  private var readsAgain = false

  init(chat: Chat, options: ChannelListOptions) {
    self.chat = chat
    self.options = options
    order = ChannelOrder(options)
    limit = options.pageSize
  }

  deinit {
    pump?.cancel()
    state.finish()
  }

  public nonisolated var updates: ListUpdates<ChannelListSnapshot> { ListUpdates(state: state, list: self) }
  public nonisolated var snapshot: ChannelListSnapshot { state.value }
  public nonisolated var items: [Channel] { state.value.items }

  public func close() {
    pump?.cancel()
    state.finish()
  }

  func start() async {
    let events = chat.events()
    pump = Task { [weak self] in
      for await event in events {
        guard let self else { return }
        await self.receive(event)
      }
    }
    needsAll = true
    await read()
  }

  /// Shows more channels. Where the client does not read the whole list on connecting (`syncsChannels`), the next
  /// page is asked for.
  /// - Returns: how many more are shown.
  @discardableResult
  public func loadMore() async throws(ChatError) -> Int {
    let before = items.count
    limit += options.pageSize
    if order.count < limit, !chat.options.syncsChannels, token != nil || !hasListed {
      let query = ChannelQuery(
        order: options.order, kinds: options.kinds, nameContains: options.nameContains, unreadOnly: options.unreadOnly,
        includesHidden: options.includesHidden, limit: options.pageSize)
      token = try await chat.channels(query, page: token).next
      hasListed = true
      needsAll = true
    }
    await read()
    return items.count - before
  }

  // MARK: Events

  private func receive(_ event: ChatEvent) async {
    switch event.kind {
    case .typingStarted(let channel, let user): typing[channel, default: []].insert(user)
    case .typingEnded(let channel, let user):
      typing[channel]?.remove(user)
      if typing[channel]?.isEmpty == true { typing[channel] = nil }
    case .overflow: (typing, needsAll) = ([:], true)
    case .connectionChanged(.connected): needsAll = true
    default:
      guard let channel = event.kind.channel else { return }
      changed.insert(channel)
    }
    await read()
  }

  private func read() async {
    guard !isReading else { return readsAgain = true }
    isReading = true
    defer { isReading = false }
    repeat {
      readsAgain = false
      do throws(ChatError) {
        if needsAll { try await readAll() } else { try await readChanged() }
        problem = nil
      } catch {
        // Nobody is connected yet, or the disk refuses.
        problem = error
      }
      await publish()
    } while readsAgain || needsAll || !changed.isEmpty
  }

  private func readAll() async throws(ChatError) {
    needsAll = false
    changed = []
    order.replace(by: try await chat.channelKeys())
    shown = [:]
    isLoaded = true
  }

  private func readChanged() async throws(ChatError) {
    while let id = changed.popFirst() {
      order.update(id, to: try await chat.channelKey(id))
      shown[id] = nil
    }
  }

  private func publish() async {
    let ids = order.first(limit)
    let missing = ids.filter { shown[$0] == nil }
    if !missing.isEmpty {
      do throws(ChatError) { shown.merge(try await chat.cachedChannels(missing)) { _, new in new } } catch {
        problem = error
      }
    }
    if shown.count > 4 * limit + 100 {
      let visible = Set(ids)
      shown = shown.filter { visible.contains($0.key) }
    }
    var snapshot = ChannelListSnapshot()
    snapshot.items = ids.compactMap { shown[$0] }
    snapshot.total = order.count
    snapshot.unread = total()
    snapshot.typing = typing
    snapshot.isLoaded = isLoaded
    snapshot.problem = problem
    state.set(snapshot)
  }

  private func total() -> UnreadCount {
    var (sum, isLeast, isKnown) = (0, false, false)
    for key in order.keys where !key.isSilenced {
      guard let number = key.unread.number else { continue }
      // Numbers of a server: bounded, so that no sum overflows.
      sum += min(number, Int(Int32.max))
      if case .atLeast = key.unread { isLeast = true }
      isKnown = true
    }
    return isKnown ? (isLeast ? .atLeast(sum) : .exact(sum)) : .unknown
  }
}
