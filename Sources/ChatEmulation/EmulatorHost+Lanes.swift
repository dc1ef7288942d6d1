import ChatTransport
import UnifiedChat

extension EmulatorHost {
  /// Holds a frame where `hit` says so; `step` goes on with it. False for every other action.
  func hold(_ hit: FaultTable.Hit, _ key: LaneKey, then step: @escaping HostStep) -> Bool {
    switch hit.action {
    case .delay(let delay, let jitter):
      lanes[key, default: Lane()].isHeld = true
      _ = schedule(after: delay + faults.jitter(upTo: jitter)) { $0.release(key, step) }
    case .stall: hold(key, by: .stall, then: step)
    case .gate(let name): hold(key, by: .gate(name), then: step)
    case .reorder(let window, let shuffled): collect(hit.rule, window, shuffled, step)
    default: return false
    }
    return true
  }

  func hold(_ key: LaneKey, by hold: LaneHold, then step: @escaping HostStep = { _ in }) {
    lanes[key, default: Lane()].isHeld = true
    holds[hold, default: []].append((key, step))
  }

  /// Lets a held frame go, and those behind it until one is held again.
  func release(_ key: LaneKey, _ step: HostStep) {
    lanes[key]?.isHeld = false
    step(self)
    while let lane = lanes[key], !lane.isHeld {
      guard let next = lane.waiting.first else {
        lanes[key] = nil
        break
      }
      lanes[key]?.waiting.removeFirst()
      next(self)
    }
    settleEnded()
  }

  /// Lets go what `hold` holds, of one link only where `origin` is given.
  func release(_ hold: LaneHold, of origin: Origin? = nil) {
    let held = holds.removeValue(forKey: hold) ?? []
    let others = held.filter { origin != nil && $0.key.origin != origin }
    if !others.isEmpty { holds[hold] = others }
    for (key, step) in held where origin == nil || key.origin == origin { release(key, step) }
  }

  private func collect(_ rule: UInt64, _ window: Int, _ shuffled: Bool, _ step: @escaping HostStep) {
    collected[rule, default: []].append(step)
    guard let steps = collected[rule], steps.count >= window else { return }
    collected[rule] = nil
    var order = Array(steps.reversed())
    if shuffled { faults.shuffle(&order) }
    for step in order { step(self) }
  }

  /// Frames that rules still hold back for another order go in the order they came.
  func releaseCollected(of rule: UInt64) {
    for step in collected.removeValue(forKey: rule) ?? [] { step(self) }
  }

  func forgetConnection(_ id: EmulatorConnectionID) {
    sessions[id] = nil
    if lanes.isEmpty { return }
    let origin = Origin.connection(id)
    lanes[LaneKey(origin: origin, direction: .outbound)] = nil
    for (hold, held) in holds { holds[hold] = held.filter { $0.key != LaneKey(origin: origin, direction: .outbound) } }
  }

  /// The actions that are about the link or its user and not about the frame.
  func actOnLink(_ hit: FaultTable.Hit, _ operation: EmulatorOperation, _ origin: Origin) {
    switch (hit.action, origin) {
    case (.closeSocket(let ending), _):
      if !end(origin, ending) { faults.fail(hit.rule, "\(hit.action.name) needs a socket") }
    case (.raw(let message), .connection(let id)): links[id]?.send(message)
    case (.act(let action), _):
      guard let user = operation.user else { return faults.fail(hit.rule, "the frame names no user") }
      do throws(EmulatorError) {
        try perform(action.action(for: user))
      } catch {
        faults.fail(hit.rule, error.description)
      }
    default: faults.fail(hit.rule, "\(hit.action.name) does not fit this frame or phase")
    }
  }

  /// Ends a link or exchange; false where its transport can't.
  func end(_ origin: Origin, _ ending: FaultRule.Ending) -> Bool {
    switch (origin, ending) {
    case (.exchange(let id), .abrupt), (.exchange(let id), .clean):
      exchangeOperations[id] = nil
      replies.removeValue(forKey: id)?.cut()
    case (.connection(let id), .abrupt): end(id, WebSocketClose()) { $0.cut() }
    case (.connection(let id), .clean(let code, let reason)):
      let close = WebSocketClose(code: code, reason: reason)
      end(id, close) { $0.close(close) }
    case (.connection(let id), .halfClose): return links[id]?.halfClose() ?? true
    case (.exchange, .halfClose): return false
    }
    return true
  }

  /// Does `action` at once, as the vendor does it.
  func perform(_ action: EmulatorAction) throws(EmulatorError) {
    let outputs = try withContext { (machine, context) throws(EmulatorError) in
      try machine.perform(action, context: &context)
    }
    deliver(outputs)
    settleEnded()
  }
}
