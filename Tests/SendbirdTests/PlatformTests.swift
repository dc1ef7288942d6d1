import ChatEmulation
import ChatJSON
import ChatTransport
import SendbirdEmulator
import SendbirdWire
import Testing

/// What only applications' servers and operators ask for.
@Suite("The Sendbird emulator's platform side")
struct SendbirdPlatformTests {
  private func texts(_ lab: Lab, _ url: String, kind: String = "group_channels") async throws -> [String] {
    let json = try await lab.rest("GET", "\(kind)/\(url)/messages?message_ts=0&prev_limit=0&next_limit=100").json
    return json["messages"]?.array?.compactMap { $0["message"]?.string } ?? []
  }

  private func makePair(_ lab: Lab, _ url: String, _ users: [String], extra: JSONObject = JSONObject()) async throws {
    var body: JSONObject = ["user_ids": .array(users.map { .string($0) }), "channel_url": .string(url), "name": ""]
    for (key, value) in extra { body[key] = value }
    try await lab.rest("POST", "group_channels", .object(body))
  }

  @Test("an announcement reaches the channels that it aims at, now or at its time")
  func announcements() async throws {
    let lab = try Lab()
    try await lab.makeUsers("shop", "ana", "bob")
    try await makePair(lab, "shop-ana", ["shop", "ana"], extra: ["is_distinct": true])
    let message: JSONValue = ["type": "MESG", "user_id": "shop", "content": "sale"]
    let now = try await lab.rest(
      "POST", "announcements",
      [
        "message": message, "target_at": "target_users_only_channels", "target_list": ["ana", "bob"],
        "target_channel_type": "distinct", "create_channel": true, "unique_id": "a1",
      ]
    ).json
    #expect(now["status"]?.string == "done")
    #expect(now["sent_channel_count"]?.int == 2)
    #expect(try await texts(lab, "shop-ana") == ["sale"])
    let later = try await lab.rest(
      "POST", "announcements",
      [
        "message": ["type": "ADMM", "content": "closed"], "target_at": "target_channels", "target_list": ["shop-ana"],
        "unique_id": "a2", "scheduled_at": .int(Lab.start + 60_000),
      ]
    ).json
    #expect(later["status"]?.string == "scheduled")
    #expect(try await lab.rest("PUT", "announcements/a2", ["action": "pause"]).json["status"]?.string == "paused")
    #expect(try await lab.rest("PUT", "announcements/a2", ["action": "resume"]).json["status"]?.string == "scheduled")
    // A machine that was saved and restored keeps its appointments.
    try await EmulatorControl(lab.host).restore(await EmulatorControl(lab.host).snapshot())
    _ = try await lab.rest("GET", "announcements")
    await lab.host.advance(by: .seconds(61))
    #expect(try await texts(lab, "shop-ana") == ["sale", "closed"])
    #expect(try await lab.rest("GET", "announcements/a2").json["status"]?.string == "done")
    #expect(try await lab.rest("PUT", "announcements/a2", ["action": "cancel"]).json["code"]?.int == 400920)
    let list = try await lab.rest("GET", "announcements?status=done&limit=1").json
    #expect(list["announcements"]?.array?.count == 1)
    #expect(list["next"]?.string?.isEmpty == false)
    #expect(
      try await lab.rest("POST", "announcements", ["message": message, "target_at": "nobody"]).json["code"]?.int
        == 400111)
  }

  @Test("a bot is made, joins, speaks, and is no person in lists that leave bots out")
  func bots() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana")
    try await makePair(lab, "room-1", ["ana"])
    let made = try await lab.rest("POST", "bots", ["bot_userid": "helper", "bot_nickname": "Helper"]).json
    #expect(made["bot"]?["bot_userid"]?.string == "helper")
    #expect(
      try await lab.rest("POST", "bots/helper/send", ["channel_url": "room-1", "message": "hi"]).json["code"]?.int
        == 400108)
    try await lab.rest("POST", "bots/helper/channels", ["channel_urls": ["room-1"]])
    let said = try await lab.rest("POST", "bots/helper/send", ["channel_url": "room-1", "message": "hi"]).json
    #expect(said["message"]?["user"]?["user_id"]?.string == "helper")
    #expect(try await texts(lab, "room-1") == ["hi"])
    #expect(try await lab.rest("GET", "users?show_bot=false").json["users"]?.array?.count == 1)
    #expect(try await lab.rest("GET", "bots").json["bots"]?.array?.count == 1)
    let renamed = try await lab.rest("PUT", "bots/helper", ["bot_nickname": "H"]).json
    #expect(renamed["bot"]?["bot_nickname"]?.string == "H")
    try await lab.rest("DELETE", "bots/helper/channels/room-1")
    #expect(try await lab.rest("GET", "group_channels/room-1/members").json["members"]?.array?.count == 1)
    try await lab.rest("DELETE", "bots/helper")
    #expect(try await lab.rest("GET", "bots/helper").json["code"]?.int == 400201)
  }

  @Test("who is banned or muted for a custom type is so in each of its channels, for as long as was said")
  func byCustomType() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob")
    try await makePair(lab, "news-1", ["ana", "bob"], extra: ["custom_type": "news", "is_public": true])
    try await makePair(lab, "chat-1", ["ana", "bob"])
    let bob = try await lab.logIn("bob")
    let base = "applications/settings_by_channel_custom_type/news"
    try await lab.rest("POST", "\(base)/mute", ["muted_list": [["user_id": "bob", "seconds": 60, "description": "d"]]])
    #expect(try await bob.say("x", in: "news-1").payload.number("code") == 900040)
    #expect(try await bob.say("x", in: "chat-1").command == "MESG")
    #expect(try await lab.rest("GET", "\(base)/mute").json["muted_list"]?.array?.count == 1)
    await lab.host.advance(by: .seconds(61))
    #expect(try await bob.say("x", in: "news-1").command == "MESG")
    try await lab.rest("POST", "\(base)/ban", ["banned_list": [["user_id": "bob", "seconds": -1]]])
    #expect(try await bob.say("x", in: "news-1").payload.number("code") == 900100)
    try await lab.rest("PUT", "group_channels/news-1/leave", ["user_ids": ["bob"]])
    #expect(
      try await lab.rest("PUT", "group_channels/news-1/join", ["user_id": "bob"], as: .key(await bob.key)).json["code"]?
        .int == 400751)
    try await lab.rest("DELETE", "\(base)/ban?user_ids=bob")
    #expect(
      try await lab.rest("PUT", "group_channels/news-1/join", ["user_id": "bob"], as: .key(await bob.key)).status == 200
    )
    try await lab.rest("POST", "group_channels/chat-1/ban", ["user_id": "bob", "seconds": 5, "description": "rude"])
    let banned = try await lab.rest("GET", "users/bob/ban").json["banned_channels"]?.array
    #expect(banned?.first?["channel"]?["channel_url"]?.string == "chat-1")
    let long = String(repeating: "d", count: 251)
    #expect(
      try await lab.rest("POST", "group_channels/news-1/mute", ["user_id": "bob", "description": .string(long)]).json[
        "code"]?.int == 400110)
  }

  @Test("at most ten messages are pinned, the channel shows them, and a deleted one is pinned no more")
  func pins() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana")
    try await makePair(lab, "board", ["ana"])
    let ana = try await lab.logIn("ana")
    var ids: [Int64] = []
    for number in 0..<11 {
      ids.append(try #require(try await ana.say("\(number)", in: "board").payload.number("msg_id")))
    }
    for id in ids.prefix(10) {
      #expect(
        try await lab.rest("POST", "group_channels/board/messages/\(id)/pin", as: .key(await ana.key)).status == 200)
    }
    #expect(
      try await lab.rest("POST", "group_channels/board/messages/\(ids[10])/pin", as: .key(await ana.key)).json["code"]?
        .int == 400203)
    let frame = try await ana.read("SYEV")
    #expect(frame.payload.number("cat") == 11300)
    try await lab.rest("DELETE", "group_channels/board/messages/\(ids[9])")
    try await lab.rest("DELETE", "group_channels/board/messages/\(ids[0])/pin")
    let channel = try await lab.rest("GET", "group_channels/board").json
    #expect(channel["pinned_message_ids"]?.array?.compactMap(\.int) == ids[1...8].reversed())
    #expect(channel["latest_pinned_message"]?["message"]?.string == "8")
    let sent = try await lab.rest(
      "POST", "group_channels/board/messages",
      ["message_type": "MESG", "user_id": "ana", "message": "pinned at once", "pin_message": true]
    ).json
    #expect(
      try await lab.rest("GET", "group_channels/board").json["pinned_message_ids"]?[0]?.int == sent["message_id"]?.int)
  }

  @Test("a message of later is sent at its minute, or says why it was not")
  func scheduled() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana")
    try await makePair(lab, "later", ["ana"])
    // The lab begins at 2023-11-14 22:13:20 UTC, 23:13 in Berlin.
    func schedule(_ text: String, _ time: String, _ zone: String) async throws -> JSONValue {
      try await lab.rest(
        "POST", "group_channels/later/scheduled_messages",
        [
          "user_id": "ana", "message": .string(text), "scheduled_dt": .string(time),
          "scheduled_timezone": .string(zone),
        ]
      ).json
    }
    #expect(try await schedule("one", "2023-11-14 22:15", "UTC")["status"]?.string == "scheduled")
    #expect(try await schedule("two", "2023-11-14 23:16", "Europe/Berlin")["status"]?.string == "scheduled")
    #expect(try await schedule("three", "2023-11-14 22:20", "UTC")["status"]?.string == "scheduled")
    #expect(try await schedule("late", "2023-11-14 22:13", "UTC")["code"]?.int == 400113)
    #expect(try await schedule("never", "tomorrow", "UTC")["code"]?.int == 400111)
    // Of later clients: what the third version has no word for is refused, not half done.
    let later: JSONValue = ["message_type": "MESG", "user_id": "ana", "message": "x", "scheduled_at": 1_700_000_900_000]
    let refused = try await lab.rest("POST", "group_channels/later/scheduled_messages", later)
    #expect(refused.json["code"]?.int == 400111)
    #expect(try await lab.rest("POST", "polls", ["title": "t", "options": ["a", "b"]]).json["code"]?.int == 400404)
    await lab.host.advance(by: .seconds(101))
    #expect(try await texts(lab, "later") == ["one"])
    await lab.host.advance(by: .seconds(60))
    #expect(try await texts(lab, "later") == ["one", "two"])
    try await lab.rest("POST", "group_channels/later/mute", ["user_id": "ana"])
    await lab.host.advance(by: .seconds(300))
    let list = try await lab.rest("GET", "group_channels/later/scheduled_messages").json["scheduled_messages"]?.array
    #expect(list?.compactMap { $0["status"]?.string } == ["sent", "sent", "failed"])
    #expect(list?.last?["error_code"]?.int == 900041)
  }

  @Test("an export is a zip of one document a channel, with deleted messages and without what exports leave out")
  func export() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob")
    try await makePair(lab, "one-channel", ["ana", "bob"])
    try await makePair(lab, "two-channel", ["ana"])
    let ana = try await lab.logIn("ana")
    for text in ["kept", "deleted"] { _ = try await ana.say(text, in: "one-channel") }
    let last = try await ana.say("other", in: "two-channel").payload.number("msg_id") ?? 0
    try await lab.rest("DELETE", "group_channels/two-channel/messages/\(last)")
    let span: JSONObject = ["start_ts": .int(Lab.start - 1000), "end_ts": .int(Lab.start + 1000)]
    let asked = try await lab.rest("POST", "export/messages", .object(span)).json
    #expect(asked["status"]?.string == "scheduled" && asked["file"] == nil)
    let done = try await lab.rest("GET", "export/messages/\(asked["request_id"]?.string ?? "")").json
    #expect(done["status"]?.string == "done")
    let url = try #require(done["file"]?["url"]?.string)
    let zip = try await lab.host.transports.http.send(HTTPRequest("GET", url)).body
    let entries = try SendbirdZip.read(zip)
    #expect(entries.map(\.name) == ["one-channel.json", "two-channel.json"])
    let document = try JSONValue(parsing: entries[1].bytes)
    #expect(document["messages"]?[0]?["is_removed"]?.bool == true)
    #expect(document["messages"]?[0]?["message"]?.string == "other")
    #expect(document["channel"]?["members"]?[0]?["name"]?.string == "ana")
    let users = try await lab.rest("POST", "export/users", .object(span)).json
    let file = try await lab.rest("GET", "export/users/\(users["request_id"]?.string ?? "")").json["file"]?["url"]?
      .string
    let list = try SendbirdZip.read(try await lab.host.transports.http.send(HTTPRequest("GET", file ?? "")).body)
    let people = try JSONValue(parsing: list[0].bytes)
    #expect(people["active_users"]?[1]?["last_seen_at"]?.string == "1969-12-31 23:59:59+0000")
    var tooLong = span
    tooLong["end_ts"] = .int(Lab.start + 32 * 86_400_000)
    #expect(try await lab.rest("POST", "export/messages", .object(tooLong)).json["code"]?.int == 400113)
    var none = span
    none["channel_urls"] = ["nowhere"]
    let empty = try await lab.rest("POST", "export/messages", .object(none)).json["request_id"]?.string ?? ""
    #expect(try await lab.rest("GET", "export/messages/\(empty)").json["status"]?.string == "no data")
  }

  @Test("what operators, friends and reports are about survives a snapshot")
  func snapshot() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob")
    try await makePair(lab, "room-1", ["ana", "bob"])
    let ana = try await lab.logIn("ana")
    try await lab.rest("POST", "users/ana/friends", ["user_ids": ["bob"]], as: .key(await ana.key))
    try await lab.rest(
      "POST", "report/group_channels/room-1", ["report_category": "spam"], as: .key(await ana.key))
    try await lab.rest("POST", "bots", ["bot_userid": "helper", "bot_nickname": "Helper"])
    try await lab.rest(
      "POST", "applications/settings_by_channel_custom_type/x/ban", ["banned_list": [["user_id": "bob"]]])
    let control = EmulatorControl(lab.host)
    let saved = await control.snapshot()
    try await control.restore(saved)
    #expect(await control.snapshot() == saved)
    #expect(try await lab.rest("GET", "users/ana/friends").json["users"]?.array?.count == 1)
    #expect(try await lab.rest("GET", "report/group_channels/room-1").json["report_logs"]?.array?.count == 1)
  }

  @Test("files of bytes survive being packed and unpacked, and a damaged zip is an error, never a trap")
  func zip() throws {
    let entries = [
      SendbirdZip.Entry(name: "a.json", bytes: Array("{}".utf8)),
      SendbirdZip.Entry(name: "leer/ü.json", bytes: []),
      SendbirdZip.Entry(name: "big.json", bytes: (0..<70_000).map { UInt8(truncatingIfNeeded: $0 / 7) }),
    ]
    let packed = SendbirdZip.write(entries)
    #expect(packed.count < 20_000)
    #expect(try SendbirdZip.read(packed) == entries)
    #expect(throws: SendbirdZip.Failure.tooLarge) { try SendbirdZip.read(packed, limit: 1000) }
    var random = EmulatorRandom(seed: 7)
    for _ in 0..<2000 {
      var bytes = packed
      for _ in 0..<4 { bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next()) }
      if random.next() % 4 == 0 { bytes.removeLast(Int(random.next() % UInt64(bytes.count))) }
      _ = try? SendbirdZip.read(bytes, limit: 1 << 20)
    }
  }
}
