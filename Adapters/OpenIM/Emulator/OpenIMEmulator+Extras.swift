import ChatJSON
import ChatTransport
import OpenIMWire

/// Small stores of a user's own, device tokens, older forms of presence, and numbers for operators (reference §6.1,
/// §6.7).
extension OpenIMEmulator {
  static let extraHandlers: [String: Handler] = [
    "/user/get_user_client_config": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      let entries = user.configuration.sorted { $0.key.text.utf8.lexicographicallyPrecedes($1.key.text.utf8) }
      if entries.isEmpty { return [:] }
      return ["configs": .object(JSONObject(entries.map { ($0.key.text, .string($0.value)) }))]
    },
    "/user/set_user_client_config": { emulator, call, _ in
      try call.needAdmin()
      let user = try emulator.selfUser(call)
      for entry in call.body["configs"]?.object ?? [:] {
        user.configuration[OpenIMKey(entry.key)] = entry.value.string
      }
      return nil
    },
    "/user/del_user_client_config": { emulator, call, _ in
      try call.needAdmin()
      let user = try emulator.selfUser(call)
      for key in call.strings("keys") { user.configuration[OpenIMKey(key)] = nil }
      return nil
    },
    "/user/process_user_command_add": { emulator, call, step in
      try emulator.changeCommand(call, OpenIMNotice.commandAdded, &step)
    },
    "/user/process_user_command_update": { emulator, call, step in
      try emulator.changeCommand(call, OpenIMNotice.commandUpdated, &step)
    },
    "/user/process_user_command_delete": { emulator, call, step in
      try emulator.changeCommand(call, OpenIMNotice.commandDeleted, &step)
    },
    "/user/process_user_command_get": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      return ["commandResp": user.commands.filter { $0.type == call.int("type") }.map(\.json).orNull]
    },
    "/user/process_user_command_get_all": { emulator, call, _ in
      ["commandResp": try emulator.selfUser(call).commands.map(\.json).orNull]
    },
    "/user/subscribe_users_status": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      let keys = call.strings("userIDs").map(OpenIMKey.init)
      for id in user.connections {
        if call.int("genre") == 2 { emulator.connections[id]?.subscriptions.subtract(keys) } else {
          emulator.connections[id]?.subscriptions.formUnion(keys)
        }
      }
      return ["statusList": keys.map { emulator.status(of: $0.text) }.orNull]
    },
    "/user/get_subscribe_users_status": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      let keys = Set(user.connections.flatMap { emulator.connections[$0]?.subscriptions ?? [] })
      let ids = keys.map(\.text).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      return ["statusList": ids.map { emulator.status(of: $0) }.orNull]
    },
    "/user/get_users_online_token_detail": { emulator, call, _ in try emulator.tokenDetails(call) },
    "/third/fcm_update_token": { emulator, call, step in try emulator.setPushToken(call, now: step.now) },
    "/third/set_app_badge": { emulator, call, _ in
      try emulator.selfUser(call).badge = call.int("appUnreadCount")
      return nil
    },
    "/statistics/user/register": { emulator, call, _ in
      try call.needAdmin()
      return try emulator.statistics(emulator.users.values.map(\.createTime), call)
    },
    "/statistics/group/create": { emulator, call, _ in
      try call.needAdmin()
      return try emulator.statistics(emulator.groups.values.map(\.createTime), call)
    },
  ]

  func status(of id: String) -> JSONValue {
    let platforms = onlinePlatforms(of: id)
    return [
      "userID": .string(id), "status": .int(platforms.isEmpty ? 0 : 1),
      "platformIDs": platforms.map { .int($0) }.orNull,
    ]
  }

  private func changeCommand(
    _ call: OpenIMCall, _ type: Int64, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call)
    let (kind, uuid) = (call.int("type"), try call.needed("uuid"))
    let index = user.commands.firstIndex { $0.type == kind && $0.uuid.utf8.elementsEqual(uuid.utf8) }
    switch (type, index) {
    case (OpenIMNotice.commandAdded, nil):
      user.commands.append(
        OpenIMCommand(
          type: kind, uuid: uuid, value: call.string("value"), ex: call.string("ex"), createTime: step.now / 1000))
    case (OpenIMNotice.commandAdded, _): throw OpenIMFault(.duplicateKey)
    case (OpenIMNotice.commandDeleted, let index?): user.commands.remove(at: index)
    case (OpenIMNotice.commandUpdated, let index?):
      if let value = call.body["value"]?.string { user.commands[index].value = value }
      if let ex = call.body["ex"]?.string { user.commands[index].ex = ex }
    default: throw OpenIMFault(.notFound)
    }
    notify(
      Notice(type: type, detail: Self.pair(user.id, user.id), sender: user.id, kind: .unreliable),
      receiver: user.id, &step)
    return nil
  }

  /// Valid tokens of users who are online, by platform. The data is a list.
  private func tokenDetails(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    return .array(
      call.strings("userIDs").map { id in
        let open = (user(id)?.connections ?? []).compactMap { connections[$0] }
        let platforms = Set(open.map(\.platform)).sorted().map { platform -> JSONValue in
          let held = open.filter { $0.platform == platform }.map { JSONValue.string($0.token) }
          return ["platformID": .int(platform), "total": JSONValue(held.count), "token": .array(held)]
        }
        return ["userID": .string(id), "status": .int(open.isEmpty ? 0 : 1), "singlePlatformToken": platforms.orNull]
      })
  }

  /// A life of 0 seconds is for good.
  private func setPushToken(_ call: OpenIMCall, now: Int64) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call, "account")
    let platform = call.int("platformID")
    guard OpenIMPlatform.isKnown(platform) else { throw OpenIMFault(.arguments, "platformID is invalid") }
    let seconds = call.int("expireTime")
    guard seconds >= 0 else { throw OpenIMFault(.arguments, "expireTime is invalid") }
    let (life, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    user.pushTokens[platform] = OpenIMPushToken(
      token: call.string("fcmToken"), expiresAt: seconds == 0 ? 0 : now.clampedAdd(overflow ? .max : life))
    return nil
  }

  /// How many things came into being, by day of UTC.
  private func statistics(_ times: [Int64], _ call: OpenIMCall) throws(OpenIMFault) -> JSONValue {
    let (start, end) = (call.int("start"), call.int("end"))
    guard start <= end else { throw OpenIMFault(.arguments, "start must not be after end") }
    var days: [String: Int64] = [:]
    for time in times where time >= start && time < end { days[OpenIMDay.name(of: time), default: 0] += 1 }
    let list = days.sorted { $0.key < $1.key }.map { (key: $0.key, value: JSONValue.int($0.value)) }
    return [
      "total": JSONValue(times.count), "before": JSONValue(times.count { $0 < start }),
      "count": .object(JSONObject(list)),
    ]
  }
}

/// A day of UTC as the server writes it: `2020-09-13`.
enum OpenIMDay {
  static func name(of time: Int64) -> String {
    // Days since 0000-03-01 in eras of 400 years, of 146,097 days each.
    let days = floorDivide(time, 86_400_000) + 719_468
    let era = floorDivide(days, 146_097)
    let dayOfEra = days - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shifted + 2) / 5 + 1
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    func padded(_ number: Int64, _ width: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, width - text.count)) + text
    }
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
  }

  private static func floorDivide(_ value: Int64, _ by: Int64) -> Int64 {
    value >= 0 ? value / by : -((-(value + 1)) / by) - 1
  }
}
