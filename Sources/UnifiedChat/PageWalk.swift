/// Sees to it that a walk through a server's pages comes to its end: a server that hands out the same token again would
/// be asked for ever, and one that makes up a new one each time, too.
public struct PageWalk: Sendable {
  /// Bytes of a token. Vendors' are a few hundred.
  static let longestToken = 1 << 16

  private var seen: Set<[UInt8]> = []
  private let mostPages: Int

  public init() { self.init(mostPages: 1_000_000) }

  /// - Parameter mostPages: after so many a list counts as one without end. At twenty items a page, the fewest that any
  ///   vendor gives, a million pages are twenty million items.
  init(mostPages: Int) { self.mostPages = mostPages }

  /// Notes the token that leads to the next page.
  /// - Throws: `.protocolViolation` for one that led to a page of this walk already, for one that is too long to be kept,
  ///   and after a million pages.
  public mutating func advance(to token: String, _ operation: ChatError.Operation) throws(ChatError) {
    guard token.utf8.count <= Self.longestToken else {
      throw ChatError(.protocolViolation, operation: operation, detail: "the server's token for a page is too long")
    }
    guard seen.count < mostPages else {
      throw ChatError(
        .protocolViolation, operation: operation, detail: "the server's list does not end after \(mostPages) pages")
    }
    guard seen.insert(Array(token.utf8)).inserted else {
      throw ChatError(
        .protocolViolation, operation: operation, detail: "the server leads to a page again that was read already")
    }
  }
}
