import ChatJSON
import ChatTransport
import OpenIMWire

/// A text compared and hashed by its bytes: ids that differ only in Unicode normalisation are two.
struct OpenIMKey: Hashable, Sendable {
  let text: String

  init(_ text: String) { self.text = text }

  static func == (left: OpenIMKey, right: OpenIMKey) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

  func hash(into hasher: inout Hasher) {
    var copy = text
    copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

/// What changed in one list of one owner, by version (reference §5.4).
struct OpenIMVersionLog: Sendable {
  enum Change: String, Sendable { case insert, update, delete }

  var id: String
  var version: Int64 = 1
  private(set) var changes: [(version: Int64, key: String, change: Change)] = []

  /// More than this many changes since a version make the server ask for a full fetch.
  static let limit = 200

  init(id: String) { self.id = id }

  mutating func record(_ change: Change, _ key: String) {
    version &+= 1
    changes.append((version, key, change))
    if changes.count > Self.limit * 2 { changes.removeFirst(Self.limit) }
  }

  /// nil: fetch everything. Of several changes of one key the last one counts, but an insertion stays one.
  func since(id: String, version: Int64) -> [(key: String, change: Change)]? {
    guard id == self.id, version > 0, version <= self.version else { return nil }
    let recent = changes.filter { $0.version > version }
    guard recent.count == Int(self.version - version), recent.count <= Self.limit else { return nil }
    var order: [OpenIMKey] = []
    var last: [OpenIMKey: Change] = [:]
    for (_, key, change) in recent {
      let key = OpenIMKey(key)
      guard let earlier = last[key] else {
        order.append(key)
        last[key] = change
        continue
      }
      last[key] = earlier == .insert && change == .update ? .insert : change
    }
    return order.map { ($0.text, last[$0] ?? .update) }
  }
}

/// One user's view of a conversation.
struct OpenIMConversation: Sendable {
  var id: String
  var type: Int64
  var peer = ""
  var groupID = ""
  var recvMsgOpt: Int64 = 0
  var isPinned = false
  var attachedInfo = ""
  var isPrivateChat = false
  var groupAtType: Int64 = 0
  var ex = ""
  var burnDuration: Int64 = 0
  var minSeq: Int64 = 0
  var maxSeq: Int64 = 0
  var msgDestructTime: Int64 = 0
  var isMsgDestruct = false

  init(id: String, type: Int64, peer: String = "", groupID: String = "") {
    self.id = id
    self.type = type
    self.peer = peer
    self.groupID = groupID
  }

  func json(owner: String) -> JSONValue {
    [
      "ownerUserID": .string(owner), "conversationID": .string(id), "recvMsgOpt": .int(recvMsgOpt),
      "conversationType": .int(type), "userID": .string(peer), "groupID": .string(groupID),
      "isPinned": .bool(isPinned), "attachedInfo": .string(attachedInfo), "isPrivateChat": .bool(isPrivateChat),
      "groupAtType": .int(groupAtType), "ex": .string(ex), "burnDuration": .int(burnDuration),
      "minSeq": .int(minSeq), "maxSeq": .int(maxSeq), "msgDestructTime": .int(msgDestructTime),
      "latestMsgDestructTime": .int(-62_135_596_800_000), "isMsgDestruct": .bool(isMsgDestruct),
    ]
  }
}

/// What the server keeps of one user in one conversation beside the record.
struct OpenIMUserSequence: Sendable {
  var hasRead: Int64 = 0
  var min: Int64 = 0
  /// 0: no limit; else the last one that a former member sees.
  var max: Int64 = 0
  var hidden: Set<Int64> = []
}

final class OpenIMUser {
  let id: String
  var nickname: String
  var faceURL: String
  var ex: String
  var createTime: Int64
  var managerLevel: Int64
  var globalRecvMsgOpt: Int64 = 0
  private(set) var conversations: [OpenIMKey: OpenIMConversation] = [:]
  private var sortedIDs: [String]?
  var sequences: [OpenIMKey: OpenIMUserSequence] = [:]
  /// Groups in the order of joining.
  var groups: [OpenIMKey] = []
  var friends = OpenIMFriendList()
  /// Whose friend lists this user stands in.
  var heldBy: Set<OpenIMKey> = []
  /// Received, the newest last.
  var friendRequests: [OpenIMFriendRequest] = []
  var askedFriends: [String] = []
  var blacks: [OpenIMBlack] = []
  /// Groups that this user asked to join, or was proposed for.
  var askedGroups: [OpenIMKey] = []
  var commands: [OpenIMCommand] = []
  /// The user's own settings, kept by the server.
  var configuration: [OpenIMKey: String] = [:]
  var pushTokens: [Int64: OpenIMPushToken] = [:]
  var badge: Int64 = 0
  var conversationLog: OpenIMVersionLog
  var groupLog: OpenIMVersionLog
  var friendLog: OpenIMVersionLog
  var blackLog: OpenIMVersionLog
  var connections: [EmulatorConnectionID] = []

  init(
    id: String, nickname: String, faceURL: String, ex: String, createTime: Int64, managerLevel: Int64,
    versionIDs: (String, String, String, String)
  ) {
    self.id = id
    self.nickname = nickname
    self.faceURL = faceURL
    self.ex = ex
    self.createTime = createTime
    self.managerLevel = managerLevel
    conversationLog = OpenIMVersionLog(id: versionIDs.0)
    groupLog = OpenIMVersionLog(id: versionIDs.1)
    friendLog = OpenIMVersionLog(id: versionIDs.2)
    blackLog = OpenIMVersionLog(id: versionIDs.3)
  }

  func black(_ id: String) -> OpenIMBlack? { blacks.first { $0.userID.utf8.elementsEqual(id.utf8) } }

  /// By the bytes of their ids.
  var conversationIDs: [String] {
    if let sortedIDs { return sortedIDs }
    let ids = conversations.keys.map(\.text).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    sortedIDs = ids
    return ids
  }

  subscript(conversation id: String) -> OpenIMConversation? {
    get { conversations[OpenIMKey(id)] }
    set {
      let key = OpenIMKey(id)
      let old = conversations.updateValue(newValue ?? OpenIMConversation(id: id, type: 0), forKey: key)
      if newValue == nil { conversations[key] = nil }
      if (old == nil) != (newValue == nil) { sortedIDs = nil }
      switch (old, newValue) {
      case (nil, .some): conversationLog.record(.insert, id)
      case (.some, .some): conversationLog.record(.update, id)
      case (.some, nil): conversationLog.record(.delete, id)
      case (nil, nil): break
      }
    }
  }

  /// Without a mark in the version log, for a state that is put back.
  func restore(_ conversation: OpenIMConversation) {
    conversations[OpenIMKey(conversation.id)] = conversation
    sortedIDs = nil
  }

  var info: JSONValue {
    [
      "userID": .string(id), "nickname": .string(nickname), "faceURL": .string(faceURL), "ex": .string(ex),
      "createTime": .int(createTime), "appMangerLevel": .int(managerLevel),
      "globalRecvMsgOpt": .int(globalRecvMsgOpt),
    ]
  }
}

struct OpenIMGroupMember: Sendable {
  var userID: String
  var role: Int64
  var joinTime: Int64
  var nickname = ""
  var faceURL = ""
  var joinSource: Int64 = 2
  var operatorUserID = ""
  var ex = ""
  var muteEndTime: Int64 = 0
  var inviterUserID = ""
}

final class OpenIMGroup {
  static let normal: Int64 = 0
  static let dismissed: Int64 = 2
  static let muted: Int64 = 3

  let id: String
  var name = ""
  var notification = ""
  var introduction = ""
  var faceURL = ""
  var owner = ""
  var createTime: Int64 = 0
  var ex = ""
  var status: Int64 = 0
  var creator = ""
  var needVerification: Int64 = 0
  var lookMemberInfo: Int64 = 0
  var applyMemberFriend: Int64 = 0
  var notificationUpdateTime: Int64 = 0
  var notificationUserID = ""
  private(set) var members: [OpenIMKey: OpenIMGroupMember] = [:]
  private var sorted: [OpenIMGroupMember]?
  var memberLog: OpenIMVersionLog
  /// Requests to join, one a user, the newest last.
  var requests: [OpenIMGroupRequest] = []

  init(id: String, versionID: String) {
    self.id = id
    memberLog = OpenIMVersionLog(id: versionID)
  }

  subscript(member userID: String) -> OpenIMGroupMember? {
    get { members[OpenIMKey(userID)] }
    set {
      members[OpenIMKey(userID)] = newValue
      sorted = nil
    }
  }

  /// The highest role first, then who joined first, then by id.
  var sortedMembers: [OpenIMGroupMember] {
    if let sorted { return sorted }
    let list = members.values.sorted { left, right in
      if left.role != right.role { return left.role > right.role }
      if left.joinTime != right.joinTime { return left.joinTime < right.joinTime }
      return left.userID.utf8.lexicographicallyPrecedes(right.userID.utf8)
    }
    sorted = list
    return list
  }

  var info: JSONValue {
    [
      "groupID": .string(id), "groupName": .string(name), "notification": .string(notification),
      "introduction": .string(introduction), "faceURL": .string(faceURL), "ownerUserID": .string(owner),
      "createTime": .int(createTime), "memberCount": .int(Int64(members.count)), "ex": .string(ex),
      "status": .int(status), "creatorUserID": .string(creator), "groupType": 2,
      "needVerification": .int(needVerification), "lookMemberInfo": .int(lookMemberInfo),
      "applyMemberFriend": .int(applyMemberFriend), "notificationUpdateTime": .int(notificationUpdateTime),
      "notificationUserID": .string(notificationUserID),
    ]
  }
}

/// The messages of one conversation; the one with number n stands at n − 1. nil is a hole: a number that was never
/// stored or was removed for everybody.
final class OpenIMConversationLog {
  let id: String
  var messages: [OpenIMMessageData?] = []
  var lastStoredAt: Int64 = 0

  init(id: String) { self.id = id }

  var maxSeq: Int64 { Int64(messages.count) }

  subscript(seq: Int64) -> OpenIMMessageData? {
    get { seq >= 1 && seq <= maxSeq ? messages[Int(seq) - 1] : nil }
    set { if seq >= 1, seq <= maxSeq { messages[Int(seq) - 1] = newValue } }
  }

  /// A placeholder that closes the hole at `seq`: its time is a neighbour's.
  func placeholder(_ seq: Int64) -> OpenIMMessageData {
    var data = OpenIMMessageData()
    data.seq = seq
    data.sendTime = self[seq - 1]?.sendTime ?? self[seq + 1]?.sendTime ?? 0
    data.status = OpenIMMessageStatus.deleted
    return data
  }
}

/// One WebSocket.
struct OpenIMConnection {
  let id: EmulatorConnectionID
  let user: OpenIMUser
  let platform: Int64
  let token: String
  let codec: OpenIMCodec
  var lastInput: Int64
  var isBackground = false
  /// A request waits for a webhook; the later ones wait behind it.
  var isWaiting = false
  var held: [WebSocketMessage] = []
  /// Users whose presence this connection wants to be told.
  var subscriptions: Set<OpenIMKey> = []
}

/// Who makes a REST call.
struct OpenIMCaller {
  var userID: String
  var platform: Int64
  var isAdmin: Bool
}
