import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// What inputs and outputs mean, for fault rules and the journal.
extension SendbirdEmulator {
  public func operation(of input: EmulatorInput) -> EmulatorOperation {
    switch input {
    case .http(_, let request): return operation(of: request)
    case .open(_, let request):
      let query = SendbirdTarget(request.url).query
      if let key = query["key"] {
        return EmulatorOperation("resume", vendorName: "LOGI", user: sessions[Key(key)]?.user.rawValue)
      }
      return EmulatorOperation("auth", vendorName: "LOGI", user: query["user_id"])
    case .message(let id, .text(let text)):
      let user = connections[id]?.user.rawValue
      guard case .success(let frame)? = SendbirdFrame.parse(text).first else {
        return EmulatorOperation("other", vendorName: "text", user: user)
      }
      return operation(of: frame, user: user, isClient: true)
    case .message(let id, _):
      return EmulatorOperation("other", vendorName: "binary", user: connections[id]?.user.rawValue)
    case .ping(let id): return EmulatorOperation("ping", vendorName: "ping", user: connections[id]?.user.rawValue)
    case .closed(let id, _):
      return EmulatorOperation("other", vendorName: "closed", user: connections[id]?.user.rawValue)
    case .timer(let name): return EmulatorOperation("other", vendorName: name)
    }
  }

  public func operation(of output: EmulatorOutput) -> EmulatorOperation {
    switch output {
    case .send(let id, .text(let text)):
      let user = connections[id]?.user.rawValue
      guard case .success(let frame)? = SendbirdFrame.parse(text).first else {
        return EmulatorOperation("other", vendorName: "text", user: user)
      }
      return operation(of: frame, user: user, isClient: false)
    case .respond: return EmulatorOperation("ack", vendorName: "response")
    default: return EmulatorOperation("other", vendorName: "control")
    }
  }

  private func operation(of frame: SendbirdFrame, user: String?, isClient: Bool) -> EmulatorOperation {
    let name: String
    let isAnswer = !isClient && frame.requestID != nil
    switch frame.command {
    case "LOGI": name = "auth"
    case "EXPR": name = "auth"
    case "MESG", "FILE", "ADMM", "BRDM": name = isClient ? "send" : isAnswer ? "ack" : "push"
    case "MEDI", "FEDI", "AEDI": name = isAnswer ? "ack" : "edit"
    case "DELM": name = "recall"
    case "READ": name = isAnswer ? "ack" : "read"
    case "EROR": name = "ack"
    case "MACK", "DLVR": name = "delivered"
    case "TPST", "TPEN": name = "typing"
    case "PING", "PONG": name = "ping"
    case "SYEV":
      let category = frame.payload.number("cat") ?? 0
      name = (10900...10901).contains(category) ? "typing" : "member"
    default: name = "other"
    }
    return EmulatorOperation(
      name, vendorName: frame.command, user: user, channel: frame.payload.text("channel_url"), clientID: frame.requestID
    )
  }

  private func operation(of request: HTTPRequest) -> EmulatorOperation {
    let target = SendbirdTarget(request.url)
    let user = request.headers["Session-Key"].flatMap { sessions[Key($0)]?.user.rawValue }
    guard let path = Self.apiPath(target), let (route, parameters) = Self.route(request.method, path) else {
      let isFile = target.path.first == "files"
      return EmulatorOperation(
        isFile ? "file" : "other", vendorName: "\(request.method) /\(target.path.first ?? "")", user: user)
    }
    return EmulatorOperation(
      Self.meaning(route), vendorName: route.name, user: user ?? parameters["user"], channel: parameters["url"])
  }

  private static func meaning(_ route: Route) -> String {
    let last = route.pattern.last ?? ""
    if route.pattern.first == "storage" { return "file" }
    if last == "changelogs" || last == "messages_gap" { return "changelog" }
    if last == "session_key" || last == "token" { return "auth" }
    switch (route.method, last) {
    case ("GET", "messages"), ("GET", "{id}"): return "history"
    case ("POST", "messages"), ("POST", "{url}"): return "send"
    case ("PUT", "{id}"): return "edit"
    case ("DELETE", "{id}"): return "recall"
    case ("PUT", "mark_as_read"), ("PUT", "mark_as_read_all"): return "read"
    case ("PUT", "mark_as_delivered"): return "delivered"
    case (_, "typing"): return "typing"
    case ("POST", "group_channels"), ("POST", "open_channels"): return "channelCreate"
    case ("GET", "group_channels"), ("GET", "open_channels"), ("GET", "my_group_channels"), ("GET", "{url}"):
      return "channelQuery"
    case (_, "invite"), (_, "accept"), (_, "decline"), (_, "join"), (_, "leave"), (_, "members"), (_, "operators"),
      (_, "ban"), (_, "mute"):
      return "member"
    default: return "other"
    }
  }
}
