import ChatEmulation
import ChatJSON
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

@Suite("Service conversations, chat rooms and the older paths")
struct ServiceTests {
  static let text = "{\"_lctype\":-1,\"_lctext\":\"hello\"}"

  func service(_ bench: Bench, subscribers: [String] = []) async throws -> String {
    let made = try await bench.rest("POST", "/1.2/rtm/service-conversations", ["name": "news"])
    let id = try #require(made.body["objectId"]?.string)
    for client in subscribers {
      _ = try await bench.rest(
        "POST", "/1.2/rtm/service-conversations/\(id)/subscribers", ["client_id": .string(client)])
    }
    return id
  }

  @Test("a message to some subscribers reaches only them, a broadcast all, and what they write only the service")
  func messages() async throws {
    let bench = try Bench()
    let id = try await service(bench, subscribers: ["a", "b"])
    let first = try await bench.login("a")
    let second = try await bench.login("b")
    let base = "/1.2/rtm/service-conversations/\(id)"
    let one: JSONValue = ["from_client": "s", "message": .string(Self.text), "to_clients": ["a"]]
    #expect(try await bench.rest("POST", base + "/messages", one).status == 200)
    let all: JSONValue = ["from_client": "s", "message": "to all"]
    #expect(try await bench.rest("POST", base + "/broadcasts", all).status == 200)
    #expect(try await first.next("direct")["msg"]?.string == Self.text)
    #expect(try await first.next("direct")["msg"]?.string == "to all")
    #expect(try await second.next("direct")["msg"]?.string == "to all")
    let ack = try await second.ask("direct", nil, ["cid": .string(id), "msg": "a question"])
    #expect(ack["uid"]?.string != nil)

    let seen = try await first.ask("logs", nil, ["cid": .string(id), "l": 10])["logs"]?.array ?? []
    #expect(seen.compactMap { $0["data"]?.string } == [Self.text, "to all"])
    let ofA = try await bench.rest("GET", base + "/subscribers/a/messages").body.array ?? []
    #expect(ofA.compactMap { $0["data"]?.string } == [Self.text])
    let ofB = try await bench.rest("GET", base + "/subscribers/b/messages").body.array ?? []
    #expect(ofB.compactMap { $0["data"]?.string } == ["a question"])
    let uplink = try await bench.rest("GET", "/1.1/classes/_SysMessage").body["results"]?.array ?? []
    #expect(uplink.compactMap { $0["data"]?.string } == ["a question"])
    #expect(uplink.first?["conv"]?["objectId"]?.string == id)
    #expect(try await bench.rest("POST", base + "/messages", all).body["code"]?.int == 1)
    #expect(try await bench.rest("GET", base + "/messages").status == 404)
    let restored = try Bench()
    try await restored.host.restore(await bench.host.snapshot())
    let again = try await restored.rest("GET", base + "/subscribers/b/messages").body.array ?? []
    #expect(again.compactMap { $0["data"]?.string } == ["a question"])
  }

  @Test("subscriptions are listed by client and by conversation, under both versions' paths")
  func subscriptions() async throws {
    let bench = try Bench()
    let id = try await service(bench, subscribers: (0..<51).map { "s\($0 + 10)" })
    let base = "/1.2/rtm/service-conversations/\(id)/subscribers"
    let page = try await bench.rest("GET", base + "?limit=500").body.array ?? []
    #expect(page.count == 50)
    let last = try #require(page.last?["subscriber"]?.string)
    #expect(try await bench.rest("GET", base + "?client_id=\(last)").body.array?.count == 1)
    #expect(try await bench.rest("GET", base + "/count").body["count"]?.int == 51)
    #expect(try await bench.rest("GET", "/1.2/rtm/clients/s10/service-conversations").body[0]?["conv_id"]?.string == id)
    let old = "/1.1/rtm/conversation"
    let entry: JSONValue = ["conv_id": .string(id), "client_id": "late"]
    #expect(try await bench.rest("POST", old + "/subscription", entry).status == 200)
    #expect(try await bench.rest("GET", old + "/subscribers/count?conv_id=\(id)").body["count"]?.int == 52)
    #expect(try await bench.rest("GET", old + "/subscribed?client_id=late").body.array?.count == 1)
    #expect(try await bench.rest("DELETE", old + "/subscription?conv_id=\(id)&client_id=late").status == 200)
    #expect(try await bench.rest("GET", old + "/subscribed?client_id=late").body.array == [])
    let normal = try await bench.rest("POST", "/1.2/rtm/conversations", ["m": ["a"]])
    let other = try #require(normal.body["objectId"]?.string)
    let refused = try await bench.rest("POST", old + "/subscription", ["conv_id": .string(other), "client_id": "x"])
    #expect(refused.body["code"]?.int == 4313)
  }

  @Test("a broadcast to everybody waits for whoever comes later, once, and not beyond its time")
  func broadcasts() async throws {
    let bench = try Bench()
    let id = try await service(bench)
    let body: JSONValue = [
      "from_client": "s", "conv_id": .string(id), "message": "news", "valid_till": .int(Bench.start + 60_000),
    ]
    let sent = try await bench.rest("POST", "/1.2/rtm/broadcasts", body)
    #expect(try await bench.rest("GET", "/1.2/rtm/broadcasts?conv_id=\(id)").body.array?.count == 1)
    let reader = try await bench.login("reader")
    #expect(try await reader.next("direct")["id"] == sent.body["msg-id"])
    await bench.host.advance(by: .seconds(61))
    let late = try await bench.login("late")
    _ = try await late.ask("session", "query", ["sessionPeerIds": ["reader"]])
    #expect(try await bench.rest("GET", "/1.2/rtm/messages").body.array == [])
    let message = try #require(sent.body["msg-id"]?.string)
    #expect(try await bench.rest("DELETE", "/1.2/rtm/broadcasts/\(message)").status == 200)
    #expect(try await bench.rest("DELETE", "/1.2/rtm/broadcasts/\(message)").body["code"]?.int == 4404)
  }

