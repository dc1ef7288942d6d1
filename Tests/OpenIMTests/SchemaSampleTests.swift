import ChatCrypto
import ChatJSON
import ChatTransport
import Foundation
import OpenIMWire
import Testing
import UnifiedChat

@testable import OpenIMEmulator

/// Samples of what is sent and accepted, for the schemas: made here, kept in `Tests/Golden/openim`, and held against
/// `Schemas/openim` by the schema check. With `WRITE_SAMPLES=1` the files are written anew.
@Suite("Samples for the schemas are what the program says")
struct OpenIMSchemaSampleTests {
  private func compare(_ lines: [JSONValue], _ name: String) throws {
    let text = lines.map { $0.text() + "\n" }.joined()
    let file = Recording.folder.appending(path: "\(name).samples.jsonl")
    if ProcessInfo.processInfo.environment["WRITE_SAMPLES"] == "1" { try Data(text.utf8).write(to: file) }
    let kept = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    #expect(kept == text, "\(name): run with WRITE_SAMPLES=1 and look at what changed")
  }

  /// What a real client asked and a real server said, which has to fit as well.
  private static func recorded() throws -> (calls: [JSONValue], notices: [JSONValue]) {
    var calls: [JSONValue] = []
    var notices: [JSONValue] = []
    for name in ["real-client-and-server-1.jsonl", "real-client-and-server-2.jsonl"] {
      for line in try Recording.lines(name) {
        if line["k"] == "http" {
          calls.append(["path": line["path"] ?? "", "request": line["req"] ?? [:], "answer": line["resp"] ?? [:]])
        }
        for entry in line["body"]?["notificationMsgs"]?.object ?? [:] {
          let data = OpenIMMessageData(json: entry.value["Msgs"]?[0] ?? .null)
          guard let detail = OpenIMNotice.detail(of: data.content) else { continue }
          notices.append(["contentType": .int(data.contentType), "detail": detail])
        }
      }
    }
    return (calls, notices)
  }

  @Test("every kind of content, as a client sends it and as the import takes it")
  func contents() throws {
    var lines: [JSONValue] = []
    for (_, content) in Samples.contents {
      for form in [OpenIMElements.Form.socket, .import] {
        let encoded = OpenIMElements.encode(content, form: form)
        lines.append(["contentType": .int(encoded.type), "content": try JSONValue(parsing: encoded.bytes)])
      }
    }
    let mention = OpenIMElements.encode(
      .text("@bob"), mentions: Mentions(users: ["bob"], everyone: true), replyTo: Reply(id: "m0", quoted: Samples.quoted))
    let quote = OpenIMElements.encode(.text("re"), replyTo: Reply(id: "m0", quoted: Samples.quoted))
    for encoded in [mention, quote] {
      lines.append(["contentType": .int(encoded.type), "content": try JSONValue(parsing: encoded.bytes)])
    }
    let types = Set(lines.compactMap { $0["contentType"]?.int })
    #expect(types.isSuperset(of: [101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 114, 115, 118]))
    try compare(lines, "content")
  }

  @Test("frames of the gateway in JSON, as the program writes them and as a server sent them")
  func frames() throws {
    let codec = OpenIMCodec(form: .json, isCompressed: false)
    let requests = try OpenIMOperation.allCases.map { operation in
      let frame = OpenIMRequestFrame(
        operation: operation.rawValue, sender: "alice", operationID: "op", increment: "alice_1",
        data: try operation.request?.encode([:]) ?? [])
      return try JSONValue(parsing: codec.encode(frame))
    }
    try compare(requests, "request-frame")
    let own = [
      OpenIMResponseFrame(operation: 1003, increment: "alice_1", operationID: "op", data: [1, 2, 3]),
      OpenIMResponseFrame(operation: 2001, operationID: "op", data: [1]), OpenIMResponseFrame(operation: 2002),
    ]
    let recorded = try Recording.lines("json-probe.jsonl").compactMap { $0["frame"] }
    #expect(recorded.count >= 20)
    try compare(own.map { try JSONValue(parsing: codec.encode($0)) } + recorded, "response-frame")
  }

