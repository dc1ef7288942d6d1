import ChatJSON
import ChatTransport

/// What frames and bodies say as JSON, for rules that compare or patch.
extension EmulatorHost {
  func content(of input: EmulatorInput) -> JSONValue? {
    switch input {
    case .http(_, let request): FramedJSON(request.body)?.value
    case .message(let id, let message): content(of: message, on: id, isInbound: true)
    default: nil
    }
  }

  func content(of output: EmulatorOutput) -> JSONValue? {
    switch output {
    case .respond(_, let response), .reject(_, let response): FramedJSON(response.body)?.value
    case .send(let id, let message): content(of: message, on: id, isInbound: false)
    default: nil
    }
  }

  private func content(
    of message: WebSocketMessage, on id: EmulatorConnectionID, isInbound: Bool
  ) -> JSONValue? {
    machine.content(of: message, on: id, isInbound: isInbound) ?? FramedJSON(message.bytes)?.value
  }

  /// Nil when it holds no JSON, or no such place.
  func patch(_ input: EmulatorInput, _ changes: [String: JSONValue?]) -> EmulatorInput? {
    switch input {
    case .http(let id, var request):
      guard let body = FramedJSON(request.body)?.patched(changes) else { return nil }
      request.body = Array(body.text.utf8)
      return .http(id, request)
    case .message(let id, let message): return patch(message, changes, id, isInbound: true).map { .message(id, $0) }
    default: return nil
    }
  }

  func patch(_ output: EmulatorOutput, _ changes: [String: JSONValue?]) -> EmulatorOutput? {
    switch output {
    case .respond(let id, var response):
      guard let body = FramedJSON(response.body)?.patched(changes) else { return nil }
      response.body = Array(body.text.utf8)
      return .respond(id, response)
    case .send(let id, let message): return patch(message, changes, id, isInbound: false).map { .send(id, $0) }
    default: return nil
    }
  }

  private func patch(
    _ message: WebSocketMessage, _ changes: [String: JSONValue?], _ id: EmulatorConnectionID, isInbound: Bool
  ) -> WebSocketMessage? {
    if var content = machine.content(of: message, on: id, isInbound: isInbound) {
      guard content.apply(changes) else { return nil }
      return machine.message(content, like: message, on: id, isInbound: isInbound)
    }
    guard let patched = FramedJSON(message.bytes)?.patched(changes) else { return nil }
    return if case .text = message { .text(patched.text) } else { .binary(Array(patched.text.utf8)) }
  }
}