  @Test("broadcasts have limits a minute and a day", arguments: [("subscribers", 30), ("everybody", 10)])
  func limits(_ kind: String, _ limit: Int) async throws {
    let bench = try Bench()
    let id = try await service(bench)
    let isAll = kind == "everybody"
    let path = isAll ? "/1.2/rtm/broadcasts" : "/1.2/rtm/service-conversations/\(id)/broadcasts"
    let body: JSONValue = ["from_client": "s", "conv_id": .string(id), "message": "m"]
    for _ in 0..<limit { #expect(try await bench.rest("POST", path, body).status == 200) }
    #expect(try await bench.rest("POST", path, body).status == 429)
    await bench.host.advance(by: .seconds(60))
    #expect(try await bench.rest("POST", path, body).status == 200)
  }

  @Test("who is in a chat room, silenced for a time, and blocked by the client itself")
  func rooms() async throws {
    let bench = try Bench()
    let made = try await bench.rest("POST", "/1.2/rtm/chatrooms", ["name": "room"])
    let id = try #require(made.body["objectId"]?.string)
    let alice = try await bench.login("alice")
    _ = try await alice.ask("conv", "add", ["cid": .string(id), "m": ["alice"]])
    #expect(try await bench.rest("GET", "/1.2/rtm/chatrooms/\(id)/members").body["result"]?.array == ["alice"])
    #expect(try await bench.rest("GET", "/1.2/rtm/chatrooms/\(id)/members/online-count").body["result"]?.int == 1)
    #expect(
      try await bench.rest("GET", "/1.1/rtm/transient_group/members?gid=\(id)").body["result"]?.array == ["alice"])
    let silence: JSONValue = ["conv_id": .string(id), "client_id": "alice", "ttl": 60]
    #expect(try await bench.rest("POST", "/1.1/rtm/conversation/blacklist", silence).status == 200)
    #expect(try await alice.ask("direct", nil, ["cid": .string(id), "msg": "x"])["code"]?.int == 4315)
    await bench.host.advance(by: .seconds(61))
    #expect(try await alice.ask("direct", nil, ["cid": .string(id), "msg": "x"])["uid"]?.string != nil)

    let group = try await alice.ask("conv", "start", ["m": ["bob"]])
    let cid = try #require(group.string("cid"))
    let block: JSONValue = ["conv_id": .string(cid)]
    #expect(try await bench.rest("POST", "/1.2/rtm/clients/carol/blacklists", block).status == 200)
    #expect(try await bench.rest("GET", "/1.2/rtm/clients/carol/blacklists").body["conv_ids"]?.array == [.string(cid)])
    #expect(try await alice.ask("conv", "add", ["cid": .string(cid), "m": ["carol"]])["code"]?.int == 4548)
    #expect(try await bench.rest("DELETE", "/1.2/rtm/clients/carol/blacklists?conv_id=\(cid)").status == 200)
    #expect(try await alice.ask("conv", "add", ["cid": .string(cid), "m": ["carol"]]).operation == "added")
  }

  @Test("an app without blacklists says so on both sides")
  func withoutBlacklist() async throws {
    let bench = try Bench { $0.settings = ["blacklist": false] }
    let alice = try await bench.login("alice")
    let cid = try #require(try await alice.ask("conv", "start", ["m": ["bob"]]).string("cid"))
    #expect(
      try await alice.ask("blacklist", "block", ["srcCid": .string(cid), "toPids": ["bob"]])["code"]?.int == 4544)
    #expect(try await bench.rest("GET", "/1.2/rtm/conversations/\(cid)/blacklists").body["code"]?.int == 4544)
    // A source takes that for an empty list.
    #expect(try await bench.source().members(of: ChannelID(cid), after: nil).items.count == 2)
  }

  @Test("installations are rows that only the master key reads, and a scan gives them page by page")
  func installations() async throws {
    let bench = try Bench()
    for number in 0..<5 {
      let body: JSONValue = ["deviceType": "ios", "deviceToken": .string("t\(number)")]
      #expect(try await bench.rest("POST", "/1.1/installations", body, key: "app-key").status == 200)
    }
    #expect(try await bench.rest("GET", "/1.1/classes/_Installation", key: "app-key").status == 403)
    var tokens: Set<String> = []
    var cursor = ""
    repeat {
      let path = "/1.1/scan/classes/_Installation?limit=2" + (cursor.isEmpty ? "" : "&cursor=\(cursor)")
      let page = try await bench.rest("GET", path).body
      for row in page["results"]?.array ?? [] { tokens.insert(row["deviceToken"]?.string ?? "") }
      cursor = page["cursor"]?.string ?? ""
    } while !cursor.isEmpty
    #expect(tokens.count == 5)
  }

  @Test("an edit names its message by id and time together")
  func editTime() async throws {
    let bench = try Bench()
    let alice = try await bench.login("alice")
    let cid = try #require(try await alice.ask("conv", "start", ["m": ["bob"]]).string("cid"))
    let ack = try await alice.ask("direct", nil, ["cid": .string(cid), "msg": "one"])
    let id = try #require(ack.string("uid"))
    let time = try #require(ack.int("t"))
    func patch(_ time: Int64) -> JSONObject {
      ["patches": [["cid": .string(cid), "mid": .string(id), "timestamp": .int(time), "recall": false, "data": "two"]]]
    }
    #expect(try await alice.ask("patch", "modify", patch(time + 1))["code"]?.int == 4404)
    #expect(try await alice.ask("patch", "modify", patch(time)).operation == "modified")
  }
}