  @Test("every call of the REST API that is emulated, and every notice that it causes")
  func calls() throws {
    let script = try RESTScript()
    try script.run()
    let missing = Set(OpenIMEmulator.handlers.keys).subtracting(script.called)
    #expect(missing.isEmpty)
    let recorded = try Self.recorded()
    try compare(script.lines + recorded.calls, "rest-call")
    try compare(script.notices + recorded.notices, "notice")
    let sends = (script.lines + recorded.calls).filter { $0["path"] == "/msg/send_msg" }.compactMap { $0["request"] }
    #expect(sends.count > 3)
    try compare(sends, "send_msg")
    let types = Set(script.notices.compactMap { $0["contentType"]?.int })
    let all: Set<Int64> = [
      1201, 1202, 1203, 1205, 1206, 1207, 1208, 1209, 1210, 1300, 1303, 1305, 1306, 1307, 1501, 1502, 1503, 1504, 1505,
      1506, 1507, 1508, 1509, 1510, 1511, 1512, 1513, 1514, 1515, 1516, 1517, 1518, 1519, 1520, 1701, 1703, 1704, 2001,
      2101, 2102, 2200,
    ]
    #expect(all.subtracting(types).isEmpty)
  }
}

/// One run through the whole API, by the users alice, bob and carol and the admin.
final class RESTScript {
  let machine: Machine
  let admin: String
  private(set) var lines: [JSONValue] = []
  private(set) var notices: [JSONValue] = []
  private(set) var called: Set<String> = []
  private var tokens: [String: String] = [:]
  private var sockets: [EmulatorConnectionID] = []
  private var known: Set<String> = []

  init() throws {
    machine = try Machine(now: 1_796_020_902_678)
    admin = machine.adminToken()
    tokens["admin"] = admin
  }

  /// - Returns: the data of the answer.
  @discardableResult
  private func call(_ user: String, _ path: String, _ body: String, query: String = "") throws -> JSONValue {
    let request = try JSONValue(parsing: body)
    let answer = machine.post(path + query, request, token: user == "nobody" ? nil : tokens[user])
    #expect(answer["errCode"] == 0, "\(path): \(answer.text())")
    called.insert(path)
    lines.append(["path": .string(path), "request": masked(request), "answer": masked(answer)])
    collectNotices()
    return answer["data"] ?? .null
  }

  /// Tokens are those of a run, and no part of a shape.
  private func masked(_ value: JSONValue) -> JSONValue {
    switch value {
    case .array(let elements): .array(elements.map(masked))
    case .object(let object):
      .object(
        JSONObject(
          object.map { member in
            let hides = member.key == "token" && member.value.string != nil
            return (key: member.key, value: hides ? "TOKEN" : masked(member.value))
          }))
    case .string(let text) where text.split(separator: ".").count == 3 && text.hasPrefix("eyJ"): "TOKEN"
    default: value
    }
  }

  /// The first of each type.
  private func collectNotices() {
    for id in sockets {
      while let frame = machine.nextFrame(id) {
        guard let body = try? OpenIMBody.push.decode(frame.data) else { continue }
        for entry in body["notificationMsgs"]?.object ?? [:] {
          let data = OpenIMMessageData(json: entry.value["Msgs"]?[0] ?? .null)
          guard known.insert("\(data.contentType)").inserted, let detail = OpenIMNotice.detail(of: data.content) else {
            continue
          }
          notices.append(["contentType": .int(data.contentType), "detail": detail])
        }
      }
    }
  }

  func run() throws {
    try accounts()
    try friends()
    try groups()
    try applications()
    try messages()
    try conversations()
    try files()
    try ending()
  }

