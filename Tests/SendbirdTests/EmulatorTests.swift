import ChatJSON
import ChatTransport
import SendbirdWire
import Testing

private let refusedLogins: [(query: String, code: Int64)] = [
  ("user_id=ana&access_token=wrong&ai=APP", 400302), ("user_id=ana&access_token=null&ai=APP", 400302),
  ("user_id=ana&access_token=tok&ai=OTHER", 400304), ("key=nonsense&ai=APP", 400303), ("ai=APP", 400301),
  ("user_id=\(String(repeating: "x", count: 81))&ai=APP", 400305),
]

@Suite("The Sendbird emulator")
struct SendbirdEmulatorTests {
  @Test("login gives a key and all that the official client needs")
  func login() async throws {
    let lab = try Lab(users: [("ana", "tok")])
    let client = try await lab.logIn("ana", token: "tok")
    let login = await client.login.payload
    #expect(login.text("user_id") == "ana")
    #expect(login.number("login_ts") == Lab.start)
    for key in [
      "key", "ping_interval", "pong_timeout", "reconnect", "file_upload_size_limit", "premium_feature_list",
      "emoji_hash",
    ] {
      #expect(login[key] != nil, "\(key)")
    }
    #expect(login["req_id"] == nil)
  }

  @Test("login is refused with the vendor's code", arguments: refusedLogins)
  func refusedLogin(query: String, code: Int64) async throws {
    let lab = try Lab(users: [("ana", "tok")])
    let socket = try await lab.host.transports.webSocket.connect(WebSocketRequest("ws://sendbird.test/?\(query)"))
    let frame = try await LabClient(socket: socket).read("LOGI")
    #expect(frame.payload.number("code") == code)
    #expect(frame.payload["error"] == true)
    await #expect(throws: WebSocketClose.self) { try await socket.receive() }
  }

  @Test("only the sending socket's copy carries req_id")
  func requestIDs() async throws {
    let lab = try Lab()
    let (ana, phone, bob) = (try await lab.logIn("ana"), try await lab.logIn("ana"), try await lab.logIn("bob"))
    let channel = try await lab.rest(
      "POST", "group_channels", ["user_ids": ["bob"], "is_distinct": true], as: .key(await ana.key))
    let url = try #require(channel.json["channel_url"]?.string)
    let ack = try await ana.say("hello", in: url)
    #expect(ack.command == "MESG")
    #expect(ack.requestID == "r1")
    for other in [phone, bob] {
      let copy = try await other.read("MESG")
      #expect(copy.payload.text("req_id") == "")
      #expect(copy.payload.text("message") == "hello")
      #expect(copy.payload.number("msg_id") == ack.payload.number("msg_id"))
    }
  }

