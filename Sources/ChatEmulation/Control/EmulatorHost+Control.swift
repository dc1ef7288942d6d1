import ChatJSON
import ChatTransport
import UnifiedChat

extension EmulatorHost {
  public nonisolated var control: EmulatorControl { EmulatorControl(self) }

  // MARK: Rules

  func add(_ rule: FaultRule) throws(EmulatorControlError) -> UInt64 {
    if rule.actions.isEmpty { throw .invalid("a rule without actions") }
    if let action = rule.actions.first(where: \.needsSocket), server == nil { throw .noHook(action.name) }
    return faults.add(rule)
  }

  func removeRule(_ id: UInt64) throws(EmulatorControlError) {
    guard faults.remove(id) else { throw .notFound("rule \(id)") }
    releaseCollected(of: id)
  }

  func removeRules() {
    let ids = faults.rules.map(\.id)
    faults.removeAll()
    for id in ids { releaseCollected(of: id) }
    settleEnded()
  }

  func openGate(_ name: String) {
    for status in faults.rules where status.rule.actions.contains(.gate(name)) { _ = faults.remove(status.id) }
    release(.gate(name))
  }

  // MARK: Journal

  func setJournal(_ settings: JournalSettings) { journal.settings = settings }

  /// Calls of `wait` that still wait.
  public var journalWaiters: Int { journal.waiters.count }

  func clearJournal() { journal.clear() }

  func wait(
    for match: FaultRule.Match, count: Int, since index: UInt64, timeout: Duration
  ) async -> Bool {
    let seen = journal.entries(since: index).count { match.matchesEntry($0) }
    if seen >= count { return true }
    let done = OneShot<Bool>()
    let id = makeExchangeID().number
    journal.add(Journal.Waiter(id: id, match: match, missing: count - seen, done: done))
    // A guard against hanging, so it runs on real time whatever the emulator's clock is.
    let alarm = Task {
      if (try? await SystemClock().sleep(for: timeout)) != nil { done.fulfil(false) }
    }
    let result = await done.wait(cancelled: false)
    alarm.cancel()
    journal.removeWaiter(id)
    return result
  }

  // MARK: Time

  func setSkew(_ skew: Duration) { self.skew = skew.wholeMilliseconds }

  // MARK: Sessions

  func sessions(of user: String?) -> [EmulatorSession] {
    sessions.map { id, record in
      EmulatorSession(
        connection: id, user: machine.operation(of: .ping(id)).user, openedAt: record.openedAt,
        lastActivity: record.lastActivity)
    }
    .filter { session in user.map { session.user.map(ExactKey.init) == ExactKey($0) } ?? true }
    .sorted { $0.connection < $1.connection }
  }

  func act(_ action: EmulatorSessionAction, on user: String) throws(EmulatorControlError) {
    if case .act(let action) = action {
      do throws(EmulatorError) {
        return try perform(action.action(for: user))
      } catch {
        throw .emulator(error)
      }
    }
    let found = sessions(of: user)
    if found.isEmpty { throw .notFound("a connection of \(user)") }
    for session in found { try act(action, on: .connection(session.connection)) }
    settleEnded()
  }

  private func act(_ action: EmulatorSessionAction, on origin: Origin) throws(EmulatorControlError) {
    switch action {
    case .act: break
    case .end(let ending):
      if !end(origin, ending) { throw .noHook("halfClose") }
    case .stall(let direction):
      for each in FaultRule.Direction.allCases where direction == nil || direction == each {
        hold(LaneKey(origin: origin, direction: each), by: .stall)
      }
    case .resume: release(.stall, of: origin)
    }
  }

  func push(_ message: WebSocketMessage, to connection: EmulatorConnectionID) throws(EmulatorControlError) {
    guard links[connection] != nil else { throw .notFound("connection \(connection.number)") }
    deliver([.send(connection, message)])
  }

  // MARK: The server

  func setPaused(_ isPaused: Bool) {
    self.isPaused = isPaused
    if !isPaused { pump() }
  }

  func setRefusing(_ refuses: Bool) {
    refusesConnections = refuses
    server?.setAccepting(!refuses)
  }

  func attach(_ server: SocketServer) { self.server = server }

  func restart(keepingState: Bool) throws(EmulatorControlError) {
    // A plain nil would become JSON null.
    try replaceMachine(options, state: keepingState ? machine.snapshot() : Optional<JSONValue>.none)
  }

  func apply(settings: [String: JSONValue]) throws(EmulatorControlError) {
    var changed = options
    changed.settings.merge(settings) { $1 }
    try replaceMachine(changed, state: machine.snapshot())
    options = changed
  }

  func reset() throws(EmulatorControlError) {
    try replaceMachine(options, state: Optional<JSONValue>.none)
    random = EmulatorRandom(seed: options.seed)
    faults = FaultTable(seed: options.seed)
    collected = [:]
    journal.clear()
    skew = 0
    resetClock()
  }

  private func replaceMachine(_ options: EmulatorOptions, state: JSONValue?) throws(EmulatorControlError) {
    do throws(EmulatorError) {
      var fresh = try factory.make(options)
      fresh.baseURL = options.baseURL
      if let state { try fresh.restore(state) }
      replaceMachine(with: fresh)
    } catch {
      throw .emulator(error)
    }
  }

  /// Cuts every connection and lets another machine take over.
  private func replaceMachine(with fresh: any VendorEmulator) {
    for link in links.values { link.cut() }
    for reply in replies.values { reply.cut() }
    links = [:]
    replies = [:]
    exchangeOperations = [:]
    sessions = [:]
    ended = []
    lanes = [:]
    holds = [:]
    timers.removeNamed()
    machine = fresh
    machineNumber &+= 1
    changes &+= 1
    rearm()
  }

  // MARK: State

  /// The truth, as neutral records in loading order.
  public func records() -> [JSONValue] { machine.records() }

  public var coverage: [EmulatorCoverage] { machine.coverage }

  /// Adds one neutral record.
  public func load(_ record: JSONValue) throws(EmulatorError) {
    changes &+= 1
    try withContext { (machine, context) throws(EmulatorError) in try machine.load(record, context: &context) }
  }

  /// The machine's whole state with its vendor and clock.
  public func snapshot() -> JSONValue {
    [
      "vendor": .string(vendor), "now": .int(now), "random": JSONValue(random.state), "machine": machine.snapshot(),
    ]
  }

  /// - Throws: `.invalidSnapshot` that says what is wrong; the present state then stays.
  public func restore(_ snapshot: JSONValue) throws(EmulatorError) {
    guard let found = snapshot["vendor"]?.string, let state = snapshot["machine"],
      let random = snapshot["random"]?.uint, let time = snapshot["now"]?.int
    else { throw EmulatorError(.invalidSnapshot, "a snapshot has vendor, machine, random and now") }
    guard found == vendor else {
      throw EmulatorError(.invalidSnapshot, "the snapshot is of \(found), this emulator is \(vendor)")
    }
    var fresh = try factory.make(options)
    fresh.baseURL = options.baseURL
    try fresh.restore(state)
    replaceMachine(with: fresh)
    self.random = EmulatorRandom(seed: random)
    if case .virtual = clock, time > now { setClock(time) }
  }
}
