import ChatCrypto
import ChatJSON
import ChatTransport
import OpenIMWire

/// One REST call on its way through its handler.
struct OpenIMCall {
  var body: JSONValue
  /// nil on the calls that need no token.
  var caller: OpenIMCaller?
  /// The object store answers with URLs of the host that the client used.
  var host: String
  var query: [String: String] = [:]

  func string(_ key: String) -> String { body[key]?.string ?? "" }
  func int(_ key: String) -> Int64 { body[key]?.int ?? 0 }
  func bool(_ key: String) -> Bool { body[key]?.bool ?? false }
  func strings(_ key: String) -> [String] { (body[key]?.array ?? []).compactMap(\.string) }

  /// A member that must be there and not empty.
  func needed(_ key: String) throws(OpenIMFault) -> String {
    let value = string(key)
    guard !value.isEmpty else { throw OpenIMFault(.arguments, "\(key) is empty") }
    return value
  }

  func needAdmin() throws(OpenIMFault) {
    guard let caller, caller.isAdmin else {
      throw OpenIMFault(.noPermission, "user \(caller?.userID ?? "") is not admin userID")
    }
  }

  /// The user named in the body, or the admin.
  func needSelf(_ userID: String) throws(OpenIMFault) {
    guard let caller, caller.isAdmin || caller.userID.utf8.elementsEqual(userID.utf8) else {
      throw OpenIMFault(.noPermission, "ownerUserID \(userID), operationUserID \(caller?.userID ?? "")")
    }
  }
}

/// Where a page of a list lies.
struct OpenIMPage {
  var number: Int
  var size: Int

  init(_ body: JSONValue) throws(OpenIMFault) {
    let page = body["pagination"]
    number = Int(clamping: page?["pageNumber"]?.int ?? 0)
    size = Int(clamping: page?["showNumber"]?.int ?? 0)
    guard number >= 1, size >= 1 else { throw OpenIMFault(.arguments, "pagination is invalid") }
  }

  func slice<Item>(_ items: [Item]) -> ArraySlice<Item> {
    let (start, overflow) = (number - 1).multipliedReportingOverflow(by: size)
    guard !overflow, start < items.count else { return [] }
    return items[start..<min(items.count, start + min(size, items.count))]
  }
}

extension [JSONValue] {
  /// Lists of nothing are null.
  var orNull: JSONValue { isEmpty ? .null : .array(self) }
}

extension OpenIMEmulator {
  /// Throws `OpenIMFault` alone; closures cannot say so yet.
  typealias Handler = @Sendable (OpenIMEmulator, OpenIMCall, inout OpenIMStep) throws -> JSONValue?

  /// Calls without a token (reference §1.1).
  private static let openPaths: Set<String> = ["/auth/get_admin_token", "/auth/parse_token"]
  /// These answer 400 when the body cannot be bound.
  private static let handBound: Set<String> = [
    "/msg/send_msg", "/msg/batch_send_msg", "/msg/send_business_notification", "/user/get_users_online_status",
  ]

  static let handlers: [String: Handler] = {
    var all: [String: Handler] = [:]
    for table in [
      authHandlers, userHandlers, friendHandlers, groupHandlers, memberHandlers, applicationHandlers, messageHandlers,
      importHandlers, accountHandlers, conversationHandlers, objectHandlers, formHandlers, extraHandlers,
    ] {
      all.merge(table) { first, _ in first }
    }
    return all
  }()

  func answer(_ id: EmulatorExchangeID, _ request: HTTPRequest, _ step: inout OpenIMStep) {
    let url = OpenIMURL(request.url)
    step.exchange = (id, request)
    let response = response(request, url, &step)
    // Left for later where a webhook is asked first.
    guard step.exchange != nil else { return }
    // The answer goes out first, what it causes after it, as on the gateway.
    step.outputs.insert(.respond(id, response), at: 0)
  }

  private func response(_ request: HTTPRequest, _ url: OpenIMURL, _ step: inout OpenIMStep) -> HTTPResponse {
    if request.method == "OPTIONS" { return Self.json(Array("\"Options Request!\"".utf8), request) }
    if url.path.hasPrefix("/object/"), request.method == "GET" { return download(url) }
    if url.path.hasPrefix(Self.storePath) { return storeRequest(request, url) }
    guard request.method == "POST", let handler = Self.handlers[url.path] else { return notFound(request, url) }
    count("POST \(url.path)")
    step.operationID = request.headers["operationID"] ?? ""
    do {
      let call = try bind(request, url, now: step.now)
      return Self.json(OpenIMREST.success(try handler(self, call, &step)), request)
    } catch {
      let fault = error as? OpenIMFault ?? OpenIMFault(.serverInternal)
      var response = Self.json(OpenIMREST.failure(fault), request)
      if fault.isBinding, Self.handBound.contains(url.path) { response.status = 400 }
      return response
    }
  }

