import Synchronization

/// One line for each request, answer, frame and end, without secrets and without bodies: of those, only sizes.
public final class RedactingLog: Sendable {
  /// How much is written.
  public enum Detail: Sendable {
    /// Method, URL (redacted), status, sizes, times.
    case lines
    /// Header fields too, redacted.
    case headers
  }

  private let detail: Detail
  private let write: @Sendable (String) -> Void
  private let clock: @Sendable () -> Duration
  private let lastNumber = Mutex<UInt64>(0)

  /// - Parameters:
  ///   - clock: time since any fixed moment, for durations.
  ///   - write: gets one line without its end; called from any thread.
  public init(
    detail: Detail = .lines, clock: (@Sendable () -> Duration)? = nil, write: @escaping @Sendable (String) -> Void
  ) {
    self.detail = detail
    self.write = write
    let start = ContinuousClock.now
    self.clock = clock ?? { ContinuousClock.now - start }
  }

  var now: Duration { clock() }

  /// What ties the lines of one exchange together.
  func nextNumber() -> UInt64 {
    lastNumber.withLock { number in
      number += 1
      return number
    }
  }

  func line(_ number: UInt64, _ text: String, headers: HTTPHeaders? = nil) {
    write("#\(number) \(text)")
    guard detail == .headers, let headers else { return }
    for field in Redaction.headers(headers).fields { write("#\(number)   \(field.name): \(field.value)") }
  }

  /// Milliseconds since `start`, as `12.3 ms`.
  func time(since start: Duration) -> String {
    let tenths = Int(((clock() - start).seconds * 10_000).rounded())
    return "\(tenths / 10).\(tenths % 10) ms"
  }
}

/// Writes what goes through an HTTP client to a log.
public struct LoggingHTTPClient: HTTPClient {
  private let base: any HTTPClient
  private let log: RedactingLog

  public init(_ base: any HTTPClient, log: RedactingLog) {
    self.base = base
    self.log = log
  }

  public func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse {
    let number = log.nextNumber()
    let start = log.now
    log.line(
      number, "→ \(request.method) \(Redaction.url(request.url)) \(request.body.count) B", headers: request.headers)
    do throws(TransportError) {
      let response = try await base.send(request, progress: progress)
      log.line(
        number, "← \(response.status) \(response.body.count) B \(log.time(since: start))", headers: response.headers)
      return response
    } catch {
      log.line(number, "✗ \(error.logText) \(log.time(since: start))")
      throw error
    }
  }
}

/// Writes what goes through WebSockets to a log.
public struct LoggingWebSocketClient: WebSocketClient {
  private let base: any WebSocketClient
  private let log: RedactingLog

  public init(_ base: any WebSocketClient, log: RedactingLog) {
    self.base = base
    self.log = log
  }

  public func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
    let number = log.nextNumber()
    let start = log.now
    log.line(number, "→ open \(Redaction.url(request.url))", headers: request.headers)
    do throws(TransportError) {
      let connection = try await base.connect(request)
      let choice = connection.subprotocol.map { " \($0)" } ?? ""
      log.line(number, "← opened\(choice) \(log.time(since: start))")
      return LoggingWebSocketConnection(base: connection, log: log, number: number)
    } catch {
      log.line(number, "✗ \(error.logText) \(log.time(since: start))")
      throw error
    }
  }
}

private struct LoggingWebSocketConnection: WebSocketConnection {
  let base: any WebSocketConnection
  let log: RedactingLog
  let number: UInt64

  var subprotocol: String? { base.subprotocol }

  func send(_ message: WebSocketMessage) async throws(TransportError) {
    log.line(number, "→ \(message.logText)")
    try await logging { () async throws(TransportError) in try await base.send(message) }
  }

  func ping() async throws(TransportError) {
    log.line(number, "→ ping")
    try await logging { () async throws(TransportError) in try await base.ping() }
  }

  func roundTrip() async throws(TransportError) {
    log.line(number, "→ ping")
    let start = log.now
    try await logging { () async throws(TransportError) in try await base.roundTrip() }
    log.line(number, "← pong \(log.time(since: start))")
  }

  func receive() async throws(WebSocketClose) -> WebSocketMessage {
    do throws(WebSocketClose) {
      let message = try await base.receive()
      log.line(number, "← \(message.logText)")
      return message
    } catch {
      log.line(number, "← closed \(error.code.map(String.init) ?? "without a code")")
      throw error
    }
  }

  func close(code: UInt16, reason: String) async {
    log.line(number, "→ close \(code)")
    await base.close(code: code, reason: reason)
  }

  private func logging(_ body: () async throws(TransportError) -> Void) async throws(TransportError) {
    do throws(TransportError) {
      try await body()
    } catch {
      log.line(number, "✗ \(error.logText)")
      throw error
    }
  }
}

extension WebSocketMessage {
  fileprivate var logText: String {
    switch self {
    case .text: "text \(byteCount) B"
    case .binary: "binary \(byteCount) B"
    }
  }
}

extension TransportError {
  /// The answer to a refused upgrade is not part of it.
  fileprivate var logText: String { description + (nothingSent ? " (nothing sent)" : "") }
}

extension Transports {
  /// The same clients with every exchange written to `log`.
  public func logged(to log: RedactingLog) -> Transports {
    Transports(http: LoggingHTTPClient(http, log: log), webSocket: LoggingWebSocketClient(webSocket, log: log))
  }
}