  @Test("a distinct channel is the same in any order of ids, until somebody is invited")
  func distinct() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob", "cleo")
    func create(_ users: JSONValue) async throws -> JSONValue {
      try await lab.rest("POST", "group_channels", ["user_ids": users, "is_distinct": true]).json
    }
    let first = try await create(["ana", "bob"])
    let second = try await create(["bob", "ana", "bob"])
    #expect(first["channel_url"] == second["channel_url"])
    #expect(first["is_created"] == true)
    #expect(second["is_created"] == false)
    let url = try #require(first["channel_url"]?.string)
    try await lab.rest("POST", "group_channels/\(url)/invite", ["user_ids": ["cleo"]])
    #expect(try await create(["ana", "bob"])["channel_url"] != first["channel_url"])
  }

  @Test("messages of one millisecond page by id, in both directions and without loss")
  func sameMillisecond() async throws {
    let lab = try Lab()
    let ana = try await lab.logIn("ana")
    try await lab.makeUsers("bob")
    let url = try #require(
      try await lab.rest("POST", "group_channels", ["user_ids": ["ana", "bob"]]).json["channel_url"]?.string)
    for number in 0..<1000 { _ = try await ana.say("\(number)", in: url) }
    var found: [String] = []
    var anchor = "message_ts=9007199254740991"
    while true {
      let page = try await lab.rest(
        "GET", "group_channels/\(url)/messages?prev_limit=37&next_limit=0&include=false&reverse=false&\(anchor)")
      let messages = try #require(page.json["messages"]?.array)
      guard let first = messages.first else { break }
      found = messages.compactMap { $0["message"]?.string } + found
      anchor = "message_id=\(first["message_id"]?.int ?? 0)"
    }
    #expect(found == (0..<1000).map(String.init))
    let around = try await lab.rest(
      "GET", "group_channels/\(url)/messages?prev_limit=5&next_limit=5&include=true&message_ts=\(Lab.start)")
    #expect(around.json["messages"]?.array?.count == 1000)
  }

  @Test("unread numbers rise for others, and READ brings them to nothing on every device")
  func unread() async throws {
    let lab = try Lab()
    let (ana, bob, tablet) = (try await lab.logIn("ana"), try await lab.logIn("bob"), try await lab.logIn("bob"))
    let url = try #require(
      try await lab.rest("POST", "group_channels", ["user_ids": ["ana", "bob"]]).json["channel_url"]?.string)
    _ = try await ana.say("1", in: url)
    _ = try await ana.say("2", in: url)
    #expect(try await lab.rest("GET", "users/bob/unread_message_count").json["unread_count"] == 2)
    #expect(try await lab.rest("GET", "users/ana/unread_message_count").json["unread_count"] == 0)
    await lab.host.advance(by: .seconds(1))
    let ack = try await bob.ask("READ", ["channel_url": .string(url)])
    #expect(ack.payload["unread_cnt"]?["all"] == 0)
    #expect(try await tablet.read("READ").payload.object("user")?.text("guest_id") == "bob")
    #expect(try await ana.read("READ").payload.number("ts") == Lab.start + 1000)
    #expect(try await lab.rest("GET", "users/bob/unread_message_count").json["unread_count"] == 0)
  }

  @Test("the socket refuses with the vendor's codes")
  func refusals() async throws {
    let lab = try Lab()
    let (ana, bob, cleo) = (try await lab.logIn("ana"), try await lab.logIn("bob"), try await lab.logIn("cleo"))
    let url = try #require(
      try await lab.rest("POST", "group_channels", ["user_ids": ["bob"]], as: .key(await ana.key)).json["channel_url"]?
        .string)
    func code(_ client: LabClient, _ command: String, _ more: JSONObject) async throws -> Int64? {
      var payload: JSONObject = ["channel_url": .string(url)]
      for member in more { payload[member.key] = member.value }
      return try await client.ask(command, payload).payload.number("code")
    }
    #expect(try await code(cleo, "MESG", ["message": "x"]) == 900020)
    #expect(try await code(ana, "MESG", ["message": "x", "channel_url": "nowhere"]) == 900500)
    #expect(try await code(ana, "MESG", ["message": .string(String(repeating: "x", count: 5001))]) == 400110)
    let sent = try await ana.say("mine", in: url)
    let id = try #require(sent.payload["msg_id"])
    #expect(try await code(bob, "MEDI", ["msg_id": id, "message": "theirs"]) == 900022)
    #expect(try await code(bob, "MEDI", ["msg_id": 1, "message": "none"]) == 900300)
    try await lab.rest("POST", "group_channels/\(url)/mute", ["user_id": "bob"], as: .key(await ana.key))
    #expect(try await code(bob, "MESG", ["message": "x"]) == 900041)
    try await lab.rest("DELETE", "group_channels/\(url)/mute/bob", as: .key(await ana.key))
    try await lab.rest("PUT", "group_channels/\(url)/freeze", ["freeze": true], as: .key(await ana.key))
    #expect(try await code(bob, "MESG", ["message": "x"]) == 900050)
    #expect(try await code(ana, "MESG", ["message": "operators may"]) == nil)
  }

  @Test("the migration call keeps times, skips known dedup ids, refuses strangers, and takes a hundred")
  func migration() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob")
    let url = try #require(
      try await lab.rest("POST", "group_channels", ["user_ids": ["ana"], "channel_url": "old_talk"]).json[
        "channel_url"]?.string)
    func item(_ number: Int, user: String = "ana") -> JSONValue {
      [
        "user_id": .string(user), "message_type": "MESG", "message": .string("m\(number)"),
        "timestamp": .int(1_500_000_000_000 + Int64(number % 3)), "dedup_id": .string("d\(number)"),
      ]
    }
    let batch = JSONValue.array((0..<100).map { item($0) })
    for _ in 0..<2 { #expect(try await lab.rest("POST", "migration/\(url)", ["messages": batch]).status == 200) }
    let page = try await lab.rest(
      "GET", "group_channels/\(url)/messages?message_ts=0&prev_limit=0&next_limit=200&include=true")
    let messages = try #require(page.json["messages"]?.array)
    #expect(messages.count == 100)
    #expect(
      messages.compactMap { $0["created_at"]?.int } == (0..<100).map { 1_500_000_000_000 + Int64($0 % 3) }.sorted())
    #expect(
      try await lab.rest("POST", "migration/\(url)", ["messages": .array((0..<101).map { item($0) })]).json["code"]
        == 400203)
    #expect(
      try await lab.rest("POST", "migration/\(url)", ["messages": [item(200, user: "bob")]]).json["code"] == 400108)
    #expect(
      try await lab.rest("POST", "migration/\(url)", ["messages": [item(200, user: "nobody")]]).json["code"] == 400201)
  }

  @Test("changelogs tell of edits and deletions by token")
  func changelog() async throws {
    let lab = try Lab()
    let ana = try await lab.logIn("ana")
    let url = try #require(
      try await lab.rest("POST", "group_channels", ["user_ids": ["ana"]]).json["channel_url"]?.string)
    let one = try #require(try await ana.say("one", in: url).payload.number("msg_id"))
    let two = try #require(try await ana.say("two", in: url).payload.number("msg_id"))
    let base = "group_channels/\(url)/messages/changelogs"
    let start = try await lab.rest("GET", "\(base)?change_ts=\(Lab.start)").json
    #expect(start["updated"] == [])
    let token = try #require(start["next"]?.string)
    _ = try await ana.ask("MEDI", ["channel_url": .string(url), "msg_id": .int(one), "message": "uno"])
    try await lab.rest("DELETE", "group_channels/\(url)/messages/\(two)", as: .key(await ana.key))
    let changes = try await lab.rest("GET", "\(base)?token=\(token)").json
    #expect(changes["updated"]?.array?.compactMap { $0["message"]?.string } == ["uno"])
    #expect(changes["deleted"] == [["message_id": .int(two)]])
    #expect(try await lab.rest("GET", "\(base)?token=\(changes["next"]?.string ?? "")").json["updated"] == [])
  }

  @Test("uploads are downloaded byte for byte")
  func files() async throws {
    let lab = try Lab()
    let ana = try await lab.logIn("ana")
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0) } + Array("\r\n--B\r\nnot the end".utf8)
    let form = SendbirdMultipart([
      .init(name: "file", fileName: "a \"b\".bin", mimeType: "application/x-test", bytes: bytes),
      .init(name: "thumbnail1", bytes: Array("100,50".utf8)),
    ])
    var request = HTTPRequest("POST", "http://sendbird.test/v3/storage/file", body: form.encode(boundary: "Boundary"))
    request.headers["Content-Type"] = "multipart/form-data; boundary=Boundary"
    request.headers["Session-Key"] = await ana.key
    let answer = try JSONValue(parsing: try await lab.host.transports.http.send(request).body)
    #expect(answer["file_size"]?.int == Int64(bytes.count))
    let url = try #require(answer["url"]?.string)
    #expect(try await lab.host.transports.http.send(HTTPRequest("GET", url)).body == bytes)
  }

  @Test("what is not emulated answers the vendor's not-found and is counted")
  func coverage() async throws {
    let lab = try Lab()
    #expect(try await lab.rest("POST", "polls", [:]).json["code"] == 400404)
    #expect(try await lab.rest("GET", "no/such/thing").json["code"] == 400404)
    #expect(try await lab.rest("GET", "users", as: .nobody).json["code"] == 400401)
  }
}
