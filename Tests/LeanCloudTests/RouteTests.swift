import ChatEmulation
import ChatJSON
import LeanCloudWire
import Testing

/// Every route of REST, with what it is for; none is left out.
@Suite("Routes of REST", .timeLimit(.minutes(1)))
struct RouteTests {
  /// One server that all parts of the walk share, so that its coverage tells what was not called.
  struct Walk {
    let bench: Bench
    let alice: RawSocket

    init() async throws {
      bench = try Bench { $0.users = [(id: "alice", token: "tok-a"), (id: "bob", token: "tok-b")] }
      alice = try await bench.login("alice")
    }

    /// - Parameter code: of the refusal that is wanted; nil: success.
    @discardableResult
    func call(
      _ method: String, _ path: String, _ body: JSONValue? = nil, code: Int64? = nil,
      _ location: SourceLocation = #_sourceLocation
    ) async throws -> JSONValue {
      let answer = try await bench.rest(method, path, body)
      #expect((answer.status == 200) == (code == nil), "\(method) \(path): \(answer)", sourceLocation: location)
      if let code { #expect(answer.body["code"]?.int == code, "\(method) \(path)", sourceLocation: location) }
      return answer.body
    }

    func id(_ value: JSONValue, _ key: String = "objectId") throws -> String { try #require(value[key]?.string) }
    func texts(_ value: JSONValue) -> [String] { (value.array ?? []).compactMap { $0["data"]?.string } }
  }

  static let none = "5f0000000000000000000009"

  @Test("each is called, answers as the guide says, and refuses what is not there")
  func all() async throws {
    let walk = try await Walk()
    try await routers(walk)
    let group = try await conversations(walk)
    let room = try await rooms(walk)
    let service = try await services(walk)
    for (kind, id) in [("conversations", group), ("chatrooms", room), ("service-conversations", service)] {
      try await moderation(walk, kind, id)
    }
    try await versionOne(walk, group, room, service)
    try await clients(walk, group)
    try await storage(walk)
    try await files(walk)
    for (kind, id) in [("conversations", group), ("chatrooms", room), ("service-conversations", service)] {
      try await walk.call("DELETE", "/1.2/rtm/\(kind)/\(id)")
      try await walk.call("DELETE", "/1.2/rtm/\(kind)/\(id)", code: 4303)
    }
    let left = await walk.bench.host.coverage.filter { entry in
      entry.calls == 0 && ["GET ", "PUT ", "POST", "DELE"].contains(String(entry.endpoint.prefix(4)))
    }
    #expect(left.map(\.endpoint) == [])
    #expect(await walk.bench.host.coverage.allSatisfy(\.isImplemented))
  }

  private func routers(_ walk: Walk) async throws {
    for path in ["/2/route", "/1/route"] {
      #expect(try await walk.call("GET", path + "?appId=emulated-app")["api_server"]?.string == "leancloud.example")
    }
    #expect(try await walk.call("GET", "/v1/route?appId=emulated-app")["server"]?.string == "ws://leancloud.example/")
    try await walk.call("GET", "/v1/route?appId=another", code: 4100)
    #expect(try await walk.call("GET", "/1.1/date")["iso"]?.string == LeanCloudID.iso(Bench.start))
  }

  private func conversations(_ walk: Walk) async throws -> String {
    let base = "/1.2/rtm/conversations"
    let id = try walk.id(try await walk.call("POST", base, ["name": "n", "m": ["alice", "bob"], "c": "alice"]))
    let path = base + "/\(id)"
    #expect(try await walk.call("GET", path)["name"]?.string == "n")
    #expect(try await walk.call("GET", base + "?limit=1")["results"]?.array?.count == 1)
    try await walk.call("GET", base + "?where=%7B", code: 102)
    #expect(try await walk.call("GET", "/1.2/rtm/all-conversations")["results"]?.array?.count == 1)
    try await walk.call("PUT", path, ["name": "m", "own": 1])
    #expect(try await walk.alice.next("conv", "updated")["attr"]?["own"]?.int == 1)
    try await walk.call("POST", path + "/members", ["client_ids": ["carol", "dave"]])
    try await walk.call("DELETE", path + "/members", ["client_ids": ["dave"]])
    #expect(try await walk.call("GET", path + "/members")["result"]?.array == ["alice", "bob", "carol"])
    try await walk.call("POST", path + "/mutes", ["client_ids": ["bob", "carol"]])
    try await walk.call("DELETE", path + "/mutes", ["client_ids": ["bob"]])
    #expect(try await walk.call("GET", path + "/mutes")["result"]?.array == ["carol"])
    try await roles(walk, "conversations", id)
    try await messages(walk, "conversations", id, from: "bob")
    return id
  }

  private func roles(_ walk: Walk, _ kind: String, _ id: String) async throws {
    let path = "/1.2/rtm/\(kind)/\(id)/member-infos"
    let info = try walk.id(try await walk.call("POST", path, ["clientId": "bob", "role": "Manager"]))
    try await walk.call("POST", path, ["clientId": "bob", "role": "King"], code: 4321)
    #expect(try await walk.call("PUT", path + "/\(info)", ["role": "Member"])["role"]?.string == "Member")
    #expect(try await walk.call("GET", path + "?role=Member")["results"]?[0]?["clientId"]?.string == "bob")
    #expect(try await walk.call("GET", path + "?role=Manager")["results"]?.array == [])
    try await walk.call("DELETE", path + "/\(info)")
    try await walk.call("DELETE", path + "/\(info)", code: 101)
  }

  private func messages(_ walk: Walk, _ kind: String, _ id: String, from: String) async throws {
    let path = "/1.2/rtm/\(kind)/\(id)/messages"
    var sent: [(id: String, time: JSONValue)] = []
    for text in ["one", "two", "three"] {
      let answer = try await walk.call("POST", path, ["from_client": .string(from), "message": .string(text)])
      sent.append((try walk.id(answer, "msg-id"), answer["timestamp"] ?? .null))
    }
    try await walk.call(
      "PUT", path + "/\(sent[0].id)", ["from_client": .string(from), "message": "edited", "timestamp": sent[0].time])
    try await walk.call("PUT", path + "/\(sent[0].id)", ["from_client": "nobody", "message": "x"], code: 4403)
    try await walk.call(
      "PUT", path + "/\(sent[1].id)/recall", ["from_client": .string(from), "timestamp": sent[1].time])
    try await walk.call("DELETE", path + "/\(sent[2].id)?from_client=\(from)&timestamp=\(sent[2].time.text())")
    try await walk.call("DELETE", path + "/\(sent[2].id)", code: 4404)
    #expect(walk.texts(try await walk.call("GET", path)) == ["{\"_lctype\":-127}", "edited"])
  }

  private func rooms(_ walk: Walk) async throws -> String {
    let base = "/1.2/rtm/chatrooms"
    let id = try walk.id(try await walk.call("POST", base, ["name": "room"]))
    #expect(try await walk.call("GET", base)["results"]?.array?.count == 1)
    #expect(try await walk.call("GET", base + "/\(id)")["tr"]?.bool == true)
    try await walk.call("PUT", base + "/\(id)", ["name": "hall"])
    _ = try await walk.alice.ask("conv", "add", ["cid": .string(id), "m": ["alice"]])
    #expect(try await walk.call("GET", base + "/\(id)/members")["result"]?.array == ["alice"])
    #expect(try await walk.call("GET", base + "/\(id)/members/online-count")["result"]?.int == 1)
    try await roles(walk, "chatrooms", id)
    try await messages(walk, "chatrooms", id, from: "editor")
    return id
  }

  private func services(_ walk: Walk) async throws -> String {
    let base = "/1.2/rtm/service-conversations"
    let id = try walk.id(try await walk.call("POST", base, ["name": "news"]))
    let path = base + "/\(id)"
    #expect(try await walk.call("GET", base)["results"]?.array?.count == 1)
    #expect(try await walk.call("GET", path)["sys"]?.bool == true)
    try await walk.call("PUT", path, ["name": "papers"])
    for client in ["alice", "bob"] { try await walk.call("POST", path + "/subscribers", ["client_id": .string(client)]) }
    try await walk.call("DELETE", path + "/subscribers/bob")
    #expect(try await walk.call("GET", path + "/subscribers")[0]?["subscriber"]?.string == "alice")
    #expect(try await walk.call("GET", path + "/subscribers/count")["count"]?.int == 1)
    let body: JSONValue = ["from_client": "desk", "message": "to alice", "to_clients": ["alice"]]
    let one = try await walk.call("POST", path + "/messages", body)
    let mid = try walk.id(one, "msg-id")
    let mine = path + "/subscribers/alice/messages"
    try await walk.call("PUT", path + "/messages/\(mid)", ["from_client": "desk", "message": "edited", "to_clients": ["alice"]])
    #expect(walk.texts(try await walk.call("GET", mine)) == ["edited"])
    try await walk.call("PUT", path + "/messages/\(mid)/recall", ["from_client": "desk", "to_clients": ["alice"]])
    try await walk.call("DELETE", mine + "/\(mid)")
    #expect(try await walk.call("GET", mine) == [])
    try await walk.call("POST", path + "/broadcasts", ["from_client": "desk", "message": "to all"])
    try await broadcasts(walk, id)
    return id
  }

  private func broadcasts(_ walk: Walk, _ service: String) async throws {
    let body: JSONValue = ["from_client": "desk", "conv_id": .string(service), "message": "to the app"]
    let mid = try walk.id(try await walk.call("POST", "/1.2/rtm/broadcasts", body), "msg-id")
    #expect(walk.texts(try await walk.call("GET", "/1.2/rtm/broadcasts?conv_id=\(service)")) == ["to the app"])
    try await walk.call("DELETE", "/1.2/rtm/broadcasts/\(mid)")
    #expect(try await walk.call("GET", "/1.2/rtm/broadcasts") == [])
    let old = try walk.id(try await walk.call("POST", "/1.1/rtm/broadcast", body), "msg-id")
    #expect(try await walk.call("GET", "/1.1/rtm/broadcast").array?.count == 1)
    try await walk.call("DELETE", "/1.1/rtm/broadcast?mid=\(old)")
    try await walk.call("DELETE", "/1.1/rtm/broadcast?mid=\(old)", code: 4404)
  }

  private func moderation(_ walk: Walk, _ kind: String, _ id: String) async throws {
    let path = "/1.2/rtm/\(kind)/\(id)"
    try await walk.call("POST", path + "/temporary-silenceds", ["client_id": "bob", "ttl": 60])
    try await walk.call("POST", path + "/temporary-silenceds", ["client_id": "bob", "ttl": 86_401], code: 1)
    try await walk.call("DELETE", path + "/temporary-silenceds?client_id=bob")
    for list in ["permanent-silenceds", "blacklists"] {
      let clients = (10..<30).map { JSONValue.string("u\($0)") }
      try await walk.call("POST", path + "/\(list)", ["client_ids": .array(clients)])
      try await walk.call("DELETE", path + "/\(list)", ["client_ids": ["u10"]])
      let first = try await walk.call("GET", path + "/\(list)?limit=15")
      #expect(first["client_ids"]?.array?.count == 15)
      let next = try walk.id(first, "next")
      let second = try await walk.call("GET", path + "/\(list)?limit=15&next=\(next)")
      #expect(second["client_ids"]?.array?.count == 4 && second["next"] == nil)
    }
    for method in ["GET", "PUT"] { try await walk.call(method, "/1.2/rtm/\(kind)/\(Self.none)", method == "PUT" ? [:] : nil, code: 4303) }
  }

  private func versionOne(_ walk: Walk, _ group: String, _ room: String, _ service: String) async throws {
    let conversation: JSONValue = .string(group)
    let sent = try await walk.call(
      "POST", "/1.1/rtm/messages",
      ["from_peer": "bob", "conv_id": conversation, "message": "first", "transient": false])
    let mid = try walk.id(sent, "msg-id")
    let time = sent["timestamp"] ?? .null
    for path in ["/1.1/rtm/messages/history", "/1/rtm/messages/logs", "/1.1/rtm/messages/logs"] {
      #expect(walk.texts(try await walk.call("GET", path + "?convid=\(group)")).first == "first")
    }
    try await walk.call(
      "POST", "/1.1/rtm/patch/message",
      ["conv_id": conversation, "msg_id": .string(mid), "timestamp": time, "from_peer": "bob", "message": "patched", "recall": false])
    try await walk.call(
      "PUT", "/1.1/rtm/messages/logs",
      ["conv-id": conversation, "msg-id": .string(mid), "timestamp": time, "from": "bob", "data": "rewritten"])
    #expect(walk.texts(try await walk.call("GET", "/1.2/rtm/messages")).contains("rewritten"))
    #expect(walk.texts(try await walk.call("GET", "/1.2/rtm/clients/bob/messages")).first == "rewritten")
    #expect(try await walk.call("GET", "/1.1/rtm/messages/unread/alice/\(group)")["count"]?.int == 2)
    #expect(try await walk.call("GET", "/1.1/rtm/messages/unread/alice")["count"]?.int ?? 0 >= 2)
    try await walk.call("DELETE", "/1.1/rtm/messages/logs?convid=\(group)&msgid=\(mid)&timestamp=\(time.text())&from=bob")
    try await walk.call("DELETE", "/1.1/rtm/messages/logs?convid=\(group)&msgid=\(mid)", code: 4404)

    let old = "/1.1/rtm/conversation"
    try await walk.call("POST", old + "/subscription", ["conv_id": .string(service), "client_id": "late"])
    #expect(try await walk.call("GET", old + "/subscribers?conv_id=\(service)").array?.count == 2)
    #expect(try await walk.call("GET", old + "/subscribers/count?conv_id=\(service)")["count"]?.int == 2)
    #expect(try await walk.call("GET", old + "/subscribed?client_id=late").array?.count == 1)
    try await walk.call("DELETE", old + "/subscription?conv_id=\(service)&client_id=late")
    try await walk.call(
      "POST", "/1.1/rtm/broadcast/subscriber", ["from_peer": "desk", "conv_id": .string(service), "message": "m"])
    #expect(try await walk.call("GET", "/1.1/rtm/transient_group/onlines?gid=\(room)")["result"]?.int == 1)
    #expect(try await walk.call("GET", "/1.1/rtm/transient_group/members?gid=\(room)")["result"]?.array == ["alice"])
    try await walk.call("POST", old + "/blacklist", ["conv_id": .string(room), "client_id": "alice", "ttl": 60])
    try await walk.call("DELETE", old + "/blacklist?conv_id=\(room)&client_id=alice")
  }

  private func clients(_ walk: Walk, _ group: String) async throws {
    #expect(try await walk.call("POST", "/1.2/rtm/clients/check-online", ["client_ids": ["alice", "bob"]])["results"]?.array == ["alice"])
    #expect(try await walk.call("POST", "/1.1/rtm/online", ["peers": ["alice", "bob"]])["results"]?.array == ["alice"])
    #expect(try await walk.call("GET", "/1.2/rtm/clients/alice/unread-count?conv_id=\(group)")["count"]?.int == 1)
    try await walk.call("GET", "/1.2/rtm/clients/alice/unread-count?conv_id=\(Self.none)", code: 4303)
    #expect(try await walk.call("GET", "/1.2/rtm/stats")["result"]?["online_user_count"]?.int == 1)
    #expect(try await walk.call("GET", "/1.2/rtm/clients/alice/service-conversations").array?.count == 1)
    let blocked = "/1.2/rtm/clients/carol/blacklists"
    try await walk.call("POST", blocked, ["conv_id": .string(group)])
    #expect(try await walk.call("GET", blocked)["conv_ids"]?.array == [.string(group)])
    try await walk.call("DELETE", blocked + "?conv_id=\(group)")
    #expect(try await walk.call("GET", blocked)["conv_ids"]?.array == [])
    for (method, path, body) in [
      ("GET", "/1.2/rtm/clients/sign?session_token=tok-a", nil), ("POST", "/1.1/rtm/sign", ["session_token": "tok-a"]),
    ] as [(String, String, JSONValue?)] {
      let signed = try await walk.call(method, path, body)
      let text = LeanCloudSignature.open(
        app: "emulated-app", client: "alice", timestamp: signed["timestamp"]?.int ?? 0, nonce: signed["nonce"]?.string ?? "")
      #expect(signed["signature"]?.string == LeanCloudSignature.sign(text, key: "emulated-secret"))
    }
    try await walk.call("POST", "/1.1/rtm/sign", ["session_token": "none"], code: 211)
    // bob was never there: everything that happened to the group waits for him.
    let missed = try await walk.call("GET", "/1.1/rtm/notifications?client_id=bob&start_ts=0&notification_type=permanent")
    #expect(missed["notifications"]?.array?.contains { $0["op"]?.string == "members-joined" } == true)
    let both = try await walk.call("GET", "/1.1/rtm/notifications?client_id=bob")
    #expect(both["permanent"]?["notifications"] == missed["notifications"])
    for (path, body) in [
      ("/1.2/rtm/clients/alice/kick", ["reason": "bye"]), ("/1.1/rtm/client/kick", ["client_id": "alice", "reason": "bye"]),
    ] as [(String, JSONValue)] {
      let socket = try await walk.bench.login("alice")
      try await walk.call("POST", path, body)
      let closed = try await socket.next("session", "closed")
      #expect(closed["code"]?.int == 4115 && closed.string("reason") == "bye")
    }
  }

  private func storage(_ walk: Walk) async throws {
    let classes = "/1.1/classes/_Conversation"
    let id = try walk.id(try await walk.call("POST", classes, ["name": "plain", "m": ["alice"]]))
    try await walk.call("PUT", classes + "/\(id)", ["m": ["__op": "AddUnique", "objects": ["bob"]]])
    #expect(try await walk.call("GET", classes + "/\(id)")["m"]?.array == ["alice", "bob"])
    #expect(try await walk.call("GET", classes + "?count=1&limit=0")["count"]?.int == 4)
    try await walk.call("DELETE", classes + "/\(id)")
    try await walk.call("GET", classes + "/\(id)", code: 101)
    #expect(try await walk.call("GET", "/1.1/scan/classes/_User")["results"]?.array?.count == 2)
    let user = try await walk.call("POST", "/1.1/users", ["username": "carol", "password": "p"])
    let carol = try walk.id(user)
    try await walk.call("POST", "/1.1/users", ["username": "carol"], code: 202)
    try await walk.call("PUT", "/1.1/users/\(carol)", ["nickname": "C"])
    #expect(try await walk.call("GET", "/1.1/users/\(carol)")["nickname"]?.string == "C")
    #expect(try await walk.call("GET", "/1.1/users")["results"]?.array?.count == 3)
    try await walk.call("POST", "/1.1/login", ["username": "carol", "password": "wrong"], code: 210)
    let login = try await walk.call("POST", "/1.1/login", ["username": "alice", "password": "tok-a"])
    #expect(login["sessionToken"]?.string == "tok-a")
    let device = try walk.id(try await walk.call("POST", "/1.1/installations", ["deviceType": "ios", "deviceToken": "t"]))
    try await walk.call("POST", "/1.1/installations", ["deviceType": "ios"], code: 114)
    try await walk.call("PUT", "/1.1/installations/\(device)", ["badge": 1])
    #expect(try await walk.call("GET", "/1.1/classes/_Installation/\(device)")["badge"]?.int == 1)
    try await friends(walk, carol)
    try await walk.call("DELETE", "/1.1/users/\(carol)")
    try await walk.call("DELETE", "/1.1/users/\(carol)", code: 101)
  }

  private func friends(_ walk: Walk, _ carol: String) async throws {
    let pointer = LeanCloudVendorRowTests.pointer
    func ask(_ friend: String) async throws -> String {
      try walk.id(
        try await walk.call(
          "POST", "/1.1/users/friendshipRequests", ["user": pointer("alice"), "friend": pointer(friend)]))
    }
    let (declined, accepted) = (try await ask("bob"), try await ask(carol))
    try await walk.call("PUT", "/1.1/users/friendshipRequests/\(declined)/decline")
    try await walk.call("PUT", "/1.1/users/friendshipRequests/\(accepted)/accept")
    try await walk.call("PUT", "/1.1/users/friendshipRequests/\(Self.none)/accept", code: 101)
    #expect(try await walk.call("GET", "/1.1/users/alice/followees")["results"]?.array?.count == 1)
    try await walk.call("POST", "/1.1/users/bob/friendship/alice")
    #expect(try await walk.call("GET", "/1.1/users/alice/followers")["results"]?.array?.count == 2)
    try await walk.call("DELETE", "/1.1/users/bob/friendship/alice")
    #expect(try await walk.call("GET", "/1.1/users/alice/followers")["results"]?.array?.count == 1)
  }

  private func files(_ walk: Walk) async throws {
    let elsewhere: JSONValue = ["url": "http://files.example/a.png", "name": "a.png", "mime_type": "image/png"]
    let id = try walk.id(try await walk.call("POST", "/1.1/files", elsewhere))
    #expect(try await walk.call("GET", "/1.1/files/\(id)")["url"]?.string == "http://files.example/a.png")
    #expect(try await walk.call("POST", "/1.1/files/b.png", ["url": "http://files.example/b"])["name"]?.string == "b.png")
    try await walk.call("POST", "/1.1/files", ["name": "a"], code: 1)
    for method in ["PUT", "POST"] {
      let token = try await walk.call("POST", "/1.1/fileTokens", ["name": "n.txt"])
      let upload = try walk.id(token, "token")
      try await walk.call(method, "/upload/\(upload)", "bytes")
      try await walk.call("POST", "/1.1/fileCallback", ["token": .string(upload), "result": true])
      let key = try walk.id(token, "key")
      for path in ["/files/\(key)", "/files/\(key)/n.txt"] {
        #expect(try await walk.call("GET", path) == "bytes")
      }
    }
    try await walk.call("POST", "/1.1/fileTokens", [:], code: 122)
    try await walk.call("PUT", "/upload/none", "bytes", code: 403)
    try await walk.call("GET", "/files/none", code: 101)
  }
}
