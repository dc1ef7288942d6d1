import ChatCache
import UnifiedChat

public struct ChannelListOptions: Sendable {
  public var order: ChannelQuery.Order
  /// Pinned channels stand before the others, in the same order among themselves.
  public var pinnedFirst: Bool
  public var kinds: Set<ChannelKind>?
  /// Part of the name, compared without regard to case.
  public var nameContains: String?
  public var unreadOnly: Bool
  public var includesHidden: Bool
  /// Channels shown at first, and added by each step.
  public var pageSize: Int

  public init(
    order: ChannelQuery.Order = .lastMessage, pinnedFirst: Bool = true, kinds: Set<ChannelKind>? = nil,
    nameContains: String? = nil, unreadOnly: Bool = false, includesHidden: Bool = false, pageSize: Int = 20
  ) {
    self.order = order
    self.pinnedFirst = pinnedFirst
    self.kinds = kinds
    self.nameContains = nameContains
    self.unreadOnly = unreadOnly
    self.includesHidden = includesHidden
    self.pageSize = max(1, pageSize)
  }

  func admits(_ key: ChannelKey) -> Bool {
    if key.isHidden, !includesHidden { return false }
    if let kinds, !kinds.contains(key.kind) { return false }
    if unreadOnly, (key.unread.number ?? 0) == 0 { return false }
    guard let part = nameContains?.lowercased() else { return true }
    return key.name?.lowercased().contains(part) ?? false
  }
}

extension Channel: Identifiable {}

/// What a list of channels shows at one moment.
public struct ChannelListSnapshot: LiveSnapshot {
  public var items: [Channel] = []
  /// Channels that pass the filter, shown or not.
  public var total = 0
  /// Unread messages of all channels that the user did not silence. Unknown before the first number is known.
  public var unread = UnreadCount.unknown
  /// Who is writing where.
  public var typing: [ChannelID: Set<UserID>] = [:]
  public var isLoaded = false
  public var problem: ChatError?

  public var hasMore: Bool { total > items.count }
}

/// The order of many channels by small keys, kept while one after the other changes.
///
/// A change of one channel is two searches by halving and a move of whole numbers.
public struct ChannelOrder: Sendable {
  private struct Entry: Sendable {
    var key: ChannelKey
    /// What decides, made once: pinned, then the time or the name.
    var isFirst: Bool
    var time: Int64
    /// The first eight bytes of the name decide nearly always; the whole is looked at where they are equal.
    var nameHead: UInt64
    var name: [UInt8]
  }

  private let options: ChannelListOptions
  private var entries: [Entry] = []
  private var places: [ChannelID: Int32] = [:]
  private var free: [Int32] = []
  /// Places of entries, in order.
  private var order: [Int32] = []

  public init(_ options: ChannelListOptions) { self.options = options }

  public var count: Int { order.count }

  /// The first `limit` channels.
  public func first(_ limit: Int) -> [ChannelID] { order.prefix(limit).map { entries[Int($0)].key.id } }

  public var keys: [ChannelKey] { places.values.map { entries[Int($0)].key } }

  /// Takes all channels at once.
  public mutating func replace(by keys: [ChannelKey]) {
    entries = keys.map(entry)
    free = []
    places = Dictionary(entries.enumerated().map { ($1.key.id, Int32(clamping: $0)) }) { first, _ in first }
    order = places.values.filter { options.admits(entries[Int($0)].key) }
      .sorted { isBefore(entries[Int($0)], entries[Int($1)]) }
  }

  /// Takes one channel as it is now; nil: it is gone.
  public mutating func update(_ id: ChannelID, to key: ChannelKey?) {
    if let place = places[id] {
      let known = entries[Int(place)]
      if let key, key == known.key { return }
      if options.admits(known.key) { order.remove(at: index(of: known)) }
      if key == nil {
        places[id] = nil
        free.append(place)
        return
      }
    }
    guard let key else { return }
    let entry = entry(key)
    let place: Int32
    if let known = places[id] ?? free.popLast() {
      place = known
      entries[Int(place)] = entry
    } else {
      place = Int32(clamping: entries.count)
      entries.append(entry)
    }
    places[id] = place
    if options.admits(key) { order.insert(place, at: index(of: entry)) }
  }

  private func entry(_ key: ChannelKey) -> Entry {
    let time: Int64
    switch options.order {
    // A channel without messages stands where it was made.
    case .lastMessage: time = (key.lastMessageAt ?? key.createdAt)?.milliseconds ?? .min
    case .created: time = key.createdAt?.milliseconds ?? .min
    case .name: time = 0
    }
    let name = options.order == .name ? Array((key.name ?? "").lowercased().utf8) : []
    var head: UInt64 = 0
    for place in 0..<8 { head = head << 8 | UInt64(place < name.count ? name[place] : 0) }
    return Entry(key: key, isFirst: options.pinnedFirst && key.isPinned, time: time, nameHead: head, name: name)
  }

  /// Where `entry` stands, or is to stand.
  private func index(of entry: Entry) -> Int {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if isBefore(entries[Int(order[middle])], entry) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Newest first, or by name; ids decide between equals, so that the order is total.
  private func isBefore(_ left: Entry, _ right: Entry) -> Bool {
    if left.isFirst != right.isFirst { return left.isFirst }
    if left.time != right.time { return left.time > right.time }
    if left.nameHead != right.nameHead { return left.nameHead < right.nameHead }
    if options.order == .name, left.name != right.name { return left.name.lexicographicallyPrecedes(right.name) }
    return left.key.id < right.key.id
  }
}
