import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// Login, the link's life, renewal of credentials.
extension SendbirdAdapter {
  public func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User {
    if let connecting, self.user == user { return try await connecting.value.get() }
    switch state {
    case .connected, .connecting, .reconnecting, .suspended:
      guard self.user == user else {
        throw ChatError(.conflict, operation: .connect, detail: "connected as another user; disconnect first")
      }
      if let currentUser { return currentUser }
    case .disconnected, .refused: break
    }
    self.user = user
    if case .token(let token) = credential { self.token = token } else { token = nil }
    sessionKey = nil
    epoch &+= 1
    let mine = epoch
    move(to: .connecting)
    let task = Task { await self.firstConnect(user, mine) }
    connecting = task
    let result = await task.value
    if epoch == mine { connecting = nil }
    return try result.get()
  }

  func firstConnect(_ user: UserID, _ mine: UInt64) async -> Result<User, ChatError> {
    var hasAsked = false
    do throws(ChatError) {
      do throws(ChatError) {
        try await openLink(mine, resuming: false)
      } catch {
        guard error.vendor?.code == "400302", environment.credentials != nil, epoch == mine else { throw error }
        hasAsked = true
        guard await askProvider() else { throw error }
        try await openLink(mine, resuming: false)
      }
      guard epoch == mine, let me = currentUser else { throw .cancelled(.connect) }
      move(to: .connected)
      return .success(me)
    } catch {
      guard epoch == mine else { return .failure(.cancelled(.connect)) }
      dropLink()
      var error = error
      // There is nobody who could renew it, or the renewed one was refused too.
      if error.kind == .authentication { error.retry = .never }
      if let reason = Self.refusal(error) {
        // The vendor has one code for a wrong token and one that has run out; where the app renews, it ran out.
        move(to: .refused(hasAsked && error.vendor?.code == "400302" ? .credentialExpired : reason))
      } else {
        move(to: .disconnected(.failed(error)))
      }
      forgetSession()
      return .failure(error)
    }
  }

  public func disconnect() async {
    epoch &+= 1
    connecting?.cancel()
    connecting = nil
    reconnecting?.cancel()
    reconnecting = nil
    let socket = self.socket
    dropLink()
    forgetSession()
    if state != .disconnected(.requested) { move(to: .disconnected(.requested)) }
    await socket?.close(code: 1000, reason: "")
  }

  public func suspend() async {
    switch state {
    case .connected, .reconnecting: break
    default: return
    }
    epoch &+= 1
    reconnecting?.cancel()
    reconnecting = nil
    let socket = self.socket
    dropLink()
    move(to: .suspended)
    await socket?.close(code: 1000, reason: "")
  }

  public func resume() async {
    guard state == .suspended else { return }
    startReconnecting()
  }

  func move(to next: ConnectionState) {
    guard state != next, state.canMove(to: next) else { return }
    state = next
    log(.info, "\(next)")
    publish(.connectionChanged(next), source: .local)
  }

  func forgetSession() {
    (user, token, sessionKey, currentUser) = (nil, nil, nil, nil)
    fileKey = nil
    (entered, openChannels) = ([], [])
    renewal?.cancel()
    renewal = nil
    (historyOffsets, heldMarks, releasedMarks) = ([:], [:], [:])
    for task in typists.values { task.cancel() }
    typists = [:]
    (joined, operators) = ([], [:])
    (unreadTime, unreadTotalTold) = (0, nil)
  }

  /// Whether a login's error ends all trying.
  static func refusal(_ error: ChatError) -> RefusalReason? {
    switch error.vendor?.code {
    case "400300": .userDisabled
    case "400304": .appDisabled
    case "400302", "400301": .credentialInvalid
    case "400310": .kickedByAdmin
    default: error.kind == .authentication ? .credentialInvalid : nil
    }
  }

  // MARK: The link

  /// Opens a WebSocket and waits for `LOGI`. Afterwards the reader, the pinger and the event task run.
  func openLink(_ mine: UInt64, resuming: Bool) async throws(ChatError) {
    let request = WebSocketRequest(socketURL(resuming: resuming), timeout: profile.retry.requestTimeout)
    let socket: any WebSocketConnection
    do { socket = try await transports.webSocket.connect(request) } catch { throw SendbirdREST.error(error, .connect) }
    guard epoch == mine else {
      await socket.close(code: 1000, reason: "")
      throw .cancelled(.connect)
    }
    self.socket = socket
    linkNumber &+= 1
    let link = linkNumber
    let waiter = SendbirdWaiter()
    waiters[Self.loginKey] = waiter
    let (stream, queue) = AsyncStream<Inbound>.makeStream()
    eventQueue = queue
    linkTasks = [
      Task { [weak self] in await Self.read(socket, mine, link, self) },
      Task { [weak self] in for await item in stream { await self?.handle(item, mine) } },
    ]
    do throws(ChatError) {
      let frame = try await answer(waiter, Self.loginKey, within: .seconds(10), .connect)
      guard epoch == mine else { throw .cancelled(.connect) }
      if let fault = SendbirdFault(frame.payload) {
        throw SendbirdErrors.error(code: fault.code, message: fault.message, operation: .connect)
      }
      try adopt(frame.payload)
      try await ping()
    } catch {
      if epoch == mine, linkNumber == link { dropLink() }
      await socket.close(code: 1000, reason: "")
      throw error
    }
    linkTasks.append(Task { [weak self] in await self?.keepAlive(mine, link) })
  }

