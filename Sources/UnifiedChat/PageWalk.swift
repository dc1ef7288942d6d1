/// Sees to it that a walk through a server's pages comes to its end: a server that hands out the same token again would
/// be asked for ever.
public struct PageWalk: Sendable {
  private var seen: Set<[UInt8]> = []

  public init() {}

  /// Notes the token that leads to the next page.
  /// - Throws: `.protocolViolation` for one that led to a page of this walk already.
  public mutating func advance(to token: String, _ operation: ChatError.Operation) throws(ChatError) {
    guard seen.insert(Array(token.utf8)).inserted else {
      throw ChatError(
        .protocolViolation, operation: operation, detail: "the server leads to a page again that was read already")
    }
  }
}
