import ChatCrypto
import ChatJSON
import ChatTransport
import OpenIMWire

extension OpenIMEmulator {
  static let idleTimer = "idle"

  // MARK: Opening

  /// What the query of the upgrade request asks for (reference §2.1).
  private struct Handshake {
    var user: String
    var token: String
    var platform: Int64
    var codec: OpenIMCodec
    var wantsResult: Bool
    var isBackground: Bool
  }

  func open(_ id: EmulatorConnectionID, _ request: WebSocketRequest, _ step: inout OpenIMStep) {
    count("WS open")
    let url = OpenIMURL(request.url)
    let handshake: Handshake
    do { handshake = try readHandshake(url, request.headers) } catch {
      return step.outputs.append(.reject(id, Self.refusal(error)))
    }
    do {
      let user = try admit(handshake, now: step.now, context: &step.context)
      step.outputs.append(.accept(id, subprotocol: nil))
      if handshake.wantsResult {
        step.outputs.append(.send(id, .text(String(decoding: OpenIMREST.success(nil), as: UTF8.self))))
      }
      evictOthers(than: handshake.token, of: user, platform: handshake.platform, &step)
      connect(id, user, handshake, &step)
    } catch {
      guard handshake.wantsResult else { return step.outputs.append(.reject(id, Self.refusal(error))) }
      step.outputs += [
        .accept(id, subprotocol: nil),
        .send(id, .text(String(decoding: OpenIMREST.failure(error), as: UTF8.self))), .cut(id),
      ]
    }
  }

  /// Status 200, as the server refuses an upgrade.
  private static func refusal(_ fault: OpenIMFault) -> HTTPResponse {
    HTTPResponse(
      status: 200, headers: ["Content-Type": "application/json; charset=utf-8"], body: OpenIMREST.failure(fault))
  }

  private func readHandshake(_ url: OpenIMURL, _ headers: HTTPHeaders) throws(OpenIMFault) -> Handshake {
    var query = url.query
    if let packed = query["v"] { query = try Self.unpack(packed) }
    func text(_ name: String) -> String { query[name] ?? "" }
    guard !text("sendID").isEmpty, !text("token").isEmpty, let platform = Int64(text("platformID")),
      OpenIMPlatform.isKnown(platform), !text("operationID").isEmpty
    else {
      throw OpenIMFault(.connectionArguments, "sendID, token, platformID or operationID is missing or wrong")
    }
    let form: OpenIMCodec.Form
    switch text("sdkType") {
    case "", "go": form = .gob
    case "js": form = .json
    default: throw OpenIMFault(.connectionArguments, "sdkType is not supported")
    }
    guard let isBackground = Self.goBool(text("isBackground")) else {
      throw OpenIMFault(.serverInternal, "strconv.ParseBool: parsing \"\(text("isBackground"))\": invalid syntax")
    }
    let compression = query["compression"] ?? headers["compression"] ?? ""
    return Handshake(
      user: text("sendID"), token: text("token"), platform: platform,
      codec: OpenIMCodec(form: form, isCompressed: compression == "gzip"),
      wantsResult: Self.goBool(text("isMsgResp")) ?? false, isBackground: isBackground)
  }

  /// The texts that Go takes for booleans.
  private static func goBool(_ text: String) -> Bool? {
    switch text {
    case "1", "t", "T", "true", "TRUE", "True": true
    case "0", "f", "F", "false", "FALSE", "False": false
    default: nil
    }
  }

  /// The one parameter that holds all others as JSON in base64url.
  private static func unpack(_ packed: String) throws(OpenIMFault) -> [String: String] {
    guard let bytes = Base64.urlDecode(packed), let json = (try? JSONValue(parsing: bytes))?.object else {
      throw OpenIMFault(.connectionArguments, "v is not base64url of JSON")
    }
    var query: [String: String] = [:]
    let names = [
      "token": "token", "userID": "sendID", "platformID": "platformID", "operationID": "operationID",
      "compression": "compression", "sdkType": "sdkType", "sendResponse": "isMsgResp",
      "background": "isBackground",
    ]
    query["isBackground"] = "false"
    for (name, parameter) in names {
      switch json[name] {
      case .string(let text)?: query[parameter] = text
      case .int(let number)?: query[parameter] = String(number)
      case .bool(let flag)?: query[parameter] = flag ? "true" : "false"
      default: break
      }
    }
    return query
  }

  private func admit(
    _ handshake: Handshake, now: Int64, context: inout EmulatorContext
  ) throws(OpenIMFault) -> OpenIMUser {
    if options.openAuthentication, tokens[handshake.token] == nil {
      let user = user(handshake.user) ?? addUser(handshake.user, nickname: handshake.user, context: &context)
      tokens.preset(handshake.token, for: user.id)
      return user
    }
    let caller = try caller(handshake.token, now: now)
    guard caller.userID.utf8.elementsEqual(handshake.user.utf8) else {
      throw OpenIMFault(.tokenInvalid, "token uid \(caller.userID) != userID \(handshake.user)")
    }
    guard caller.platform == 0 || caller.platform == handshake.platform else {
      throw OpenIMFault(.tokenInvalid, "token platform \(caller.platform) != platformID \(handshake.platform)")
    }
    guard let user = user(handshake.user) else { throw OpenIMFault(.userNotFound) }
    return user
  }

