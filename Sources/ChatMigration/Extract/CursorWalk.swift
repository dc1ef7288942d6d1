import UnifiedChat

/// A walk through the pages of one list of a source or destination, which may lead in a circle.
struct CursorWalk {
  private(set) var cursor: Cursor?
  private var walk = PageWalk()
  private let list: String
  private let operation: ChatError.Operation

  /// - Parameters:
  ///   - list: what an error names, for example `the source's list of users`.
  ///   - start: where an earlier walk ended.
  init(_ list: String, _ operation: ChatError.Operation, from start: Cursor? = nil) throws(ChatError) {
    (self.list, self.operation) = (list, operation)
    try go(to: start)
  }

  /// - Throws: `.protocolViolation` for a page of this walk that was read already.
  mutating func go(to next: Cursor?) throws(ChatError) {
    if let next {
      do { try walk.advance(to: next.rawValue, operation) } catch {
        throw ChatError(
          .protocolViolation, operation: operation, detail: "\(list) does not move on: it leads to a page again that was read"
            + " already")
      }
    }
    cursor = next
  }
}
