import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

// Frames out and in: requests with their answers, and pushes one at a time in the order of the wire.

extension LeanCloudLine {
  // MARK: Frames

  func write(_ frame: LeanCloudFrame) async throws(ChatError) {
    let operation = ChatError.Operation.encode
    guard let socket else { throw ChatError(.network(.closed), operation: operation) }
    let payload: LeanCloudPayload
    do { payload = try LeanCloudCodec(settings.subprotocol).encode(frame) } catch {
      throw ChatError(.invalidArgument(field: "frame"), operation: operation, detail: error.description)
    }
    // The server closes the link on a longer one, which would hurt more than this call.
    guard payload.byteCount <= LeanCloudErrors.maximumFrameBytes else {
      throw ChatError(
        .tooLarge(limit: Int64(LeanCloudErrors.maximumFrameBytes), unit: .bytes), operation: operation,
        detail: "one command is at most \(LeanCloudErrors.maximumFrameBytes) bytes, this one is \(payload.byteCount)")
    }
    do {
      switch payload {
      case .text(let text): try await socket.send(.text(text))
      case .binary(let bytes): try await socket.send(.binary(bytes))
      }
    } catch { throw LeanCloudFault.error(error, operation: operation) }
  }

  /// A frame without an answer.
  func tell(_ frame: LeanCloudFrame, _ operation: ChatError.Operation) async throws(ChatError) {
    do { try await write(frame) } catch { throw Self.renamed(error, operation) }
  }

  static func renamed(_ error: ChatError, _ operation: ChatError.Operation) -> ChatError {
    var error = error
    error.operation = operation
    return error
  }

  /// Sends and waits for the answer with the same serial. An answer that is an error is thrown, except to a login.
  func ask(
    _ frame: LeanCloudFrame, _ operation: ChatError.Operation, within limit: Duration? = nil
  ) async throws(ChatError) -> LeanCloudFrame {
    if operation != .connect, operation != .disconnect, state != .connected { throw notConnected(operation) }
    serial &+= 1
    let number = serial
    let answer = Answer<LeanCloudFrame>()
    let timer = clock.alarm(after: limit ?? settings.timeout) {
      answer.fulfil(.failure(ChatError(.timeout, operation: operation, detail: "no answer within the limit")))
    }
    pending[number] = (answer, operation, timer)
    defer {
      timer.cancel()
      pending[number] = nil
    }
    var frame = frame
    frame.serial = number
    do { try await write(frame) } catch { throw Self.renamed(error, operation) }
    let reply = try await answer.wait(operation)
    if operation != .connect, let error = LeanCloudFault.error(reply, operation: operation) { throw error }
    if operation == .connect, reply.command == "error", let error = LeanCloudFault.error(reply, operation: operation) {
      throw error
    }
    return reply
  }

  func notConnected(_ operation: ChatError.Operation) -> ChatError {
    if case .refused = state {
      return ChatError(.authentication, operation: operation, detail: "the session was refused")
    }
    return ChatError(.network(.offline), operation: operation, detail: "not connected")
  }

  func received(_ message: WebSocketMessage, on id: UInt64) async {
    guard id == socketID, socket != nil else { return }
    lastInbound = clock.now
    let payload: LeanCloudPayload
    switch message {
    case .text(let text): payload = .text(text)
    case .binary(let bytes): payload = .binary(bytes)
    }
    guard let frame = try? LeanCloudCodec(settings.subprotocol).decode(payload), !frame.isPing else { return }
    if let serial = frame.serial {
      // An answer that nobody waits for any more is late.
      if let entry = pending[serial] {
        // It is here: no time-out makes its outcome unknown any more.
        entry.timer.cancel()
        deliver(frame, to: entry.answer, entry.operation)
      }
      return
    }
    switch (frame.command, frame.operation) {
    case ("goaway", _): await goAway()
    case ("session", "closed"): await sessionClosed(frame)
    default:
      inbox.append(.push(frame))
      drain()
    }
  }

  /// An answer waits its turn behind earlier pushes, so that whoever gets it has been told what came before. Those
  /// that the handling of a push itself asks for cannot wait for it.
  func deliver(_ frame: LeanCloudFrame, to answer: Answer<LeanCloudFrame>, _ operation: ChatError.Operation) {
    let isAskedByPushes = operation == .fetchChannel || operation == .connect || operation == .disconnect
    if isAskedByPushes || (drainer == nil && inbox.isEmpty) { return answer.fulfil(.success(frame)) }
    inbox.append(.answer(frame, answer))
    drain()
  }

  enum Inbound {
    case push(LeanCloudFrame)
    case answer(LeanCloudFrame, Answer<LeanCloudFrame>)
  }

  /// The server wants to be left: a new route, then the session again.
  func goAway() async {
    guard state == .connected else {
      // It can come before the login's answer, or overtake the task that takes that.
      mustLeave = true
      return
    }
    mustLeave = false
    route = nil
    let closing = socket
    dropSocket()
    startReconnecting(isImmediate: true)
    await closing?.close(code: 1000, reason: "")
  }

  func sessionClosed(_ frame: LeanCloudFrame) async {
    if let code = frame.int("code"), let reason = LeanCloudFault.refusal(code: Int(clamping: code)) {
      return await refuse(reason)
    }
    let closing = socket
    dropSocket()
    if state == .connected { startReconnecting(isImmediate: false) }
    await closing?.close(code: 1000, reason: "")
  }

  // MARK: Pushes

  func releasePushes(discarding: Bool) {
    isHoldingPushes = false
    if discarding {
      giveAnswers()
      inbox = []
      nextIndex = 0
    }
    drain()
  }

  func drain() {
    guard !isHoldingPushes, !inbox.isEmpty, drainer == nil, let delegate else { return }
    drainer = Task { [weak self] in
      while let frame = await self?.nextPush() { await delegate.handle(frame) }
    }
  }

  /// The next push; answers before it are given on the way.
  func nextPush() -> LeanCloudFrame? {
    while !isHoldingPushes, nextIndex < inbox.count {
      defer { nextIndex += 1 }
      switch inbox[nextIndex] {
      case .push(let frame): return frame
      case .answer(let frame, let answer): answer.fulfil(.success(frame))
      }
    }
    inbox.removeFirst(min(nextIndex, inbox.count))
    nextIndex = 0
    drainer = nil
    return nil
  }

  /// No more turns will come: answers that are here already count.
  func giveAnswers() {
    for case .answer(let frame, let answer) in inbox.dropFirst(nextIndex) { answer.fulfil(.success(frame)) }
  }

  /// Publishes what a push means, unless the session has been left meanwhile.
  func publish(_ event: ChatEvent) {
    switch state {
    case .disconnected, .refused: return
    case .connecting, .connected, .reconnecting, .suspended: hub.publish(event)
    }
  }
}
