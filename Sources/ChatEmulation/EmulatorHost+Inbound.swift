import ChatJSON
import ChatTransport
import UnifiedChat

/// What the host knows of one WebSocket.
struct SessionRecord: Sendable {
  var openedAt: Int64
  var lastActivity: Int64
}

extension EmulatorHost {
  /// False while nothing looks at frames or holds them, which then go straight to the machine.
  var isWatched: Bool { journal.isActive || !faults.isEmpty || !lanes.isEmpty }

  func handle(_ work: HostWork) {
    switch work {
    case .http(let id, let request, let reply):
      replies[id] = reply
      receive(.http(id, request))
    case .open(let id, let request, let link):
      links[id] = link
      sessions[id] = SessionRecord(openedAt: now, lastActivity: now)
      receive(.open(id, request))
    case .message(let id, let message):
      guard let link = links[id] else { break }
      link.tookInput(message.costWhileWaiting)
      receive(.message(id, message))
    case .ping(let id):
      guard let link = links[id] else { break }
      link.tookInput(WebSocketMessage.costOfPing)
      receive(.ping(id))
    case .closed(let id, let close):
      if links[id] != nil { receive(.closed(id, close)) }
    }
    settleEnded()
  }

  /// Lets go of an exchange whose client waits no more.
  func forget(_ id: EmulatorExchangeID) {
    replies[id] = nil
    exchangeOperations[id] = nil
  }

  private func receive(_ input: EmulatorInput) {
    if let origin = input.origin, case .connection(let id) = origin { sessions[id]?.lastActivity = now }
    guard isWatched, let origin = input.origin else { return commit(input, as: nil) }
    let key = LaneKey(origin: origin, direction: .inbound)
    if lanes[key] != nil {
      lanes[key]?.waiting.append { $0.examine(input, key) }
    } else {
      examine(input, key)
    }
  }

  /// Notes a frame, and does what the rules for its arrival say.
  private func examine(_ input: EmulatorInput, _ key: LaneKey) {
    let operation = machine.operation(of: input)
    if case .http(let id, _) = input { exchangeOperations[id] = operation }
    var hits: [FaultTable.Hit] = []
    // A rule must not hide from the machine that a connection is gone.
    if input.entryKind != .close {
      hits = faults.hits(operation, .inbound, [.received, .authorised, .beforeCommit]) { content(of: input) }
    }
    note(input, operation, hits)
    go(on: Passage(content: input, operation: operation, key: key), hits[...])
  }

  /// A frame on its way, with its meaning and its place.
  struct Passage<Content: Sendable>: Sendable {
    var content: Content
    var operation: EmulatorOperation
    var key: LaneKey
  }

  /// Carries out the actions that are left for one input, then gives it to the machine.
  private func go(on start: Passage<EmulatorInput>, _ hits: ArraySlice<FaultTable.Hit>) {
    var passage = start
    var rest = hits
    var copies: [(after: Duration, input: EmulatorInput)] = []
    while let hit = rest.popFirst() {
      let left = rest
      let held = passage
      if hold(hit, held.key, then: { $0.go(on: held, left) }) { return }
      switch hit.action {
      case .drop: return
      case .duplicate(let times, let gap):
        if case .open = passage.content { faults.fail(hit.rule, "an upgrade can't be doubled"); continue }
        for index in 0..<max(0, times) { copies.append((gap * (index + 1), copy(of: passage.content))) }
      case .fail(let failure):
        if let outputs = machine.refusal(of: passage.content, as: failure) { return deliver(outputs) }
        faults.fail(hit.rule, "the emulator can't refuse this in its own words")
      case .http(let response):
        if let output = passage.content.answer(response) { return deliver([output]) }
        faults.fail(hit.rule, "http answers requests and upgrades only")
      case .truncateBody(let count): passage.content = passage.content.truncated(to: count)
      case .patch(let changes):
        if let patched = patch(passage.content, changes) { passage.content = patched } else {
          faults.fail(hit.rule, "patch found no JSON, or no such place in it")
        }
      case .fragment, .corrupt: faults.fail(hit.rule, "\(hit.action.name) is for frames to a client")
      default: actOnLink(hit, passage.operation, passage.key.origin)
      }
      if hit.action.isTerminal { return }
    }
    commit(passage.content, as: passage.operation)
    let operation = passage.operation
    for (after, input) in copies {
      if after == .zero { commit(input, as: operation) } else { _ = schedule(after: after) { $0.commit(input, as: operation) } }
    }
  }

