import ChatJSON
import ChatTransport
import OpenIMWire
import Testing

@testable import OpenIMEmulator

/// People who know each other, or want to.
@Suite("Friends, applications and accounts of the emulated server")
struct OpenIMRelationTests {
  let machine: Machine
  let admin: String
  let ok = Machine.Received.text(#"{"errCode":0,"errMsg":"","errDlt":""}"#)
  let tokens: [String: String]

  init() throws {
    machine = try Machine()
    admin = machine.adminToken()
    machine.register(["alice", "bob", "carol"], admin: admin)
    var tokens: [String: String] = [:]
    for id in ["alice", "bob", "carol"] { tokens[id] = machine.userToken(id, admin: admin) }
    self.tokens = tokens
  }

  func call(_ path: String, _ body: JSONValue, as user: String) -> JSONValue {
    machine.post(path, body, token: tokens[user] ?? admin)
  }

  func open(_ user: String) -> EmulatorConnectionID {
    let id = machine.openJSON(user, tokens[user] ?? "")
    #expect(machine.next(id) == ok)
    return id
  }

  /// The notices that came to a connection, with their details.
  func notices(_ id: EmulatorConnectionID) throws -> [(type: Int64, detail: JSONValue)] {
    var found: [(Int64, JSONValue)] = []
    while let body = try machine.nextBody(id) {
      for entry in body["notificationMsgs"]?.object ?? [:] {
        let data = OpenIMMessageData(json: entry.value["Msgs"]?[0] ?? .null)
        found.append((data.contentType, try #require(OpenIMNotice.detail(of: data.content))))
      }
    }
    return found
  }

  static let page: JSONValue = ["pageNumber": 1, "showNumber": 20]

  func ask(_ from: String, _ to: String) -> JSONValue {
    call("/friend/add_friend", ["fromUserID": .string(from), "toUserID": .string(to), "reqMsg": "hi", "ex": ""], as: from)
  }

  func answer(_ from: String, _ to: String, _ result: Int64) -> JSONValue {
    call(
      "/friend/add_friend_response",
      ["fromUserID": .string(from), "toUserID": .string(to), "handleResult": .int(result), "handleMsg": "ok"], as: to)
  }

  @Test("a request is told to the one who is asked, and its answer makes both sides, with a message between them")
  func befriend() throws {
    let (alice, bob) = (open("alice"), open("bob"))
    #expect(ask("alice", "bob")["errCode"] == 0)
    let asked = try notices(bob)
    #expect(asked.map(\.type) == [1203])
    #expect(asked.first?.detail["request"]?["reqMsg"] == "hi")
    _ = try notices(alice)
    let received = call("/friend/get_friend_apply_list", ["userID": "bob", "pagination": Self.page], as: "bob")["data"]
    #expect(received?["total"] == 1)
    #expect(received?["FriendRequests"]?[0]?["fromNickname"] == "Alice")
    let sent = call("/friend/get_self_friend_apply_list", ["userID": "alice", "pagination": Self.page], as: "alice")
    #expect(sent["data"]?["friendRequests"]?[0]?["toUserID"] == "bob")
    let open = call("/friend/get_self_unhandled_apply_count", ["userID": "bob", "time": 0], as: "bob")
    #expect(open["data"]?["count"] == 1)
    #expect(answer("alice", "bob", 1)["errCode"] == 0)
    let pushed = try machine.nextBody(alice)
    #expect(pushed?["msgs"]?["si_alice_bob"]?["Msgs"]?[0]?["contentType"] == 1201)
    #expect(pushed?["msgs"]?["si_alice_bob"]?["Msgs"]?[0]?["seq"] == 1)
    #expect(try notices(alice).map(\.type) == [1201])
    #expect(answer("alice", "bob", 1)["errCode"] == 1305)
    #expect(ask("alice", "bob")["errCode"] == 1304)
    let both = call("/friend/is_friend", ["userID1": "alice", "userID2": "bob"], as: "alice")["data"]
    #expect(both == ["inUser1Friends": true, "inUser2Friends": true])
    let list = call("/friend/get_friend_list", ["userID": "bob", "pagination": Self.page], as: "bob")["data"]
    #expect(list?["friendsInfo"]?[0]?["friendUser"]?["userID"] == "alice")
    // Seconds, there alone.
    #expect(list?["friendsInfo"]?[0]?["createTime"] == .int(machine.context.now / 1000))
    #expect(list?["friendsInfo"]?[0]?["addSource"] == 2)
  }

  @Test("what the server refuses of a request", arguments: [
    ("alice", 1301), ("nobody", 1101),
  ])
  func refusals(to: String, code: Int64) { #expect(ask("alice", to)["errCode"] == .int(code)) }

  @Test("a refusal makes nobody a friend; nobody answers for another, or what was not asked")
  func refused() throws {
    let alice = open("alice")
    #expect(ask("alice", "bob")["errCode"] == 0)
    _ = try notices(alice)
    let foreign = call(
      "/friend/add_friend_response", ["fromUserID": "alice", "toUserID": "bob", "handleResult": 1], as: "carol")
    #expect(foreign["errCode"] == 1002)
    #expect(answer("carol", "bob", 1)["errCode"] == 1004)
    #expect(answer("alice", "bob", 2)["errCode"] == 1001)
    #expect(answer("alice", "bob", -1)["errCode"] == 0)
    #expect(try notices(alice).map(\.type) == [1202])
    #expect(call("/friend/get_friend_id", ["userID": "alice"], as: "alice")["data"]?["friendIDs"] == .null)
  }

  @Test("remarks and pins are the owner's own; removing ends one side; lists tell what changed since a version")
  func change() throws {
    let friends = ["ownerUserID": "alice", "friendUserIDs": ["bob", "carol"]] as JSONValue
    #expect(machine.post("/friend/import_friend", friends, token: admin)["errCode"] == 0)
    #expect(call("/friend/import_friend", friends, as: "alice")["errCode"] == 1002)
    let alice = open("alice")
    let before = call("/friend/get_incremental_friends", ["userID": "alice", "versionID": "", "version": 0], as: "alice")
    #expect(before["data"]?["full"] == true)
    let version = try #require(before["data"]?["version"]), id = try #require(before["data"]?["versionID"])
    let update: JSONValue = [
      "ownerUserID": "alice", "friendUserIDs": ["carol"], "remark": "C", "isPinned": true, "ex": .null,
    ]
    #expect(call("/friend/update_friends", update, as: "alice")["errCode"] == 0)
    #expect(try notices(alice).map(\.type) == [1210])
    #expect(call("/friend/get_friend_id", ["userID": "alice"], as: "alice")["data"]?["friendIDs"] == ["carol", "bob"])
    #expect(
      call("/friend/delete_friend", ["ownerUserID": "alice", "friendUserID": "bob"], as: "alice")["errCode"] == 0)
    #expect(try notices(alice).map(\.type) == [1205])
    let after = call(
      "/friend/get_incremental_friends", ["userID": "alice", "versionID": id, "version": version], as: "alice")["data"]
    #expect(after?["full"] == false)
    #expect(after?["delete"] == ["bob"])
    #expect(after?["update"]?[0]?["remark"] == "C")
    let sides = call("/friend/is_friend", ["userID1": "alice", "userID2": "bob"], as: "alice")["data"]
    #expect(sides == ["inUser1Friends": false, "inUser2Friends": true])
    #expect(call("/friend/delete_friend", ["ownerUserID": "alice", "friendUserID": "bob"], as: "alice")["errCode"] == 1004)
    let same = JSONValue.uint(OpenIMIDHash.of(["carol"]))
    let hash = OpenIMIDHash.of(["carol"]) > UInt64(Int64.max) ? same : JSONValue.int(Int64(OpenIMIDHash.of(["carol"])))
    let full = call("/friend/get_full_friend_user_ids", ["idHash": hash, "userID": "alice"], as: "alice")["data"]
    #expect(full?["equal"] == true && full?["userIDs"] == .null)
  }

  @Test("a new profile is told to those who have the user as a friend")
  func profile() throws {
    _ = machine.post("/friend/import_friend", ["ownerUserID": "alice", "friendUserIDs": ["bob"]], token: admin)
    let (alice, carol) = (open("alice"), open("carol"))
    _ = call("/user/update_user_info_ex", ["userInfo": ["userID": "bob", "nickname": "B"]], as: "bob")
    #expect(try notices(alice).map(\.type) == [1209])
    #expect(try notices(carol).isEmpty)
  }

  @Test("black lists: what was blocked since a version, and who blocks themself is refused")
  func blacks() throws {
    #expect(call("/friend/add_black", ["ownerUserID": "bob", "blackUserID": "bob"], as: "bob")["errCode"] == 1301)
    let start = call("/friend/get_incremental_blacks", ["userID": "bob", "versionID": "", "version": 0], as: "bob")["data"]
    #expect(call("/friend/add_black", ["ownerUserID": "bob", "blackUserID": "alice", "ex": "x"], as: "bob")["errCode"] == 0)
    let list = call("/friend/get_black_list", ["userID": "bob", "pagination": Self.page], as: "bob")["data"]
    #expect(list?["blacks"]?[0]?["blackUserInfo"]?["nickname"] == "Alice")
    #expect(list?["blacks"]?[0]?["ex"] == "x")
    let since = call(
      "/friend/get_incremental_blacks",
      ["userID": "bob", "versionID": start?["versionID"] ?? "", "version": start?["version"] ?? 0], as: "bob")["data"]
    #expect(since?["insert"]?[0]?["blackUserInfo"]?["userID"] == "alice")
  }

  func group(_ needVerification: Int64) -> String {
    let body: JSONValue = [
      "ownerUserID": "alice", "memberUserIDs": ["bob"], "adminUserIDs": [], "sendMessage": false,
      "groupInfo": ["groupName": "G", "groupType": 2, "needVerification": .int(needVerification)],
    ]
    return call("/group/create_group", body, as: "alice")["data"]?["groupInfo"]?["groupID"]?.string ?? ""
  }

  func join(_ group: String, _ user: String) -> JSONValue {
    call(
      "/group/join_group",
      ["groupID": .string(group), "reqMessage": "let me in", "joinSource": 3, "inviterUserID": .string(user), "ex": ""],
      as: user)
  }

  func decide(_ group: String, _ user: String, _ result: Int64, by manager: String) -> JSONValue {
    call(
      "/group/group_application_response",
      ["groupID": .string(group), "fromUserID": .string(user), "handledMsg": "so", "handleResult": .int(result)],
      as: manager)
  }

  @Test("who applies is a member when owner or admin agree, and not before")
  func apply() throws {
    let id = group(0)
    let (alice, carol) = (open("alice"), open("carol"))
    #expect(join(id, "carol")["errCode"] == 0)
    #expect(try notices(alice).map(\.type) == [1503])
    #expect(try notices(carol).map(\.type) == [1503, 1503])
    let received = call(
      "/group/get_recv_group_applicationList",
      ["fromUserID": "alice", "groupIDs": [], "handleResults": [0], "pagination": Self.page], as: "alice")["data"]
    #expect(received?["groupRequests"]?[0]?["userInfo"]?["userID"] == "carol")
    #expect(received?["groupRequests"]?[0]?["reqMsg"] == "let me in")
    let count = call("/group/get_group_application_unhandled_count", ["userID": "alice", "time": 0], as: "alice")
    #expect(count["data"]?["count"] == 1)
    #expect(decide(id, "carol", 1, by: "bob")["errCode"] == 1002)
    #expect(decide(id, "carol", 1, by: "alice")["errCode"] == 0)
    #expect(try notices(carol).map(\.type) == [1505, 1510])
    #expect(decide(id, "carol", 1, by: "alice")["errCode"] == 1206)
    let own = call(
      "/group/get_user_req_group_applicationList",
      ["userID": "carol", "groupIDs": [], "handleResults": [], "pagination": Self.page], as: "carol")["data"]
    #expect(own?["groupRequests"]?[0]?["handleResult"] == 1)
    #expect(own?["groupRequests"]?[0]?["handleMsg"] == "so")
    let members = call("/group/get_group_member_user_id", ["groupID": .string(id)], as: "alice")["data"]?["userIDs"]
    #expect(members == ["alice", "bob", "carol"])
  }

  @Test("how a group is entered depends on its rule", arguments: [
    (0, true, false), (1, false, false), (2, true, true),
  ] as [(Int64, Bool, Bool)])
  func rules(rule: Int64, isInvitationDirect: Bool, isJoiningDirect: Bool) throws {
    let id = group(rule)
    _ = call("/group/invite_user_to_group", ["groupID": .string(id), "invitedUserIDs": ["carol"], "reason": ""], as: "bob")
    func isMember() -> Bool {
      call("/group/get_group_members_info", ["groupID": .string(id), "userIDs": ["carol"]], as: "alice")["data"]?["members"]
        != .null
    }
    #expect(isMember() == isInvitationDirect)
    guard !isInvitationDirect || rule == 2 else { return }
    if isMember() {
      _ = call("/group/quit_group", ["groupID": .string(id), "userID": "carol"], as: "carol")
    }
    #expect(join(id, "carol")["errCode"] == 0)
    #expect(isMember() == isJoiningDirect)
    if !isJoiningDirect {
      #expect(decide(id, "carol", -1, by: "alice")["errCode"] == 0)
      #expect(!isMember())
    }
  }

  @Test("a notification account speaks in a conversation of its own, and nobody else does")
  func account() throws {
    let account: JSONValue = ["userID": "news", "nickName": "News", "faceURL": "", "appMangerLevel": 3]
    #expect(call("/user/add_notification_account", account, as: "alice")["errCode"] == 1002)
    #expect(machine.post("/user/add_notification_account", account, token: admin)["data"]?["nickName"] == "News")
    #expect(machine.post("/user/add_notification_account", account, token: admin)["errCode"] == 1102)
    let found = machine.post(
      "/user/search_notification_account", ["keyword": "ew", "pagination": Self.page], token: admin)["data"]
    #expect(found?["notificationAccounts"]?[0]?["userID"] == "news")
    #expect(
      machine.post("/auth/get_user_token", ["userID": "news", "platformID": 5], token: admin)["errCode"] == 1001)
    let alice = open("alice")
    func say(_ sender: String) -> JSONValue {
      machine.post(
        "/msg/send_msg",
        [
          "sendID": .string(sender), "recvID": "alice", "contentType": 1400, "sessionType": 1,
          "content": ["notificationName": "News", "text": "hello", "mixType": 0],
        ], token: admin)
    }
    #expect(say("bob")["errCode"] == 1001)
    #expect(say("news")["errCode"] == 0)
    let pushed = OpenIMMessageData(
      json: try machine.nextBody(alice)?["msgs"]?["sn_alice_news"]?["Msgs"]?[0] ?? .null)
    #expect(pushed.contentType == 1400 && pushed.sessionType == 4 && pushed.seq == 1)
    #expect(OpenIMNotice.detail(of: pushed.content)?["text"] == "hello")
    let all = call("/conversation/get_all_conversations", ["ownerUserID": "alice"], as: "alice")["data"]
    #expect(all?["conversations"]?[0]?["conversationType"] == 4)
    #expect(all?["conversations"]?[0]?["userID"] == "news")
  }

  @Test("the app's backend tells one user or a group by key and data; kept with a number only when asked to", arguments: [
    (1, 0), (2, 1),
  ] as [(Int64, Int64)])
  func business(reliability: Int64, seq: Int64) throws {
    let bob = open("bob")
    let body: JSONValue = [
      "key": "k", "data": "{}", "sendUserID": "alice", "recvUserID": "bob", "recvGroupID": "", "sendMsg": false,
      "reliabilityLevel": .int(reliability),
    ]
    #expect(machine.post("/msg/send_business_notification", body, token: admin)["errCode"] == 0)
    let pushed = try machine.nextBody(bob)?["notificationMsgs"]?["n_alice_bob"]?["Msgs"]?[0]
    #expect(pushed?["contentType"] == 2001)
    #expect(pushed?["seq"]?.int ?? 0 == seq)
    let both: JSONValue = ["key": "k", "sendUserID": "alice", "recvUserID": "bob", "recvGroupID": "g"]
    #expect(machine.post("/msg/send_business_notification", both, token: admin)["errCode"] == 1001)
  }

  @Test("a group message that mentions marks the conversations of those whom it means", arguments: [
    (["bob"], 1, 0), (["AtAllTag"], 2, 2), (["AtAllTag", "bob"], 3, 2),
  ] as [([String], Int64, Int64)])
  func mentions(ids: [String], toBob: Int64, toCarol: Int64) throws {
    let group = group(0)
    _ = call("/group/invite_user_to_group", ["groupID": .string(group), "invitedUserIDs": ["carol"], "sendMessage": false], as: "alice")
    let alice = open("alice")
    let content = JSONValue.object(["text": "you", "atUserList": .array(ids.map { .string($0) })])
    let message: JSONValue = [
      "sendID": "alice", "groupID": .string(group), "clientMsgID": "c", "sessionType": 3, "msgFrom": 100,
      "contentType": 106, "content": .string(content.bytes().base64), "atUserIDList": .array(ids.map { .string($0) }),
    ]
    try machine.send(.send, message, on: alice, as: "alice")
    func atType(_ user: String) -> JSONValue? {
      call(
        "/conversation/get_conversation", ["ownerUserID": .string(user), "conversationID": .string("sg_\(group)")],
        as: user)["data"]?["conversation"]?["groupAtType"]
    }
    #expect(atType("bob") == .int(toBob))
    #expect(atType("carol") == .int(toCarol))
    #expect(atType("alice") == 0)
    let own: JSONValue = [
      "userIDs": ["bob"],
      "conversation": [
        "conversationID": .string("sg_\(group)"), "conversationType": 3, "groupID": .string(group), "groupAtType": 0,
      ],
    ]
    #expect(call("/conversation/set_conversations", own, as: "bob")["errCode"] == 0)
    #expect(atType("bob") == 0)
  }

  @Test("device tokens, settings and small stores are each user's own, and a snapshot keeps them")
  func stores() throws {
    let token: JSONValue = ["platformID": 1, "fcmToken": "device", "account": "alice", "expireTime": 0]
    #expect(call("/third/fcm_update_token", token, as: "bob")["errCode"] == 1002)
    #expect(call("/third/fcm_update_token", token, as: "alice")["errCode"] == 0)
    #expect(machine.emulator.user("alice")?.pushTokens[1]?.token == "device")
    #expect(
      machine.post("/user/set_user_client_config", ["userID": "alice", "configs": ["k": "v"]], token: admin)["errCode"]
        == 0)
    #expect(call("/user/get_user_client_config", ["userID": "alice"], as: "alice")["data"]?["configs"] == ["k": "v"])
    let command: JSONValue = ["userID": "alice", "type": 1, "uuid": "u", "value": "v", "ex": ""]
    #expect(call("/user/process_user_command_add", command, as: "alice")["errCode"] == 0)
    #expect(call("/user/process_user_command_add", command, as: "alice")["errCode"] == 1003)
    #expect(ask("alice", "bob")["errCode"] == 0 && answer("alice", "bob", 1)["errCode"] == 0)
    #expect(join(group(0), "carol")["errCode"] == 0)
    let copy = try Machine()
    try copy.emulator.restore(machine.emulator.snapshot())
    #expect(copy.emulator.snapshot() == machine.emulator.snapshot())
    #expect(copy.emulator.user("bob")?.heldBy.count == 1)
    let all = copy.post("/user/process_user_command_get_all", ["userID": "alice"], token: tokens["alice"])["data"]
    #expect(all?["commandResp"]?[0]?["uuid"] == "u")
  }

  @Test("days are those of UTC", arguments: [
    (0, "1970-01-01"), (-1, "1969-12-31"), (951_782_400_000, "2000-02-29"), (1_600_000_002_000, "2020-09-13"),
    (1_709_251_199_999, "2024-02-29"), (1_709_251_200_000, "2024-03-01"), (253_402_300_799_999, "9999-12-31"),
  ] as [(Int64, String)])
  func days(time: Int64, name: String) { #expect(OpenIMDay.name(of: time) == name) }

  @Test("the search of the server finds by sender, kind and day, the newest first, in everybody's conversations")
  func search() throws {
    for (index, sender) in ["alice", "bob", "alice"].enumerated() {
      let body: JSONValue = [
        "sendID": .string(sender), "recvID": sender == "alice" ? "bob" : "alice", "contentType": 101, "sessionType": 1,
        "content": ["content": .string("\(index)")], "sendTime": .int(1_600_000_000_000 + Int64(index) * 86_400_000),
      ]
      #expect(machine.post("/msg/send_msg", body, token: admin)["errCode"] == 0)
    }
    func found(_ filter: JSONObject) -> [String?] {
      var body: JSONObject = ["pagination": Self.page]
      for member in filter { body[member.key] = member.value }
      let data = call("/msg/search_msg", .object(body), as: "carol")["data"]
      return (data?["chatLogs"]?.array ?? []).map { $0["chatLog"]?["content"]?.string }
    }
    let (first, last) = (#"{"content":"0"}"#, #"{"content":"2"}"#)
    #expect(found(["sendID": "alice"]) == [last, first])
    #expect(found(["sendTime": "2020-09-13"]) == [first])
    #expect(found(["contentType": 102]) == [])
  }

  @Test("private chats are for both, and each is told by a message")
  func privateChat() throws {
    let bob = open("bob")
    let body: JSONValue = [
      "userIDs": ["alice"],
      "conversation": [
        "conversationID": "si_alice_bob", "conversationType": 1, "userID": "bob", "groupID": "", "isPrivateChat": true,
        "burnDuration": 30,
      ],
    ]
    #expect(call("/conversation/set_conversations", body, as: "alice")["errCode"] == 0)
    let told = try machine.nextBody(bob)?["msgs"]?["si_alice_bob"]?["Msgs"]?[0]
    #expect(told?["contentType"] == 1701)
    let other = call("/conversation/get_conversation", ["ownerUserID": "bob", "conversationID": "si_alice_bob"], as: "bob")
    #expect(other["data"]?["conversation"]?["isPrivateChat"] == true)
  }

  @Test("calls are known by number alone: a fault, and the link stays")
  func signal() throws {
    let alice = open("alice")
    machine.send(OpenIMRequestFrame(operation: 1004, sender: "alice", operationID: "o", increment: "1", data: []), on: alice)
    #expect(machine.nextFrame(alice)?.code == 500)
    try machine.send(.newestSequences, ["userID": "alice"], on: alice, as: "alice")
    #expect(machine.nextFrame(alice)?.code == 0)
  }

  @Test("a form carries a file as well as parts do")
  func form() throws {
    let begun = call(
      "/object/initiate_form_data", ["name": "alice/f.txt", "size": 5, "contentType": "text/plain", "group": "g"], as: "alice")
    let id = try #require(begun["data"]?["id"]?.string)
    let url = try #require(begun["data"]?["url"]?.string)
    let path = String(url.dropFirst(try #require(url.range(of: "/emulated-store/")).lowerBound.utf16Offset(in: url)))
    let body = "--B\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nalice/f.txt\r\n--B\r\n"
      + "Content-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nhello\r\n--B--\r\n"
    #expect(call("/object/complete_form_data", ["id": .string(id)], as: "alice")["errCode"] == 1701)
    let stored = machine.request(
      "POST", path, body: Array(body.utf8), headers: ["Content-Type": "multipart/form-data; boundary=B"])
    #expect(stored.status == 200)
    let done = call("/object/complete_form_data", ["id": .string(id)], as: "alice")
    #expect(done["data"]?["url"]?.string?.hasSuffix("/object/alice/f.txt") == true)
    #expect(machine.request("GET", "/object/alice/f.txt").status == 302)
    for (body, boundary) in [("-----", "-"), ("----", "\"\""), ("--B", "B"), ("", "B"), ("--B--B\r\n\r\n--B", "B")] {
      let broken = machine.request(
        "POST", path, body: Array(body.utf8), headers: ["Content-Type": "multipart/form-data; boundary=\(boundary)"])
      #expect(broken.status == 400)
    }
    let foreign = call("/object/initiate_form_data", ["name": "bob/f", "size": 1], as: "alice")
    #expect(foreign["errCode"] == 1002)
  }
}

@Suite("Which logins of one user exclude each other")
struct OpenIMLoginPolicyTests {
  /// Platforms: 1 and 2 phones, 4 and 7 computers, 5 the browser.
  @Test("by policy, a newer login ends the older one", arguments: [
    (0, 1, 1, false), (0, 1, 2, false), (1, 1, 1, true), (1, 1, 2, false), (4, 1, 2, true), (4, 4, 7, true),
    (4, 1, 5, false), (5, 1, 5, true), (5, 4, 7, false), (5, 4, 1, false), (5, 1, 4, false),
  ] as [(Int64, Int64, Int64, Bool)])
  func policies(policy: Int64, first: Int64, second: Int64, isKicked: Bool) throws {
    let machine = try Machine(
      options: EmulatorOptions(adminSecret: "openIM123", settings: ["multiLogin": .int(policy)]))
    let admin = machine.adminToken()
    machine.register(["alice"], admin: admin)
    let old = machine.userToken("alice", platform: first, admin: admin)
    let one = machine.openJSON("alice", old, platform: first)
    _ = machine.next(one)
    machine.context.now += 2000
    let new = machine.userToken("alice", platform: second, admin: admin)
    // An open socket goes on until one with the newer token connects.
    #expect(machine.next(one) == nil)
    let two = machine.openJSON("alice", new, platform: second)
    _ = machine.next(two)
    #expect((machine.next(one) == .frame(OpenIMResponseFrame(operation: 2002))) == isKicked)
    let answer = machine.post("/user/get_users_info", ["userIDs": []], token: old)["errCode"]
    #expect(answer == (isKicked ? 1506 : 0))
  }

  @Test("where nobody is kicked, a platform still has so many tokens only")
  func count() throws {
    let machine = try Machine(
      options: EmulatorOptions(adminSecret: "openIM123", settings: ["multiLogin": 0, "maxNumOneEnd": 2]))
    let admin = machine.adminToken()
    machine.register(["alice"], admin: admin)
    var tokens: [String] = []
    for _ in 0..<3 {
      tokens.append(machine.userToken("alice", admin: admin))
      machine.context.now += 2000
    }
    let codes = tokens.map { machine.post("/user/get_users_info", ["userIDs": []], token: $0)["errCode"] }
    #expect(codes == [1506, 0, 0])
  }

  @Test("a wrong setting is named", arguments: [
    ("multiLogin", 2), ("maxNumOneEnd", 0), ("friendVerify", 1), ("webhookURL", "http://example.com"), ("webhooks", ["x"]),
  ] as [(String, JSONValue)])
  func settings(name: String, value: JSONValue) {
    let error = #expect(throws: EmulatorError.self) { try Machine(options: EmulatorOptions(settings: [name: value])) }
    #expect(error?.description.contains(name) == true)
  }

  @Test("with friendVerify, strangers may not write to each other")
  func strangers() throws {
    let machine = try Machine(options: EmulatorOptions(adminSecret: "openIM123", settings: ["friendVerify": true]))
    let admin = machine.adminToken()
    machine.register(["alice", "bob"], admin: admin)
    let body: JSONValue = [
      "sendID": "alice", "recvID": "bob", "contentType": 101, "sessionType": 1, "content": ["content": "hi"],
    ]
    #expect(machine.post("/msg/send_msg", body, token: admin)["errCode"] == 1303)
    _ = machine.post("/friend/import_friend", ["ownerUserID": "alice", "friendUserIDs": ["bob"]], token: admin)
    #expect(machine.post("/msg/send_msg", body, token: admin)["errCode"] == 0)
  }
}
