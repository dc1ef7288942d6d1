public enum WebSocketMessage: Sendable, Hashable {
  /// Text, valid UTF-8.
  case text(String)
  case binary([UInt8])
}

/// How a WebSocket ended. `code` is nil when the link was cut without a close frame.
public struct WebSocketClose: Error, Sendable, Hashable {
  public var code: UInt16?
  public var reason: String

  public init(code: UInt16? = nil, reason: String = "") {
    self.code = code
    self.reason = reason
  }
}

/// The upgrade request of one WebSocket.
public struct WebSocketRequest: Sendable, Hashable {
  /// `ws://` or `wss://`, absolute.
  public var url: String
  public var headers: HTTPHeaders
  /// Offered in this order; empty offers none.
  public var subprotocols: [String]
  public var timeout: Duration
  /// Bytes of one message; a longer one closes with 1009.
  public var maxMessageSize: Int

  public init(
    _ url: String, headers: HTTPHeaders = HTTPHeaders(), subprotocols: [String] = [],
    timeout: Duration = .seconds(10), maxMessageSize: Int = 16 << 20
  ) {
    self.url = url
    self.headers = headers
    self.subprotocols = subprotocols
    self.timeout = timeout
    self.maxMessageSize = maxMessageSize
  }
}

public protocol WebSocketClient: Sendable {
  func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection
}

/// One open WebSocket. One task receives; any may send. Messages are sent whole and in the order of the calls.
public protocol WebSocketConnection: Sendable {
  /// What the server chose, if it chose.
  var subprotocol: String? { get }

  /// Returns when the message has been handed to the socket in order.
  func send(_ message: WebSocketMessage) async throws(TransportError)

  /// Sends a control ping and returns at once.
  func ping() async throws(TransportError)

  /// Sends a control ping and returns when a pong comes after it: the proof that the peer is there.
  /// Without a limit of time; whoever waits cancels. Where there is no wire, it returns at once.
  func roundTrip() async throws(TransportError)

  /// The next message, in order.
  /// - Throws: `WebSocketClose` once the peer or the network ended the link (for every later call too).
  func receive() async throws(WebSocketClose) -> WebSocketMessage

  /// Sends a close frame; a pending `receive` ends. Returns without waiting for the peer.
  func close(code: UInt16, reason: String) async
}

extension WebSocketConnection {
  public func roundTrip() async throws(TransportError) { try await ping() }
}
