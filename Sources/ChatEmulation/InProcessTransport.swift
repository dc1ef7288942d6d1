import ChatTransport
import Synchronization

extension EmulatorHost {
  /// Clients that talk to this emulator without sockets. Any host in a URL reaches it; timeouts run on its clock.
  public nonisolated var transports: Transports {
    Transports(http: InProcessHTTPClient(host: self), webSocket: InProcessWebSocketClient(host: self))
  }
}

/// Why a wait ended without an answer, as a `TransportError`.
private func failure(_ kind: TransportError.Kind) -> TransportError { TransportError(kind, peer: "in-process") }

private let refusal = TransportError(.refused, peer: "in-process", nothingSent: true)

private struct InProcessHTTPClient: HTTPClient {
  let host: EmulatorHost

  func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse {
    if await host.refusesConnections { throw refusal }
    let reply = InProcessReply()
    let id = host.makeExchangeID()
    host.submit(.http(id, request, reply))
    await host.pump()
    let result = await host.answer(of: reply.outcome, within: request.timeout)
    if case .failure = result { await host.forget(id) }
    let response = try result.get()
    let sent = Int64(request.body.count)
    let received = Int64(response.body.count)
    progress?(TransferProgress(sent: sent, received: received, sentTotal: sent, receivedTotal: received))
    return response
  }
}

private final class InProcessReply: EmulatorReply {
  let outcome = OneShot<Result<HTTPResponse, TransportError>>()

  func respond(_ response: HTTPResponse) { outcome.fulfil(.success(response)) }

  func cut() { outcome.fulfil(.failure(failure(.closed))) }
}

private struct InProcessWebSocketClient: WebSocketClient {
  let host: EmulatorHost

  func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
    if await host.refusesConnections { throw refusal }
    let id = host.makeConnectionID()
    let link = InProcessLink(id: id, host: host, maxMessageSize: request.maxMessageSize)
    host.submit(.open(id, request, link))
    await host.pump()
    switch await host.answer(of: link.opening, within: request.timeout) {
    case .success(let subprotocol): return InProcessConnection(link: link, subprotocol: subprotocol)
    case .failure(let error):
      // A link that was refused is gone already; one that timed out or was cancelled is left by the client.
      host.submit(.closed(id, WebSocketClose()))
      await host.pump()
      throw error
    }
  }
}

extension EmulatorHost {
  /// Waits for an answer on the emulator's clock; a cancelled task ends the wait.
  fileprivate nonisolated func answer<Value: Sendable>(
    of outcome: OneShot<Result<Value, TransportError>>, within timeout: Duration
  ) async -> Result<Value, TransportError> {
    if outcome.isFilled { return await outcome.wait(cancelled: .failure(failure(.cancelled))) }
    let token = await schedule(after: timeout) { _ in outcome.fulfil(.failure(failure(.timeout))) }
    let result = await outcome.wait(cancelled: .failure(failure(.cancelled)))
    await cancelScheduled(token)
    return result
  }
}

/// The wire between one client and the host: messages towards the client wait here.
private final class InProcessLink: EmulatorLink {
  let id: EmulatorConnectionID
  let host: EmulatorHost
  let opening = OneShot<Result<String?, TransportError>>()

  private let maxMessageSize: Int
  private let inbox = Mutex(Inbox())

  private typealias Received = Result<WebSocketMessage, WebSocketClose>

  private struct Inbox {
    var messages: [WebSocketMessage] = []
    /// Index of the next message: taking one must not move the rest.
    var next = 0
    var end: WebSocketClose?
    var waiter: CheckedContinuation<Received, Never>?

    mutating func take() -> WebSocketMessage? {
      guard next < messages.count else { return nil }
      defer { next += 1 }
      let message = messages[next]
      if next > 64, next * 2 > messages.count {
        messages.removeFirst(next)
        next = 0
      }
      return message
    }
  }

  init(id: EmulatorConnectionID, host: EmulatorHost, maxMessageSize: Int) {
    self.id = id
    self.host = host
    self.maxMessageSize = maxMessageSize
  }

  var isEnded: Bool { inbox.withLock { $0.end != nil } }

  func accept(subprotocol: String?) { opening.fulfil(.success(subprotocol)) }

  func reject(_ response: HTTPResponse) {
    end(WebSocketClose())
    opening.fulfil(.failure(failure(.upgradeRefused(response))))
  }

  func send(_ message: WebSocketMessage) {
    guard message.size <= maxMessageSize else {
      let close = WebSocketClose(code: 1009, reason: "message too big")
      host.submit(.closed(id, close))
      return end(close)
    }
    let waiter: CheckedContinuation<Received, Never>? = inbox.withLock { inbox in
      if inbox.end != nil { return nil }
      if let waiter = inbox.waiter {
        inbox.waiter = nil
        return waiter
      }
      inbox.messages.append(message)
      return nil
    }
    waiter?.resume(returning: .success(message))
  }

  func close(_ close: WebSocketClose) { end(close) }

  func cut() {
    end(WebSocketClose())
    opening.fulfil(.failure(failure(.closed)))
  }

  func write(_ bytes: [UInt8]) -> Bool { false }

  func halfClose() -> Bool { false }

  /// No message after this; those that arrived before are still read, unless `droppingInbox`.
  func end(_ close: WebSocketClose, droppingInbox: Bool = false) {
    let waiter: CheckedContinuation<Received, Never>? = inbox.withLock { inbox in
      if droppingInbox { inbox.messages.removeAll(); inbox.next = 0 }
      if inbox.end != nil { return nil }
      inbox.end = close
      defer { inbox.waiter = nil }
      return inbox.waiter
    }
    waiter?.resume(returning: .failure(close))
  }

  func receive() async throws(WebSocketClose) -> WebSocketMessage {
    let result: Received = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready: Received? = inbox.withLock { inbox in
          if let message = inbox.take() { return .success(message) }
          if let end = inbox.end { return .failure(end) }
          if Task.isCancelled { return .failure(WebSocketClose(reason: "cancelled")) }
          if inbox.waiter != nil { return .failure(WebSocketClose(reason: "another task receives")) }
          inbox.waiter = continuation
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      let waiter = inbox.withLock { inbox in
        defer { inbox.waiter = nil }
        return inbox.waiter
      }
      waiter?.resume(returning: .failure(WebSocketClose(reason: "cancelled")))
    }
    return try result.get()
  }
}

private struct InProcessConnection: WebSocketConnection {
  let link: InProcessLink
  let subprotocol: String?

  func send(_ message: WebSocketMessage) async throws(TransportError) {
    try await submit(.message(link.id, message))
  }

  func ping() async throws(TransportError) { try await submit(.ping(link.id)) }

  func receive() async throws(WebSocketClose) -> WebSocketMessage { try await link.receive() }

  func close(code: UInt16, reason: String) async {
    let close = WebSocketClose(code: code, reason: reason)
    link.end(close, droppingInbox: true)
    link.host.submit(.closed(link.id, close))
    await link.host.pump()
  }

  private func submit(_ work: HostWork) async throws(TransportError) {
    if link.isEnded { throw failure(.closed) }
    link.host.submit(work)
    await link.host.pump()
  }
}

extension WebSocketMessage {
  /// Bytes of the payload.
  var size: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}
