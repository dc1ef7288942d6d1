import ChatJSON
import ChatTransport
import OpenIMWire

/// Calls to the app's own server around the sending of a message (reference §6.8). Only those of sending are made; a
/// URL must be one of this machine.
struct OpenIMWebhooks: Sendable {
  /// Without a slash at its end; "" for none.
  var url = ""
  /// By the names of the server's configuration.
  var enabled: Set<Hook> = []
  /// Whether a message goes on when the app's server says nothing.
  var failedContinue = true

  enum Hook: String, Sendable, CaseIterable {
    case beforeSendSingleMsg, afterSendSingleMsg, beforeSendGroupMsg, afterSendGroupMsg, beforeMsgModify

    /// What the URL ends in, and `callbackCommand` says.
    var command: String {
      switch self {
      case .beforeSendSingleMsg: "callbackBeforeSendSingleMsgCommand"
      case .afterSendSingleMsg: "callbackAfterSendSingleMsgCommand"
      case .beforeSendGroupMsg: "callbackBeforeSendGroupMsgCommand"
      case .afterSendGroupMsg: "callbackAfterSendGroupMsgCommand"
      case .beforeMsgModify: "callbackBeforeMsgModifyCommand"
      }
    }
  }

  func has(_ hook: Hook) -> Bool { !url.isEmpty && enabled.contains(hook) }
}

/// A message that waits for the app's server.
struct OpenIMPendingSend {
  enum Origin {
    case frame(EmulatorConnectionID, OpenIMRequestFrame)
    case exchange(EmulatorExchangeID, HTTPRequest)
  }

  var data: OpenIMMessageData
  var origin: Origin
  var operationID: String
  /// The question that is open.
  var hook: OpenIMWebhooks.Hook
  var isModified = false
}

extension OpenIMEmulator: CallingEmulator {
  public func takeCalls() -> [EmulatorCall] {
    defer { waitingCalls = [] }
    return waitingCalls
  }

  public func handleAnswer(
    to call: UInt64, _ response: HTTPResponse?, context: inout EmulatorContext
  ) -> [EmulatorOutput] {
    // What was said after a send changes nothing.
    guard var pending = pendingSends.removeValue(forKey: call) else { return [] }
    var step = OpenIMStep(context: context)
    step.operationID = pending.operationID
    let answer = (response?.status == 200 ? response : nil).flatMap { try? JSONValue(parsing: $0.body) }
    if let fault = refusal(answer) { refuse(pending, fault, &step) } else {
      if pending.hook == .beforeMsgModify, let answer { Self.modify(&pending, answer) }
      goOn(pending, after: pending.hook, &step)
    }
    context = step.context
    return step.outputs
  }

  /// `nextCode` 1 refuses, in the words of the app's server.
  private func refusal(_ answer: JSONValue?) -> OpenIMFault? {
    guard let answer else {
      return webhooks.failedContinue ? nil : OpenIMFault(.networkError, "the callback failed")
    }
    guard answer["actionCode"]?.int ?? 0 == 0, answer["nextCode"]?.int == 1 else { return nil }
    let code = answer["errCode"]?.int ?? 0
    return OpenIMFault(
      code: code == 0 ? OpenIMErrorTable.Row.callback.code : code,
      message: answer["errMsg"]?.string ?? OpenIMErrorTable.Row.callback.name,
      detail: answer["errDlt"]?.string ?? "")
  }

  private static func modify(_ pending: inout OpenIMPendingSend, _ answer: JSONValue) {
    func change(_ key: String, _ place: WritableKeyPath<OpenIMMessageData, String>) {
      guard let text = answer[key]?.string else { return }
      pending.data[keyPath: place] = text
      pending.isModified = true
    }
    change("recvID", \.recvID)
    change("groupID", \.groupID)
    change("clientMsgID", \.clientMsgID)
    change("senderNickname", \.senderNickname)
    change("senderFaceURL", \.senderFaceURL)
    change("ex", \.ex)
    if let content = answer["content"]?.string {
      pending.data.content = Array(content.utf8)
      pending.isModified = true
    }
    if let type = answer["contentType"]?.int {
      pending.data.contentType = type
      pending.isModified = true
    }
  }

  // MARK: One send

  /// Asks before a send, where the app's server wants to be asked; else the message goes out at once.
  /// - Returns: false when the answer comes later.
  @discardableResult
  func submit(
    _ data: OpenIMMessageData, from origin: OpenIMPendingSend.Origin, _ step: inout OpenIMStep
  ) -> Bool {
    let hook: OpenIMWebhooks.Hook =
      data.sessionType == OpenIMSessionType.group ? .beforeSendGroupMsg : .beforeSendSingleMsg
    let pending = OpenIMPendingSend(data: data, origin: origin, operationID: step.operationID, hook: hook)
    if asks(hook, data) {
      ask(pending, hook)
      return false
    }
    return goOn(pending, after: hook, &step)
  }

