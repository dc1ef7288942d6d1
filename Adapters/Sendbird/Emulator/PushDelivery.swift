import ChatJSON
import ChatTransport
import Foundation
import SendbirdWire
import UnifiedChat

// What the push services are told of a new message (reference §3.10), when a URL of this machine plays them: one POST
// a device, `{"type": "gcm"|"apns"|"huawei", "token": …, "payload": …}`.
extension SendbirdEmulator {
  /// Ordinary groups alone push, to members who have a device and, by default, no socket.
  func pushNotifications(of message: StoredMessage, in room: Room) {
    guard !settings.pushURL.isEmpty, message.pushes, !message.isSilent, !room.isOpen, !room.isSuper else { return }
    for member in room.members.values.sorted(by: { $0.person.order < $1.person.order })
    where wantsPush(member, of: message) {
      for (kind, tokens) in member.person.pushTokens.sorted(by: { $0.key < $1.key }) {
        for token in tokens { push(message, in: room, to: member, kind, token) }
      }
    }
  }

  private func wantsPush(_ member: Membership, of message: StoredMessage) -> Bool {
    let person = member.person
    guard member.isJoined, person !== message.sender, member.hiddenState != "hidden_prevent_auto_unhide" else {
      return false
    }
    if connectionsByUser[person.id] != nil, !settings.pushWhileOnline { return false }
    if let sender = message.sender {
      if person.blocked.contains(sender.id) { return false }
      if sender.bot != nil, person.pushPreference.flag("block_push_from_bots") == true { return false }
    }
    // The channel's own choice comes before the user's for all.
    let own = member.pushTrigger == "default" ? person.pushPreference.text("push_trigger_option") : member.pushTrigger
    if own == "off" || (own == "mention_only" && !message.mentions(person.id)) { return false }
    return !isQuiet(person.pushPreference)
  }

  /// Within the daily hours of rest, in the user's own time zone, or within a snooze.
  private func isQuiet(_ preference: JSONObject) -> Bool {
    if preference.flag("snooze_enabled") == true, let from = preference.number("snooze_start_ts"),
      let to = preference.number("snooze_end_ts"), (from...max(from, to)).contains(now)
    {
      return true
    }
    guard preference.flag("do_not_disturb") == true else { return false }
    func minute(_ name: String) -> Int64 {
      (preference.number("\(name)_hour") ?? 0) &* 60 &+ (preference.number("\(name)_min") ?? 0)
    }
    let zone = TimeZone(identifier: preference.text("timezone") ?? "UTC") ?? .gmt
    let offset = Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(now / 1000))))
    let present = ((now / 60_000 &+ offset / 60) % 1440 &+ 1440) % 1440
    let (start, end) = (minute("start"), minute("end"))
    return start <= end ? (start..<end).contains(present) : present >= start || present < end
  }

  private func push(_ message: StoredMessage, in room: Room, to member: Membership, _ kind: String, _ token: Key) {
    count("push \(kind)", isImplemented: true)
    let person = member.person
    let alert = alert(of: message, template: person.pushTemplate)
    let own = pushBlock(message, in: room, for: member)
    var payload: JSONObject
    if kind == "apns" {
      let sound = member.pushSound == "default" ? person.pushPreference.text("push_sound") ?? "default" : member.pushSound
      payload = [
        "aps": [
          "alert": .string(alert), "badge": .int(unreadTotal(of: person)), "sound": .string(sound),
          "mutable-content": 1,
        ], "sendbird": .object(own),
      ]
    } else {
      // The others carry texts only: the block travels as one.
      payload = ["data": ["message": .string(alert), "sendbird": .string(JSONValue.object(own).text())]]
    }
    let body: JSONValue = ["type": .string(kind), "token": .string(token.rawValue), "payload": .object(payload)]
    send(
      HTTPRequest(
        "POST", settings.pushURL, headers: ["Content-Type": "application/json"], body: body.bytes(),
        timeout: SendbirdWebhooks.timeout), tries: 1)
  }

  /// `alternative` is for those who want no words on a locked screen.
  private func alert(of message: StoredMessage, template: String) -> String {
    guard template != "alternative" else { return "New message" }
    let words = message.file?.name ?? message.text
    return message.sender.map { "\($0.nickname): \(words)" } ?? words
  }

  /// What the vendor adds to the services' own form.
  private func pushBlock(_ message: StoredMessage, in room: Room, for member: Membership) -> JSONObject {
    let person = member.person
    var json: JSONObject = [
      "category": "messaging:offline_notification", "type": .string(message.type), "message_id": .int(message.id),
      "message": .string(message.text), "created_at": .int(message.createdAt),
      "custom_type": .string(message.customType), "app_id": .string(options.applicationID),
      "unread_message_count": .int(unreadTotal(of: person)), "push_title": .null, "audience_type": "only",
      "mentioned_users": .array(
        message.mentions.compactMap { people[$0] }.map {
          ["user_id": .string($0.id.rawValue), "total_unread_mention_count": .int(room.members[$0.id]?.mentions ?? 0)]
        }), "translations": .object(message.translations), "files": [],
      "recipient": [
        "id": .string(person.id.rawValue), "name": .string(person.nickname), "push_template": .string(person.pushTemplate),
      ],
      "channel": [
        "channel_url": .string(room.url.rawValue), "name": .string(room.name), "custom_type": .string(room.customType),
      ],
    ]
    if let file = message.file {
      json["files"] = [["url": .string(file.url), "title": .string(file.name), "type": .string(file.type)]]
    }
    if let sender = message.sender {
      json["sender"] = [
        "id": .string(sender.id.rawValue), "name": .string(sender.nickname),
        "profile_url": .string(sender.profileURL), "metadata": .object(sender.metadata),
      ]
    }
    return json
  }
}
