import ChatJSON
import Foundation
import SendbirdWire
import UnifiedChat

// Push tokens and preferences.
extension SendbirdEmulator {
  static let pushRoutes: [Route] = [
    Route("GET", "users/{user}/push_preference") { (e, c) throws(SendbirdFault) in
      .json(try e.ownPerson(c).pushPreference)
    },
    Route("PUT", "users/{user}/push_preference") { (e, c) throws(SendbirdFault) in
      let person = try e.ownPerson(c)
      try e.checkPreference(c.body)
      for (key, value) in c.body where Person.defaultPushPreference[key] != nil && !value.isNull {
        person.pushPreference[key] = value
      }
      return .json(person.pushPreference)
    },
    Route("DELETE", "users/{user}/push_preference") { (e, c) throws(SendbirdFault) in
      try e.ownPerson(c).pushPreference = Person.defaultPushPreference
      return .empty
    },
    Route("GET", "users/{user}/push_preference/{url}") { (e, c) throws(SendbirdFault) in try e.channelPush(c) },
    Route("PUT", "users/{user}/push_preference/{url}") { (e, c) throws(SendbirdFault) in try e.channelPush(c) },
    Route("GET", "users/{user}/count_preference/{url}") { (e, c) throws(SendbirdFault) in try e.countPreference(c) },
    Route("PUT", "users/{user}/count_preference/{url}") { (e, c) throws(SendbirdFault) in try e.countPreference(c) },
    Route("GET", "users/{user}/push/template") { (e, c) throws(SendbirdFault) in
      .json(["name": .string(try e.ownPerson(c).pushTemplate)])
    },
    Route("PUT", "users/{user}/push/template") { (e, c) throws(SendbirdFault) in
      let person = try e.ownPerson(c)
      person.pushTemplate = c.text("name") ?? person.pushTemplate
      return .json(["name": .string(person.pushTemplate)])
    },
    Route("POST", "users/{user}/push/{kind}") { (e, c) throws(SendbirdFault) in try e.addPushToken(c) },
    Route("GET", "users/{user}/push/{kind}") { (e, c) throws(SendbirdFault) in try e.listPushTokens(c) },
    Route("GET", "users/{user}/push/{kind}/device_tokens") { (e, c) throws(SendbirdFault) in try e.listDevices(c) },
    Route("DELETE", "users/{user}/push/{kind}/{token}") { (e, c) throws(SendbirdFault) in try e.removePushToken(c) },
    Route("DELETE", "users/{user}/push/{kind}") { (e, c) throws(SendbirdFault) in
      try e.ownPerson(c).pushTokens[try e.pushKind(c)] = nil
      return .empty
    },
    Route("GET", "push/device_tokens/{kind}/{token}") { (e, c) throws(SendbirdFault) in try e.tokenOwners(c) },
    Route("DELETE", "push/device_tokens/{kind}/{token}") { (e, c) throws(SendbirdFault) in try e.forgetToken(c) },
    Route("DELETE", "users/{user}/push") { (e, c) throws(SendbirdFault) in
      try e.ownPerson(c).pushTokens = [:]
      return .empty
    },
  ]

  private func pushKind(_ call: Call) throws(SendbirdFault) -> String {
    let kind = call.parameter("kind")
    guard ["gcm", "apns", "huawei"].contains(kind) else { throw SendbirdFault(400111, "Unknown push type.") }
    return kind
  }

  /// Hours and minutes are those of a day, and each option has its words.
  private func checkPreference(_ body: JSONObject) throws(SendbirdFault) {
    if let option = body.text("push_trigger_option"), !["all", "mention_only", "off"].contains(option) {
      throw SendbirdFault(400111, "Unknown push_trigger_option.")
    }
    for (name, most) in [("start_hour", 23), ("end_hour", 23), ("start_min", 59), ("end_min", 59)] as [(String, Int64)] {
      if let number = body.number(name), !(0...most).contains(number) {
        throw SendbirdFault(400113, "\(name) must be 0 to \(most).")
      }
    }
    if let zone = body.text("timezone"), TimeZone(identifier: zone) == nil {
      throw SendbirdFault(400111, "Unknown timezone.")
    }
  }

