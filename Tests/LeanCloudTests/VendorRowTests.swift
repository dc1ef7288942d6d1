import ChatEmulation
import ChatJSON
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

/// What belongs to chat and has no place among the records: kept as the service gives it.
@Suite("The rescue of what has no place among the records", .timeLimit(.minutes(1)))
struct LeanCloudVendorRowTests {
  func rows(_ source: some ChatSource) async throws -> [VendorRow] {
    var all: [VendorRow] = []
    var cursor: Cursor?
    var walk = PageWalk()
    repeat {
      let page = try await source.rows(after: cursor)
      all += page.items
      #expect(page.unreadable == [])
      if let next = page.next { try walk.advance(to: next.rawValue, .readSource) }
      cursor = page.next
    } while cursor != nil
    return all
  }

  func source(_ bench: Bench, _ options: [String: JSONText] = [:]) throws -> LeanCloudSource {
    try LeanCloudSource(
      profile: bench.profile(options), environment: bench.environment(), transports: bench.host.transports)
  }

  static func pointer(_ id: String) -> JSONValue {
    ["__type": "Pointer", "className": "_User", "objectId": .string(id)]
  }

  @Test("devices, friends, their requests and rows of files come as they are, whosever they are")
  func classes() async throws {
    let bench = try Bench { $0.users = [(id: "alice", token: "a"), (id: "bob", token: "b"), (id: "carol", token: "c")] }
    let phone: JSONValue = ["deviceType": "ios", "deviceToken": "token-1", "channels": ["news"]]
    #expect(try await bench.rest("POST", "/1.1/installations", phone).status == 200)
    #expect(try await bench.rest("POST", "/1.1/users/alice/friendship/carol", ["group": "work"]).status == 200)
    let asked = try await bench.rest(
      "POST", "/1.1/users/friendshipRequests", ["user": Self.pointer("alice"), "friend": Self.pointer("bob")])
    let request = try #require(asked.body["objectId"]?.string)
    #expect(try await bench.rest("PUT", "/1.1/users/friendshipRequests/\(request)/accept").status == 200)
    let alice = try await bench.connect("alice")
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    let file = Attachment(name: "n.txt", mimeType: "text/plain", source: .bytes(Array("kept".utf8)))
    _ = try await alice.adapter.upload(file, for: channel.id, progress: nil)

    let found = try await rows(source(bench))
    func of(_ kind: String) -> [VendorRow] { found.filter { $0.kind == kind } }
    #expect(of("_Installation").count == 1)
    #expect(of("_Installation").first?.raw.text.contains("token-1") == true)
    #expect(Set(of("_Followee").compactMap(\.user)) == ["alice", "bob"])
    #expect(of("_Followee").count == 3 && of("_Follower").count == 3)
    #expect(of("_Followee").contains { $0.raw.text.contains("work") })
    #expect(of("_FriendshipRequest").map(\.id) == [request])
    #expect(of("_FriendshipRequest").first?.raw.text.contains("accepted") == true)
    #expect(of("_File").count == 1)
    // A pointer names the row of the user, which need not be the client id.
    let named = try source(bench, ["userIDColumn": JSONText(unchecked: "\"username\"")])
    #expect(try await rows(named).filter { $0.kind == "_Followee" }.allSatisfy { $0.user == nil })
    let friends = try await rows(named).filter { $0.kind.hasPrefix("_F") && $0.kind != "_File" }
    #expect(friends.count == 7 && friends.allSatisfy { Set($0.people).isSubset(of: ["alice", "bob", "carol"]) })
    #expect(friends.allSatisfy { $0.people.count == 2 })
    // With the master key alone.
    for name in ["_Followee", "_Follower", "_FriendshipRequest", "_Installation"] {
      #expect(try await bench.rest("GET", "/1.1/classes/\(name)", key: "app-key").status == 403)
    }
  }