  static let loginKey = Key("LOGI")

  static func read(
    _ socket: any WebSocketConnection, _ mine: UInt64, _ link: UInt64, _ adapter: SendbirdAdapter?
  ) async {
    weak let adapter = adapter
    do {
      while true {
        let message = try await socket.receive()
        guard case .text(let text) = message else { continue }
        await adapter?.received(text, mine, link)
      }
    } catch {
      await adapter?.linkEnded(mine, link)
    }
  }

  func socketURL(resuming: Bool) -> String {
    var query = SendbirdQuery()
    query.add("p", "JS")
    query.add("pv", "UnifiedChat")
    query.add("sv", "3.1.33")
    query.add("ai", profile.appID ?? "")
    if resuming, let sessionKey {
      query.add("key", sessionKey)
    } else {
      query.add("user_id", user?.rawValue ?? "")
      if let token { query.add("access_token", token) }
    }
    query.add("active", 1)
    query.add("SB-User-Agent", "JS/c3.1.33///")
    query.add("Request-Sent-Timestamp", clock.now.milliseconds)
    query.add("include_extra_data", "premium_feature_list,file_upload_size_limit,application_attributes,emoji_hash")
    if environment.credentials != nil { query.add("expiring_session", 1) }
    return "\(SendbirdProfile.socketHost(profile))/?\(query.text)"
  }

  func adopt(_ login: JSONObject) throws(ChatError) {
    guard let wire = SendbirdUser(login), let key = login.text("key") else {
      throw ChatError(.protocolViolation, operation: .connect, detail: "LOGI without user_id or key")
    }
    sessionKey = key
    fileKey = login.text("ekey") ?? fileKey
    loginTime = login.number("login_ts") ?? clock.now.milliseconds
    if let interval = login.number("ping_interval"), interval > 0 { pingInterval = .seconds(min(interval, 3600)) }
    if let timeout = login.number("pong_timeout"), timeout > 0 { pongTimeout = .seconds(min(timeout, 3600)) }
    currentUser = SendbirdMapping.user(wire)
    noteUnread(login)
  }

  /// Lets go of the link: nobody waits on it any more.
  func dropLink() {
    socket = nil
    for task in linkTasks { task.cancel() }
    linkTasks = []
    eventQueue?.finish()
    eventQueue = nil
    waitingReactions = [:]
    for (_, waiter) in waiters {
      waiter.abandon(ChatError(.network(.closed), operation: .connect, detail: "the link was lost"))
    }
    waiters = [:]
  }

  func received(_ text: String, _ mine: UInt64, _ link: UInt64) {
    guard epoch == mine, linkNumber == link else { return }
    lastReceived = clock.now
    for piece in SendbirdFrame.parse(text) {
      guard case .success(let frame) = piece else {
        log(.error, "a frame that is none was skipped")
        continue
      }
      receive(frame)
    }
  }

  static let renewalPrefix = "renew-"
  private static let answers: Set<String> = ["LOGI", "MESG", "FILE", "MEDI", "FEDI", "READ", "ENTR", "EXIT", "EROR"]

  func receive(_ frame: SendbirdFrame) {
    if let id = frame.requestID, Self.answers.contains(frame.command) {
      // Remembered before any later frame: the same message by another way is no second one.
      if frame.command != "EROR", let message = frame.payload.number("msg_id") { _ = told.insert("M\(message)") }
      // The handling of an event may wait for a renewal, so a renewal's answer cannot wait for events.
      if id.hasPrefix(Self.renewalPrefix) { return settle(Key(id), frame) }
      waiters[Key(id)]?.arrive(frame)
      eventQueue?.yield(.answer(Key(id), frame))
      return
    }
    switch frame.command {
    case "LOGI": waiters.removeValue(forKey: Self.loginKey)?.settle(.success(frame))
    case "PONG", "EROR": break
    case "EXPR": expired(frame.payload.number("reason") ?? 400309)
    case "MRCT":
      if let number = frame.payload.number("msg_id") { waitingReactions[MessageID(String(number)), default: 0] += 1 }
      eventQueue?.yield(.event(frame))
    default: eventQueue?.yield(.event(frame))
    }
  }

