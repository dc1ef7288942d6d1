#if os(Linux)
  import CWebSockets

  /// What the engine's thread knows of one link.
  struct LWSWire {
    /// libwebsockets' connection, while there is one.
    var wsi: OpaquePointer?
    /// While libwebsockets is being asked for it.
    var isStarting = false
    var token: UInt = 0
    var timer: OpaquePointer?
    /// Of the attempt at one address: another one for each, so that late words about an earlier one find nothing.
    var attempt: UInt = 0
    var attemptTimer: OpaquePointer?
    var addresses: [String] = []
    var requestWasSent = false
    var subprotocol: String?
    var refusal: HTTPResponse?
    private var message: [UInt8] = []

    /// Bytes of a refusal's body that are kept.
    private static let refusalLimit = 64 << 10

    /// - Returns: false once there is enough.
    mutating func appendToRefusal(_ bytes: UnsafeRawBufferPointer) -> Bool {
      let room = Self.refusalLimit - (refusal?.body.count ?? 0)
      refusal?.body.append(contentsOf: bytes.prefix(max(0, room)))
      return bytes.count < room
    }

    enum Step: Equatable {
      case incomplete
      case message(WebSocketMessage)
      /// The link must end with this code.
      case violation(UInt16, String)
    }

    /// Takes a piece of a message. Pings between the pieces never come here.
    /// - Parameter rest: bytes of the same frame that are still to come.
    mutating func assemble(
      _ piece: UnsafeRawBufferPointer, rest: Int, isBinary: Bool, isLast: Bool, limit: Int
    ) -> Step {
      // `rest` is what a peer claims: adding it may overflow.
      let (announced, overflows) = (message.count + piece.count).addingReportingOverflow(rest)
      guard !overflows, rest >= 0, announced <= limit else {
        message = []
        return .violation(1009, "message too big")
      }
      message.append(contentsOf: piece)
      guard isLast else { return .incomplete }
      defer { message = [] }
      if isBinary { return .message(.binary(message)) }
      guard let text = String(validating: message, as: UTF8.self) else { return .violation(1007, "invalid UTF-8") }
      return .message(.text(text))
    }
  }

  enum LWSClosing {
    /// Longer reasons do not fit into a close frame.
    private static let longestReason = 123

    /// Sets what the close frame will say when the connection is closed.
    static func prepare(_ wsi: OpaquePointer, code: UInt16, reason: String) {
      var text = reason
      while text.utf8.count > longestReason { text.removeLast() }
      var bytes = Array(text.utf8)
      lws_close_reason(wsi, lws_close_status(UInt32(sendable(code))), &bytes, bytes.count)
    }

    /// Codes that stand for the absence of a code or of a frame must not be sent (RFC 6455 §7.4.1).
    private static func sendable(_ code: UInt16) -> UInt16 {
      (1000...4999).contains(code) && ![1004, 1005, 1006, 1015].contains(code) ? code : 1000
    }

    /// What a peer's close frame says; without a code it is 1005.
    static func read(_ payload: UnsafeRawBufferPointer) -> WebSocketClose {
      guard payload.count >= 2 else { return WebSocketClose(code: 1005) }
      let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
      return WebSocketClose(code: code, reason: String(decoding: payload.dropFirst(2), as: UTF8.self))
    }
  }
#endif
