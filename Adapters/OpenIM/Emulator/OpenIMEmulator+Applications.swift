import ChatJSON
import ChatTransport
import OpenIMWire

/// Requests to join a group, which its owner and admins answer (reference §6.3).
extension OpenIMEmulator {
  static let applicationHandlers: [String: Handler] = [
    "/group/join_group": { emulator, call, step in try emulator.join(call, &step) },
    "/group/group_application_response": { emulator, call, step in try emulator.answerApplication(call, &step) },
    "/group/get_recv_group_applicationList": { emulator, call, _ in try emulator.receivedApplications(call) },
    "/group/get_user_req_group_applicationList": { emulator, call, _ in try emulator.ownApplications(call) },
    "/group/get_group_application_unhandled_count": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      let open = emulator.managedGroups(of: user, only: []).flatMap(\.requests).filter {
        $0.handleResult == OpenIMHandling.open && $0.reqTime > call.int("time")
      }
      return ["count": JSONValue(open.count)]
    },
  ]

  /// What a group asks of those who want in.
  enum Verification {
    static let direct: Int64 = 2
    static let everybody: Int64 = 1
  }

  /// The one who joins is `inviterUserID` (reference §6.3).
  private func join(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let id = try call.needed("inviterUserID")
    try call.needSelf(id)
    guard let group = group(try call.needed("groupID")) else { throw OpenIMFault(.serverInternal) }
    guard group.status != OpenIMGroup.dismissed else { throw OpenIMFault(.dismissed) }
    guard user(id) != nil else { throw OpenIMFault(.userNotFound) }
    guard group[member: id] == nil else { throw OpenIMFault(.arguments, "user already in group") }
    guard group.needVerification == Verification.direct else {
      var request = OpenIMGroupRequest(
        userID: id, reqMsg: call.string("reqMessage"), reqTime: step.now, joinSource: call.int("joinSource"),
        inviterUserID: id)
      request.ex = call.string("ex")
      apply(request, to: group, &step)
      return nil
    }
    enter(id, group, joinSource: call.int("joinSource"), inviter: "", call, &step)
    return nil
  }

  /// Owner and admins are told, and the applicant.
  func apply(_ request: OpenIMGroupRequest, to group: OpenIMGroup, _ step: inout OpenIMStep) {
    group.requests.removeAll { $0.userID.utf8.elementsEqual(request.userID.utf8) }
    group.requests.append(request)
    let key = OpenIMKey(group.id)
    user(request.userID)?.askedGroups.removeAll { $0 == key }
    user(request.userID)?.askedGroups.append(key)
    let detail: JSONValue = [
      "group": group.info, "applicant": publicInfo(request.userID), "reqMsg": .string(request.reqMsg),
      "uuid": .string(step.context.hex(32)), "request": info(request, of: group),
    ]
    let notice = Notice(
      type: OpenIMNotice.joinAsked, detail: detail, sender: request.userID, kind: .unreliable)
    for manager in managers(of: group) + [request.userID] { notify(notice, receiver: manager, &step) }
  }

  private func managers(of group: OpenIMGroup) -> [String] {
    group.sortedMembers.filter { $0.role >= OpenIMRole.admin }.map(\.userID)
  }

  private func enter(
    _ id: String, _ group: OpenIMGroup, joinSource: Int64, inviter: String, _ call: OpenIMCall,
    _ step: inout OpenIMStep
  ) {
    add(id, to: group, role: OpenIMRole.member, by: inviter, now: step.now)
    group[member: id]?.joinSource = joinSource
    tell(
      group, OpenIMNotice.memberEntered, call, .alsoMessage, &step, more: ["entrantUser": memberInfo(group, id)])
  }

  private func answerApplication(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let group = try neededGroup(call)
    try needManager(call, of: group)
    let id = try call.needed("fromUserID")
    let result = call.int("handleResult")
    guard result == OpenIMHandling.agreed || result == OpenIMHandling.refused else {
      throw OpenIMFault(.arguments, "HandleResult unknown")
    }
    guard let index = group.requests.firstIndex(where: { $0.userID.utf8.elementsEqual(id.utf8) }) else {
      throw OpenIMFault(.notFound)
    }
    guard group.requests[index].handleResult == OpenIMHandling.open else {
      throw OpenIMFault(.groupRequestHandled, "group request already processed")
    }
    group.requests[index].handleResult = result
    group.requests[index].handleMsg = call.string("handledMsg")
    group.requests[index].handleUserID = call.caller?.userID ?? ""
    group.requests[index].handleTime = step.now
    let request = group.requests[index]
    tellAnswer(request, of: group, call, &step)
    if result == OpenIMHandling.agreed, group[member: id] == nil {
      enter(id, group, joinSource: request.joinSource, inviter: request.inviterUserID, call, &step)
    }
    return nil
  }

  /// The other managers and the applicant, each in a single chat's notices.
  private func tellAnswer(
    _ request: OpenIMGroupRequest, of group: OpenIMGroup, _ call: OpenIMCall, _ step: inout OpenIMStep
  ) {
    let sender = call.caller?.userID ?? ""
    let type =
      request.handleResult == OpenIMHandling.agreed ? OpenIMNotice.joinAgreed : OpenIMNotice.joinRefused
    for receiver in managers(of: group) + [request.userID] {
      let isApplicant = receiver.utf8.elementsEqual(request.userID.utf8)
      let detail: JSONValue = [
        "group": group.info, "opUser": memberInfo(group, sender), "handleMsg": .string(request.handleMsg),
        "receiverAs": .int(isApplicant ? 0 : 1), "uuid": .string(step.context.hex(32)),
        "request": info(request, of: group),
      ]
      notify(Notice(type: type, detail: detail, sender: sender, kind: .unreliable), receiver: receiver, &step)
    }
  }

  // MARK: Lists

  private func managedGroups(of user: OpenIMUser, only ids: [String]) -> [OpenIMGroup] {
    let wanted = Set(ids.map(OpenIMKey.init))
    return user.groups.filter { wanted.isEmpty || wanted.contains($0) }.compactMap { groups[$0] }.filter {
      ($0[member: user.id]?.role ?? 0) >= OpenIMRole.admin
    }
  }

  private func receivedApplications(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call, "fromUserID")
    let found = managedGroups(of: user, only: call.strings("groupIDs")).flatMap { group in
      group.requests.map { (group, $0) }
    }
    return try page(of: found, call)
  }

  private func ownApplications(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call)
    let wanted = Set(call.strings("groupIDs").map(OpenIMKey.init))
    let found = user.askedGroups.filter { wanted.isEmpty || wanted.contains($0) }.compactMap { groups[$0] }.compactMap {
      group in group.requests.first { $0.userID.utf8.elementsEqual(user.id.utf8) }.map { (group, $0) }
    }
    return try page(of: found, call)
  }

  private func page(
    of requests: [(OpenIMGroup, OpenIMGroupRequest)], _ call: OpenIMCall
  ) throws(OpenIMFault) -> JSONValue {
    let page = try OpenIMPage(call.body)
    let wanted = (call.body["handleResults"]?.array ?? []).compactMap(\.int)
    let found =
      requests
      .filter { wanted.isEmpty || wanted.contains($0.1.handleResult) }
      .sorted { ($0.1.reqTime, $0.0.id, $0.1.userID) > ($1.1.reqTime, $1.0.id, $1.1.userID) }
    return [
      "total": JSONValue(found.count), "groupRequests": page.slice(found).map { info($0.1, of: $0.0) }.orNull,
    ]
  }

  private func info(_ request: OpenIMGroupRequest, of group: OpenIMGroup) -> JSONValue {
    [
      "userInfo": publicInfo(request.userID), "groupInfo": group.info, "handleResult": .int(request.handleResult),
      "reqMsg": .string(request.reqMsg), "handleMsg": .string(request.handleMsg), "reqTime": .int(request.reqTime),
      "handleUserID": .string(request.handleUserID), "handleTime": .int(request.handleTime),
      "ex": .string(request.ex), "joinSource": .int(request.joinSource),
      "inviterUserID": .string(request.inviterUserID),
    ]
  }
}
