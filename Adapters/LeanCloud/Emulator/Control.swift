import ChatJSON
import ChatTransport
import LeanCloudWire

extension LeanCloudEmulator {
  public func perform(
    _ action: EmulatorAction, context: inout EmulatorContext
  ) throws(EmulatorError) -> [EmulatorOutput] {
    borrow(context)
    switch action {
    case .kick(let user): kick(user, code: 4111, reason: "SESSION_CONFLICT")
    case .kickByAdmin(let user): kick(user, code: 4115, reason: "KICKED_BY_APP")
    case .expireCredential(let user):
      for key in tokens.keys where tokens[key].map({ Key($0.peer) }) == Key(user) { tokens[key]?.expiresAt = now }
    case .revokeCredential(let user):
      for key in tokens.keys where tokens[key].map({ Key($0.peer) }) == Key(user) { tokens[key] = nil }
      kick(user, code: 4115, reason: "KICKED_BY_APP")
    case .disableUser(let user):
      disabled.insert(Key(user))
      kick(user, code: 4106, reason: "BLACKLISTED")
    case .goaway(let user):
      for id in online[Key(user)] ?? [] {
        guard let connection = connections[id] else { continue }
        var frame = LeanCloudFrame("goaway")
        if connection.codec.subprotocol.isNamed { frame["service"] = 2 }
        send(frame, to: connection)
      }
    }
    return giveBack(&context)
  }

  // MARK: Names for faults and journal

  public func operation(of input: EmulatorInput) -> EmulatorOperation {
    switch input {
    case .http(_, let request): operation(of: request)
    case .message(let id, let message): operation(of: message, on: id, isInbound: true)
    case .ping(let id): EmulatorOperation("ping", vendorName: "ping", user: connections[id]?.firstPeer)
    case .open: EmulatorOperation("other", vendorName: "upgrade")
    case .closed(let id, _): EmulatorOperation("other", vendorName: "closed", user: connections[id]?.firstPeer)
    case .timer(let name): EmulatorOperation("other", vendorName: "timer \(name.prefix { $0 != "-" })")
    }
  }

  public func operation(of output: EmulatorOutput) -> EmulatorOperation {
    switch output {
    case .send(let id, let message): operation(of: message, on: id, isInbound: false)
    case .respond: EmulatorOperation("other", vendorName: "response")
    case .accept: EmulatorOperation("other", vendorName: "accept")
    case .reject: EmulatorOperation("other", vendorName: "reject")
    case .close: EmulatorOperation("other", vendorName: "close")
    case .cut: EmulatorOperation("other", vendorName: "cut")
    case .setTimer, .cancelTimer: EmulatorOperation("other", vendorName: "timer")
    }
  }

  private func operation(of request: HTTPRequest) -> EmulatorOperation {
    let path = URLText.path(of: request.url)
    guard let (route, parameters) = routes.find(request.method, path) else {
      return EmulatorOperation("other", vendorName: "\(request.method) /\(path.prefix(3).joined(separator: "/"))")
    }
    let last = route.pattern.last ?? ""
    let name: String
    switch (route.method, last) {
    case ("GET", "messages"), ("GET", "history"), ("GET", "logs"): name = "history"
    case ("POST", "messages"), ("POST", "broadcasts"): name = "send"
    case ("PUT", "recall"): name = "recall"
    case ("PUT", "{mid}"): name = "edit"
    case (_, "members"): name = "member"
    case ("POST", "conversations"): name = "channelCreate"
    case ("GET", "conversations"), ("GET", "all-conversations"): name = "channelQuery"
    case (_, "fileTokens"), (_, "fileCallback"), (_, "{token}"), ("GET", "{key}"): name = "file"
    case (_, "notifications"): name = "changelog"
    default: name = "other"
    }
    return EmulatorOperation(name, vendorName: route.name, channel: parameters.first)
  }

  private func operation(
    of message: WebSocketMessage, on id: EmulatorConnectionID, isInbound: Bool
  ) -> EmulatorOperation {
    let payload: LeanCloudPayload
    switch message {
    case .text(let text): payload = .text(text)
    case .binary(let bytes): payload = .binary(bytes)
    }
    guard let connection = connections[id], let frame = try? connection.codec.decode(payload) else {
      return EmulatorOperation("other", vendorName: "frame")
    }
    let vendorName = frame.operation.isEmpty ? frame.command : "\(frame.command)/\(frame.operation)"
    return EmulatorOperation(
      Self.neutralName(of: frame, isInbound: isInbound), vendorName: frame.isPing ? "{}" : vendorName,
      user: frame.peerID ?? connection.firstPeer, channel: frame.string("cid") ?? frame.string("roomId"),
      clientID: frame.string("dt"))
  }

  private static func neutralName(of frame: LeanCloudFrame, isInbound: Bool) -> String {
    if frame.isPing { return "ping" }
    switch (frame.command, frame.operation) {
    case ("echo", _): return "ping"
    case ("session", "open"): return frame.bool("r") == true ? "resume" : "auth"
    case ("session", "opened"): return "auth"
    case ("direct", _): return isInbound ? "send" : "push"
    case ("ack", _): return isInbound ? "delivered" : "ack"
    case ("read", _), ("unread", _): return "read"
    case ("rcp", _): return frame.bool("read") == true ? "read" : "delivered"
    case ("logs", _): return "history"
    case ("patch", _):
      let isRecall = frame["patches"]?[0]?["recall"]?.bool ?? false
      return isRecall ? "recall" : "edit"
    case ("conv", "start"), ("conv", "started"): return "channelCreate"
    case ("conv", "query"), ("conv", "results"): return "channelQuery"
    case ("conv", "add"), ("conv", "remove"), ("conv", "joined"), ("conv", "left"), ("conv", "members-joined"),
      ("conv", "members-left"), ("room", _), ("conv", "added"), ("conv", "removed"):
      return "member"
    default: return "other"
    }
  }

  // MARK: Coverage

  public var coverage: [EmulatorCoverage] {
    let endpoints = ["WebSocket upgrade", "echo", "session/open"] + Self.commands.sorted() + routes.all.map(\.name)
    return endpoints.map { EmulatorCoverage(endpoint: $0, isImplemented: true, calls: calls[$0] ?? 0) }
      + unknownCalls.sorted { $0.key < $1.key }.map {
        EmulatorCoverage(endpoint: $0.key, isImplemented: false, calls: $0.value)
      }
  }
}