  private func notFound(_ request: HTTPRequest, _ url: OpenIMURL) -> HTTPResponse {
    count(Self.knownPaths.contains(url.path) ? "POST \(url.path)" : "\(request.method) (unknown path)")
    return HTTPResponse(
      status: 404, headers: ["Content-Type": "text/plain"], body: Array("404 page not found".utf8))
  }

  private func bind(_ request: HTTPRequest, _ url: OpenIMURL, now: Int64) throws(OpenIMFault) -> OpenIMCall {
    guard request.headers["operationID"]?.isEmpty == false else {
      throw OpenIMFault(.arguments, "header must have operationID")
    }
    var caller: OpenIMCaller?
    if !Self.openPaths.contains(url.path) {
      guard let token = request.headers["token"], !token.isEmpty else {
        throw OpenIMFault(.arguments, "header must have token")
      }
      caller = try self.caller(token, now: now)
    }
    guard let body = try? JSONValue(parsing: request.body), body.object != nil else {
      throw OpenIMFault(code: 1001, message: "the body is not a JSON object", detail: "").binding
    }
    if limitsAreReal { try checkLists(body) }
    return OpenIMCall(
      body: body, caller: caller, host: request.headers["X-Request-Api"] ?? baseURL, query: url.query)
  }

  private func checkLists(_ body: JSONValue) throws(OpenIMFault) {
    for member in body.object ?? [:] where (member.value.array?.count ?? 0) > Self.maximumList {
      throw OpenIMFault(.arguments, "\(member.key) has more than \(Self.maximumList) elements")
    }
  }

  static func json(_ body: [UInt8], _ request: HTTPRequest) -> HTTPResponse {
    var headers: HTTPHeaders = [
      "Content-Type": "application/json; charset=utf-8", "Access-Control-Allow-Origin": "*",
    ]
    let accepts = request.headers["Accept-Encoding"]?.contains("gzip") == true
    guard accepts, let packed = try? Gzip.compress(body) else {
      return HTTPResponse(status: 200, headers: headers, body: body)
    }
    headers["Content-Encoding"] = "gzip"
    return HTTPResponse(status: 200, headers: headers, body: packed)
  }

  // MARK: What was called

  public var coverage: [EmulatorCoverage] {
    let implemented =
      Self.handlers.keys.map { "POST \($0)" } + ["GET /object/{name}", "WS open", "WS ping", "WS 1004 signal"]
      + OpenIMWebhooks.Hook.allCases.map { "webhook \($0.rawValue)" }
      + OpenIMOperation.allCases.filter { $0.request != nil }.map { "WS \($0.rawValue) \($0)" }
    let missing = Self.knownPaths.filter { Self.handlers[$0] == nil }.map { "POST \($0)" }
    let others = Set(calls.keys).subtracting(implemented).subtracting(missing)
    let rows =
      implemented.map { EmulatorCoverage(endpoint: $0, isImplemented: true, calls: calls[$0] ?? 0) }
      + (missing + others).map { EmulatorCoverage(endpoint: $0, isImplemented: false, calls: calls[$0] ?? 0) }
    return rows.sorted { $0.endpoint < $1.endpoint }
  }

  public func operation(of input: EmulatorInput) -> EmulatorOperation {
    switch input {
    case .http(_, let request):
      let path = OpenIMURL(request.url).path
      let body = (try? JSONValue(parsing: request.body)) ?? .null
      return EmulatorOperation(
        Self.neutralName(path), vendorName: "\(request.method) \(path)",
        user: body["userID"]?.string ?? body["sendID"]?.string ?? body["ownerUserID"]?.string,
        channel: body["conversationID"]?.string ?? body["groupID"]?.string)
    case .open(_, let request):
      return EmulatorOperation("auth", vendorName: "WS open", user: OpenIMURL(request.url).query["sendID"])
    case .message(let id, let message): return operation(ofFrame: message, from: id)
    case .ping(let id):
      return EmulatorOperation("ping", vendorName: "WS ping", user: connections[id]?.user.id)
    case .closed(let id, _):
      return EmulatorOperation("other", vendorName: "closed", user: connections[id]?.user.id)
    case .timer(let name): return EmulatorOperation("other", vendorName: "timer \(name)")
    }
  }

