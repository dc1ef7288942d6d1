import ChatCache
import UnifiedChat

/// Where a page begins.
struct HistoryStart {
  var position: MessagePosition
  var direction: HistoryQuery.Direction
  var isInclusive: Bool
  /// Set when the page before ended with a message of this device alone.
  private(set) var local: LocalPlace?

  /// - Throws: `.invalidArgument` for a cursor that is not of a `Chat`.
  init(_ query: HistoryQuery) throws(ChatError) {
    direction = query.direction
    isInclusive = query.isInclusive
    switch query.anchor {
    case .newest: (position, isInclusive) = (.highest, false)
    case .oldest: (position, isInclusive) = (.lowest, false)
    case .position(let place): position = place
    case .cursor(let cursor):
      guard let edge = PageEdge(cursor) else {
        throw ChatError(.invalidArgument(field: "cursor"), operation: .history, detail: "not a cursor of this channel")
      }
      (position, local) = (edge.position, edge.local)
      // The message beside it that has a position is on this side or on the other.
      isInclusive = local.map { $0.isBehind(edge.position) == (query.direction == .older) } ?? false
    }
  }

  /// Messages of this device alone are part of a page when they stand beyond it.
  var place: LocalPlace { local ?? LocalPlace(of: position) }
}

/// Where a page ends: a position, and beside it, where the last message has none, a place of this device alone.
///
/// The position is always one that came from the server or from the caller, so that it may go to the server again.
struct PageEdge {
  var position: MessagePosition
  var local: LocalPlace?

  init(_ position: MessagePosition, _ local: LocalPlace? = nil) { (self.position, self.local) = (position, local) }

  init?(_ cursor: Cursor) {
    let text = cursor.rawValue
    if text.hasPrefix("at:") {
      guard let position = MessagePosition(String(text.dropFirst(3))) else { return nil }
      self.init(position)
      return
    }
    // beside:<bytes of the place>:<place><position>
    let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0] == "beside", let length = Int(parts[1]), length >= 0 else { return nil }
    let bytes = Array(parts[2].utf8)
    guard length <= bytes.count, let local = LocalPlace(String(decoding: bytes[..<length], as: UTF8.self)),
      let position = MessagePosition(String(decoding: bytes[length...], as: UTF8.self))
    else { return nil }
    self.init(position, local)
  }

  var cursor: Cursor {
    guard let local else { return Cursor("at:\(position)") }
    let place = local.description
    return Cursor("beside:\(place.utf8.count):\(place)\(position)")
  }
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
