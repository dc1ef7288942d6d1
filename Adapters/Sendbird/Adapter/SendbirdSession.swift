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

  private func firstConnect(_ user: UserID, _ mine: UInt64) async -> Result<User, ChatError> {
    do throws(ChatError) {
      do throws(ChatError) {
        try await openLink(mine, resuming: false)
      } catch {
        guard error.vendor?.code == "400302", environment.credentials != nil, epoch == mine,
          await askProvider()
        else { throw error }
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
        move(to: .refused(reason))
      } else {
        move(to: .disconnected(.failed(error)))
      }
      forgetSession()
      return .failure(error)
    }
  }

  public func disconnect() async {
    epoch &+= 1
    connecting = nil
    reconnecting?.cancel()
    reconnecting = nil
    let socket = self.socket
    dropLink()
    forgetSession()
    (entered, openChannels) = ([], [])
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

  private func forgetSession() {
    (user, token, sessionKey, currentUser) = (nil, nil, nil, nil)
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
  private func openLink(_ mine: UInt64, resuming: Bool) async throws(ChatError) {
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
    let frame = try await answer(waiter, Self.loginKey, within: .seconds(10), .connect)
    guard epoch == mine else { throw .cancelled(.connect) }
    if let fault = SendbirdFault(frame.payload) {
      dropLink()
      await socket.close(code: 1000, reason: "")
      throw SendbirdErrors.error(code: fault.code, message: fault.message, operation: .connect)
    }
    try adopt(frame.payload)
    try await ping()
    linkTasks.append(Task { [weak self] in await self?.keepAlive(mine, link) })
  }

  static let loginKey = Key("LOGI")

  private static func read(
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

  private func socketURL(resuming: Bool) -> String {
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

  private func adopt(_ login: JSONObject) throws(ChatError) {
    guard let wire = SendbirdUser(login), let key = login.text("key") else {
      throw ChatError(.protocolViolation, operation: .connect, detail: "LOGI without user_id or key")
    }
    sessionKey = key
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
    for (_, waiter) in waiters {
      waiter.abandon(ChatError(.network(.closed), operation: .connect, detail: "the link was lost"))
    }
    waiters = [:]
  }

  private func received(_ text: String, _ mine: UInt64, _ link: UInt64) {
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

  private static let renewalPrefix = "renew-"
  private static let answers: Set<String> = ["LOGI", "MESG", "FILE", "MEDI", "FEDI", "READ", "ENTR", "EXIT", "EROR"]

  private func receive(_ frame: SendbirdFrame) {
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
    default: eventQueue?.yield(.event(frame))
    }
  }

  private func handle(_ item: Inbound, _ mine: UInt64) async {
    switch item {
    case .event(let frame): await handleEvent(frame, mine)
    case .answer(let key, let frame):
      if let frame { noteUnread(frame.payload) }
      settle(key, frame ?? SendbirdFrame("", JSONObject()))
    }
  }

  private func settle(_ key: Key, _ frame: SendbirdFrame) {
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
  private func expired(_ reason: Int64) {
    switch reason {
    case 400300, 400301: end(.userDisabled)
    case 400310: end(.kickedByAdmin)
    // A task of its own: frames are read on while the session is renewed.
    default: Task { _ = await self.renew(reason) }
    }
  }

  private func end(_ reason: RefusalReason) {
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
  private func keepAlive(_ mine: UInt64, _ link: UInt64) async {
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

  // MARK: Reconnect

  private func linkEnded(_ mine: UInt64, _ link: UInt64) async {
    guard epoch == mine, linkNumber == link else { return }
    guard state == .connected else {
      dropLink()
      return
    }
    let socket = self.socket
    epoch &+= 1
    dropLink()
    startReconnecting()
    await socket?.close(code: 1000, reason: "")
  }

  private func startReconnecting() {
    epoch &+= 1
    let mine = epoch
    move(to: .reconnecting(attempt: 1))
    reconnecting = Task { [weak self] in await self?.reconnect(mine) }
  }

  private func reconnect(_ mine: UInt64) async {
    var attempt = 1
    while epoch == mine, !Task.isCancelled {
      if attempt > 1 {
        if let most = profile.retry.maxAttempts, attempt > most { return giveUp(mine) }
        move(to: .reconnecting(attempt: attempt))
        guard (try? await clock.sleep(for: delay(before: attempt))) != nil, epoch == mine else { return }
      }
      do throws(ChatError) {
        try await openLink(mine, resuming: sessionKey != nil)
        try await reenter(mine)
        guard epoch == mine else { return }
        reconnecting = nil
        publish(.missedEvents(in: nil), source: .catchUp)
        return move(to: .connected)
      } catch {
        guard epoch == mine else { return }
        dropLink()
        if await isFinal(error, mine) { return }
        attempt += 1
      }
    }
  }

  /// The first try is immediate; the second waits the base delay, each further one twice as long.
  private func delay(before attempt: Int) -> Duration {
    var delay = profile.retry.baseDelay
    for _ in 2..<max(2, min(attempt, 40)) where delay < profile.retry.maxDelay { delay = delay * 2 }
    return min(delay, profile.retry.maxDelay)
  }

  private func giveUp(_ mine: UInt64) {
    guard epoch == mine else { return }
    epoch &+= 1
    dropLink()
    move(to: .disconnected(.gaveUp))
    forgetSession()
  }

  /// What a refused reconnect means: a session that can be renewed is tried again by token, the rest is the end.
  private func isFinal(_ error: ChatError, _ mine: UInt64) async -> Bool {
    switch error.vendor?.code {
    case "400303", "400309":
      // The key is gone: the next try logs in with the token. Without a fresh key the same answer would come again.
      let hadKey = sessionKey != nil
      sessionKey = nil
      if hadKey { return false }
    case "400302":
      sessionKey = nil
      if environment.credentials != nil, await askProvider() { return epoch != mine }
    default: break
    }
    guard epoch == mine else { return true }
    guard let reason = Self.refusal(error) else { return false }
    end(error.vendor?.code == "400302" ? .credentialExpired : reason)
    return true
  }

  /// Open channels that were entered are entered again before the connection counts as one.
  private func reenter(_ mine: UInt64) async throws(ChatError) {
    for channel in entered.sorted() {
      let id = newRequestID()
      do {
        _ = try await ask("ENTR", ["channel_url": .string(channel.rawValue)], id: id, .join, duringLogin: true)
      } catch {
        guard epoch == mine, error.vendor != nil else { throw error }
        // Deleted meanwhile, or banned from it.
        entered.remove(channel)
        publish(.channelLeft(channel, .unknown), source: .catchUp)
      }
    }
  }

  // MARK: Renewal

  /// One renewal at a time; whoever needs it waits for the same one.
  func renew(_ code: Int64) async -> Bool {
    if let renewal { return await renewal.value }
    let task = Task { await self.performRenewal(code) }
    renewal = task
    let isGood = await task.value
    renewal = nil
    return isGood
  }

  private func performRenewal(_ code: Int64) async -> Bool {
    guard user != nil else { return false }
    if code == 400310 || code == 400300 {
      end(code == 400300 ? .userDisabled : .kickedByAdmin)
      return false
    }
    if code == 400309, token != nil, await refreshKey() { return true }
    guard await askProvider() else {
      if user != nil { end(.credentialExpired) }
      return false
    }
    if await refreshKey() { return true }
    if user != nil { end(.credentialInvalid) }
    return false
  }

  /// Asks the app for a new token. False when there is nobody to ask, or nothing came.
  private func askProvider() async -> Bool {
    guard let provider = environment.credentials, let user else { return false }
    publish(.credentialRequested, source: .local)
    guard case .token(let fresh)? = try? await provider.credential(for: user), self.user == user else { return false }
    token = fresh
    publish(.credentialRenewed, source: .local)
    return true
  }

  /// A new session key for the token: by the socket where it is open, else by REST.
  private func refreshKey() async -> Bool {
    guard let token, let user else { return false }
    if socket != nil {
      let id = Self.renewalPrefix + newRequestID()
      let payload: JSONObject = ["token": .string(token), "expiring_session": 1]
      if let frame = try? await ask("LOGI", payload, id: id, .renewCredential, duringLogin: true) {
        sessionKey = frame.payload.text("new_key") ?? frame.payload.text("key") ?? sessionKey
        return true
      }
    }
    let path = ["users", user.rawValue, "session_key"]
    let answer = try? await rest.call(
      "POST", path, body: ["expiring_session": true], as: .accessToken(token), operation: .renewCredential)
    guard let key = answer?.text("key") else { return false }
    sessionKey = key
    return true
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

  private func askOnce(
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

  private func answer(
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
