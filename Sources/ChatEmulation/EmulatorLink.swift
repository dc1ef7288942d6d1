import ChatTransport

/// The far end of one WebSocket, as the host sees it: in process or a socket. Calls come from the host's actor, in
/// order, and return at once.
protocol EmulatorLink: AnyObject, Sendable {
  func accept(subprotocol: String?)
  func reject(_ response: HTTPResponse)
  func send(_ message: WebSocketMessage)
  /// Several in this order.
  func send(_ messages: [WebSocketMessage])
  /// Sends a close frame after all that was sent before, then ends the link.
  func close(_ close: WebSocketClose)
  /// Ends the link without a close frame.
  func cut()
  /// Sends these bytes as they are, in order with the messages; false where there is no byte stream.
  func write(_ bytes: [UInt8]) -> Bool
  /// Ends the direction to the client only; false where there is no byte stream.
  func halfClose() -> Bool
  /// The host begins with an input of so many bytes: the client may send more. What a fault then holds back is not
  /// bounded, nor what comes in process.
  func tookInput(_ bytes: Int)
}

extension EmulatorLink {
  func tookInput(_ bytes: Int) {}
  func send(_ messages: [WebSocketMessage]) { for message in messages { send(message) } }
}

/// The far end of one HTTP exchange.
protocol EmulatorReply: AnyObject, Sendable {
  func respond(_ response: HTTPResponse)
  /// Ends the connection without a response.
  func cut()
}

/// What reaches the host from outside, in the order of `submit`.
enum HostWork: Sendable {
  case http(EmulatorExchangeID, HTTPRequest, any EmulatorReply)
  case open(EmulatorConnectionID, WebSocketRequest, any EmulatorLink)
  case message(EmulatorConnectionID, WebSocketMessage)
  case ping(EmulatorConnectionID)
  case closed(EmulatorConnectionID, WebSocketClose)
}
