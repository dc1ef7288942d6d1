import ChatJSON
import ChatTransport
import SendbirdWire
import Testing

extension Lab {
  /// One call with a file in it: all else travels as fields of the form.
  func form(
    _ method: String, _ path: String, file: String, _ fields: [(String, String)], as key: String
  ) async throws -> JSONValue {
    var form = SendbirdMultipart([.init(name: file, fileName: "c.png", mimeType: "image/png", bytes: [1, 2, 3])])
    form.parts += fields.map { .init(name: $0.0, bytes: Array($0.1.utf8)) }
    var request = HTTPRequest(method, "http://sendbird.test/v3/\(path)", body: form.encode(boundary: "Boundary"))
    request.headers["Content-Type"] = "multipart/form-data; boundary=Boundary"
    request.headers["Session-Key"] = key
    return try JSONValue(parsing: try await host.transports.http.send(request).body)
  }
}

@Suite("Calls of Sendbird with a file, and options of its lists")
struct SendbirdFormTests {
  @Test("a channel with a cover file has the members, operators and flags of one without")
  func creation() async throws {
    let lab = try Lab()
    let ana = try await lab.logIn("ana")
    try await lab.makeUsers("bob", "cleo")
    let key = await ana.key
    let fields = [("user_ids", "bob,cleo"), ("is_public", "true"), ("name", "covered"), ("operator_ids", "bob")]
    let made = try await lab.form("POST", "group_channels", file: "cover_file", fields, as: key)
    #expect(made["member_count"]?.int == 3 && made["is_public"] == true && made["name"]?.string == "covered")
    #expect(made["operators"]?.array?.compactMap { $0["user_id"]?.string } == ["bob"])
    #expect(made["cover_url"]?.string?.isEmpty == false)

    let pair = [("user_ids", "bob"), ("is_distinct", "true")]
    let one = try await lab.form("POST", "group_channels", file: "cover_file", pair, as: key)
    let two = try await lab.form("POST", "group_channels", file: "cover_file", pair, as: key)
    #expect(one["is_distinct"] == true && one["channel_url"] == two["channel_url"])

    let strict = [("user_ids", "nobody"), ("strict", "true")]
    let refused = try await lab.form("POST", "group_channels", file: "cover_file", strict, as: key)
    #expect(refused["code"]?.int == 400111)
    let wrong = [("user_ids", "bob"), ("is_public", "perhaps")]
    #expect(try await lab.form("POST", "group_channels", file: "cover_file", wrong, as: key)["code"]?.int == 400104)

    let large = [("user_ids", "bob"), ("is_super", "true"), ("is_broadcast", "true")]
    let broadcast = try await lab.form("POST", "group_channels", file: "cover_file", large, as: key)
    #expect(broadcast["is_super"] == true && broadcast["is_broadcast"] == true)
  }

  @Test("a change with a cover file changes all that it names, of open channels too")
  func change() async throws {
    let lab = try Lab()
    let ana = try await lab.logIn("ana")
    try await lab.makeUsers("bob")
    let key = await ana.key
    try await lab.rest("POST", "group_channels", ["user_ids": ["bob"], "channel_url": "room"], as: .key(key))
    let fields = [("is_public", "true"), ("operator_ids", "ana,bob"), ("message_survival_seconds", "60")]
    let changed = try await lab.form("PUT", "group_channels/room", file: "cover_file", fields, as: key)
    #expect(changed["is_public"] == true && changed["message_survival_seconds"]?.int == 60)
    #expect(changed["operators"]?.array?.count == 2)
    let open = try await lab.form(
      "POST", "open_channels", file: "cover_file", [("name", "o"), ("operators", "bob")], as: key)
    #expect(open["operators"]?.array?.compactMap { $0["user_id"]?.string } == ["bob"])
  }