  /// Who bears a device's token: somebody else may have registered it before.
  private func tokenOwners(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let (kind, token) = (try pushKind(call), Key(call.parameter("token")))
    let owners = peopleInOrder.filter { $0.pushTokens[kind]?.contains(token) == true }
    guard !owners.isEmpty else { throw SendbirdFault(400201, "Token not found.") }
    return .json([
      "token": .string(token.rawValue), "type": .string(kind),
      "users": .array(owners.map { .object(json(of: $0).json) }),
    ])
  }

  private func forgetToken(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let (kind, token) = (try pushKind(call), Key(call.parameter("token")))
    for person in peopleInOrder { person.pushTokens[kind]?.removeAll { $0 == token } }
    return .empty
  }

  private func membership(_ call: Call) throws(SendbirdFault) -> Membership {
    let person = try ownPerson(call)
    guard let room = rooms[ChannelID(call.parameter("url"))] else { throw SendbirdFault(400201, "Channel not found.") }
    guard let mine = room.members[person.id] else { throw SendbirdFault(400108, "Not a member.") }
    return mine
  }

  private func channelPush(_ call: Call) throws(SendbirdFault) -> Answer {
    let mine = try membership(call)
    if let option = call.body.text("push_trigger_option") {
      guard ["default", "all", "mention_only", "off"].contains(option) else {
        throw SendbirdFault(400111, "Unknown push_trigger_option.")
      }
      mine.pushTrigger = option
    } else if let isEnabled = call.body.flag("enable") {
      mine.pushTrigger = isEnabled ? "default" : "off"
    }
    if let sound = call.body.text("push_sound") { mine.pushSound = sound }
    return .json([
      "push_trigger_option": .string(mine.pushTrigger), "enable": .bool(mine.pushTrigger != "off"),
      "push_sound": .string(mine.pushSound),
    ])
  }

  /// One of the vendor's descriptions spells the third as the fourth.
  private static let countPreferences = [
    "all", "unread_message_count_only", "unread_mention_count_only", "unread_mentioned_count_only", "off",
  ]

  private func countPreference(_ call: Call) throws(SendbirdFault) -> Answer {
    let mine = try membership(call)
    if let preference = call.body.text("count_preference") {
      guard Self.countPreferences.contains(preference) else {
        throw SendbirdFault(400111, "Unknown count_preference.")
      }
      mine.countPreference = preference
    }
    return .json(["count_preference": .string(mine.countPreference)])
  }

  private func addPushToken(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let kind = try pushKind(call)
    let names = ["gcm_reg_token", "apns_device_token", "huawei_device_token"]
    guard let token = names.compactMap({ call.text($0) }).first, !token.isEmpty else {
      throw SendbirdFault(400105, "The device token is missing.")
    }
    if call.flag("is_unique") == true {
      for other in peopleInOrder { other.pushTokens[kind]?.removeAll { $0 == Key(token) } }
    }
    if person.pushTokens[kind]?.contains(Key(token)) != true { person.pushTokens[kind, default: []].append(Key(token)) }
    return .json(["token": .string(token), "type": .string(kind), "user": .object(json(of: person).json)])
  }

  private func listPushTokens(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let kind = try pushKind(call)
    let tokens = (person.pushTokens[kind] ?? []).map { JSONValue.string($0.rawValue) }
    return .json(["tokens": .array(tokens), "type": .string(kind), "user": .object(json(of: person).json)])
  }

  private func listDevices(_ call: Call) throws(SendbirdFault) -> Answer {
    let kind = try pushKind(call)
    let tokens = (try ownPerson(call).pushTokens[kind] ?? []).map { JSONValue.string($0.rawValue) }
    return .json(["device_tokens": .array(tokens), "type": .string(kind), "has_more": false, "token": ""])
  }

  private func removePushToken(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let token = Key(call.parameter("token"))
    let kind = try pushKind(call)
    guard person.pushTokens[kind]?.contains(token) == true else { throw SendbirdFault(400201, "Token not found.") }
    person.pushTokens[kind]?.removeAll { $0 == token }
    return .json(["token": .string(token.rawValue), "user": .object(json(of: person).json)])
  }
}