  @Test("who is named by an object id alone is told by the client id, so that a filter knows whom a row is about")
  func people() async throws {
    let bench = try Bench()
    var ids: [String: String] = [:]
    for name in ["ann", "ben", "cleo"] {
      let body: JSONValue = ["username": .string(name), "password": "x"]
      ids[name] = try await bench.rest("POST", "/1.1/users", body).body["objectId"]?.string
    }
    let (ann, ben, cleo) = (try #require(ids["ann"]), try #require(ids["ben"]), try #require(ids["cleo"]))
    for (one, other) in [(ann, ben), (cleo, ann), (ben, cleo)] {
      #expect(try await bench.rest("POST", "/1.1/users/\(one)/friendship/\(other)").status == 200)
    }
    let phone: JSONValue = ["deviceType": "ios", "deviceToken": "t", "owner": ["of": [Self.pointer(ann)]]]
    #expect(try await bench.rest("POST", "/1.1/installations", phone).status == 200)
    let source = try source(bench, ["userIDColumn": JSONText(unchecked: "\"username\"")])
    let left = try await rows(source).filter { !$0.people.contains("ann") }
    #expect(Set(left.map(\.kind)) == ["_Followee", "_Follower"] && left.count == 2)
    #expect(left.allSatisfy { Set($0.people) == ["ben", "cleo"] && !$0.raw.text.contains(ann) })
  }

  @Test("who follows whom is told by the service, ends by the one who follows, and survives a restart of the server")
  func friends() async throws {
    let bench = try Bench { $0.users = [(id: "alice", token: "a"), (id: "bob", token: "b")] }
    let path = "/1.1/users/alice/friendship/bob"
    #expect(try await bench.rest("POST", path, key: "app-key").body["code"]?.int == 206)
    for _ in 0..<2 { #expect(try await bench.rest("POST", path).status == 200) }
    let followees = try await bench.rest("GET", "/1.1/users/alice/followees").body["results"]?.array ?? []
    #expect(followees.map { $0["followee"]?["objectId"]?.string } == ["bob"])
    let again = try Bench()
    try await again.host.restore(await bench.host.snapshot())
    let followers = try await again.rest("GET", "/1.1/users/bob/followers").body["results"]?.array ?? []
    #expect(followers.map { $0["follower"]?["objectId"]?.string } == ["alice"])
    #expect(try await bench.rest("DELETE", path).status == 200)
    #expect(try await bench.rest("GET", "/1.1/users/alice/followees").body["results"]?.array == [])
    #expect(try await bench.rest("GET", "/1.1/classes/_Follower").body["results"]?.array == [])
    #expect(try await bench.rest("POST", "/1.1/users/alice/friendship/nobody").status == 404)
  }

  @Test(
    "a service conversation that is deleted while its rows are read ends no pull, wherever the reading stands",
    arguments: 1...8)
  func deletedMeanwhile(page stop: Int) async throws {
    let bench = try Bench()
    let id = try await service(bench)
    let source = try source(bench)
    var cursor: Cursor?
    var read = 0
    repeat {
      cursor = try await source.rows(after: cursor).next
      read += 1
      guard read == stop else { continue }
      #expect(try await bench.rest("DELETE", "/1.2/rtm/conversations/\(id)").status == 200)
    } while cursor != nil
    #expect(read >= stop)
  }

  /// A service conversation with three subscribers: a message to one, one to two, a question, and a broadcast.
  func service(_ bench: Bench) async throws -> String {
    let id = try await ServiceTests().service(bench, subscribers: ["a", "b", "silent"])
    let base = "/1.2/rtm/service-conversations/\(id)"
    for (text, clients) in [("to a", ["a"]), ("to both", ["a", "b"])] {
      let body: JSONValue = [
        "from_client": "desk", "message": .string(text), "to_clients": .array(clients.map { .string($0) }),
      ]
      #expect(try await bench.rest("POST", base + "/messages", body).status == 200)
    }
    let b = try await bench.login("b")
    _ = try await b.ask("direct", nil, ["cid": .string(id), "msg": "a question"])
    #expect(
      try await bench.rest("POST", base + "/broadcasts", ["from_client": "desk", "message": "to all"]).status == 200)
    let news: JSONValue = ["from_client": "desk", "conv_id": .string(id), "message": "to the whole app"]
    #expect(try await bench.rest("POST", "/1.2/rtm/broadcasts", news).status == 200)
    return id
  }

  static func texts(_ rows: [VendorRow], _ kind: String, of user: UserID) -> [String] {
    rows.filter { $0.kind == kind && $0.user == user }.compactMap {
      (try? JSONValue(parsing: $0.raw.text))?["data"]?.string
    }
  }

  @Test("what single subscribers were sent and wrote is kept for each of them, and stands in no channel for the others")
  func subscribers() async throws {
    let bench = try Bench()
    let id = try await service(bench)
    let source = try source(bench)
    let found = try await rows(source)
    #expect(found.allSatisfy { $0.kind == "_File" || $0.channel == ChannelID(id) })
    #expect(Self.texts(found, "subscriber-message", of: "a") == ["to a", "to both"])
    #expect(Self.texts(found, "subscriber-message", of: "b") == ["to both", "a question"])
    #expect(Self.texts(found, "subscriber-message", of: "silent") == [])
    #expect(Self.texts(found, "_SysMessage", of: "b") == ["a question"])
    #expect(Self.texts(found, "broadcast", of: "desk") == ["to the whole app"])
    let messages = try await RescueTests().messages(source, ChannelID(id)).messages
    #expect(messages.compactMap { text($0) } == ["to all"])
    let quiet = try self.source(bench, ["serviceHistories": JSONText(unchecked: "false")])
    // Broadcasts are of no single subscriber.
    #expect(Set(try await rows(quiet).map(\.kind)) == ["_SysMessage", "broadcast"])
    for place in [#"["subscriber","\#(id)",""]"#, #"["messages","\#(id)","a",0,""]"#] {
      let page = try await quiet.rows(after: Cursor(place))
      #expect(page.items == [] && page.next == Cursor(#"["service","\#(id)"]"#))
    }
    #expect(try await quiet.check().leftOut.contains { $0.contains("serviceHistories") })
    #expect(try await !source.check().leftOut.contains { $0.contains("serviceHistories") })
  }

  @Test("the history of a subscriber has the digest of conversation and client for its id, and the master key reads it")
  func digest() async throws {
    let bench = try Bench()
    let id = try await service(bench)
    // md5 of "<conversation>:a"; computed here, since the id of the conversation is the emulator's.
    let digest = LeanCloudID.historyDigest(of: id, client: "a")
    let path = "/1.1/rtm/messages/history?convid=\(digest)"
    let mine = try await bench.rest("GET", path).body.array ?? []
    #expect(mine.compactMap { $0["data"]?.string } == ["to both", "to a"])
    #expect(try await bench.rest("GET", path, key: "app-key").body.array == [])
    let all = try await bench.rest("GET", "/1.1/rtm/messages/history?convid=\(id)").body.array ?? []
    #expect(all.compactMap { $0["data"]?.string } == ["to all"])
  }

  @Test("a thousand and one messages of one subscriber, and a reading that begins anew at each cursor")
  func pages() async throws {
    let bench = try Bench()
    let id = try await ServiceTests().service(bench, subscribers: ["a", "b"])
    let a = try await bench.login("a")
    for number in 0..<1001 { _ = try await a.ask("direct", nil, ["cid": .string(id), "msg": .string("\(number)")]) }
    // The plan's limit is not what is tried here.
    let options = ["requestsPerMinute": JSONText(unchecked: "9000")]
    var found: [VendorRow] = []
    var cursor: Cursor?
    repeat {
      // A new one each time: nothing but the cursor tells where to go on.
      let page = try await source(bench, options).rows(after: cursor)
      found += page.items
      cursor = page.next
    } while cursor != nil
    #expect(found.filter { $0.kind == "subscriber-message" }.count == 1001)
    #expect(Set(found.map { "\($0.kind) \($0.id)" }).count == found.count)
  }

  @Test("of several workers the first one reads the classes, and each one the service conversations of its part")
  func shares() async throws {
    let bench = try Bench()
    #expect(
      try await bench.rest("POST", "/1.1/installations", ["deviceType": "ios", "deviceToken": "t"]).status == 200)
    var ids: Set<ChannelID> = []
    for _ in 0..<6 {
      let id = try await ServiceTests().service(bench, subscribers: ["a"])
      let body: JSONValue = ["from_client": "desk", "message": "m", "to_clients": ["a"]]
      #expect(try await bench.rest("POST", "/1.2/rtm/service-conversations/\(id)/messages", body).status == 200)
      ids.insert(ChannelID(id))
    }
    var devices: [Int] = []
    var seen: [ChannelID] = []
    for share in ["1/3", "2/3", "3/3"] {
      let part = try await rows(source(bench, ["share": JSONText(unchecked: "\"\(share)\"")]))
      devices.append(part.count { $0.kind == "_Installation" })
      seen += part.compactMap(\.channel)
    }
    #expect(devices == [1, 0, 0])
    #expect(seen.count == 6 && Set(seen) == ids)
  }

