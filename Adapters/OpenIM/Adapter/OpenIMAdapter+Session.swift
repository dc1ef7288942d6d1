import ChatJSON
import ChatTransport
import OpenIMWire
import UnifiedChat

extension OpenIMAdapter {
  // MARK: Connecting

  public func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User {
    if let userID, userID != user {
      switch connectionState {
      case .connected, .connecting, .reconnecting, .suspended:
        throw ChatError(.conflict, operation: .connect, detail: "connected as another user")
      case .disconnected, .refused: break
      }
    }
    if connectionState == .connected, let currentUser { return currentUser }
    if let opening { return try await opening.value.get() }
    generation += 1
    userID = user
    newest = [:]
    begun = []
    read = [:]
    recalled = [:]
    othersRead = [:]
    mentioned = [:]
    burning = [:]
    move(to: .connecting)
    let generation = generation
    let task = Task { await self.open(user, credential, generation) }
    opening = task
    let result = await withTaskCancellationHandler { await task.value } onCancel: { task.cancel() }
    if generation == self.generation { opening = nil }
    return try result.get()
  }

  private func open(_ user: UserID, _ credential: Credential, _ generation: Int) async -> Result<User, ChatError> {
    do throws(ChatError) {
      let token = try await firstToken(credential, for: user)
      let link = try await dialRenewing(token)
      guard generation == self.generation else {
        await link.close()
        throw ChatError.cancelled(.connect)
      }
      try await enter(link, generation)
      let own = try await users([user]).first ?? User(id: user)
      guard generation == self.generation else { throw ChatError.cancelled(.connect) }
      currentUser = own
      move(to: .connected)
      keep(link, generation)
      return .success(own)
    } catch {
      guard generation == self.generation else { return .failure(.cancelled(.connect)) }
      await drop()
      if error.kind == .authentication { move(to: .refused(Self.refusal(of: error))) } else {
        move(to: .disconnected(.failed(error)))
      }
      return .failure(error)
    }
  }

  private func firstToken(_ credential: Credential, for user: UserID) async throws(ChatError) -> String {
    if case .token(let token) = credential { return token }
    guard let fresh = await ask(user) else {
      throw ChatError(.authentication, operation: .connect, detail: "this vendor wants a token")
    }
    return fresh
  }

  /// How long an app's token server may take.
  static let providerLimit: Duration = .seconds(30)

  /// Asks the provider; nil when there is none, it has nothing, or it does not answer in time.
  private func ask(_ user: UserID) async -> String? {
    guard let credentials else { return nil }
    tell(.credentialRequested, .local)
    let answer = try? await credentials.credential(for: user, within: Self.providerLimit, on: clock)
    guard case .token(let token)? = answer else { return nil }
    return token
  }

  /// A newer token than `used`. Several that ask at once share one question.
  func renewed(_ used: String) async -> String? {
    if let token, token != used { return token }
    guard let userID, credentials != nil else { return nil }
    if let renewal { return await renewal.value }
    let task = Task { await self.ask(userID) }
    renewal = task
    let fresh = await task.value
    if renewal == task { renewal = nil }
    guard let fresh, fresh != used, userID == self.userID else { return nil }
    token = fresh
    tell(.credentialRenewed, .local)
    return fresh
  }

  private func dialRenewing(_ token: String) async throws(ChatError) -> OpenIMLink {
    do { return try await dial(token) } catch {
      guard error.retry == .afterRenewal, let fresh = await renewed(token) else { throw error }
      return try await dial(fresh)
    }
  }

  /// Opens the socket and reads the handshake's result, which comes as the first message.
  private func dial(_ token: String) async throws(ChatError) -> OpenIMLink {
    let user = try me(.connect).rawValue
    let parameters = [
      ("sendID", user), ("token", token), ("platformID", String(platform)), ("operationID", trace.next()),
      ("isBackground", "false"), ("sdkType", "js"), ("isMsgResp", "true"),
    ]
    let query = parameters.map { "\($0)=\(OpenIMQuery.escape($1))" }.joined(separator: "&")
    let base = gateway.hasSuffix("/") ? gateway : gateway + "/"
    let connection: any WebSocketConnection
    do {
      connection = try await transports.webSocket.connect(
        WebSocketRequest("\(base)?\(query)", timeout: retry.requestTimeout))
    } catch {
      throw Self.error(ofUpgrade: error)
    }
    try await readResult(connection)
    self.token = token
    let link = OpenIMLink(
      connection, user: user, clock: clock, trace: trace, timeout: retry.requestTimeout)
    await link.start()
    return link
  }

  private func readResult(_ connection: any WebSocketConnection) async throws(ChatError) {
    let (clock, timeout) = (clock, retry.requestTimeout)
    let alarm = Task {
      guard (try? await clock.sleep(for: timeout)) != nil else { return }
      await connection.close(code: 1000, reason: "no handshake result")
    }
    defer { alarm.cancel() }
    let message: WebSocketMessage
    do { message = try await connection.receive() } catch {
      throw ChatError(.network(.closed), operation: .connect, detail: "the link ended before the handshake's result")
    }
    guard case .text(let text) = message else {
      throw ChatError(.protocolViolation, operation: .connect, detail: "the handshake's result is no text")
    }
    do throws(OpenIMFault) {
      guard try OpenIMREST.data(of: Array(text.utf8)) != nil else {
        throw OpenIMFault(code: 500, message: "no handshake result")
      }
    } catch {
      await connection.close(code: 1000, reason: "")
      throw OpenIMErrorTable.error(error, operation: .connect)
    }
  }

