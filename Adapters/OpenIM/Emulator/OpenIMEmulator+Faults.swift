import ChatJSON
import ChatTransport
import OpenIMWire

/// What fault rules need to know of this vendor's frames.
extension OpenIMEmulator {
  public func refusal(of input: EmulatorInput, as failure: EmulatorFailure) -> [EmulatorOutput]? {
    guard let fault = Self.fault(failure) else { return nil }
    switch input {
    case .http(let id, _):
      return [
        .respond(
          id,
          HTTPResponse(
            status: failure.kind == "rateLimited" ? 429 : 200,
            headers: ["Content-Type": "application/json; charset=utf-8"], body: OpenIMREST.failure(fault)))
      ]
    case .open(let id, let request):
      guard OpenIMURL(request.url).query["isMsgResp"] == "true" else {
        return [.reject(id, HTTPResponse(status: 200, body: OpenIMREST.failure(fault)))]
      }
      let text = String(decoding: OpenIMREST.failure(fault), as: UTF8.self)
      return [.accept(id, subprotocol: nil), .send(id, .text(text)), .cut(id)]
    case .message(let id, .binary(let bytes)):
      // The gateway has no way to say that too much was asked.
      guard failure.kind != "rateLimited", let codec = connections[id]?.codec,
        let frame = try? codec.decodeRequest(bytes)
      else { return nil }
      let answer = OpenIMResponseFrame(
        operation: frame.operation, increment: frame.increment, operationID: frame.operationID, code: fault.code,
        message: fault.message)
      return [.send(id, .binary(codec.encode(answer)))]
    case .message, .ping, .closed, .timer: return nil
    }
  }

  private static func fault(_ failure: EmulatorFailure) -> OpenIMFault? {
    if let code = failure.code.map(Int64.init) {
      return OpenIMFault(code: code, message: OpenIMErrorTable.row(code)?.name ?? "")
    }
    switch failure.kind {
    case "authentication": return OpenIMFault(.tokenExpired)
    case "permission": return OpenIMFault(.noPermission)
    case "notFound": return OpenIMFault(.notFound)
    case "invalidArgument": return OpenIMFault(.arguments)
    case "conflict": return OpenIMFault(.registeredAlready)
    case "server", "rateLimited": return OpenIMFault(.serverInternal)
    default: return nil
    }
  }

  /// The envelope, with the body of `data` in the place of its bytes.
  public func content(
    of message: WebSocketMessage, on connection: EmulatorConnectionID, isInbound: Bool
  ) -> JSONValue? {
    guard case .binary(let bytes) = message, let codec = connections[connection]?.codec else { return nil }
    if isInbound {
      guard let frame = try? codec.decodeRequest(bytes) else { return nil }
      return [
        "reqIdentifier": .int(frame.operation), "sendID": .string(frame.sender),
        "operationID": .string(frame.operationID), "msgIncr": .string(frame.increment),
        "data": Self.body(OpenIMOperation(rawValue: frame.operation)?.request, frame.data),
      ]
    }
    guard let frame = try? codec.decodeResponse(bytes) else { return nil }
    return [
      "reqIdentifier": .int(frame.operation), "msgIncr": .string(frame.increment),
      "operationID": .string(frame.operationID), "errCode": .int(frame.code), "errMsg": .string(frame.message),
      "data": Self.body(OpenIMOperation(rawValue: frame.operation)?.answer, frame.data),
    ]
  }

  private static func body(_ body: OpenIMBody?, _ data: [UInt8]) -> JSONValue {
    (try? body?.decode(data)) ?? .null
  }

  public func message(
    _ content: JSONValue, like message: WebSocketMessage, on connection: EmulatorConnectionID, isInbound: Bool
  ) -> WebSocketMessage? {
    guard let codec = connections[connection]?.codec else { return nil }
    let operation = content["reqIdentifier"]?.int ?? 0
    let known = OpenIMOperation(rawValue: operation)
    func data(_ body: OpenIMBody?) -> [UInt8] {
      guard let body, let value = content["data"], !value.isNull else { return [] }
      return (try? body.encode(value)) ?? []
    }
    func text(_ key: String) -> String { content[key]?.string ?? "" }
    if isInbound {
      return .binary(
        codec.encode(
          OpenIMRequestFrame(
            operation: operation, sender: text("sendID"), operationID: text("operationID"),
            increment: text("msgIncr"), data: data(known?.request))))
    }
    return .binary(
      codec.encode(
        OpenIMResponseFrame(
          operation: operation, increment: text("msgIncr"), operationID: text("operationID"),
          code: content["errCode"]?.int ?? 0, message: text("errMsg"), data: data(known?.answer))))
  }
}
