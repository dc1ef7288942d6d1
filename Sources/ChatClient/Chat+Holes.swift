import ChatCache
import UnifiedChat

// The cache says of each channel up to where it holds everything. A lost link ends that. When the disk refuses to take
// something down, the cache has a hole that it does not know of: it is kept in memory, and written down before
// anything newer closes over it.

extension Chat {
  /// From now on it is not known what is newer than the newest known message.
  func noteMissed(in channels: [ChannelID]?) {
    do throws(ChatError) { try openGaps(in: channels) } catch {
      log(.error, "\(error)")
      if let channels { for channel in channels { doubt(channel, from: .highest) } } else { isLossDue = true }
    }
  }

  /// Whether the disk has still to take down a hole.
  var hasUnstored: Bool { isLossDue || !unstored.isEmpty }

  /// Writes down the holes that the disk refused before, of all channels.
  func openDueGaps() throws(ChatError) {
    guard hasUnstored else { return }
    try openGaps(in: isLossDue ? nil : Array(unstored.keys))
    // A catch-up that is under way may have passed the hole already.
    epoch += 1
  }

  private func openGaps(in channels: [ChannelID]?) throws(ChatError) {
    guard let cache else { return }
    let doubts = doubts
    opened(try cache.write { session throws(ChatError) in try session.openGaps(in: channels, before: doubts) }, channels)
  }

  /// A change of the cache; before it, in the same transaction, the holes that the disk refused: a lost link, and
  /// those of `channel`.
  func store<Value: Sendable>(
    in channel: ChannelID? = nil, _ change: (CacheSession) throws(ChatError) -> Value
  ) throws(ChatError) -> Value {
    let cache = try opened(.cache)
    let hasHole = channel.map { unstored[$0] != nil } ?? false
    guard isLossDue || hasHole else { return try cache.write(change) }
    let channels = isLossDue ? nil : channel.map { [$0] }
    let doubts = doubts
    let (value, gaps) = try cache.write { session throws(ChatError) in
      let gaps = try session.openGaps(in: channels, before: doubts)
      return (try change(session), gaps)
    }
    opened(gaps, channels)
    // The disk takes again what it refused: what was lost meanwhile is fetched.
    epoch += 1
    if isOnline { startSync() }
    return value
  }

  private func opened(_ gaps: [ChannelID: MessagePosition], _ channels: [ChannelID]?) {
    // What was not caught up with since an earlier loss begins there.
    behind.merge(gaps) { min($0, $1) }
    if let channels { for channel in channels { unstored[channel] = nil } } else { (unstored, isLossDue) = ([:], false) }
  }

  /// Something of `channel` could not be stored: at `position` nothing is known any more.
  func doubt(_ channel: ChannelID, from position: MessagePosition) {
    unstored[channel] = min(position, unstored[channel] ?? .highest)
  }

  /// Messages that prove nothing of what lies before them.
  private var doubts: [ChannelID: [MessagePosition]] {
    var doubts = unannounced.mapValues(Self.islands)
    for (channel, position) in unstored { doubts[channel, default: []].append(position) }
    return doubts
  }

  // MARK: Shown before their push

  static func islands(_ messages: [MessageID: Unannounced]) -> [MessagePosition] {
    messages.values.compactMap { $0.isIsland ? $0.position : nil }
  }

  /// `known` with messages that were shown before their push came. A push follows within moments; what never comes
  /// must not pile up: the first island stays, since what lies before it may be missing.
  static func expecting(
    _ new: [MessageID: Unannounced], beside known: [MessageID: Unannounced]
  ) -> [MessageID: Unannounced] {
    let whole = known.merging(new) { $1 }
    guard whole.count > 500 else { return whole }
    let first = whole.filter(\.value.isIsland).min { $0.value.position < $1.value.position }
    return new.merging(first.map { [$0.key: $0.value] } ?? [:]) { $1 }
  }

  func setUnannounced(_ messages: [MessageID: Unannounced], in channel: ChannelID) {
    unannounced[channel] = messages.isEmpty ? nil : messages
  }
}

/// A message that was shown before its push.
struct Unannounced {
  var position: MessagePosition
  /// It came alone: the pushes of what lies before it may be on the way as well.
  var isIsland: Bool

  /// What a page from `low` to `high` says of it: inside, nothing is missing before it.
  func read(from low: MessagePosition?, to high: MessagePosition?) -> Unannounced {
    guard let low, let high, low < position, position <= high else { return self }
    return Unannounced(position: position, isIsland: false)
  }
}
