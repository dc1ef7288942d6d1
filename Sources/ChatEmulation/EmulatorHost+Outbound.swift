import ChatJSON
import ChatTransport
import UnifiedChat

/// What leaves the host: an output of the machine, or bytes that no machine would send.
enum Emission: Sendable {
  case output(EmulatorOutput)
  case bytes(EmulatorConnectionID, [UInt8])
}

extension EmulatorHost {
  /// Sends outputs on their way, in order. `hits` are what rules about the sender's frame do to the replies to it.
  func deliver(_ outputs: [EmulatorOutput], repliesTo origin: Origin? = nil, _ hits: [FaultTable.Hit] = []) {
    if !isWatched, hits.isEmpty {
      carryOut(outputs)
      return rearm()
    }
    for output in outputs {
      guard isWatched || !hits.isEmpty, let target = output.target else {
        carryOut(output)
        continue
      }
      let key = LaneKey(origin: target, direction: .outbound)
      let own = target == origin && output.isPayload ? hits : []
      if lanes[key] != nil {
        lanes[key]?.waiting.append { $0.examine(output, key, own) }
      } else {
        examine(output, key, own)
      }
    }
    rearm()
  }

  /// Tells the machine of the connections that ended since the last call.
  func settleEnded() {
    while !ended.isEmpty {
      let (id, close) = ended.removeFirst()
      deliver(react(to: .closed(id, close)))
    }
  }

  private func examine(_ output: EmulatorOutput, _ key: LaneKey, _ replyHits: [FaultTable.Hit]) {
    guard output.isPayload else {
      note(output, machine.operation(of: output), [])
      return carryOut(output)
    }
    let operation = operation(of: output)
    let phases = Set(FaultRule.Phase.allCases).subtracting([.afterPush, .afterReply])
    let hits = replyHits + faults.hits(operation, .outbound, phases) { content(of: output) }
    note(output, operation, hits)
    go(on: Passage(content: .output(output), operation: operation, key: key), hits[...])
  }

  /// An answer to a request means what the request meant.
  private func operation(of output: EmulatorOutput) -> EmulatorOperation {
    if case .respond(let id, _) = output, let operation = exchangeOperations[id] { return operation }
    return machine.operation(of: output)
  }

  /// Carries out the actions that are left for one output, then sends it.
  private func go(on start: Passage<Emission>, _ hits: ArraySlice<FaultTable.Hit>) {
    var passage = start
    var rest = hits
    var copies: [Duration] = []
    while let hit = rest.popFirst() {
      let left = rest
      let held = passage
      if hold(hit, held.key, then: { $0.go(on: held, left) }) { return }
      switch hit.action {
      case .drop: return
      case .duplicate(let times, let gap): copies += (0..<max(0, times)).map { gap * ($0 + 1) }
      case .act, .raw, .closeSocket: actOnLink(hit, passage.operation, passage.key.origin)
      default:
        if let changed = change(passage.content, by: hit.action) { passage.content = changed } else {
          faults.fail(hit.rule, "\(hit.action.name) does not fit this frame")
        }
      }
      if hit.action.isTerminal { return }
    }
    carryOut(passage.content)
    let emission = passage.content
    for after in copies {
      if after == .zero { carryOut(emission) } else { _ = schedule(after: after) { $0.carryOut(emission) } }
    }
    for hit in faults.hits(passage.operation, .outbound, [.afterPush, .afterReply], content: { nil }) {
      actOnLink(hit, passage.operation, passage.key.origin)
    }
  }

  private func change(_ emission: Emission, by action: FaultRule.Action) -> Emission? {
    guard case .patch(let changes) = action else { return emission.changed(by: action) }
    guard case .output(let output) = emission else { return nil }
    return patch(output, changes).map { .output($0) }
  }

  private func carryOut(_ emission: Emission) {
    switch emission {
    case .output(let output): carryOut(output)
    case .bytes(let id, let bytes): _ = links[id]?.write(bytes)
    }
  }

  /// Messages to one connection that follow one another go together.
  private func carryOut(_ outputs: [EmulatorOutput]) {
    var rest = outputs[...]
    while let output = rest.popFirst() {
      guard case .send(let id, let message) = output, case .send(id, _)? = rest.first else {
        carryOut(output)
        continue
      }
      var messages = [message]
      while case .send(id, let next)? = rest.first {
        messages.append(next)
        rest = rest.dropFirst()
      }
      links[id]?.send(messages)
    }
  }

