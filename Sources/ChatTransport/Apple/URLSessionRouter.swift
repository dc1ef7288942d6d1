// Not yet built on Apple.
#if canImport(Darwin)
  import Foundation
  import Synchronization

  /// What one task of the session tells, in order, on the session's queue.
  protocol URLSessionObserver: AnyObject, Sendable {
    /// Bytes of the request's body, altogether.
    func sent(_ count: Int64)
    /// False ends the task.
    func received(_ bytes: Data, expected: Int64) -> Bool
    func opened(_ subprotocol: String?)
    func closed(_ close: WebSocketClose)
    /// The last call.
    func completed(_ response: HTTPURLResponse?, _ error: (any Error)?)
  }

  extension URLSessionObserver {
    func sent(_ count: Int64) {}
    func received(_ bytes: Data, expected: Int64) -> Bool { true }
    func opened(_ subprotocol: String?) {}
    func closed(_ close: WebSocketClose) {}
  }

  /// The session's delegate: hands what it is told to the task's observer. Refuses redirects, so that what the server
  /// says is what the caller gets. Questions for credentials it leaves to the system, which has none for this session
  /// and hands the server's refusal on; certificates, which are such a question too, the system then verifies.
  final class URLSessionRouter: NSObject, URLSessionDataDelegate, URLSessionWebSocketDelegate {
    private let observers = Mutex<[Int: any URLSessionObserver]>([:])

    /// Before the task is resumed.
    func add(_ observer: any URLSessionObserver, _ task: URLSessionTask) {
      let id = task.taskIdentifier
      observers.withLock { $0[id] = observer }
    }

    private func observer(_ task: URLSessionTask) -> (any URLSessionObserver)? {
      let id = task.taskIdentifier
      return observers.withLock { $0[id] }
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(nil) }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
      totalBytesExpectedToSend: Int64
    ) {
      observer(task)?.sent(totalBytesSent)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      let expected = dataTask.response?.expectedContentLength ?? -1
      if observer(dataTask)?.received(data, expected: expected) == false { dataTask.cancel() }
    }

    func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol choice: String?)
    {
      observer(webSocketTask)?.opened(choice)
    }

    func urlSession(
      _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
      didCloseWith code: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
      observer(webSocketTask)?.closed(WebSocketClose(code, reason))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      let id = task.taskIdentifier
      let observer = observers.withLock { $0.removeValue(forKey: id) }
      observer?.completed(task.response as? HTTPURLResponse, error)
    }
  }

  /// One HTTP exchange.
  final class URLSessionExchange: URLSessionObserver {
    let outcome = Settlement<Result<HTTPResponse, TransportError>>()
    private let limit: Int
    private let size: Int64
    private let peer: String
    private let progress: (@Sendable (TransferProgress) -> Void)?
    private let state = Mutex((body: [UInt8](), sent: Int64(0)))

    init(_ request: HTTPRequest, peer: String, progress: (@Sendable (TransferProgress) -> Void)?) {
      limit = request.maxResponseSize
      size = Int64(request.body.count)
      self.peer = peer
      self.progress = progress
    }

    func sent(_ count: Int64) {
      state.withLock { $0.sent = count }
      progress?(TransferProgress(sent: count, received: 0, sentTotal: size, receivedTotal: nil))
    }

    /// The bytes are decoded ones: a small answer may unpack to a large one, so that they are counted here.
    func received(_ bytes: Data, expected: Int64) -> Bool {
      let progressed = state.withLock { state -> (received: Int, sent: Int64)? in
        guard bytes.count <= limit - state.body.count else { return nil }
        state.body.append(contentsOf: bytes)
        return (state.body.count, state.sent)
      }
      guard let (received, sent) = progressed else {
        outcome.settle(.failure(TransportError(.tooLarge(limit: limit), peer: peer)))
        return false
      }
      progress?(
        TransferProgress(
          sent: sent, received: Int64(received), sentTotal: size, receivedTotal: expected > 0 ? expected : nil))
      return true
    }

    func completed(_ response: HTTPURLResponse?, _ error: (any Error)?) {
      if let error { return outcome.settle(.failure(TransportError(system: error, peer: peer))) }
      guard let response else { return outcome.settle(.failure(TransportError(.protocolViolation, peer: peer))) }
      let body = state.withLock { $0.body }
      let received = Int64(body.count)
      progress?(TransferProgress(sent: size, received: received, sentTotal: size, receivedTotal: received))
      outcome.settle(.success(HTTPResponse(response, body: body)))
    }
  }
#endif