  /// The same input once more; a request gets an own exchange that nobody reads.
  private func copy(of input: EmulatorInput) -> EmulatorInput {
    if case .http(_, let request) = input { .http(makeExchangeID(), request) } else { input }
  }

  /// Lets the machine handle one input, to its end. Without an operation nobody watches.
  private func commit(_ input: EmulatorInput, as operation: EmulatorOperation?) {
    switch input {
    case .closed(let id, _):
      guard links.removeValue(forKey: id) != nil else { return }
      forgetConnection(id)
    case .open(let id, _), .message(let id, _), .ping(let id): guard links[id] != nil else { return }
    case .http, .timer: break
    }
    var outputs = react(to: input)
    if case .open(let id, _) = input, !outputs.contains(where: { $0.answersUpgrade(id) }) {
      let body = Array("the emulator did not answer the upgrade".utf8)
      outputs.append(.reject(id, HTTPResponse(status: 500, body: body)))
    }
    guard let operation, let origin = input.origin else { return deliver(outputs) }
    finish(input, operation, origin, outputs)
  }

  /// Does what the rules for the time after the commit say about what goes back to the sender.
  private func finish(
    _ input: EmulatorInput, _ operation: EmulatorOperation, _ origin: Origin, _ outputs: [EmulatorOutput]
  ) {
    let hits = faults.hits(operation, .inbound, [.afterCommit, .beforeReply]) { content(of: input) }
    var outputs = outputs
    var onReplies: [FaultTable.Hit] = []
    for hit in hits {
      switch hit.action {
      case .act, .raw, .closeSocket: actOnLink(hit, operation, origin)
      case .fail(let failure):
        if let refusal = machine.refusal(of: input, as: failure) {
          outputs.removeAll { $0.target == origin }
          outputs += refusal
        } else {
          faults.fail(hit.rule, "the emulator can't refuse this in its own words")
        }
      default: onReplies.append(hit)
      }
    }
    deliver(outputs, repliesTo: origin, onReplies)
    for hit in faults.hits(operation, .inbound, [.afterReply], content: { content(of: input) }) {
      actOnLink(hit, operation, origin)
    }
  }

  private func note(_ input: EmulatorInput, _ operation: EmulatorOperation, _ hits: [FaultTable.Hit]) {
    guard journal.isActive else { return }
    var entry = JournalEntry(
      index: 0, time: now, direction: .inbound, kind: input.entryKind, operation: operation, size: input.bytes.count,
      rules: hits.map(\.rule))
    switch input.origin {
    case .connection(let id): entry.connection = id
    case .exchange(let id): entry.exchange = id
    case nil: break
    }
    journal.append(entry, content: input.bytes)
  }
}

extension EmulatorInput {
  var entryKind: JournalEntry.Kind {
    switch self {
    case .http, .timer: .http
    case .open: .open
    case .message(_, .text): .text
    case .message(_, .binary): .binary
    case .ping: .ping
    case .closed: .close
    }
  }

  var bytes: [UInt8] {
    switch self {
    case .http(_, let request): request.body
    case .message(_, let message): message.bytes
    default: []
    }
  }

  fileprivate func answer(_ response: HTTPResponse) -> EmulatorOutput? {
    switch self {
    case .http(let id, _): .respond(id, response)
    case .open(let id, _): .reject(id, response)
    default: nil
    }
  }

  fileprivate func truncated(to count: Int) -> EmulatorInput {
    switch self {
    case .http(let id, var request):
      request.body = Array(request.body.prefix(max(0, count)))
      return .http(id, request)
    case .message(let id, let message): return .message(id, message.truncated(to: count))
    default: return self
    }
  }
}

extension EmulatorOutput {
  fileprivate func answersUpgrade(_ id: EmulatorConnectionID) -> Bool {
    switch self {
    case .accept(id, _), .reject(id, _): true
    default: false
    }
  }
}

extension WebSocketMessage {
  /// What a ping that waits for the host costs.
  static let costOfPing = 64

  /// Bytes of memory, about, while it waits for the host; small ones cost more than they hold.
  var costWhileWaiting: Int {
    switch self {
    case .text(let text): text.utf8.count + Self.costOfPing
    case .binary(let bytes): bytes.count + Self.costOfPing
    }
  }

  var bytes: [UInt8] {
    switch self {
    case .text(let text): Array(text.utf8)
    case .binary(let bytes): bytes
    }
  }

  /// The first `count` bytes; text stays valid UTF-8.
  func truncated(to count: Int) -> WebSocketMessage {
    let bytes = self.bytes.prefix(max(0, count))
    return if case .text = self { .text(String(decoding: bytes, as: UTF8.self)) } else { .binary(Array(bytes)) }
  }
}