  private func carryOut(_ output: EmulatorOutput) {
    switch output {
    case .respond(let id, let response):
      exchangeOperations[id] = nil
      replies.removeValue(forKey: id)?.respond(response)
    case .accept(let id, let subprotocol): links[id]?.accept(subprotocol: subprotocol)
    case .reject(let id, let response):
      links.removeValue(forKey: id)?.reject(response)
      forgetConnection(id)
    case .send(let id, let message): links[id]?.send(message)
    case .close(let id, let close): end(id, close) { $0.close(close) }
    case .cut(let id): end(id, WebSocketClose()) { $0.cut() }
    case .setTimer(let name, let dueAt): timers.set(name, due: dueAt.addingClamped(-skew))
    case .cancelTimer(let name): timers.cancel(named: name)
    }
  }

  /// Ends a connection from the emulator's side.
  func end(_ id: EmulatorConnectionID, _ close: WebSocketClose, _ body: (any EmulatorLink) -> Void) {
    guard let link = links.removeValue(forKey: id) else { return }
    body(link)
    forgetConnection(id)
    ended.append((id, close))
  }

  private func note(_ output: EmulatorOutput, _ operation: EmulatorOperation, _ hits: [FaultTable.Hit]) {
    guard journal.isActive, let kind = output.entryKind else { return }
    var entry = JournalEntry(
      index: 0, time: now, direction: .outbound, kind: kind, operation: operation, size: output.bytes.count,
      rules: hits.map(\.rule))
    switch output.target {
    case .connection(let id): entry.connection = id
    case .exchange(let id): entry.exchange = id
    case nil: break
    }
    switch output {
    case .respond(_, let response), .reject(_, let response): entry.status = response.status
    default: break
    }
    journal.append(entry, content: output.bytes)
  }
}

extension Emission {
  /// Changed by an action on its content; nil when the action does not fit.
  fileprivate func changed(by action: FaultRule.Action) -> Emission? {
    guard case .output(let output) = self else { return nil }
    switch (action, output) {
    case (.http(let response), .respond(let id, _)): return .output(.respond(id, response))
    case (.http(let response), .accept(let id, _)), (.http(let response), .reject(let id, _)):
      return .output(.reject(id, response))
    case (.truncateBody(let count), .respond(let id, var response)):
      response.body = Array(response.body.prefix(max(0, count)))
      return .output(.respond(id, response))
    case (.truncateBody(let count), .send(let id, let message)):
      return .output(.send(id, message.truncated(to: count)))
    case (.fragment(let sizes), .send(let id, let message)):
      return .bytes(id, WebSocketFrame.fragments(message, sizes: sizes))
    case (.corrupt(let offset, let xor), .send(let id, let message)):
      var bytes = WebSocketFrame.bytes(message)
      guard bytes.indices.contains(offset) else { return nil }
      bytes[offset] ^= xor
      return .bytes(id, bytes)
    default: return nil
    }
  }
}

extension EmulatorOutput {
  /// True for what carries content: the rest keeps a connection's life in order and is never faulted.
  var isPayload: Bool {
    switch self {
    case .respond, .send, .accept, .reject: true
    default: false
    }
  }

  fileprivate var entryKind: JournalEntry.Kind? {
    switch self {
    case .respond: .http
    case .accept: .accept
    case .reject: .reject
    case .send(_, .text): .text
    case .send(_, .binary): .binary
    case .close, .cut: .close
    case .setTimer, .cancelTimer: nil
    }
  }

  fileprivate var bytes: [UInt8] {
    switch self {
    case .respond(_, let response), .reject(_, let response): response.body
    case .send(_, let message): message.bytes
    default: []
    }
  }
}

extension WebSocketFrame {
  /// One message as several frames of these payload sizes and a last one with the rest.
  static func fragments(_ message: WebSocketMessage, sizes: [Int]) -> [UInt8] {
    var rest = message.bytes[...]
    var opcode: WebSocketOpcode
    if case .text = message { opcode = .text } else { opcode = .binary }
    var frames: [UInt8] = []
    for size in sizes where size >= 0 && size < rest.count {
      frames += bytes(opcode, rest.prefix(size), isFinal: false)
      rest = rest.dropFirst(size)
      opcode = .continuation
    }
    return frames + bytes(opcode, rest)
  }
}