  /// A newer token of a platform that excludes others ends their sockets; the same token does not.
  private func evictOthers(than token: String, of user: OpenIMUser, platform: Int64, _ step: inout OpenIMStep) {
    let policy = loginPolicy
    kick(
      user.id,
      where: { policy.excludes($0.platform, by: platform) && !$0.token.utf8.elementsEqual(token.utf8) }, &step)
  }

  private func connect(
    _ id: EmulatorConnectionID, _ user: OpenIMUser, _ handshake: Handshake, _ step: inout OpenIMStep
  ) {
    let wasOnline = !user.connections.isEmpty
    connections[id] = OpenIMConnection(
      id: id, user: user, platform: handshake.platform, token: handshake.token, codec: handshake.codec,
      lastInput: step.now)
    user.connections.append(id)
    if !wasOnline { tellPresence(of: user, &step) }
    armIdleTimer(&step)
  }

  func close(_ id: EmulatorConnectionID, _ step: inout OpenIMStep) {
    guard let connection = connections.removeValue(forKey: id) else { return }
    connection.user.connections.removeAll { $0 == id }
    if connection.user.connections.isEmpty { tellPresence(of: connection.user, &step) }
  }

  /// Frame 2002 and the end of the link.
  func kick(_ userID: String, where isMeant: (OpenIMConnection) -> Bool, _ step: inout OpenIMStep) {
    for id in user(userID)?.connections ?? [] {
      guard let connection = connections[id], isMeant(connection) else { continue }
      let frame = OpenIMResponseFrame(operation: OpenIMOperation.kicked.rawValue)
      step.outputs += [.send(id, .binary(connection.codec.encode(frame))), .cut(id)]
      close(id, &step)
    }
  }

  // MARK: Liveness

  func touch(_ id: EmulatorConnectionID, _ now: Int64) { connections[id]?.lastInput = now }

  private func armIdleTimer(_ step: inout OpenIMStep) {
    guard idleTimeout > 0, !idleTimerIsSet, let first = connections.values.map(\.lastInput).min() else { return }
    idleTimerIsSet = true
    step.outputs.append(.setTimer(Self.idleTimer, dueAt: max(step.now + 1, first + idleTimeout)))
  }

  func cutIdle(_ step: inout OpenIMStep) {
    idleTimerIsSet = false
    for connection in connections.values.sorted(by: { $0.id < $1.id })
    where connection.lastInput + idleTimeout <= step.now {
      step.outputs.append(.cut(connection.id))
      close(connection.id, &step)
    }
    armIdleTimer(&step)
  }

  // MARK: Frames

  func receive(_ id: EmulatorConnectionID, _ message: WebSocketMessage, _ step: inout OpenIMStep) {
    guard let connection = connections[id] else { return }
    touch(id, step.now)
    guard !connection.isWaiting else {
      connections[id]?.held.append(message)
      return
    }
    switch message {
    case .text(let text): receiveText(id, text, &step)
    case .binary(let bytes):
      guard !limitsAreReal || bytes.count <= Self.maximumFrame else {
        step.outputs.append(.close(id, WebSocketClose(code: 1009)))
        return close(id, &step)
      }
      guard let frame = try? connection.codec.decodeRequest(bytes),
        frame.sender.utf8.elementsEqual(connection.user.id.utf8)
      else { return cut(id, &step) }
      // Calls are set up elsewhere: the open server knows the number and fails.
      guard frame.operation != OpenIMOperation.signal else {
        count("WS 1004 signal")
        return reply(connection, frame, .failure(OpenIMFault(.serverInternal)), &step)
      }
      guard let operation = OpenIMOperation(rawValue: frame.operation), let body = operation.request
      else { return cut(id, &step) }
      count("WS \(frame.operation) \(operation)")
      step.operationID = frame.operationID
      guard let request = try? body.decode(frame.data) else {
        return reply(connection, frame, .failure(OpenIMFault(.serverInternal)), &step)
      }
      serve(connection, operation, frame, request, &step)
    }
  }

  private func cut(_ id: EmulatorConnectionID, _ step: inout OpenIMStep) {
    step.outputs.append(.cut(id))
    close(id, &step)
  }

  /// Only pings come as text; anything else ends the link without a close frame.
  private func receiveText(_ id: EmulatorConnectionID, _ text: String, _ step: inout OpenIMStep) {
    let json = try? JSONValue(parsing: text)
    switch json?["type"]?.string {
    case "ping":
      count("WS ping")
      let answer: JSONValue = ["type": "pong", "body": json?["body"] ?? .null]
      step.outputs.append(.send(id, .text(answer.text())))
    case "pong": break
    default: cut(id, &step)
    }
  }