  func handle(_ item: Inbound, _ mine: UInt64) async {
    switch item {
    case .event(let frame): await handleEvent(frame, mine)
    case .answer(let key, let frame):
      if let frame {
        releaseMark(by: frame)
        noteUnread(frame.payload)
      }
      settle(key, frame ?? SendbirdFrame("", JSONObject()))
    }
  }

  func settle(_ key: Key, _ frame: SendbirdFrame) {
    waiters.removeValue(forKey: key)?.settle(.success(frame))
  }

  /// Returns when every event that was read before the call has been told.
  func eventsTold() async {
    guard let eventQueue else { return }
    let key = Key("turn-" + newRequestID())
    let waiter = SendbirdWaiter()
    waiters[key] = waiter
    eventQueue.yield(.answer(key, nil))
    _ = await waiter.outcome(.history)
    if waiters[key] === waiter { waiters[key] = nil }
  }

  /// Handled at once: the server closes the link behind a final one.
  func expired(_ reason: Int64) {
    switch reason {
    case 400300, 400301: end(.userDisabled)
    case 400310: end(.kickedByAdmin)
    // A task of its own: frames are read on while the session is renewed.
    default: Task { _ = await self.renew(reason) }
    }
  }

  func end(_ reason: RefusalReason) {
    let socket = self.socket
    epoch &+= 1
    reconnecting = nil
    dropLink()
    move(to: .refused(reason))
    forgetSession()
    Task { await socket?.close(code: 1000, reason: "") }
  }

  // MARK: Keep-alive

  func ping() async throws(ChatError) {
    let time = clock.now.milliseconds
    try await transmit(SendbirdFrame("PING", ["id": .int(time), "active": 1, "req_id": ""]), .connect)
  }

  func transmit(_ frame: SendbirdFrame, _ operation: ChatError.Operation) async throws(ChatError) {
    guard let socket else { throw ChatError(.network(.offline), operation: operation, detail: "not connected") }
    lastSent = clock.now
    do { try await socket.send(.text(frame.text)) } catch { throw SendbirdREST.error(error, operation) }
  }

  /// A ping after each quiet interval; silence after it ends the link.
  func keepAlive(_ mine: UInt64, _ link: UInt64) async {
    while epoch == mine, linkNumber == link, !Task.isCancelled {
      let quiet = clock.now - max(lastSent, lastReceived)
      let rest = pingInterval - quiet
      if rest > .zero {
        guard (try? await clock.sleep(for: rest)) != nil else { return }
        continue
      }
      guard epoch == mine, (try? await ping()) != nil else { return await linkEnded(mine, link) }
      let sentAt = clock.now
      guard (try? await clock.sleep(for: pongTimeout)) != nil else { return }
      if epoch == mine, lastReceived < sentAt { return await linkEnded(mine, link) }
    }
  }

  // MARK: Requests over the socket

  /// Sends a command and waits for its answer.
  /// - Throws: the vendor's error of `EROR`; `.timeout` when nothing came; `.network` when the link was lost.
  func ask(
    _ command: String, _ payload: JSONObject, id: String, _ operation: ChatError.Operation, duringLogin: Bool = false
  ) async throws(ChatError) -> SendbirdFrame {
    if !duringLogin {
      if let renewal { _ = await renewal.value }
      guard state == .connected else {
        throw ChatError(.network(.offline), operation: operation, detail: "not connected")
      }
    }
    do throws(ChatError) {
      return try await askOnce(command, payload, id: id, operation)
    } catch {
      guard !duringLogin, await renewed(after: error) else { throw error }
      return try await askOnce(command, payload, id: id, operation)
    }
  }

  func askOnce(
    _ command: String, _ payload: JSONObject, id: String, _ operation: ChatError.Operation
  ) async throws(ChatError) -> SendbirdFrame {
    let waiter = SendbirdWaiter()
    waiters[Key(id)] = waiter
    var payload = payload
    payload["req_id"] = .string(id)
    do { try await transmit(SendbirdFrame(command, payload), operation) } catch {
      waiters[Key(id)] = nil
      throw error
    }
    let frame = try await answer(waiter, Key(id), within: profile.retry.requestTimeout, operation)
    guard frame.command == "EROR" else { return frame }
    throw SendbirdErrors.error(
      code: frame.payload.number("code") ?? 0, message: frame.payload.text("message"), operation: operation)
  }

  func answer(
    _ waiter: SendbirdWaiter, _ key: Key, within timeout: Duration, _ operation: ChatError.Operation
  ) async throws(ChatError) -> SendbirdFrame {
    let timer = clock.alarm(after: timeout) {
      waiter.expire(ChatError(.timeout, operation: operation, detail: "no answer"))
    }
    let outcome = await waiter.outcome(operation)
    timer.cancel()
    if waiters[key] === waiter { waiters[key] = nil }
    switch outcome {
    case .success(let frame): return frame
    case .failure(var error):
      error.operation = operation
      throw error
    }
  }
}
