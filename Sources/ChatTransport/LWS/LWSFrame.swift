#if os(Linux)
  import CWebSockets

  /// What goes out, with the room before it that libwebsockets writes the frame's head into.
  struct LWSFrame: Sendable {
    private var bytes: [UInt8]
    private let kind: lws_write_protocol

    static let ping = LWSFrame(LWS_WRITE_PING, UnsafeRawBufferPointer(start: nil, count: 0))

    static func text(_ payload: UnsafeRawBufferPointer) -> LWSFrame { LWSFrame(LWS_WRITE_TEXT, payload) }

    static func binary(_ payload: UnsafeRawBufferPointer) -> LWSFrame { LWSFrame(LWS_WRITE_BINARY, payload) }

    private init(_ kind: lws_write_protocol, _ payload: UnsafeRawBufferPointer) {
      self.kind = kind
      let headroom = cws_client_headroom()
      bytes = [UInt8](unsafeUninitializedCapacity: headroom + payload.count) { buffer, count in
        UnsafeMutableRawBufferPointer(buffer).prefix(headroom).initializeMemory(as: UInt8.self, repeating: 0)
        UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[headroom...]).copyMemory(
          from: payload)
        count = headroom + payload.count
      }
    }

    /// Hands the frame to libwebsockets, which masks it in place and keeps what the socket does not take at once.
    /// - Returns: whether the link still works.
    mutating func write(to wsi: OpaquePointer) -> Bool {
      let headroom = cws_client_headroom()
      return bytes.withUnsafeMutableBufferPointer { buffer in
        guard let start = buffer.baseAddress else { return false }
        return lws_write(wsi, start + headroom, buffer.count - headroom, kind) >= 0
      }
    }
  }
#endif