  func reply(
    _ connection: OpenIMConnection, _ frame: OpenIMRequestFrame, _ result: Result<[UInt8], OpenIMFault>,
    _ step: inout OpenIMStep
  ) {
    var answer = OpenIMResponseFrame(
      operation: frame.operation, increment: frame.increment, operationID: frame.operationID)
    switch result {
    case .success(let data): answer.data = data
    case .failure(let fault):
      answer.code = fault.code
      answer.message = fault.message
    }
    step.outputs.append(.send(connection.id, .binary(connection.codec.encode(answer))))
  }

  private func serve(
    _ connection: OpenIMConnection, _ operation: OpenIMOperation, _ frame: OpenIMRequestFrame,
    _ request: JSONValue, _ step: inout OpenIMStep
  ) {
    if operation == .send { return serveSend(connection, frame, OpenIMMessageData(json: request), &step) }
    do {
      var data: [UInt8] = []
      if let value = try answer(connection, operation, request), let body = operation.answer {
        data = (try? body.encode(value)) ?? []
      }
      reply(connection, frame, .success(data), &step)
    } catch {
      reply(connection, frame, .failure(error), &step)
    }
    if operation == .logout { cut(connection.id, &step) }
  }

  private func answer(
    _ connection: OpenIMConnection, _ operation: OpenIMOperation, _ request: JSONValue
  ) throws(OpenIMFault) -> JSONValue? {
    switch operation {
    case .newestSequences:
      return ["maxSeqs": .object(newestSequences(of: try own(connection, request)))]
    case .readAndMaxSequences:
      let user = try own(connection, request)
      return ["seqs": .object(readAndMax(of: user, only: strings(request["conversationIDs"])))]
    case .pullRanges:
      return pulled(of: try own(connection, request), request, form: .frame)
    case .pullSequences: return pulledLists(of: connection.user, request)
    case .lastMessages:
      return ["msgs": .object(lastMessages(of: try own(connection, request), strings(request["conversationIDs"])))]
    case .background:
      connections[connection.id]?.isBackground = request["isBackground"]?.bool ?? false
      return nil
    case .presence: return subscribe(connection, request)
    case .send, .logout, .push, .kicked: return nil
    }
  }

  /// The user that the request names, who must be the connection's.
  private func own(_ connection: OpenIMConnection, _ request: JSONValue) throws(OpenIMFault) -> OpenIMUser {
    guard let id = request["userID"]?.string, id.utf8.elementsEqual(connection.user.id.utf8) else {
      throw OpenIMFault(.noPermission)
    }
    return connection.user
  }

  func strings(_ value: JSONValue?) -> [String] { (value?.array ?? []).compactMap(\.string) }

  private func serveSend(
    _ connection: OpenIMConnection, _ frame: OpenIMRequestFrame, _ data: OpenIMMessageData,
    _ step: inout OpenIMStep
  ) {
    do throws(OpenIMFault) {
      guard data.sendID.utf8.elementsEqual(connection.user.id.utf8) else { throw OpenIMFault(.noPermission) }
      let prepared = try prepare(data, sender: connection.user, &step)
      submit(prepared, from: .frame(connection.id, frame), &step)
    } catch {
      reply(connection, frame, .failure(error), &step)
    }
  }

  // MARK: Presence

  private func subscribe(_ connection: OpenIMConnection, _ request: JSONValue) -> JSONValue {
    let wanted = strings(request["subscribeUserID"])
    for id in strings(request["unsubscribeUserID"]) {
      connections[connection.id]?.subscriptions.remove(OpenIMKey(id))
    }
    for id in wanted { connections[connection.id]?.subscriptions.insert(OpenIMKey(id)) }
    return ["subscribers": .array(wanted.map { presence(of: $0) })]
  }

  private func presence(of id: String) -> JSONValue {
    let platforms = onlinePlatforms(of: id)
    var entry: JSONObject = ["userID": .string(id)]
    if !platforms.isEmpty { entry["onlinePlatformIDs"] = .array(platforms.map { .int($0) }) }
    return .object(entry)
  }

  func onlinePlatforms(of id: String) -> [Int64] {
    Set((user(id)?.connections ?? []).compactMap { connections[$0]?.platform }).sorted()
  }

  private func tellPresence(of user: OpenIMUser, _ step: inout OpenIMStep) {
    let key = OpenIMKey(user.id)
    let interested = connections.values.filter { $0.subscriptions.contains(key) }.sorted { $0.id < $1.id }
    guard !interested.isEmpty else { return }
    let tips: JSONValue = ["subscribers": .array([presence(of: user.id)])]
    guard let data = try? OpenIMBody.presenceTips.encode(tips) else { return }
    let frame = OpenIMResponseFrame(operation: OpenIMOperation.presence.rawValue, data: data)
    for connection in interested {
      step.outputs.append(.send(connection.id, .binary(connection.codec.encode(frame))))
    }
  }
}
