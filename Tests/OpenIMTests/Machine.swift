import ChatJSON
import ChatTransport
import Foundation
import OpenIMEmulator
import OpenIMWire

/// The emulator without a host: what goes in, and what came out by connection.
final class Machine {
  enum Received: Equatable {
    case text(String)
    case frame(OpenIMResponseFrame)
    case closed(UInt16?)
  }

  let emulator: OpenIMEmulator
  var context: EmulatorContext
  private var codecs: [EmulatorConnectionID: OpenIMCodec] = [:]
  private(set) var inbox: [EmulatorConnectionID: [Received]] = [:]
  private var lastID: UInt64 = 0
  private var lastExchange: UInt64 = 0
  private(set) var refusal: HTTPResponse?
  private(set) var timers: [String: Int64] = [:]

  init(now: Int64 = 1_796_020_902_678, options: EmulatorOptions? = nil) throws {
    emulator = try OpenIMEmulator(options: options ?? EmulatorOptions(adminSecret: "openIM123"))
    context = EmulatorContext(now: now, random: EmulatorRandom(seed: 1))
  }

  private var response: HTTPResponse?
  var lastResponse: HTTPResponse? { response }

  func feed(_ input: EmulatorInput) { take(emulator.handle(input, context: &context)) }

  /// What the other server said to a call of the emulated one.
  func answer(_ call: EmulatorCall, _ response: HTTPResponse?) {
    take(emulator.handleAnswer(to: call.id, response, context: &context))
  }

  private func take(_ outputs: [EmulatorOutput]) {
    for output in outputs {
      switch output {
      case .respond(_, let answer): response = answer
      case .accept(let id, _): inbox[id] = []
      case .reject(_, let answer): refusal = answer
      case .send(let id, .text(let text)): inbox[id, default: []].append(.text(text))
      case .send(let id, .binary(let bytes)):
        guard let frame = try? codecs[id]?.decodeResponse(bytes) else { continue }
        inbox[id, default: []].append(.frame(frame))
      case .close(let id, let close): inbox[id, default: []].append(.closed(close.code))
      case .cut(let id): inbox[id, default: []].append(.closed(nil))
      case .setTimer(let name, let due): timers[name] = due
      case .cancelTimer(let name): timers[name] = nil
      }
    }
  }

  func open(_ uri: String) -> EmulatorConnectionID {
    lastID += 1
    let id = EmulatorConnectionID(lastID)
    refusal = nil
    codecs[id] = OpenIMCodec(
      form: uri.contains("sdkType=js") ? .json : .gob, isCompressed: uri.contains("compression=gzip"))
    feed(.open(id, WebSocketRequest("ws://emulator" + uri)))
    return id
  }

  func send(_ frame: OpenIMRequestFrame, on id: EmulatorConnectionID) {
    guard let codec = codecs[id] else { return }
    feed(.message(id, .binary(codec.encode(frame))))
  }

  func send(
    _ operation: OpenIMOperation, _ body: JSONValue, on id: EmulatorConnectionID, as user: String,
    increment: String = "1", operationID: String = "op"
  ) throws {
    let data = try operation.request?.encode(body) ?? []
    send(
      OpenIMRequestFrame(
        operation: operation.rawValue, sender: user, operationID: operationID, increment: increment, data: data),
      on: id)
  }

  /// The next thing that came to `id`; nil when nothing did.
  func next(_ id: EmulatorConnectionID) -> Received? {
    guard inbox[id]?.isEmpty == false else { return nil }
    return inbox[id]?.removeFirst()
  }

  func nextFrame(_ id: EmulatorConnectionID) -> OpenIMResponseFrame? {
    if case .frame(let frame)? = next(id) { frame } else { nil }
  }

  /// The body of the next frame.
  func nextBody(_ id: EmulatorConnectionID) throws -> JSONValue? {
    guard let frame = nextFrame(id), let body = OpenIMOperation(rawValue: frame.operation)?.answer else { return nil }
    return try body.decode(frame.data)
  }

  func request(
    _ method: String, _ path: String, body: [UInt8] = [], headers: HTTPHeaders = [:]
  ) -> HTTPResponse {
    lastExchange += 1
    response = nil
    feed(.http(EmulatorExchangeID(lastExchange), HTTPRequest(method, "http://emulator\(path)", headers: headers, body: body)))
    return response ?? HTTPResponse(status: 0)
  }

  func post(_ path: String, _ body: JSONValue, token: String? = nil, operationID: String = "op") -> JSONValue {
    var headers: HTTPHeaders = ["operationID": operationID]
    headers["token"] = token
    let response = request("POST", path, body: body.bytes(), headers: headers)
    return (try? JSONValue(parsing: response.body)) ?? .null
  }

  // MARK: Usual steps

  func adminToken(secret: String = "openIM123") -> String {
    post("/auth/get_admin_token", ["secret": .string(secret), "userID": "imAdmin"])["data"]?["token"]?.string ?? ""
  }

  func register(_ ids: [String], admin: String) {
    _ = post(
      "/user/user_register",
      ["users": .array(ids.map { ["userID": .string($0), "nickname": .string($0.capitalized), "faceURL": ""] })],
      token: admin)
  }

  func userToken(_ id: String, platform: Int64 = 5, admin: String) -> String {
    post(
      "/auth/get_user_token", ["userID": .string(id), "platformID": .int(platform)], token: admin)["data"]?["token"]?
      .string ?? ""
  }

  func openJSON(_ id: String, _ token: String, platform: Int64 = 5) -> EmulatorConnectionID {
    open(
      "/?sendID=\(id)&token=\(token)&platformID=\(platform)&operationID=o&isBackground=false&sdkType=js&isMsgResp=true"
    )
  }
}
