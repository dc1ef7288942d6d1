import ChatTransport
import Synchronization
import Testing

/// Answers with what it was given, in order, and counts.
private final class PlannedClient: HTTPClient {
  private let plan: Mutex<[Result<HTTPResponse, TransportError>]>
  private let sent = Mutex(0)

  init(_ plan: [Result<HTTPResponse, TransportError>]) { self.plan = Mutex(plan) }

  var count: Int { sent.withLock { $0 } }

  func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse {
    sent.withLock { $0 += 1 }
    return try plan.withLock { $0.removeFirst() }.get()
  }
}

@Suite("The client that tries again")
struct RetryingClientTests {
  private static func failure(
    _ kind: TransportError.Kind, nothingSent: Bool = false
  ) -> Result<HTTPResponse, TransportError> { .failure(TransportError(kind, nothingSent: nothingSent)) }

  private static func answer(_ status: Int, _ headers: HTTPHeaders = [:]) -> Result<HTTPResponse, TransportError> {
    .success(HTTPResponse(status: status, headers: headers))
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var method = "GET"
    var mayRepeat: Bool?
    let plan: [Result<HTTPResponse, TransportError>]
    /// How many requests leave.
    let sent: Int

    static let all = [
      Case(testDescription: "an answer is enough", plan: [answer(200)], sent: 1),
      Case(testDescription: "404 is an answer", plan: [answer(404)], sent: 1),
      Case(testDescription: "GET after an end", plan: [failure(.closed), answer(200)], sent: 2),
      Case(testDescription: "GET after a timeout", plan: [failure(.timeout), answer(200)], sent: 2),
      Case(testDescription: "DELETE after an end", method: "DELETE", plan: [failure(.closed), answer(200)], sent: 2),
      Case(testDescription: "POST after an end", method: "POST", plan: [failure(.closed)], sent: 1),
      Case(testDescription: "PATCH after an end", method: "PATCH", plan: [failure(.closed)], sent: 1),
      Case(
        testDescription: "POST that never left", method: "POST",
        plan: [failure(.refused, nothingSent: true), answer(200)],
        sent: 2),
      Case(
        testDescription: "POST that may be repeated", method: "POST", mayRepeat: true,
        plan: [failure(.closed), answer(200)], sent: 2),
      Case(testDescription: "GET that may not", mayRepeat: false, plan: [failure(.closed)], sent: 1),
      Case(testDescription: "TLS", plan: [failure(.tls, nothingSent: true)], sent: 1),
      Case(testDescription: "a broken answer", plan: [failure(.protocolViolation)], sent: 1),
      Case(testDescription: "too large", plan: [failure(.tooLarge(limit: 1))], sent: 1),
      Case(testDescription: "cancelled", plan: [failure(.cancelled, nothingSent: true)], sent: 1),
      Case(testDescription: "503 to GET", plan: [answer(503), answer(200)], sent: 2),
      Case(testDescription: "503 to POST", method: "POST", plan: [answer(503)], sent: 1),
      Case(testDescription: "429 to POST", method: "POST", plan: [answer(429), answer(200)], sent: 2),
      Case(testDescription: "501 to GET", plan: [answer(501)], sent: 1),
      Case(
        testDescription: "the last of the tries stands",
        plan: [failure(.closed), answer(503), failure(.timeout), answer(500)],
        sent: 4),
      Case(
        testDescription: "a wait that is too long is not waited", plan: [answer(503, ["Retry-After": "61"])], sent: 1),
    ]
  }

  @Test("what is tried again, and what is not", arguments: Case.all)
  func decisions(_ item: Case) async {
    let base = PlannedClient(item.plan)
    let client = RetryingHTTPClient(base, random: EmulatorRandom(seed: 1), sleep: { _ in })
    let request = HTTPRequest(item.method, "http://a/", mayRepeat: item.mayRepeat)
    let outcome: Result<HTTPResponse, TransportError>
    do throws(TransportError) { outcome = .success(try await client.send(request)) } catch { outcome = .failure(error) }
    #expect(base.count == item.sent)
    #expect(outcome == item.plan.last)
  }

  @Test("the server's wish goes before the wait of our own, a useless one does not")
  func waits() async throws {
    let base = PlannedClient([
      Self.answer(429, ["retry-after": "3"]), Self.answer(503, ["Retry-After": "Thu, 01 Jan 1970 00:01:05 GMT"]),
      Self.answer(503, ["Retry-After": "soon"]), Self.answer(200),
    ])
    let slept = Mutex<[Duration]>([])
    let client = RetryingHTTPClient(
      base, policy: RetryPolicy(base: .seconds(1), cap: .seconds(3)), random: EmulatorRandom(seed: 1),
      now: { 60_000 }, sleep: { duration in slept.withLock { $0.append(duration) } })
    _ = try await client.send(HTTPRequest("GET", "http://a/"))
    let waits = slept.withLock { $0 }
    #expect(waits.prefix(2) == [.seconds(3), .seconds(5)])
    #expect(waits.count == 3)
    #expect(waits[2] > .zero && waits[2] <= .seconds(3))
  }

  @Test("one try is one try")
  func noRetry() async {
    let base = PlannedClient([Self.failure(.closed)])
    let client = RetryingHTTPClient(base, policy: RetryPolicy(attempts: 1), sleep: { _ in })
    await #expect(throws: TransportError(.closed)) { try await client.send(HTTPRequest("GET", "http://a/")) }
    #expect(base.count == 1)
  }

  @Test("cancelling ends the wait between two tries, and says whether something was sent", arguments: [true, false])
  func cancelled(nothingSent: Bool) async {
    let base = PlannedClient([Self.failure(.closed, nothingSent: nothingSent)])
    let client = RetryingHTTPClient(base, sleep: { _ in throw CancellationError() })
    let error = await #expect(throws: TransportError.self) { try await client.send(HTTPRequest("GET", "http://a/")) }
    #expect(error?.kind == .cancelled)
    #expect(error?.nothingSent == nothingSent)
    #expect(base.count == 1)
  }
}