  private func operation(ofFrame message: WebSocketMessage, from id: EmulatorConnectionID) -> EmulatorOperation {
    guard let connection = connections[id], case .binary(let bytes) = message,
      let frame = try? connection.codec.decodeRequest(bytes)
    else { return EmulatorOperation("ping", vendorName: "WS text", user: connections[id]?.user.id) }
    let name = "WS \(frame.operation)"
    let user = connection.user.id
    switch OpenIMOperation(rawValue: frame.operation) {
    case .send:
      guard let data = (try? OpenIMBody.messageData.decode(frame.data)).map(OpenIMMessageData.init(json:)) else {
        return EmulatorOperation("send", vendorName: name, user: user)
      }
      return EmulatorOperation(
        data.contentType == OpenIMContentType.typing ? "typing" : "send", vendorName: name, user: user,
        channel: data.conversationID, clientID: data.clientMsgID)
    case .pullRanges, .pullSequences: return EmulatorOperation("history", vendorName: name, user: user)
    case .newestSequences: return EmulatorOperation("auth", vendorName: name, user: user)
    default: return EmulatorOperation("other", vendorName: name, user: user)
    }
  }

  public func operation(of output: EmulatorOutput) -> EmulatorOperation {
    switch output {
    case .respond: return EmulatorOperation("other", vendorName: "REST answer")
    case .send(let id, .binary(let bytes)):
      guard let connection = connections[id], let frame = try? connection.codec.decodeResponse(bytes) else {
        return EmulatorOperation("other", vendorName: "WS frame")
      }
      return operation(of: frame, to: connection)
    case .accept(let id, _): return EmulatorOperation("auth", vendorName: "WS open", user: connections[id]?.user.id)
    case .send, .reject, .close, .cut, .setTimer, .cancelTimer:
      return EmulatorOperation("other", vendorName: "control")
    }
  }

  private func operation(of frame: OpenIMResponseFrame, to connection: OpenIMConnection) -> EmulatorOperation {
    let name = "WS \(frame.operation)"
    let user = connection.user.id
    switch OpenIMOperation(rawValue: frame.operation) {
    case .send:
      let answer = try? OpenIMBody.sendAnswer.decode(frame.data)
      return EmulatorOperation("ack", vendorName: name, user: user, clientID: answer?["clientMsgID"]?.string)
    case .push:
      let body = try? OpenIMBody.push.decode(frame.data)
      let entry = body?["msgs"]?.object?.members.first ?? body?["notificationMsgs"]?.object?.members.first
      return EmulatorOperation(
        "push", vendorName: name, user: user, channel: entry?.key,
        clientID: entry?.value["Msgs"]?[0]?["clientMsgID"]?.string)
    case .pullRanges, .pullSequences: return EmulatorOperation("history", vendorName: name, user: user)
    case .newestSequences: return EmulatorOperation("auth", vendorName: name, user: user)
    default: return EmulatorOperation("other", vendorName: name, user: user)
    }
  }

  private static func neutralName(_ path: String) -> String {
    switch path {
    case "/msg/send_msg", "/msg/batch_send_msg": "send"
    case "/msg/revoke_msg": "recall"
    case "/msg/mark_conversation_as_read", "/msg/mark_msgs_as_read", "/msg/set_conversation_has_read_seq": "read"
    case "/msg/pull_msg_by_seq", "/msg/search_msg": "history"
    case "/group/create_group": "channelCreate"
    case "/group/invite_user_to_group", "/group/join_group", "/group/kick_group", "/group/quit_group": "member"
    default:
      path.hasPrefix("/auth/") ? "auth" : path.hasPrefix("/conversation/") || path.hasPrefix("/jssdk/")
        ? "channelQuery" : path.hasPrefix("/object/") || path.hasPrefix(storePath) ? "file" : "other"
    }
  }
}

extension OpenIMFault {
  /// A body that could not be bound, which some calls answer with status 400.
  fileprivate var binding: OpenIMFault { OpenIMFault(code: code, message: message, detail: Self.bindingMark) }
  fileprivate var isBinding: Bool { detail == Self.bindingMark }
  private static let bindingMark = "bind"
}
