// Not yet built on Apple.
#if canImport(Darwin)
  import Foundation
  import Synchronization

  /// One WebSocket of the session, from the wish to open it to its end.
  final class URLSessionLink: URLSessionObserver {
    let opening = Settlement<Result<String?, TransportError>>()
    private let task: URLSessionWebSocketTask
    private let peer: String
    private let state = Mutex(State())

    private typealias Received = Result<WebSocketMessage, WebSocketClose>
    private typealias Receiver = CheckedContinuation<Received, Never>

    private struct State {
      /// At most one: a message that came for a receiver that was cancelled meanwhile.
      var inbox: [WebSocketMessage] = []
      var receiver: Receiver?
      /// The system is asked for one message at a time, so that an unread flood stays with the peer.
      var isAsking = false
      var end: WebSocketClose?
    }

    init(_ task: URLSessionWebSocketTask, peer: String) {
      self.task = task
      self.peer = peer
    }

    // MARK: Tasks

    func send(_ message: URLSessionWebSocketTask.Message) async throws(TransportError) {
      let peer = peer
      let outcome = Settlement<Result<Void, TransportError>>()
      task.send(message) { error in
        outcome.settle(error.map { .failure(TransportError(system: $0, peer: peer)) } ?? .success(()))
      }
      try await outcome.wait(cancelled: .failure(TransportError(.cancelled, peer: peer))).get()
    }

    /// - Parameter isAnswered: gets whether a pong came. The system may call twice where a link ends.
    func ping(_ isAnswered: @escaping @Sendable (Result<Void, TransportError>) -> Void = { _ in }) {
      let peer = peer
      task.sendPing { error in
        isAnswered(error.map { .failure(TransportError(system: $0, peer: peer)) } ?? .success(()))
      }
    }

    func roundTrip() async throws(TransportError) {
      let outcome = Settlement<Result<Void, TransportError>>()
      ping { outcome.settle($0) }
      try await outcome.wait(cancelled: .failure(TransportError(.cancelled, peer: peer))).get()
    }

    func receive() async throws(WebSocketClose) -> WebSocketMessage {
      let result: Received = await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let (ready, asks) = state.withLock { state in take(&state, continuation) }
          if asks { ask() }
          if let ready { continuation.resume(returning: ready) }
        }
      } onCancel: {
        let receiver = state.withLock { state in
          defer { state.receiver = nil }
          return state.receiver
        }
        receiver?.resume(returning: .failure(WebSocketClose(reason: "cancelled")))
      }
      return try result.get()
    }

    private func take(_ state: inout State, _ continuation: Receiver) -> (Received?, asks: Bool) {
      if !state.inbox.isEmpty { return (.success(state.inbox.removeFirst()), false) }
      if let end = state.end { return (.failure(end), false) }
      if Task.isCancelled { return (.failure(WebSocketClose(reason: "cancelled")), false) }
      if state.receiver != nil { return (.failure(WebSocketClose(reason: "another task receives")), false) }
      state.receiver = continuation
      defer { state.isAsking = true }
      return (nil, !state.isAsking)
    }

    func close(code: UInt16, reason: String) {
      end(WebSocketClose(code: code, reason: reason))
      let code = URLSessionWebSocketTask.CloseCode(rawValue: Int(code)) ?? .normalClosure
      task.cancel(with: code, reason: Data(reason.utf8))
    }

    // MARK: The session's queue

    private func ask() {
      task.receive { [self] result in
        switch result {
        case .success(.string(let text)): deliver(.text(text))
        case .success(.data(let bytes)): deliver(.binary(Array(bytes)))
        case .success: end(WebSocketClose())
        case .failure(let error): end(Self.isTooLong(error) ? WebSocketClose(code: 1009) : lastWord)
        }
      }
    }

    private static func isTooLong(_ error: any Error) -> Bool {
      (error as? POSIXError)?.code == .EMSGSIZE || (error as? URLError)?.code == .dataLengthExceedsMaximum
    }

    /// The peer's close frame, where there was one.
    private var lastWord: WebSocketClose {
      task.closeCode == .invalid ? WebSocketClose() : WebSocketClose(task.closeCode, task.closeReason)
    }

    private func deliver(_ message: WebSocketMessage) {
      let receiver = state.withLock { state -> Receiver? in
        state.isAsking = false
        guard let receiver = state.receiver else {
          state.inbox.append(message)
          return nil
        }
        state.receiver = nil
        return receiver
      }
      receiver?.resume(returning: .success(message))
    }

    /// No message comes any more. The first end counts.
    private func end(_ close: WebSocketClose) {
      let receiver = state.withLock { state -> Receiver? in
        if state.end == nil { state.end = close }
        defer { state.receiver = nil }
        return state.receiver
      }
      receiver?.resume(returning: .failure(close))
    }

    func opened(_ subprotocol: String?) { opening.settle(.success(subprotocol?.isEmpty == true ? nil : subprotocol)) }

    func closed(_ close: WebSocketClose) { end(close) }

    func completed(_ response: HTTPURLResponse?, _ error: (any Error)?) {
      if let response, response.statusCode != 101 {
        let refusal = HTTPResponse(response, body: [])
        opening.settle(.failure(TransportError(.upgradeRefused(refusal), peer: peer)))
      }
      let reason = error.map { TransportError(system: $0, peer: peer) } ?? TransportError(.closed, peer: peer)
      opening.settle(.failure(reason))
      end(lastWord)
    }
  }

  /// An open WebSocket. When the last reference goes, the link is closed with 1001.
  final class URLSessionConnection: WebSocketConnection {
    let subprotocol: String?
    private let link: URLSessionLink

    init(_ link: URLSessionLink, subprotocol: String?) {
      self.link = link
      self.subprotocol = subprotocol
    }

    deinit { link.close(code: 1001, reason: "") }

    func send(_ message: WebSocketMessage) async throws(TransportError) {
      switch message {
      case .text(let text): try await link.send(.string(text))
      case .binary(let bytes): try await link.send(.data(Data(bytes)))
      }
    }

    func ping() async throws(TransportError) { link.ping() }

    func roundTrip() async throws(TransportError) { try await link.roundTrip() }

    func receive() async throws(WebSocketClose) -> WebSocketMessage { try await link.receive() }

    func close(code: UInt16, reason: String) async { link.close(code: code, reason: reason) }
  }

  extension WebSocketClose {
    init(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) {
      self.init(
        code: UInt16(exactly: code.rawValue), reason: reason.map { String(decoding: $0, as: UTF8.self) } ?? "")
    }
  }
#endif
