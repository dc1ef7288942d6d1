import ChatJSON
import ChatTransport
import SendbirdWire

// What fault rules need to know of this vendor's frames.
extension SendbirdEmulator {
  public func refusal(of input: EmulatorInput, as failure: EmulatorFailure) -> [EmulatorOutput]? {
    switch input {
    case .http(let id, _):
      guard let fault = Self.fault(failure, overSocket: false) else { return nil }
      let isRate = fault.httpStatus == 429
      return [.respond(id, isRate ? Self.tooManyRequests(.exceeded(at: now)) : Self.response(fault))]
    case .open(let id, _):
      guard let fault = Self.fault(failure, overSocket: false) else { return nil }
      return [
        .accept(id, subprotocol: nil), .send(id, .text(SendbirdFrame("LOGI", fault.json).text)),
        .close(id, WebSocketClose(code: 1000, reason: "")),
      ]
    case .message(let id, .text(let text)):
      // Only what waits for an answer can be refused.
      guard let fault = Self.fault(failure, overSocket: true),
        case .success(let frame)? = SendbirdFrame.parse(text).first,
        let request = frame.requestID
      else { return nil }
      var json = fault.json
      json["req_id"] = .string(request)
      return [.send(id, .text(SendbirdFrame("EROR", json).text))]
    case .message, .ping, .closed, .timer: return nil
    }
  }

  private static func fault(_ failure: EmulatorFailure, overSocket: Bool) -> SendbirdFault? {
    if let code = failure.code.map(Int64.init) {
      return SendbirdFault(code, SendbirdErrors.table[code]?.meaning ?? "", httpStatus: code == 500_910 ? 429 : 400)
    }
    switch failure.kind {
    case "authentication": return SendbirdFault(400302, "Session token is expired.")
    case "permission": return overSocket ? SendbirdFault(900041, "Muted.") : SendbirdFault(400108, "Not authorized.")
    case "notFound":
      return overSocket ? SendbirdFault(900500, "Channel not found.") : SendbirdFault(400201, "Not found.")
    case "invalidArgument": return SendbirdFault(400111, "Invalid value.")
    case "conflict": return SendbirdFault(400202, "Exists already.")
    case "tooLarge": return SendbirdFault(400203, "Too many items.")
    case "rateLimited":
      return overSocket
        ? SendbirdFault(900200, "Too many messages.") : SendbirdFault(500910, "Too many requests.", httpStatus: 429)
    case "server": return SendbirdFault(500901, "Internal error.", httpStatus: 500)
    default: return nil
    }
  }
}
