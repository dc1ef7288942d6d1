#if os(Linux)
  import CWebSockets

  /// What libwebsockets tells, on the engine's thread. A plain function, since a C library calls it.
  ///
  /// Zero lets libwebsockets go on; anything else closes the connection.
  func webSocketEvent(
    _ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ user: UnsafeMutableRawPointer?,
    _ bytes: UnsafeMutableRawPointer?, _ count: Int
  ) -> Int32 {
    guard let wsi, isAboutLink(reason), let engine = LWSEngine.shared else { return 0 }
    guard let link = engine.link(user) else { return isEnd(reason) ? 0 : -1 }
    let payload = UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count)
    switch reason {
    // The address answers: TLS, which may take its time, is not a matter of which one it is.
    case LWS_CALLBACK_WSI_CREATE: engine.stopAttemptTimer(link)
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER: return appendFields(link, bytes, count)
    case LWS_CALLBACK_ESTABLISHED_CLIENT_HTTP: readRefusal(wsi, link)
    case LWS_CALLBACK_RECEIVE_CLIENT_HTTP_READ: return link.wire.appendToRefusal(payload) ? 0 : -1
    // There is no further request on this connection.
    case LWS_CALLBACK_COMPLETED_CLIENT_HTTP: return -1
    case LWS_CALLBACK_CLIENT_FILTER_PRE_ESTABLISH: readSubprotocol(wsi, link)
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
      link.wire.wsi = wsi
      engine.finish(link, .success(link.wire.subprotocol))
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
      engine.attemptFailed(link, String(decoding: payload.prefix { $0 != 0 }, as: UTF8.self))
    case LWS_CALLBACK_CLIENT_RECEIVE: return receive(wsi, link, payload, engine)
    case LWS_CALLBACK_CLIENT_RECEIVE_PONG: link.receivedPong()
    case LWS_CALLBACK_CLIENT_WRITEABLE: return link.write(to: wsi)
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE: link.endReceiving(LWSClosing.read(payload))
    case LWS_CALLBACK_CLIENT_CLOSED: engine.forget(link)
    case LWS_CALLBACK_WSI_DESTROY: engine.destroyed(wsi, of: link)
    default: break
    }
    return 0
  }

  func openingTimeIsUp(_ user: UnsafeMutableRawPointer?) {
    guard let engine = LWSEngine.shared, let link = engine.link(user) else { return }
    engine.timeIsUp(link)
  }

  func attemptHasTakenTooLong(_ user: UnsafeMutableRawPointer?) {
    guard let engine = LWSEngine.shared, let link = engine.link(user) else { return }
    engine.attemptTimeIsUp(link)
  }

  private func isAboutLink(_ reason: lws_callback_reasons) -> Bool {
    switch reason {
    case LWS_CALLBACK_WSI_CREATE, LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER, LWS_CALLBACK_ESTABLISHED_CLIENT_HTTP,
      LWS_CALLBACK_RECEIVE_CLIENT_HTTP_READ, LWS_CALLBACK_COMPLETED_CLIENT_HTTP,
      LWS_CALLBACK_CLIENT_FILTER_PRE_ESTABLISH, LWS_CALLBACK_CLIENT_ESTABLISHED, LWS_CALLBACK_CLIENT_RECEIVE,
      LWS_CALLBACK_CLIENT_RECEIVE_PONG, LWS_CALLBACK_CLIENT_WRITEABLE, LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      true
    default: isEnd(reason)
    }
  }

  private func isEnd(_ reason: lws_callback_reasons) -> Bool {
    [LWS_CALLBACK_CLIENT_CONNECTION_ERROR, LWS_CALLBACK_CLIENT_CLOSED, LWS_CALLBACK_WSI_DESTROY].contains(reason)
  }

  /// Fields that belong to the handshake, which the library writes.
  private let ownFields: Set<String> = [
    "host", "connection", "upgrade", "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol",
    "sec-websocket-extensions",
  ]

  private func appendFields(_ link: LWSLink, _ position: UnsafeMutableRawPointer?, _ room: Int) -> Int32 {
    guard let position = position?.assumingMemoryBound(to: UnsafeMutablePointer<CChar>?.self) else { return -1 }
    var room = max(0, room)
    for field in link.request.headers.fields where !ownFields.contains(field.name.lowercased()) {
      guard cws_client_append(position, &room, field.name, field.value) != 0 else { return -1 }
    }
    link.wire.requestWasSent = true
    return 0
  }

  private func readSubprotocol(_ wsi: OpaquePointer, _ link: LWSLink) {
    var name = [CChar](repeating: 0, count: 256)
    guard cws_client_subprotocol(wsi, &name, name.count) != 0 else { return }
    link.wire.subprotocol = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// The head of the answer is there. Other than a switch of protocols, it is the server's word on why not.
  private func readRefusal(_ wsi: OpaquePointer, _ link: LWSLink) {
    let status = Int(lws_http_client_http_response(wsi))
    guard status != 101, (100...999).contains(status) else { return }
    link.wire.refusal = HTTPResponse(status: status)
    cws_client_headers(wsi, UnsafeMutableRawPointer(bitPattern: link.wire.attempt), takeField)
    // The body mostly came with the head. Others wait meanwhile, so it must not take long.
    cws_client_read_refusal(wsi, 250)
  }

  private func takeField(
    _ user: UnsafeMutableRawPointer?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
  ) {
    guard let link = LWSEngine.shared?.link(user), let name, let value else { return }
    link.wire.refusal?.headers.fields.append(HTTPHeaders.Field(String(cString: name), String(cString: value)))
  }

  private func receive(_ wsi: OpaquePointer, _ link: LWSLink, _ piece: UnsafeRawBufferPointer, _ engine: LWSEngine)
    -> Int32
  {
    // Closed by us: what still comes is for nobody.
    guard !link.hasEnded else { return 0 }
    let step = link.wire.assemble(
      piece, rest: Int(clamping: lws_remaining_packet_payload(wsi)), isBinary: lws_frame_is_binary(wsi) != 0,
      isLast: lws_is_final_fragment(wsi) != 0, limit: link.request.maxMessageSize)
    switch step {
    case .incomplete: return 0
    case .message(let message):
      if link.deliver(message) { lws_rx_flow_control(wsi, 0) }
      return 0
    case .violation(let code, let reason):
      // Closing from within this event, libwebsockets would go on to write what comes behind its buffer.
      link.refuseMore(WebSocketClose(code: code, reason: reason))
      engine.close(wsi)
      return 0
    }
  }
#endif