  private func accounts() throws {
    try call("nobody", "/auth/get_admin_token", #"{"secret":"openIM123","userID":"imAdmin"}"#)
    let users = ["alice", "bob", "carol"].map { #"{"userID":"\#($0)","nickname":"\#($0.capitalized)","faceURL":"","ex":""}"# }
    try call("admin", "/user/user_register", #"{"users":[\#(users.joined(separator: ","))]}"#)
    for id in ["alice", "bob", "carol"] {
      let data = try call("admin", "/auth/get_user_token", #"{"userID":"\#(id)","platformID":5}"#)
      tokens[id] = data["token"]?.string
      sockets.append(machine.openJSON(id, tokens[id] ?? ""))
      _ = machine.next(sockets[sockets.count - 1])
    }
    try call("nobody", "/auth/parse_token", #"{"token":"\#(tokens["alice"] ?? "")"}"#)
    try call("alice", "/user/get_users_info", #"{"userIDs":["alice","nobody"]}"#)
    try call("alice", "/user/update_user_info", #"{"userInfo":{"userID":"alice","nickname":"A","faceURL":"","ex":""}}"#)
    try call("alice", "/user/update_user_info_ex", #"{"userInfo":{"userID":"alice","nickname":"Alice"}}"#)
    try call("alice", "/user/set_global_msg_recv_opt", #"{"userID":"alice","globalRecvMsgOpt":0}"#)
    try call("admin", "/user/get_users", #"{"pagination":{"pageNumber":1,"showNumber":2}}"#)
    try call("admin", "/user/get_all_users_uid", #"{"pagination":{"pageNumber":1,"showNumber":9}}"#)
    try call("admin", "/user/account_check", #"{"checkUserIDs":["alice","x"]}"#)
    try call("admin", "/user/get_users_online_status", #"{"userIDs":["alice","x"]}"#)
    try call("admin", "/user/get_users_online_token_detail", #"{"userIDs":["alice","x"]}"#)
    try call("alice", "/user/get_users_status", #"{"userID":"alice","userIDs":["bob","x"]}"#)
    try call("alice", "/user/subscribe_users_status", #"{"userID":"alice","userIDs":["bob"],"genre":1}"#)
    try call("alice", "/user/get_subscribe_users_status", #"{"userID":"alice"}"#)
    try call("alice", "/user/get_user_client_config", #"{"userID":"alice"}"#)
    try call("admin", "/user/set_user_client_config", #"{"userID":"alice","configs":{"k":"v"}}"#)
    try call("alice", "/user/get_user_client_config", #"{"userID":"alice"}"#)
    try call("admin", "/user/del_user_client_config", #"{"userID":"alice","keys":["k"]}"#)
    let command = #"{"userID":"alice","type":1,"uuid":"u","value":"v","ex":""}"#
    try call("alice", "/user/process_user_command_add", command)
    try call("alice", "/user/process_user_command_update", command)
    try call("alice", "/user/process_user_command_get", #"{"userID":"alice","type":1}"#)
    try call("alice", "/user/process_user_command_get_all", #"{"userID":"alice"}"#)
    try call("alice", "/user/process_user_command_delete", #"{"userID":"alice","type":1,"uuid":"u"}"#)
    try call(
      "admin", "/user/add_notification_account", #"{"userID":"news","nickName":"News","faceURL":"","appMangerLevel":3}"#)
    try call("admin", "/user/update_notification_account", #"{"userID":"news","nickName":"News!","faceURL":""}"#)
    try call(
      "admin", "/user/search_notification_account", #"{"keyword":"","pagination":{"pageNumber":1,"showNumber":9}}"#)
    try call("alice", "/third/fcm_update_token", #"{"platformID":1,"fcmToken":"t","account":"alice","expireTime":0}"#)
    try call("alice", "/third/set_app_badge", #"{"userID":"alice","appUnreadCount":3}"#)
    let days = #"{"start":0,"end":1896020902678}"#
    try call("admin", "/statistics/user/register", days)
    try call("admin", "/statistics/group/create", days)
  }

  private let page = #""pagination":{"pageNumber":1,"showNumber":20}"#

  private func friends() throws {
    try call("alice", "/friend/get_friend_list", #"{"userID":"alice",\#(page)}"#)
    try call("alice", "/friend/add_friend", #"{"fromUserID":"alice","toUserID":"bob","reqMsg":"hi","ex":""}"#)
    try call("bob", "/friend/get_friend_apply_list", #"{"userID":"bob","handleResults":[0],\#(page)}"#)
    try call("alice", "/friend/get_self_friend_apply_list", #"{"userID":"alice",\#(page)}"#)
    try call("bob", "/friend/get_self_unhandled_apply_count", #"{"userID":"bob","time":0}"#)
    try call("bob", "/friend/get_designated_friend_apply", #"{"fromUserID":"alice","toUserID":"bob"}"#)
    try call(
      "bob", "/friend/add_friend_response", #"{"fromUserID":"alice","toUserID":"bob","handleResult":1,"handleMsg":"ok"}"#)
    try call("alice", "/friend/add_friend", #"{"fromUserID":"alice","toUserID":"carol","reqMsg":"hi","ex":""}"#)
    try call(
      "carol", "/friend/add_friend_response",
      #"{"fromUserID":"alice","toUserID":"carol","handleResult":-1,"handleMsg":"no"}"#)
    try call("admin", "/friend/import_friend", #"{"ownerUserID":"bob","friendUserIDs":["carol"]}"#)
    try call("alice", "/friend/get_friend_list", #"{"userID":"alice",\#(page)}"#)
    try call("alice", "/friend/get_designated_friends", #"{"ownerUserID":"alice","friendUserIDs":["bob"]}"#)
    try call("alice", "/friend/get_specified_friends_info", #"{"ownerUserID":"alice","userIDList":["bob","carol"]}"#)
    try call("alice", "/friend/get_friend_id", #"{"userID":"alice"}"#)
    try call("alice", "/friend/is_friend", #"{"userID1":"alice","userID2":"bob"}"#)
    try call(
      "alice", "/friend/update_friends",
      #"{"ownerUserID":"alice","friendUserIDs":["bob"],"remark":"B","isPinned":true,"ex":null}"#)
    try call("alice", "/friend/set_friend_remark", #"{"ownerUserID":"alice","friendUserID":"bob","remark":"Bobby"}"#)
    try call("bob", "/user/update_user_info_ex", #"{"userInfo":{"userID":"bob","faceURL":"https://e.com/b.png"}}"#)
    let start = try call("alice", "/friend/get_incremental_friends", #"{"userID":"alice","versionID":"","version":0}"#)
    try call("alice", "/friend/delete_friend", #"{"ownerUserID":"alice","friendUserID":"bob"}"#)
    try call(
      "alice", "/friend/get_incremental_friends",
      #"{"userID":"alice","versionID":\#(start["versionID"]?.text() ?? ""),"version":\#(start["version"]?.text() ?? "")}"#)
    try call("alice", "/friend/get_full_friend_user_ids", #"{"userID":"alice","idHash":0}"#)
    try call("bob", "/friend/add_black", #"{"ownerUserID":"bob","blackUserID":"carol","ex":""}"#)
    try call("bob", "/friend/get_black_list", #"{"userID":"bob",\#(page)}"#)
    try call("bob", "/friend/get_specified_blacks", #"{"ownerUserID":"bob","userIDList":["carol"]}"#)
    try call("bob", "/friend/get_incremental_blacks", #"{"userID":"bob","versionID":"","version":0}"#)
    try call("bob", "/friend/remove_black", #"{"ownerUserID":"bob","blackUserID":"carol"}"#)
  }

  private func groups() throws {
    try call(
      "alice", "/group/create_group",
      #"{"memberUserIDs":["bob"],"adminUserIDs":["carol"],"ownerUserID":"alice","groupInfo":{"groupID":"g1","groupName":"G","notification":"","introduction":"","faceURL":"","ex":"","groupType":2,"needVerification":0,"lookMemberInfo":0,"applyMemberFriend":0},"sendMessage":null}"#)
    try call("alice", "/group/get_groups_info", #"{"groupIDs":["g1"]}"#)
    try call("admin", "/group/get_groups", #"{"groupID":"","groupName":"",\#(page)}"#)
    try call("alice", "/group/get_joined_group_list", #"{"fromUserID":"alice",\#(page)}"#)
    try call("alice", "/group/get_group_member_list", #"{"groupID":"g1","filter":0,"keyword":"",\#(page)}"#)
    try call("alice", "/group/get_group_members_info", #"{"groupID":"g1","userIDs":["bob"]}"#)
    try call("alice", "/group/get_group_member_user_id", #"{"groupID":"g1"}"#)
    try call(
      "alice", "/group/set_group_member_info",
      #"{"members":[{"groupID":"g1","userID":"bob","nickname":"B","roleLevel":60,"ex":""}]}"#)
    try call("alice", "/group/set_group_member_info", #"{"members":[{"groupID":"g1","userID":"bob","roleLevel":20}]}"#)
    try call("alice", "/group/set_group_info_ex", #"{"groupID":"g1","groupName":"G2"}"#)
    try call("alice", "/group/set_group_info_ex", #"{"groupID":"g1","notification":"read this"}"#)
    try call("alice", "/group/set_group_info", #"{"groupInfoForSet":{"groupID":"g1","introduction":"i"}}"#)
    try call("alice", "/group/mute_group", #"{"groupID":"g1"}"#)
    try call("alice", "/group/cancel_mute_group", #"{"groupID":"g1"}"#)
    try call("alice", "/group/mute_group_member", #"{"groupID":"g1","userID":"bob","mutedSeconds":60}"#)
    try call("alice", "/group/cancel_mute_group_member", #"{"groupID":"g1","userID":"bob"}"#)
    try call(
      "alice", "/group/kick_group", #"{"groupID":"g1","kickedUserIDs":["bob"],"reason":"","sendMessage":null}"#)
    try call(
      "alice", "/group/invite_user_to_group",
      #"{"groupID":"g1","invitedUserIDs":["bob"],"reason":"","sendMessage":null}"#)
    try call("alice", "/group/get_incremental_join_groups", #"{"userID":"alice","versionID":"","version":0}"#)
    try call("alice", "/group/get_full_join_group_ids", #"{"userID":"alice","idHash":0}"#)
    try call(
      "alice", "/group/get_incremental_group_members_batch",
      #"{"userID":"alice","reqList":[{"groupID":"g1","versionID":"","version":0}]}"#)
    try call("alice", "/group/get_full_group_member_user_ids", #"{"groupID":"g1","idHash":0}"#)
  }

  private func applications() throws {
    for (result, text) in [(-1, "no"), (1, "yes")] {
      if result == -1 { try call("bob", "/group/quit_group", #"{"groupID":"g1","userID":"bob"}"#) }
      try call(
        "bob", "/group/join_group",
        #"{"groupID":"g1","reqMessage":"let me in","joinSource":3,"inviterUserID":"bob","ex":""}"#)
      try call(
        "alice", "/group/get_recv_group_applicationList",
        #"{"fromUserID":"alice","groupIDs":[],"handleResults":[],\#(page)}"#)
      try call("alice", "/group/get_group_application_unhandled_count", #"{"userID":"alice","time":0}"#)
      try call(
        "alice", "/group/group_application_response",
        #"{"groupID":"g1","fromUserID":"bob","handledMsg":"\#(text)","handleResult":\#(result)}"#)
    }
    try call(
      "bob", "/group/get_user_req_group_applicationList",
      #"{"userID":"bob","groupIDs":[],"handleResults":[],\#(page)}"#)
    try call("alice", "/group/transfer_group", #"{"groupID":"g1","oldOwnerUserID":"alice","newOwnerUserID":"carol"}"#)
  }

  private func messages() throws {
    for (index, sender) in ["alice", "bob", "alice", "alice", "alice"].enumerated() {
      try call(
        "admin", "/msg/send_msg",
        #"{"sendID":"\#(sender)","recvID":"\#(sender == "alice" ? "bob" : "alice")","groupID":"","senderNickname":"N","senderFaceURL":"","senderPlatformID":1,"content":{"content":"\#(index)"},"contentType":101,"sessionType":1,"isOnlineOnly":false,"notOfflinePush":true,"sendTime":160000000\#(index)000,"ex":""}"#)
    }
    try call(
      "admin", "/msg/send_msg",
      #"{"sendID":"news","recvID":"alice","content":{"notificationName":"News","text":"hello","mixType":0},"contentType":1400,"sessionType":4}"#)
    try call(
      "admin", "/msg/batch_send_msg",
      #"{"sendID":"alice","recvIDs":["bob","ghost"],"isSendAll":false,"content":{"content":"all"},"contentType":101,"sessionType":1}"#)
    let place = Array(#"{"sendID":"alice","recvID":"bob","groupID":""}"#.utf8).base64
    try call("admin", "/msg/send_simple_msg", ##"{"sendID":"","content":"# hi","ex":""}"##, query: "?key=\(place)")
    try call(
      "admin", "/msg/send_business_notification",
      #"{"key":"k","data":"{}","sendUserID":"alice","recvUserID":"bob","recvGroupID":"","sendMsg":false,"reliabilityLevel":2}"#)
    try call("admin", "/msg/check_msg_is_send_success", #"{"operationID":"op"}"#)
    try call("alice", "/msg/search_msg", #"{"sendID":"","recvID":"","contentType":0,"sendTime":"","sessionType":0,\#(page)}"#)
    try call("alice", "/msg/newest_seq", #"{"userID":"alice"}"#)
    try call(
      "alice", "/msg/pull_msg_by_seq",
      #"{"userID":"alice","seqRanges":[{"conversationID":"si_alice_bob","begin":1,"end":100,"num":50}],"order":0}"#)
    try call(
      "alice", "/msg/get_conversations_has_read_and_max_seq",
      #"{"userID":"alice","conversationIDs":[],"returnPinned":false}"#)
    try call(
      "bob", "/msg/mark_conversation_as_read",
      #"{"userID":"bob","conversationID":"si_alice_bob","hasReadSeq":3,"seqs":[1,2]}"#)
    try call("bob", "/msg/mark_msgs_as_read", #"{"userID":"bob","conversationID":"si_alice_bob","seqs":[4]}"#)
    try call(
      "bob", "/msg/set_conversation_has_read_seq", #"{"userID":"bob","conversationID":"si_alice_bob","hasReadSeq":2}"#)
    try call("alice", "/msg/revoke_msg", #"{"userID":"alice","conversationID":"si_alice_bob","seq":4}"#)
    try call(
      "alice", "/msg/delete_msgs",
      #"{"userID":"alice","conversationID":"si_alice_bob","seqs":[2],"deleteSyncOpt":{"IsSyncSelf":true,"IsSyncOther":false}}"#)
    try call("admin", "/msg/delete_msg_phsical_by_seq", #"{"conversationID":"si_alice_bob","seqs":[2]}"#)
    try call("admin", "/msg/delete_msg_physical", #"{"conversationIDs":["si_alice_bob"],"timestamp":1600000000001}"#)
    try call(
      "alice", "/msg/pull_msg_by_seq",
      #"{"userID":"alice","seqRanges":[{"conversationID":"si_alice_bob","begin":1,"end":100,"num":50},{"conversationID":"n_alice_bob","begin":1,"end":9,"num":9}],"order":0}"#)
    try call("alice", "/msg/get_server_time", "{}")
  }

  private func conversations() throws {
    try call("alice", "/conversation/get_all_conversations", #"{"ownerUserID":"alice"}"#)
    try call("alice", "/conversation/get_conversation", #"{"ownerUserID":"alice","conversationID":"si_alice_bob"}"#)
    try call("alice", "/conversation/get_conversations", #"{"ownerUserID":"alice","conversationIDs":["si_alice_bob"]}"#)
    try call("alice", "/conversation/get_owner_conversation", #"{"userID":"alice",\#(page)}"#)
    try call(
      "alice", "/conversation/set_conversations",
      #"{"userIDs":["alice"],"conversation":{"conversationID":"si_alice_bob","conversationType":1,"userID":"bob","groupID":"","isPinned":true,"recvMsgOpt":2,"isPrivateChat":true,"burnDuration":30,"groupAtType":null,"ex":"e","attachedInfo":null}}"#)
    try call("alice", "/conversation/get_incremental_conversations", #"{"userID":"alice","versionID":"","version":0}"#)
    try call("alice", "/conversation/get_full_conversation_ids", #"{"userID":"alice","idHash":0}"#)
    try call("alice", "/conversation/get_pinned_conversation_ids", #"{"userID":"alice"}"#)
    try call("alice", "/conversation/get_not_notify_conversation_ids", #"{"userID":"alice"}"#)
    try call("alice", "/conversation/get_sorted_conversation_list", #"{"userID":"alice","conversationIDs":[],\#(page)}"#)
    try call("alice", "/conversation/update_conversations_by_user", #"{"userID":"alice","ex":"all"}"#)
    try call("alice", "/jssdk/get_active_conversations", #"{"ownerUserID":"alice","count":20}"#)
    try call("alice", "/jssdk/get_conversations", #"{"ownerUserID":"alice","conversationIDs":["sg_g1","si_alice_bob"]}"#)
    try call(
      "alice", "/msg/clear_conversation_msg",
      #"{"userID":"alice","conversationIDs":["si_alice_bob"],"deleteSyncOpt":{"IsSyncSelf":true,"IsSyncOther":false}}"#)
    try call("bob", "/msg/user_clear_all_msg", #"{"userID":"bob","deleteSyncOpt":null}"#)
    try call(
      "alice", "/conversation/delete_conversations",
      #"{"ownerUserID":"alice","needDeleteTime":0,"conversationIDs":["si_alice_bob"]}"#)
  }

  private func files() throws {
    try call("alice", "/object/part_limit", "{}")
    try call("alice", "/object/part_size", #"{"size":10}"#)
    let bytes = Array("hello".utf8)
    let digest = Hex.encode(Digest.md5(bytes))
    let hash = OpenIMUpload.hash(ofParts: [digest])
    let begin =
      #"{"hash":"\#(hash)","size":5,"partSize":5242880,"maxParts":1,"cause":"msg-file","name":"alice/f.txt","contentType":"text/plain"}"#
    let upload = try call("alice", "/object/initiate_multipart_upload", begin)["upload"] ?? .null
    let id = upload["uploadID"]?.string ?? ""
    try call("alice", "/object/auth_sign", #"{"uploadID":"\#(id)","partNumbers":[1]}"#)
    _ = machine.request("PUT", "/emulated-store/\(id)/1", body: bytes)
    try call(
      "alice", "/object/complete_multipart_upload",
      #"{"uploadID":"\#(id)","parts":["\#(digest)"],"name":"alice/f.txt","contentType":"text/plain","cause":"msg-file"}"#)
    try call("alice", "/object/initiate_multipart_upload", begin)
    try call("alice", "/object/access_url", #"{"name":"alice/f.txt","query":{}}"#)
    let form = try call(
      "alice", "/object/initiate_form_data", #"{"name":"alice/g.txt","size":5,"contentType":"text/plain","group":"g"}"#)
    let formID = form["id"]?.string ?? ""
    let body = "--B\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nhello\r\n--B--\r\n"
    _ = machine.request(
      "POST", "/emulated-store/form/\(formID)", body: Array(body.utf8),
      headers: ["Content-Type": "multipart/form-data; boundary=B"])
    try call("alice", "/object/complete_form_data", #"{"id":"\#(formID)"}"#)
  }

  private func ending() throws {
    try call("carol", "/group/dismiss_group", #"{"groupID":"g1","deleteMember":true,"sendMessage":null}"#)
    try call("admin", "/auth/force_logout", #"{"userID":"alice","platformID":5}"#)
  }
}
