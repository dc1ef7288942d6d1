import ChatCache
import UnifiedChat

/// Where a page begins.
struct HistoryStart {
  var position: MessagePosition
  var direction: HistoryQuery.Direction
  var isInclusive: Bool

  /// - Throws: `.invalidArgument` for a cursor that is not of a `Chat`.
  init(_ query: HistoryQuery) throws(ChatError) {
    direction = query.direction
    isInclusive = query.isInclusive
    switch query.anchor {
    case .newest: (position, isInclusive) = (.highest, false)
    case .oldest: (position, isInclusive) = (.lowest, false)
    case .position(let place): position = place
    case .cursor(let cursor):
      guard cursor.rawValue.hasPrefix("at:"), let place = MessagePosition(String(cursor.rawValue.dropFirst(3))) else {
        throw ChatError(.invalidArgument(field: "cursor"), operation: .history, detail: "not a cursor of this channel")
      }
      (position, isInclusive) = (place, false)
    }
  }

  static func cursor(_ position: MessagePosition) -> Cursor { Cursor("at:\(position)") }
}

/// A walk from a position in one direction, partly through the cache, partly over the network.
struct HistoryWalk {
  let start: HistoryStart
  /// Ascending.
  private(set) var messages: [Message] = []
  private(set) var position: MessagePosition
  private(set) var isInclusive: Bool
  private(set) var isAtEnd = false
  /// The walk began in a part that may have changed.
  var isStale = false
  /// Part of it came from the server, and may have changed what an earlier part said.
  var hasAsked = false
  /// Where the server's own reading goes on after pages with nothing to show.
  private var cursor: Cursor?
  /// Pages of which nothing was to be shown, by what led on from them.
  private var pages = PageWalk()

  var direction: HistoryQuery.Direction { start.direction }

  init(_ start: HistoryStart) {
    self.start = start
    position = start.position
    isInclusive = start.isInclusive
  }

  mutating func move(to position: MessagePosition, inclusive: Bool) {
    self.position = position
    isInclusive = inclusive
  }

  mutating func take(_ found: [Message]) {
    messages = direction == .older ? found + messages : messages + found
    let edge = direction == .older ? found.first?.position : found.last?.position
    if let edge { reach(edge) }
  }

  /// Everything up to `position` has been taken.
  mutating func reach(_ position: MessagePosition) {
    self.position = position
    isInclusive = false
    cursor = nil
    if position == (direction == .older ? .lowest : .highest) { isAtEnd = true }
  }

  var networkAnchor: HistoryQuery.Anchor {
    if let cursor { return .cursor(cursor) }
    if position == .highest { return .newest }
    if position == .lowest { return .oldest }
    return .position(position)
  }

  /// What a page of the server proves to be known without holes. `startsInRange`: so is the position that it was read
  /// from, which the page itself leaves out.
  func span(of page: MessagePage, isLive: Bool, startsInRange: Bool) -> CachedRange? {
    if page.messages.isEmpty, next(page) != nil { return nil }
    let first = page.messages.first?.position
    let last = page.messages.last?.position
    switch direction {
    case .older:
      let high = position == .highest ? (isLive ? position : last) : (startsInRange ? position : last)
      let low = page.older == nil ? .lowest : first
      guard let low = low ?? high else { return nil }
      return CachedRange(low: low, high: max(low, high ?? low))
    case .newer:
      let low = position == .lowest || startsInRange ? position : first
      let high = page.newer == nil && isLive ? .highest : last
      guard let high = high ?? low else { return nil }
      return CachedRange(low: min(high, low ?? high), high: high)
    }
  }

  private func next(_ page: MessagePage) -> Cursor? { direction == .older ? page.older : page.newer }

  /// Goes on behind a page of which nothing is to be shown.
  /// - Throws: `.protocolViolation` when the server leads to a page again.
  mutating func passOver(_ page: MessagePage) throws(ChatError) {
    guard let next = next(page) else {
      isAtEnd = true
      return
    }
    try pages.advance(to: next.rawValue, .history)
    let edge = direction == .older ? page.messages.first?.position : page.messages.last?.position
    if let edge {
      reach(edge)
    } else {
      isInclusive = false
      cursor = next
    }
  }
}
