import ChatJSON
import ChatTransport
import Synchronization
import UnifiedChat

/// Runs one vendor's emulator: gives it inputs one at a time, carries out its outputs in order, and owns its clock and
/// its randomness.
///
/// The same host is reached in process through `transports` and over sockets through `EmulatorServer`. Every accepted
/// WebSocket gives the machine exactly one `.closed`, also when the machine itself ended it; outputs to a connection or
/// exchange that is gone are dropped.
public actor EmulatorHost {
  public nonisolated let vendor: String

  let factory: EmulatorFactory
  var options: EmulatorOptions
  var machine: any VendorEmulator
  var random: EmulatorRandom
  var timers = TimerQueue()
  var links: [EmulatorConnectionID: any EmulatorLink] = [:]
  var replies: [EmulatorExchangeID: any EmulatorReply] = [:]
  /// Added to the clock that the machine sees; timers keep their distance.
  var skew: Int64 = 0
  /// Connections that the machine ended and was not told of yet.
  var ended: [(EmulatorConnectionID, WebSocketClose)] = []
  var sessions: [EmulatorConnectionID: SessionRecord] = [:]

  var faults: FaultTable
  var journal: Journal
  var lanes: [LaneKey: Lane] = [:]
  var holds: [LaneHold: [(key: LaneKey, step: HostStep)]] = [:]
  /// Frames that a rule collects to let them go in another order.
  var collected: [UInt64: [HostStep]] = [:]
  /// What the unanswered requests mean: an answer means the same.
  var exchangeOperations: [EmulatorExchangeID: EmulatorOperation] = [:]
  /// Counts everything that may have changed the machine's state.
  var changes: UInt64 = 0
  var isPaused = false
  var refusesConnections = false
  /// Sends the emulated server's own requests.
  var caller: (any HTTPClient)?
  /// Known from the start, so that no input has to ask.
  let machineCalls: Bool
  /// Changes with the machine, so that answers to an earlier one's calls are dropped.
  var machineNumber = 0
  /// The port that serves this host, where one does.
  weak var server: SocketServer?

  private(set) var clock: EmulatorClock
  /// The current time of a virtual clock.
  private var virtualNow: Int64
  private var alarm: (due: Int64, task: Task<Void, Never>)?
  private let inbound = Mutex(Inbound())

  private struct Inbound {
    var work: [HostWork] = []
    var isPumpScheduled = false
    var lastConnection: UInt64 = 0
    var lastExchange: UInt64 = 0
  }

  /// - Throws: what the emulator says of a wrong option.
  public init(
    _ factory: EmulatorFactory, options: EmulatorOptions = EmulatorOptions(), clock: EmulatorClock = .real,
    journal: JournalSettings = .off
  ) throws(EmulatorError) {
    vendor = factory.vendor
    self.factory = factory
    self.options = options
    let made = try factory.make(options)
    machine = made
    machineCalls = made is any CallingEmulator
    random = EmulatorRandom(seed: options.seed)
    faults = FaultTable(seed: options.seed)
    self.journal = Journal(journal)
    self.clock = clock
    if case .virtual(let start) = clock { virtualNow = start } else { virtualNow = 0 }
  }

  deinit { alarm?.task.cancel() }

  /// Tells the emulator where clients reach it.
  public func setBaseURL(_ url: String) {
    options.baseURL = url
    machine.baseURL = url
  }

  // MARK: Time

  /// The emulator's clock, ms since 1970, without skew.
  public var now: Int64 {
    switch clock {
    case .virtual: virtualNow
    case .shared(let clock): clock.now.milliseconds
    }
  }

  /// When the earliest timer is due, on the same clock as `now`.
  public var nextTimer: Int64? { timers.nextDue }

  /// Moves a virtual clock or a shared `ManualClock` forward; all that is due on the way happens in order, each at its
  /// own time, and with a shared clock those who sleep on it get to run in between. Another clock ignores this.
  public func advance(by duration: Duration) async {
    let target = now.addingClamped(duration.wholeMilliseconds)
    guard case .shared(let shared) = clock, let manual = shared as? ManualClock else { return setClock(target) }
    while let next = manual.nextWakeUp, next.milliseconds <= target {
      manual.advance(to: next)
      await settle()
    }
    manual.advance(to: Timestamp(milliseconds: target))
    await settle()
  }

  /// Fires what is due and lets the tasks that were woken run until they wait again.
  private func settle() async {
    fireDue(until: now)
    // Tasks can't be asked whether they are done; this many turns are more than a request and its answer need.
    for _ in 0..<64 {
      await Task.yield()
      pump()
    }
  }

  /// Moves a virtual clock to `time` (ms since 1970), firing what is due; backwards fires nothing.
  public func setClock(_ time: Int64) {
    guard case .virtual = clock else { return }
    fireDue(until: time)
    virtualNow = time
  }

  /// Switches between the clocks; what is due on the new one fires.
  public func setClock(_ new: EmulatorClock) {
    clock = new
    if case .virtual(let start) = new { virtualNow = start }
    alarm?.task.cancel()
    alarm = nil
    fireDue(until: now)
  }

  /// A virtual clock stands at its start again.
  func resetClock() {
    if case .virtual(let start) = clock { virtualNow = start }
  }

  func fireDue(until time: Int64) {
    while let (due, event) = timers.popDue(at: time) {
      virtualNow = max(virtualNow, due)
      switch event {
      case .machine(let name): deliver(react(to: .timer(name)))
      case .host(let action): action(self)
      }
      settleEnded()
      pump()
    }
    rearm()
  }

  /// Keeps one task asleep until the earliest timer, where the clock moves by itself.
  func rearm() {
    guard case .shared(let clock) = clock, let due = timers.nextDue else {
      alarm?.task.cancel()
      alarm = nil
      return
    }
    // One that rings too early does no harm and sets itself again: timers that move on with each frame cost nothing.
    if let alarm, alarm.due <= due { return }
    alarm?.task.cancel()
    let wait = Duration.milliseconds(max(0, due.addingClamped(-now)))
    let task = Task { [weak self] in
      // A cancelled alarm was replaced by another.
      guard (try? await clock.sleep(for: wait)) != nil else { return }
      await self?.alarmRang()
    }
    alarm = (due, task)
  }

  private func alarmRang() {
    alarm = nil
    fireDue(until: now)
  }

  /// Runs `action` on this actor after `delay` of the emulator's time.
  func schedule(
    after delay: Duration, _ action: @escaping @Sendable (isolated EmulatorHost) -> Void
  ) -> TimerQueue.Token {
    let token = timers.schedule(due: now.addingClamped(delay.wholeMilliseconds), action)
    rearm()
    return token
  }

  func cancelScheduled(_ token: TimerQueue.Token) { timers.cancel(token) }

  // MARK: Input

  nonisolated func makeConnectionID() -> EmulatorConnectionID {
    inbound.withLock {
      $0.lastConnection &+= 1
      return EmulatorConnectionID($0.lastConnection)
    }
  }

  nonisolated func makeExchangeID() -> EmulatorExchangeID {
    inbound.withLock {
      $0.lastExchange &+= 1
      return EmulatorExchangeID($0.lastExchange)
    }
  }

  /// Queues work in the order of the calls, from any thread; `pump` handles it.
  nonisolated func submit(_ work: HostWork) { inbound.withLock { $0.work.append(work) } }

  /// Queues work and sees to it that a task handles it: for callers that can't wait.
  nonisolated func submitAndWake(_ work: [HostWork]) {
    let mustWake = inbound.withLock { inbound in
      inbound.work.append(contentsOf: work)
      defer { inbound.isPumpScheduled = true }
      return !inbound.isPumpScheduled
    }
    if mustWake { Task { await self.wakePump() } }
  }

  private func wakePump() {
    inbound.withLock { $0.isPumpScheduled = false }
    pump()
  }

  /// Handles all that was submitted so far.
  func pump() {
    while !isPaused {
      let batch = inbound.withLock {
        let work = $0.work
        $0.work = []
        return work
      }
      if batch.isEmpty { return }
      for work in batch { handle(work) }
    }
  }

  /// Returns when every input submitted before the call has been handled and its outputs are on their way.
  public func quiesce() { pump() }

  /// HTTP requests that were not answered yet.
  public var pendingExchanges: Int { replies.count }

  /// Open WebSockets.
  public var openConnections: Int { links.count }

  // MARK: The machine

  /// What the machine does about one input.
  func react(to input: EmulatorInput) -> [EmulatorOutput] {
    changes &+= 1
    defer { if machineCalls { startCalls() } }
    return withContext { machine, context in machine.handle(input, context: &context) }
  }

  /// Lends the machine with the present time, and keeps the randomness that it used.
  func withContext<Result, Failure: Error>(
    _ body: (inout any VendorEmulator, inout EmulatorContext) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var context = EmulatorContext(now: now.addingClamped(skew), random: random)
    defer { random = context.random }
    return try body(&machine, &context)
  }
}
