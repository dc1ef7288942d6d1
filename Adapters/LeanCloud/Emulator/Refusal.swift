import ChatJSON
import ChatTransport
import LeanCloudWire

// Refusals that a test asks for, in the forms that clients of the vendor have met.

extension LeanCloudEmulator {
  public func refusal(of input: EmulatorInput, as failure: EmulatorFailure) -> [EmulatorOutput]? {
    switch input {
    case .http(let exchange, _): return [.respond(exchange, Self.response(failure))]
    case .message(let id, let message): return refusal(of: message, on: id, failure)
    case .open(let id, _): return [.reject(id, Self.response(failure))]
    default: return nil
    }
  }

  private static func response(_ failure: EmulatorFailure) -> HTTPResponse {
    let statuses = [
      "rateLimited": 429, "permission": 403, "notFound": 404, "authentication": 401, "server": 500, "tooLarge": 413,
    ]
    let codes: [String: Int64] = [
      "rateLimited": 429, "permission": 403, "notFound": 101, "authentication": 401, "server": 300, "conflict": 137,
      "tooLarge": 413, "timeout": 124,
    ]
    let code = failure.code.map { Int64($0) } ?? codes[failure.kind] ?? 1
    return .leanCloud(statuses[failure.kind] ?? 400, code: code, LeanCloudErrors.row(Int(clamping: code)).name)
  }

  private func refusal(
    of message: WebSocketMessage, on id: EmulatorConnectionID, _ failure: EmulatorFailure
  ) -> [EmulatorOutput]? {
    guard let connection = connections[id] else { return nil }
    let payload: LeanCloudPayload
    switch message {
    case .text(let text): payload = .text(text)
    case .binary(let bytes): payload = .binary(bytes)
    }
    guard let frame = try? connection.codec.decode(payload), frame.serial != nil,
      var answer = Self.answer(to: frame, failure)
    else { return nil }
    answer["i"] = frame.object["i"]
    answer.peerID = frame.peerID ?? connection.firstPeer
    if connection.codec.subprotocol.isNamed { answer["service"] = 2 }
    switch try? connection.codec.encode(answer) {
    case .text(let text)?: return [.send(id, .text(text))]
    case .binary(let bytes)?: return [.send(id, .binary(bytes))]
    case nil: return nil
    }
  }

  /// Shape 1 is what the command's own answer says, 2 an `error` frame. nil for what the vendor never refuses: a
  /// message that comes twice is acknowledged twice.
  private static func answer(to frame: LeanCloudFrame, _ failure: EmulatorFailure) -> LeanCloudFrame? {
    if failure.kind == "conflict", failure.code == nil, frame.command != "session" { return nil }
    let code = failure.code ?? code(for: failure.kind, frame)
    var answer: LeanCloudFrame
    switch (frame.command, frame.operation, failure.shape ?? 1) {
    case ("direct", _, 1): answer = LeanCloudFrame("ack")
    case ("session", "open", 1): answer = LeanCloudFrame("session", "closed")
    default: answer = LeanCloudFrame("error")
    }
    answer["code"] = .int(Int64(code))
    answer["reason"] = .string(LeanCloudErrors.row(code).name)
    return answer
  }

  private static func code(for kind: String, _ frame: LeanCloudFrame) -> Int {
    switch kind {
    case "permission": frame.command == "direct" ? 4317 : 4320
    case "notFound": frame.command == "direct" ? 4401 : frame.command == "patch" ? 4404 : 4303
    // A session token that is no good leads the long way in.
    case "authentication": frame.command == "session" ? (frame.string("st") == nil ? 4102 : 4112) : 4302
    case "rateLimited": frame.command == "direct" ? 4116 : 4318
    case "conflict": 4111
    case "invalidArgument": 4314
    case "tooLarge": 4109
    case "timeout": 4201
    default: frame.command == "conv" ? 4300 : 4200
    }
  }
}
