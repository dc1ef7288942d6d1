import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

/// How a model of the vendor uses the socket.
struct LeanCloudLineSettings: Sendable {
  var subprotocol: LeanCloudSubprotocol
  /// Between pings; the reference's clients use 180 s, JSON clients 60 s.
  var pingInterval: Duration
  /// A ping that nothing follows for so long means that the peer is gone.
  var pongLimit: Duration = .seconds(20)
  var timeout: Duration
  var retry: Profile.RetrySettings
}

/// What a model adds to the socket: how a session is opened, and what is done with pushes.
protocol LeanCloudLineDelegate: AnyObject, Sendable {
  /// The frame that opens the session. `token`: the one to reopen with.
  func openFrame(isReopen: Bool, token: String?) async throws(ChatError) -> LeanCloudFrame
  /// After the session is open and before anybody is told: rooms are entered again here.
  func restore(line: LeanCloudLine, usedToken: Bool) async throws(ChatError)
  /// Pushes one at a time, in order.
  func handle(_ frame: LeanCloudFrame) async
}

/// One session of one user: the socket, the login, pings, reconnecting, requests and their answers.
///
/// Pushes that come while a session is being opened wait until it is open and has been told, so that
/// `missedEvents` stands before them.
actor LeanCloudLine {
  let settings: LeanCloudLineSettings
  let rest: LeanCloudREST
  let webSocket: any WebSocketClient
  let clock: any ChatClock
  let hub: EventHub
  let socketURL: String?
  weak var delegate: (any LeanCloudLineDelegate)?

  private(set) var state: ConnectionState = .disconnected(.initial)
  private(set) var user: UserID?
  /// Counts attempts; work of an older one has no effect.
  private var generation: UInt64 = 0
  private var opening: Answer<User>?
  private var socket: (any WebSocketConnection)?
  private var socketID: UInt64 = 0
  private var reader: Task<Void, Never>?
  private var pinger: Task<Void, Never>?
  private var reconnecting: Task<Void, Never>?
  private var route: (url: String, until: Timestamp)?
  private(set) var token: String?
  private var serial: Int64 = 0
  private var pending: [Int64: (answer: Answer<LeanCloudFrame>, operation: ChatError.Operation)] = [:]
  private var lastInbound = Timestamp(milliseconds: 0)
  private var jitter: LeanCloudJitter

  private var inbox: [Inbound] = []
  /// Taking a push must not move the rest.
  private var nextIndex = 0
  private var isHoldingPushes = false
  /// The server asked to be left before the session was open.
  private var mustLeave = false
  private var drainer: Task<Void, Never>?

  init(
    settings: LeanCloudLineSettings, rest: LeanCloudREST, profile: Profile, environment: AdapterEnvironment,
    webSocket: any WebSocketClient, hub: EventHub
  ) {
    self.settings = settings
    self.rest = rest
    self.webSocket = webSocket
    self.hub = hub
    clock = environment.clock
    socketURL = profile.endpoints.realtime
    jitter = LeanCloudJitter(seed: environment.seed)
  }

  func attach(_ delegate: any LeanCloudLineDelegate) { self.delegate = delegate }

  private func move(to next: ConnectionState) {
    guard state != next, state.canMove(to: next) else { return }
    state = next
    hub.publish(ChatEvent(.connectionChanged(next), source: .local))
  }

  // MARK: Connecting

  func connect(as id: UserID) async throws(ChatError) -> User {
    if let user, user != id, isOpenOrOpening {
      throw ChatError(.conflict, operation: .connect, detail: "connected as another user; disconnect first")
    }
    if state == .connected { return User(id: id) }
    if let opening { return try await opening.wait(.connect) }
    if isOpenOrOpening { return User(id: id) }
    generation &+= 1
    let attempt = generation
    user = id
    token = nil
    let answer = Answer<User>()
    opening = answer
    move(to: .connecting)
    do {
      try await open(isReopen: false, attempt: attempt)
      opening = nil
      answer.fulfil(.success(User(id: id)))
      return User(id: id)
    } catch {
      let failure = attempt == generation ? error : ChatError.cancelled(.connect)
      if attempt == generation { failFirst(failure) }
      answer.fulfil(.failure(failure))
      throw failure
    }
  }

  private var isOpenOrOpening: Bool {
    switch state {
    case .connecting, .connected, .reconnecting, .suspended: true
    case .disconnected, .refused: false
    }
  }

  private func failFirst(_ error: ChatError) {
    opening = nil
    dropSocket()
    releasePushes(discarding: true)
    if let reason = Self.refusal(error) { move(to: .refused(reason)) } else { move(to: .disconnected(.failed(error))) }
  }

  private static func refusal(_ error: ChatError) -> RefusalReason? {
    if let code = error.vendor?.code.flatMap({ Int($0) }), let reason = LeanCloudFault.refusal(code: code) {
      return reason
    }
    return error.kind == .authentication ? .credentialInvalid : nil
  }

  /// Route, socket, login. Ends with the state `connected`, or throws and leaves no socket.
  private func open(isReopen: Bool, attempt: UInt64) async throws(ChatError) {
    isHoldingPushes = true
    mustLeave = false
    do {
      try await openSocket(attempt)
      let usedToken = try await login(isReopen: isReopen, attempt)
      try await delegate?.restore(line: self, usedToken: usedToken)
      try check(attempt)
    } catch {
      if attempt == generation { dropSocket() }
      throw error
    }
    move(to: .connected)
    if isReopen { hub.publish(ChatEvent(.missedEvents(in: nil), source: .local)) }
    startPinging()
    releasePushes(discarding: false)
    if mustLeave { await goAway() }
  }

  private func check(_ attempt: UInt64) throws(ChatError) {
    guard attempt == generation else { throw .cancelled(.connect) }
    guard socket != nil else { throw ChatError(.network(.closed), operation: .connect) }
  }

  private func openSocket(_ attempt: UInt64) async throws(ChatError) {
    let url = try await routeURL()
    guard attempt == generation else { throw .cancelled(.connect) }
    let names = settings.subprotocol.isNamed ? [settings.subprotocol.name] : []
    let request = WebSocketRequest(url, subprotocols: names, timeout: settings.timeout)
    let connection: any WebSocketConnection
    do { connection = try await webSocket.connect(request) } catch {
      route = nil
      throw LeanCloudFault.error(error, operation: .connect)
    }
    guard attempt == generation else {
      await connection.close(code: 1000, reason: "")
      throw .cancelled(.connect)
    }
    socketID &+= 1
    let id = socketID
    socket = connection
    lastInbound = clock.now
    reader = Task { [weak self] in
      while true {
        let message: WebSocketMessage
        do throws(WebSocketClose) { message = try await connection.receive() } catch {
          await self?.ended(error, on: id)
          return
        }
        guard let self else { return }
        await self.received(message, on: id)
      }
    }
  }

  private func routeURL() async throws(ChatError) -> String {
    if let socketURL { return socketURL }
    if let route, route.until > clock.now { return route.url }
    let router = await rest.hosts.router(http: rest.http, appID: rest.appID, timeout: settings.timeout)
    let isSecure = router.hasPrefix("https")
    let query = [
      ("appId", rest.appID), ("secure", isSecure ? "true" : "false"), ("_t", String(clock.now.milliseconds)),
    ]
    let request = HTTPRequest(
      "GET", router + "/v1/route" + LeanCloudREST.encode(query), timeout: settings.timeout)
    let json = try LeanCloudREST.read(try await rest.send(request, .connect), .connect)
    guard let url = json["server"]?.string ?? json["secondary"]?.string else {
      throw ChatError(.protocolViolation, operation: .connect, detail: "the router named no server")
    }
    route = (url, clock.now + .seconds(json["ttl"]?.int ?? 3600))
    return url
  }

  /// Whether the stored token opened the session.
  private func login(isReopen: Bool, _ attempt: UInt64) async throws(ChatError) -> Bool {
    guard let delegate else { throw .cancelled(.connect) }
    let stored = isReopen ? token : nil
    var frame = try await delegate.openFrame(isReopen: isReopen, token: stored)
    try check(attempt)
    do {
      try await finishLogin(frame, attempt)
      return stored != nil
    } catch {
      // The token has expired: the long way in, once.
      guard stored != nil, error.vendor?.code == "4112" else { throw error }
      token = nil
      hub.publish(ChatEvent(.credentialRequested, source: .local))
      frame = try await delegate.openFrame(isReopen: isReopen, token: nil)
      try check(attempt)
      try await finishLogin(frame, attempt)
      hub.publish(ChatEvent(.credentialRenewed, source: .local))
      return false
    }
  }

  private func finishLogin(_ frame: LeanCloudFrame, _ attempt: UInt64) async throws(ChatError) {
    let opened = try await ask(frame, .connect)
    try check(attempt)
    guard opened.operation == "opened" else {
      throw LeanCloudFault.error(opened, operation: .connect)
        ?? ChatError(.protocolViolation, operation: .connect, detail: "session \(opened.operation) in place of opened")
    }
    if let error = LeanCloudFault.error(opened, operation: .connect) { throw error }
    token = opened.string("st") ?? token
  }

  // MARK: Leaving

  func disconnect() async {
    let wasConnected = state == .connected
    generation &+= 1
    let attempt = generation
    reconnecting?.cancel()
    opening?.fulfil(.failure(.cancelled(.connect)))
    opening = nil
    move(to: .disconnected(.requested))
    releasePushes(discarding: true)
    if wasConnected { await sayGoodbye() }
    guard attempt == generation else { return }
    let closing = socket
    dropSocket()
    token = nil
    user = nil
    await closing?.close(code: 1000, reason: "")
  }

  /// Ends the session at the server, where it answers within two seconds.
  private func sayGoodbye() async {
    _ = try? await ask(LeanCloudFrame("session", "close"), .disconnect, within: .seconds(2))
  }

  func suspend() async {
    guard isOpenOrOpening, state != .connecting, state != .suspended else { return }
    generation &+= 1
    reconnecting?.cancel()
    let closing = socket
    dropSocket()
    move(to: .suspended)
    await closing?.close(code: 1000, reason: "")
  }

  func resume() {
    guard state == .suspended else { return }
    startReconnecting(isImmediate: true)
  }

  /// Lets go of the socket; whoever waits for an answer on it gets `network`.
  private func dropSocket() {
    socket = nil
    reader?.cancel()
    pinger?.cancel()
    reader = nil
    pinger = nil
    let waiting = pending
    pending = [:]
    for (_, entry) in waiting {
      entry.answer.fulfil(.failure(ChatError(.network(.closed), operation: entry.operation, detail: "the link ended")))
    }
  }

  private func refuse(_ reason: RefusalReason) async {
    generation &+= 1
    reconnecting?.cancel()
    let closing = socket
    dropSocket()
    token = nil
    move(to: .refused(reason))
    releasePushes(discarding: true)
    await closing?.close(code: 1000, reason: "")
  }

  // MARK: Reconnecting

  private func ended(_ close: WebSocketClose, on id: UInt64) async {
    guard id == socketID, socket != nil else { return }
    if let code = close.code, let reason = LeanCloudFault.refusal(code: Int(code)), state != .connecting {
      return await refuse(reason)
    }
    let wasConnected = state == .connected
    if let code = close.code, code >= 4000, !wasConnected {
      // During the login the code is the answer to it.
      let error = LeanCloudErrors.error(code: Int(code), reason: close.reason, operation: .connect)
      for (_, entry) in pending { entry.answer.fulfil(.failure(error)) }
    }
    dropSocket()
    if wasConnected { startReconnecting(isImmediate: false) }
  }

  private func startReconnecting(isImmediate: Bool) {
    generation &+= 1
    let attempt = generation
    reconnecting?.cancel()
    move(to: .reconnecting(attempt: 1))
    reconnecting = Task { [weak self] in await self?.reconnect(attempt, isImmediate: isImmediate) }
  }

  private func reconnect(_ attempt: UInt64, isImmediate: Bool) async {
    var tries = 1
    while attempt == generation {
      if !(tries == 1 && isImmediate) {
        do { try await clock.sleep(for: delay(before: tries)) } catch { return }
      }
      guard attempt == generation else { return }
      do {
        try await open(isReopen: true, attempt: attempt)
        return
      } catch {
        guard attempt == generation else { return }
        if let reason = Self.refusal(error), error.retry == .never { return await refuse(reason) }
        if let limit = settings.retry.maxAttempts, tries >= limit {
          generation &+= 1
          return move(to: .disconnected(.gaveUp))
        }
      }
      tries += 1
      move(to: .reconnecting(attempt: tries))
    }
  }

  /// Doubles with each try, and a random part of it, so that a restarted server is not met by all at once.
  private func delay(before attempt: Int) -> Duration {
    let base = settings.retry.baseDelay.wholeMilliseconds
    let limit = settings.retry.maxDelay.wholeMilliseconds
    let doubled = base.multipliedReportingOverflow(by: 1 << min(attempt - 1, 20))
    let whole = doubled.overflow ? limit : min(doubled.partialValue, limit)
    return .milliseconds(max(1, jitter.next(upTo: whole)))
  }

  // MARK: Pings

  private func startPinging() {
    pinger?.cancel()
    let interval = settings.pingInterval
    let limit = settings.pongLimit
    let clock = clock
    let id = socketID
    pinger = Task { [weak self] in
      while !Task.isCancelled {
        do { try await clock.sleep(for: interval) } catch { return }
        guard let sentAt = await self?.ping(id) else { return }
        do { try await clock.sleep(for: limit) } catch { return }
        guard await self?.isAlive(id, since: sentAt) == true else { return }
      }
    }
  }

  private func ping(_ id: UInt64) async -> Timestamp? {
    guard id == socketID, let socket else { return nil }
    let now = clock.now
    if settings.subprotocol.format == .json {
      try? await socket.send(.text("{}"))
    } else {
      serial &+= 1
      var frame = LeanCloudFrame("echo")
      frame.serial = serial
      try? await write(frame)
    }
    return now
  }

  private func isAlive(_ id: UInt64, since sentAt: Timestamp) async -> Bool {
    guard id == socketID, socket != nil else { return false }
    if lastInbound >= sentAt { return true }
    let dead = socket
    await ended(WebSocketClose(), on: id)
    await dead?.close(code: 1000, reason: "")
    return false
  }

  // MARK: Frames

  private func write(_ frame: LeanCloudFrame) async throws(ChatError) {
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

  private static func renamed(_ error: ChatError, _ operation: ChatError.Operation) -> ChatError {
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
    pending[number] = (answer, operation)
    var frame = frame
    frame.serial = number
    let timeout = limit ?? settings.timeout
    do { try await write(frame) } catch {
      pending[number] = nil
      throw Self.renamed(error, operation)
    }
    let timer = clock.alarm(after: timeout) {
      answer.fulfil(.failure(ChatError(.timeout, operation: operation, detail: "no answer within the limit")))
    }
    defer {
      timer.cancel()
      pending[number] = nil
    }
    let reply = try await answer.wait(operation)
    if operation != .connect, let error = LeanCloudFault.error(reply, operation: operation) { throw error }
    if operation == .connect, reply.command == "error", let error = LeanCloudFault.error(reply, operation: operation) {
      throw error
    }
    return reply
  }

  private func notConnected(_ operation: ChatError.Operation) -> ChatError {
    if case .refused = state {
      return ChatError(.authentication, operation: operation, detail: "the session was refused")
    }
    return ChatError(.network(.offline), operation: operation, detail: "not connected")
  }

  private func received(_ message: WebSocketMessage, on id: UInt64) async {
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
      if let entry = pending[serial] { deliver(frame, to: entry.answer, entry.operation) }
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
  private func deliver(_ frame: LeanCloudFrame, to answer: Answer<LeanCloudFrame>, _ operation: ChatError.Operation) {
    let isAskedByPushes = operation == .fetchChannel || operation == .connect || operation == .disconnect
    if isAskedByPushes || (drainer == nil && inbox.isEmpty) { return answer.fulfil(.success(frame)) }
    inbox.append(.answer(frame, answer))
    drain()
  }

  private enum Inbound {
    case push(LeanCloudFrame)
    case answer(LeanCloudFrame, Answer<LeanCloudFrame>)
  }

  /// The server wants to be left: a new route, then the session again.
  private func goAway() async {
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

  private func sessionClosed(_ frame: LeanCloudFrame) async {
    if let code = frame.int("code"), let reason = LeanCloudFault.refusal(code: Int(clamping: code)) {
      return await refuse(reason)
    }
    let closing = socket
    dropSocket()
    if state == .connected { startReconnecting(isImmediate: false) }
    await closing?.close(code: 1000, reason: "")
  }

  // MARK: Pushes

  private func releasePushes(discarding: Bool) {
    isHoldingPushes = false
    if discarding {
      inbox = []
      nextIndex = 0
    }
    drain()
  }

  private func drain() {
    guard !isHoldingPushes, !inbox.isEmpty, drainer == nil, let delegate else { return }
    drainer = Task { [weak self] in
      while let frame = await self?.nextPush() { await delegate.handle(frame) }
    }
  }

  /// The next push; answers before it are given on the way.
  private func nextPush() -> LeanCloudFrame? {
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

  /// Publishes what a push means, unless the session has been left meanwhile.
  func publish(_ event: ChatEvent) {
    switch state {
    case .disconnected, .refused: return
    case .connecting, .connected, .reconnecting, .suspended: hub.publish(event)
    }
  }
}

/// Seeded where tests want it.
struct LeanCloudJitter: Sendable {
  private var state: UInt64?

  init(seed: UInt64?) { state = seed }

  mutating func next(upTo limit: Int64) -> Int64 {
    guard limit > 0 else { return 0 }
    guard let old = state else { return Int64.random(in: 0...limit) }
    // SplitMix64.
    let sum = old &+ 0x9E37_79B9_7F4A_7C15
    state = sum
    var z = sum
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    z ^= z >> 31
    return Int64(z % (UInt64(limit) + 1))
  }
}