  @Test("an empty custom type in a filter asks for the messages that have none")
  func untyped() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana")
    try await lab.rest("POST", "group_channels", ["user_ids": ["ana"], "channel_url": "room"])
    for type in ["", "a", "b"] {
      let body: JSONValue = [
        "message_type": "MESG", "user_id": "ana", "message": .string("of \(type)"), "custom_type": .string(type),
      ]
      try await lab.rest("POST", "group_channels/room/messages", body)
    }
    func found(_ filter: String) async throws -> [String] {
      let path = "group_channels/room/messages?message_ts=0&prev_limit=0&next_limit=10&\(filter)"
      return try await lab.rest("GET", path).json["messages"]?.array?.compactMap { $0["custom_type"]?.string } ?? []
    }
    #expect(try await found("custom_types=") == [""])
    #expect(try await found("custom_types=,a") == ["", "a"])
    #expect(try await found("custom_types=*") == ["", "a", "b"])
    #expect(try await found("reverse=false") == ["", "a", "b"])
  }

  @Test("the changelog of channels leaves out what its options leave out")
  func changelog() async throws {
    let lab = try Lab()
    let ana = try await lab.logIn("ana")
    for url in ["empty", "typed", "frozen"] {
      try await lab.rest(
        "POST", "group_channels",
        ["user_ids": ["ana"], "channel_url": .string(url), "custom_type": url == "typed" ? "t" : ""])
      guard url != "empty" else { continue }
      try await lab.rest(
        "POST", "group_channels/\(url)/messages", ["message_type": "MESG", "user_id": "ana", "message": "x"])
    }
    try await lab.rest("PUT", "group_channels/frozen/freeze", ["freeze": true])
    func told(_ options: String) async throws -> Set<String> {
      let path = "users/ana/my_group_channels/changelogs?change_ts=0&\(options)"
      let json = try await lab.rest("GET", path, as: .key(await ana.key)).json
      return Set(json["updated"]?.array?.compactMap { $0["channel_url"]?.string } ?? [])
    }
    #expect(try await told("show_member=true") == ["empty", "typed", "frozen"])
    #expect(try await told("show_empty=false") == ["typed", "frozen"])
    #expect(try await told("show_frozen=false") == ["empty", "typed"])
    #expect(try await told("custom_types=t") == ["typed"])
    let refused = try await lab.rest("GET", "users/ana/my_group_channels/changelogs?token=-5", as: .key(await ana.key))
    #expect(refused.json["code"]?.int == 400111)
  }

  @Test("lists keep to counters, to the blocked who are named, and to fields of a search")
  func lists() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob", "cleo")
    for (url, count) in [("room-few", 1), ("room-many", 9)] as [(String, Int64)] {
      try await lab.rest("POST", "group_channels", ["user_ids": ["ana"], "channel_url": .string(url)])
      try await lab.rest("POST", "group_channels/\(url)/metacounter", ["metacounter": ["n": .int(count)]])
    }
    let more = try await lab.rest("GET", "group_channels?show_empty=true&metacounter_key=n&metacounter_value_gt=1").json
    #expect(more["channels"]?.array?.compactMap { $0["channel_url"]?.string } == ["room-many"])
    try await lab.rest("POST", "users/ana/block", ["user_ids": ["bob", "cleo"]])
    let blocked = try await lab.rest("GET", "users/ana/block?user_ids=bob").json
    #expect(blocked["users"]?.array?.compactMap { $0["user_id"]?.string } == ["bob"])
    try await lab.rest(
      "POST", "group_channels/room-few/messages",
      ["message_type": "MESG", "user_id": "ana", "message": "words", "data": "needle"])
    func hits(_ fields: String) async throws -> Int? {
      try await lab.rest("GET", "search/messages?query=needle&user_id=ana\(fields)").json["results"]?.array?.count
    }
    #expect(try await hits("") == 0)
    #expect(try await hits("&target_fields=message,data") == 1)
  }

  @Test("who is not in a private channel, or not the sender, changes and reads nothing of it")
  func rights() async throws {
    let lab = try Lab()
    let (ana, bob, cleo) = (try await lab.logIn("ana"), try await lab.logIn("bob"), try await lab.logIn("cleo"))
    try await lab.rest("POST", "group_channels", ["user_ids": ["ana", "bob"], "channel_url": "room"])
    let sent = try await ana.say("mine", in: "room")
    let path = "group_channels/room/messages/\(sent.payload.number("msg_id") ?? 0)"
    func code(_ method: String, _ path: String, _ body: JSONValue?, _ client: LabClient) async throws -> Int64? {
      try await lab.rest(method, path, body, as: .key(await client.key)).json["code"]?.int
    }
    let arrays: JSONValue = ["sorted_metaarray": [["key": "k", "value": ["v"]]]]
    #expect(try await code("POST", "\(path)/sorted_metaarray", arrays, bob) == 400108)
    #expect(try await code("POST", "\(path)/sorted_metaarray", arrays, ana) == nil)
    #expect(try await code("DELETE", "\(path)/sorted_metaarray?keys=k", nil, cleo) == 400108)
    for list in ["operators", "ban", "mute", "metadata", "metacounter"] {
      #expect(try await code("GET", "group_channels/room/\(list)", nil, cleo) == 400108, "\(list)")
      #expect(try await code("GET", "group_channels/room/\(list)", nil, bob) == nil, "\(list)")
    }
    #expect(try await code("POST", "group_channels/room/typing", ["user_ids": ["ana"]], bob) == 400108)
    #expect(try await code("POST", "group_channels/room/typing", ["user_ids": ["bob"]], bob) == nil)
    try await lab.rest("PUT", "group_channels/room/leave", ["user_ids": ["ana"]])
    #expect(try await code("PUT", path, ["message_type": "MESG", "message": "after"], ana) == 400108)
  }

  @Test("a message of later carries the arrays whose keys are named, and shows who is mentioned")
  func scheduledArrays() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob")
    try await lab.rest("POST", "group_channels", ["user_ids": ["ana", "bob"], "channel_url": "later"])
    let job = try await lab.rest(
      "POST", "group_channels/later/scheduled_messages",
      [
        "user_id": "ana", "message": "x", "scheduled_dt": "2023-11-14 22:15", "metaarray": ["k"],
        "mentioned_user_ids": ["bob"],
      ]
    ).json
    #expect(job["sorted_metaarray"]?.array?.first?["key"]?.string == "k")
    #expect(job["mentioned_users"]?.array?.first?["user_id"]?.string == "bob")
    await lab.host.advance(by: .seconds(101))
    let list = try await lab.rest("GET", "group_channels/later/scheduled_messages").json["scheduled_messages"]?.array
    #expect(list?.compactMap { $0["status"]?.string } == ["sent"])
  }

  @Test("every run numbers the changes of one user's channels in the same order")
  func order() async throws {
    var orders: [[String]] = []
    let urls = (0..<12).map { "room-\($0)" }
    for _ in 0..<2 {
      let lab = try Lab()
      let ana = try await lab.logIn("ana")
      for url in urls {
        try await lab.rest("POST", "group_channels", ["user_ids": ["ana"], "channel_url": .string(url)])
      }
      try await lab.rest("PUT", "users/ana", ["nickname": "Ana"], as: .key(await ana.key))
      let path = "users/ana/my_group_channels/changelogs?change_ts=0"
      let json = try await lab.rest("GET", path, as: .key(await ana.key)).json
      orders.append(json["updated"]?.array?.compactMap { $0["channel_url"]?.string } ?? [])
    }
    #expect(orders == [urls.sorted(), urls.sorted()])
  }
}