  private func asks(_ hook: OpenIMWebhooks.Hook, _ data: OpenIMMessageData) -> Bool {
    // The server leaves typing hints and its own notices out.
    webhooks.has(hook) && data.contentType != OpenIMContentType.typing
      && !OpenIMContentType.isNotice(data.contentType)
  }

  private func ask(_ pending: OpenIMPendingSend, _ hook: OpenIMWebhooks.Hook) {
    var pending = pending
    pending.hook = hook
    let id = call(hook, pending.data, pending.operationID)
    pendingSends[id] = pending
    if case .frame(let connection, _) = pending.origin { connections[connection]?.isWaiting = true }
  }

  @discardableResult
  private func goOn(
    _ pending: OpenIMPendingSend, after hook: OpenIMWebhooks.Hook, _ step: inout OpenIMStep
  ) -> Bool {
    if hook != .beforeMsgModify, asks(.beforeMsgModify, pending.data) {
      ask(pending, .beforeMsgModify)
      return false
    }
    answer(pending, &step)
    deliver(pending.data, &step)
    let isGroup = pending.data.sessionType == OpenIMSessionType.group
    let after: OpenIMWebhooks.Hook = isGroup ? .afterSendGroupMsg : .afterSendSingleMsg
    if asks(after, pending.data) { _ = call(after, pending.data, pending.operationID) }
    release(pending.origin, &step)
    return true
  }

  private func answer(_ pending: OpenIMPendingSend, _ step: inout OpenIMStep) {
    var answer = Self.sendAnswer(pending.data)
    func add(_ modified: JSONValue) {
      guard pending.isModified, case .object(var members) = answer else { return }
      members["modify"] = modified
      answer = .object(members)
    }
    switch pending.origin {
    case .frame(let id, let frame):
      guard let connection = connections[id] else { return }
      add(pending.data.frameJSON)
      reply(connection, frame, .success((try? OpenIMBody.sendAnswer.encode(answer)) ?? []), &step)
    case .exchange(let id, let request):
      add(pending.data.restJSON)
      step.outputs.append(.respond(id, Self.json(OpenIMREST.success(answer), request)))
    }
  }

  private func refuse(_ pending: OpenIMPendingSend, _ fault: OpenIMFault, _ step: inout OpenIMStep) {
    switch pending.origin {
    case .frame(let id, let frame):
      if let connection = connections[id] { reply(connection, frame, .failure(fault), &step) }
    case .exchange(let id, let request):
      step.outputs.append(.respond(id, Self.json(OpenIMREST.failure(fault), request)))
    }
    release(pending.origin, &step)
  }

  /// A connection's requests are handled one after the other: those that came meanwhile are now.
  private func release(_ origin: OpenIMPendingSend.Origin, _ step: inout OpenIMStep) {
    guard case .frame(let id, _) = origin, connections[id]?.isWaiting == true else { return }
    connections[id]?.isWaiting = false
    while connections[id]?.isWaiting == false, connections[id]?.held.isEmpty == false,
      let next = connections[id]?.held.removeFirst()
    {
      receive(id, next, &step)
    }
  }

  // MARK: The call

  private func call(_ hook: OpenIMWebhooks.Hook, _ data: OpenIMMessageData, _ operationID: String) -> UInt64 {
    lastCall &+= 1
    count("webhook \(hook.rawValue)")
    waitingCalls.append(
      EmulatorCall(
        id: lastCall,
        request: HTTPRequest(
          "POST", "\(webhooks.url)/\(hook.command)",
          headers: ["Content-Type": "application/json", "operationID": operationID],
          body: Self.body(hook, data, operationID).bytes(), timeout: .seconds(5))))
    return lastCall
  }

  private static func body(
    _ hook: OpenIMWebhooks.Hook, _ data: OpenIMMessageData, _ operationID: String
  ) -> JSONValue {
    var body: JSONObject = [
      "sendID": .string(data.sendID), "callbackCommand": .string(hook.command),
      "serverMsgID": .string(data.serverMsgID), "clientMsgID": .string(data.clientMsgID),
      "operationID": .string(operationID), "senderPlatformID": .int(data.senderPlatformID),
      "senderNickname": .string(data.senderNickname), "sessionType": .int(data.sessionType),
      "msgFrom": .int(data.msgFrom), "contentType": .int(data.contentType), "status": .int(data.status),
      "sendTime": .int(data.sendTime), "createTime": .int(data.createTime),
      "content": .string(String(decoding: data.content, as: UTF8.self)), "seq": .int(data.seq),
      "atUserList": data.atUserIDList.map { .string($0) }.orNull, "faceURL": .string(data.senderFaceURL),
      "ex": .string(data.ex),
    ]
    if data.sessionType == OpenIMSessionType.group { body["groupID"] = .string(data.groupID) } else {
      body["recvID"] = .string(data.recvID)
    }
    return .object(body)
  }
}