  @Test(
    "a cursor that is none of this source is refused",
    arguments: ["", "7", "[]", "[\"list\",\"_User\",\"\"]", "[\"messages\",\"c\"]", "{\"a\":1}", "[1,2,3]"])
  func cursors(_ text: String) async throws {
    let bench = try Bench()
    await #expect {
      _ = try await source(bench).rows(after: Cursor(text))
    } throws: { error in (error as? ChatError)?.kind == .invalidArgument(field: "cursor") }
  }

  @Test("exported files of these classes are kept too, by name or by what only they have, and other classes are named")
  func exported() async throws {
    let folder = try ExportTests.Folder()
    try folder.write(
      [
        ["objectId": "i1", "deviceType": "android", "installationId": "x"],
        ["objectId": "f1", "user": Self.pointer("Tom"), "followee": Self.pointer("Jerry")],
        ["objectId": "f2", "user": Self.pointer("Jerry"), "follower": Self.pointer("Tom")],
        ["objectId": "r1", "user": Self.pointer("Tom"), "friend": Self.pointer("Jerry"), "status": "pending"],
        ["objectId": "s1", "msgId": "m", "from": "Tom", "data": "?", "conv": ["objectId": "c1"]],
        ["title": "no class of chat"],
      ], "everything.jsonl")
    try folder.write([["deviceType": "ios"], ["objectId": "i2", "deviceType": "ios"]], "_Installation.json")
    try folder.write([["objectId": "t1"], ["objectId": "t2"]], "_Todo.jsonl")
    let export = try ExportTests().export(folder)
    let page = try await export.rows(after: nil)
    #expect(
      Set(page.items.map { "\($0.kind) \($0.id)" }) == [
        "_Installation i1", "_Installation i2", "_Followee f1", "_Follower f2", "_FriendshipRequest r1",
        "_SysMessage s1",
      ])
    #expect(page.unreadable.map(\.reason) == ["a row of _Installation without objectId"])
    #expect(page.items.first { $0.id == "s1" }?.channel == "c1")
    #expect(page.items.first { $0.id == "f1" }?.user == "Tom")
    let leftOut = try await export.check().leftOut
    #expect(leftOut.contains { $0.contains("2 rows of _Todo") } && leftOut.contains { $0.contains("1 rows of an unknown") })
  }
}