  private static func error(ofUpgrade error: TransportError) -> ChatError {
    guard case .upgradeRefused(let response) = error.kind else { return ChatError(error, for: .connect) }
    do throws(OpenIMFault) {
      _ = try OpenIMREST.data(of: response.body)
    } catch {
      return OpenIMErrorTable.error(error, operation: .connect, status: response.status)
    }
    return ChatError(error, for: .connect)
  }

  /// The numbers of all conversations, before anything is told.
  private func enter(_ link: OpenIMLink, _ generation: Int) async throws(ChatError) {
    self.link = link
    let own: JSONValue = ["userID": .string(try me(.connect).rawValue)]
    let all = try await link.request(.newestSequences, own, for: .connect)
    let marks = try await link.request(.readAndMaxSequences, own, for: .connect)
    guard generation == self.generation else { throw .cancelled(.connect) }
    enteredAt = clock.now
    for entry in all["maxSeqs"]?.object ?? [:] {
      newest[ChannelID(entry.key)] = max(entry.value.int ?? 0, newest[ChannelID(entry.key)] ?? 0)
    }
    for entry in marks["seqs"]?.object ?? [:] {
      lift(ChannelID(entry.key), to: entry.value["hasReadSeq"]?.int ?? 0)
    }
    if !watched.isEmpty {
      _ = try await link.request(
        .presence, ["subscribeUserID": .array(watched.sorted().map { .string($0.rawValue) })], for: .presence)
    }
  }

  // MARK: Staying connected

  /// Handles what comes over `link` in order, and opens the next one when it ends.
  private func keep(_ link: OpenIMLink, _ generation: Int) {
    keeper = Task {
      for await push in link.pushes {
        guard self.isCurrent(generation), !Task.isCancelled else { return }
        switch push {
        case .ended: return await self.reconnect(generation)
        case .kicked: return await self.refuse(.kickedByOtherDevice)
        default: await self.handle(push)
        }
      }
    }
  }

  private func isCurrent(_ generation: Int) -> Bool { generation == self.generation }

  /// The part of each pause that this client waits, its own for every client: those who lost their links together do
  /// not come back together. From a half to the whole.
  static func pace(_ seed: UInt64?) -> Double {
    guard let seed else { return .random(in: 0.5...1) }
    let mixed = (seed ^ (seed >> 33)) &* 0xFF51_AFD7_ED55_8CCD
    return 0.5 + Double(mixed >> 11) / Double(1 << 54)
  }

  private func pause(before attempt: Int) -> Duration {
    .milliseconds(Int64(Double(wholePause(before: attempt).wholeMilliseconds) * pace))
  }

  /// The vendor's own cycle of pauses, unless the profile says otherwise; the first try is made at once.
  private func wholePause(before attempt: Int) -> Duration {
    if attempt == 1 { return .zero }
    if retry.baseDelay == .seconds(1), retry.maxDelay == .seconds(30) {
      return .seconds([1, 2, 4, 8, 16][(attempt - 2) % 5])
    }
    return min(retry.maxDelay, retry.baseDelay * (1 << min(attempt - 2, 20)))
  }

  private func reconnect(_ generation: Int) async {
    link = nil
    failSends()
    var attempt = 1
    while generation == self.generation {
      if let limit = retry.maxAttempts, attempt > limit {
        await drop()
        return move(to: .disconnected(.gaveUp))
      }
      move(to: .reconnecting(attempt: attempt))
      do {
        try await clock.sleep(for: pause(before: attempt))
        guard generation == self.generation, let token else { return }
        let fresh = try await dialRenewing(token)
        guard generation == self.generation else { return await fresh.close() }
        try await enter(fresh, generation)
        move(to: .connected)
        tell(.missedEvents(in: nil), .local)
        return keep(fresh, generation)
      } catch {
        guard generation == self.generation, !Task.isCancelled else { return }
        if let error = error as? ChatError, error.kind == .authentication {
          return await refuse(Self.refusal(of: error))
        }
        await link?.close()
        link = nil
        attempt += 1
      }
    }
  }

  static func refusal(of error: ChatError) -> RefusalReason {
    switch error.vendor?.code {
    case "1501": .credentialExpired
    case "1506": .kickedByOtherDevice
    case "1602": .protocolRefused
    default: .credentialInvalid
    }
  }

  /// Final, until `connect` is called again.
  func refuse(_ reason: RefusalReason) async {
    generation += 1
    move(to: .refused(reason))
    await drop()
  }

  private func failSends() {
    let error = ChatError(.network(.closed), operation: .send, detail: "the link ended")
    for waiter in sends.values { waiter.fulfil(.failure(error)) }
    sends = [:]
    for task in typists.values { task.cancel() }
    typists = [:]
    stopBurning()
  }

  /// Lets go of socket and tasks.
  private func drop() async {
    let old = link
    link = nil
    opening = nil
    keeper?.cancel()
    keeper = nil
    renewal?.cancel()
    renewal = nil
    failSends()
    await old?.close()
  }

  public func disconnect() async {
    generation += 1
    opening?.cancel()
    move(to: .disconnected(.requested))
    userID = nil
    currentUser = nil
    token = nil
    watched = []
    await drop()
  }

  public func suspend() async {
    guard connectionState.canMove(to: .suspended) else { return }
    generation += 1
    move(to: .suspended)
    await drop()
  }

  public func resume() async {
    guard connectionState == .suspended else { return }
    generation += 1
    let generation = generation
    move(to: .reconnecting(attempt: 1))
    keeper = Task { await self.reconnect(generation) }
  }
}
