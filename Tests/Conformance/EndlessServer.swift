import ChatJSON
import ChatTransport
import Foundation
import Synchronization

/// A server of which some lists have no end: each page says that there is more, and the next one is the same again.
final class EndlessServer: HTTPClient {
  private let inner: any HTTPClient
  private let state = Mutex(State())

  private struct State {
    /// The part of an address that names the list; nil: all is well.
    var list: String?
    var pages: [String: JSONValue] = [:]
    var requests = 0
  }

  /// What nobody needs for a list that has no end.
  static let patience = 400

  init(_ inner: any HTTPClient) { self.inner = inner }

  /// Requests of the list since then.
  var requests: Int { state.withLock { $0.requests } }

  func spoil(_ list: String?) { state.withLock { $0 = State(list: list) } }

  func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse {
    guard let list = state.withLock({ $0.list }), request.url.contains(list) else {
      return try await inner.send(request, progress: progress)
    }
    let number = state.withLock { state in
      state.requests += 1
      return state.requests
    }
    // Whoever is still asking would ask for ever; this way the test comes to its end and fails.
    guard number < Self.patience else { throw TransportError(.closed, nothingSent: true) }
    let path = String(request.url.prefix { $0 != "?" })
    if let page = state.withLock({ $0.pages[path] }) { return answer(page, number) }
    var first = try await inner.send(request, progress: progress)
    guard let json = try? JSONValue(parsing: first.body) else { return first }
    let page = Self.endless(json, pageSize: Self.pageSize(of: request))
    state.withLock { $0.pages[path] = page }
    first.body = answer(page, number).body
    return first
  }

  /// Two tokens take turns, so that no page leads to itself.
  private func answer(_ page: JSONValue, _ number: Int) -> HTTPResponse {
    let text = page.text().replacingOccurrences(of: "‹next›", with: "page-\(number % 2)")
    return HTTPResponse(status: 200, headers: ["content-type": "application/json"], body: Array(text.utf8))
  }

  private static func pageSize(of request: HTTPRequest) -> Int {
    let query = request.url.split(separator: "?").dropFirst().joined().split(separator: "&")
    let limit = query.first { $0.hasPrefix("limit=") }.flatMap { Int($0.dropFirst(6)) }
    let body = (try? JSONValue(parsing: request.body))?["pagination"]?["showNumber"]?.int
    return min(limit ?? body.map { Int(clamping: $0) } ?? 1, 1000)
  }

  /// The same with every sign of an end turned into its opposite, and lists as long as was asked for.
  private static func endless(_ json: JSONValue, pageSize: Int) -> JSONValue {
    switch json {
    case .array(let items): return .array(filled(items, pageSize))
    case .object(let object):
      var copy = JSONObject()
      for (key, value) in object {
        switch (key, value) {
        case ("next", _): copy[key] = "‹next›"
        case ("has_more", _), ("has_next", _): copy[key] = true
        case ("isEnd", _): copy[key] = false
        case ("total", .int): copy[key] = .int(1 << 40)
        case ("results", .array(let items)): copy[key] = .array(filled(items, pageSize))
        case ("data", .object), ("msgs", .object): copy[key] = endless(value, pageSize: pageSize)
        case (_, .object(let inner)) where inner["isEnd"] != nil || inner["Msgs"] != nil:
          copy[key] = endless(value, pageSize: pageSize)
        default: copy[key] = value
        }
      }
      return .object(copy)
    default: return json
    }
  }

  private static func filled(_ items: [JSONValue], _ count: Int) -> [JSONValue] {
    guard !items.isEmpty else { return items }
    return (0..<max(count, items.count)).map { items[$0 % items.count] }
  }
}
