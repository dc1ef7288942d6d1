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
  /// The server's answer to a login, before anything else that comes after it.
  func opened(_ frame: LeanCloudFrame) async
  /// Where the changes of messages stand that have been told.
  var changeCursor: Cursor? { get async }
  /// After the session is open and before anybody is told: rooms are entered again here.
  func restore(line: LeanCloudLine, usedToken: Bool) async throws(ChatError)
  /// Pushes one at a time, in order.
  func handle(_ frame: LeanCloudFrame) async
}

extension LeanCloudLineDelegate {
  func opened(_ frame: LeanCloudFrame) async {}
  var changeCursor: Cursor? { get async { nil } }
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
  var generation: UInt64 = 0
  var opening: Answer<User>?
  var socket: (any WebSocketConnection)?
  /// The opening of a socket that is under way; ends when it is cancelled.
  private var dialing: Task<Result<any WebSocketConnection, TransportError>, Never>?
  var socketID: UInt64 = 0
  var reader: Task<Void, Never>?
  var pinger: Task<Void, Never>?
  var reconnecting: Task<Void, Never>?
  var route: (url: String, until: Timestamp)?
  private(set) var token: String?
  var serial: Int64 = 0
  var pending: [Int64: (answer: Answer<LeanCloudFrame>, operation: ChatError.Operation, timer: Alarm)] = [:]
  var lastInbound = Timestamp(milliseconds: 0)
  var jitter: LeanCloudJitter

  var inbox: [Inbound] = []
  /// Taking a push must not move the rest.
  var nextIndex = 0
  var isHoldingPushes = false
  /// The server asked to be left before the session was open.
  var mustLeave = false
  var drainer: Task<Void, Never>?

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

  func move(to next: ConnectionState, cursor: Cursor? = nil) {
    guard state != next, state.canMove(to: next) else { return }
    state = next
    hub.publish(ChatEvent(.connectionChanged(next), source: .local, cursor: cursor))
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
    releasePushes(discarding: true)
    if let reason = Self.refusal(error) { move(to: .refused(reason)) } else { move(to: .disconnected(.failed(error))) }
  }

  static func refusal(_ error: ChatError) -> RefusalReason? {
    if let code = error.vendor?.code.flatMap({ Int($0) }), let reason = LeanCloudFault.refusal(code: code) {
      return reason
    }
    return error.kind == .authentication ? .credentialInvalid : nil
  }

  /// Route, socket, login. Ends with the state `connected`, or throws and leaves no socket.
  func open(isReopen: Bool, attempt: UInt64) async throws(ChatError) {
    isHoldingPushes = true
    mustLeave = false
    let cursor: Cursor?
    do {
      try await openSocket(attempt)
      let usedToken = try await login(isReopen: isReopen, attempt)
      try await delegate?.restore(line: self, usedToken: usedToken)
      cursor = await delegate?.changeCursor
      try check(attempt)
    } catch {
      if attempt == generation {
        let closing = socket
        dropSocket()
        await closing?.close(code: 1000, reason: "")
      }
      throw error
    }
    move(to: .connected, cursor: cursor)
    if isReopen { hub.publish(ChatEvent(.missedEvents(in: nil), source: .local)) }
    startPinging()
    releasePushes(discarding: false)
    if mustLeave { await goAway() }
  }

  func check(_ attempt: UInt64) throws(ChatError) {
    guard attempt == generation else { throw .cancelled(.connect) }
    guard socket != nil else { throw ChatError(.network(.closed), operation: .connect) }
  }

  private func openSocket(_ attempt: UInt64) async throws(ChatError) {
    let url = try await routeURL()
    guard attempt == generation else { throw .cancelled(.connect) }
    let names = settings.subprotocol.isNamed ? [settings.subprotocol.name] : []
    let request = WebSocketRequest(url, subprotocols: names, timeout: settings.timeout)
    let client = webSocket
    let dial = Task { () -> Result<any WebSocketConnection, TransportError> in
      do throws(TransportError) { return .success(try await client.connect(request)) } catch { return .failure(error) }
    }
    dialing = dial
    let result = await withTaskCancellationHandler { await dial.value } onCancel: { dial.cancel() }
    if dialing == dial { dialing = nil }
    let connection: any WebSocketConnection
    do { connection = try result.get() } catch {
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
    await delegate?.opened(opened)
    try check(attempt)
  }

  // MARK: Leaving

  func disconnect() async {
    let wasConnected = state == .connected
    generation &+= 1
    let attempt = generation
    reconnecting?.cancel()
    let dialing = dialing
    dialing?.cancel()
    opening?.fulfil(.failure(.cancelled(.connect)))
    opening = nil
    move(to: .disconnected(.requested))
    releasePushes(discarding: true)
    // Held here: a connect that begins during the goodbye puts its own socket in place of this one.
    let closing = socket
    if wasConnected { await sayGoodbye() }
    if attempt == generation {
      dropSocket()
      token = nil
      user = nil
    }
    await closing?.close(code: 1000, reason: "")
    if case .success(let late)? = await dialing?.value { await late.close(code: 1000, reason: "") }
  }

  /// Ends the session at the server, where it answers in time: a disconnect lasts two seconds at most.
  private func sayGoodbye() async {
    _ = try? await ask(LeanCloudFrame("session", "close"), .disconnect, within: .milliseconds(1500))
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
  func dropSocket() {
    giveAnswers()
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

  func refuse(_ reason: RefusalReason) async {
    generation &+= 1
    reconnecting?.cancel()
    let closing = socket
    dropSocket()
    token = nil
    move(to: .refused(reason))
    releasePushes(discarding: true)
    await closing?.close(code: 1000, reason: "")
  }
}
