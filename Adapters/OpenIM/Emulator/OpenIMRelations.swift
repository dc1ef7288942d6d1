import ChatJSON
import OpenIMWire

/// Somebody in a user's friend list.
struct OpenIMFriend: Sendable, Hashable {
  /// How they came there.
  static let imported: Int64 = 1
  static let applied: Int64 = 2

  var userID: String
  var remark = ""
  /// Seconds, unlike every other time.
  var createTime: Int64
  var addSource: Int64
  var operatorUserID: String
  var ex = ""
  var isPinned = false
}

/// One user's friends: the pinned ones first, then in the order in which they came.
struct OpenIMFriendList: Sendable {
  private var order: [OpenIMKey] = []
  private var entries: [OpenIMKey: OpenIMFriend] = [:]

  var count: Int { order.count }

  var all: [OpenIMFriend] {
    let list = order.compactMap { entries[$0] }
    return list.filter(\.isPinned) + list.filter { !$0.isPinned }
  }

  subscript(id: String) -> OpenIMFriend? {
    get { entries[OpenIMKey(id)] }
    set {
      let key = OpenIMKey(id)
      switch (entries[key], newValue) {
      case (nil, .some): order.append(key)
      case (.some, nil): order.removeAll { $0 == key }
      default: break
      }
      entries[key] = newValue
    }
  }
}

/// What became of a request.
enum OpenIMHandling {
  static let open: Int64 = 0
  static let agreed: Int64 = 1
  static let refused: Int64 = -1
}

/// Somebody wants to be a friend. A later one of the same pair takes the place of an earlier one.
struct OpenIMFriendRequest: Sendable, Hashable {
  var from: String
  var to: String
  var handleResult = OpenIMHandling.open
  var reqMsg: String
  var createTime: Int64
  var handlerUserID = ""
  var handleMsg = ""
  var handleTime: Int64 = 0
  var ex = ""
}

struct OpenIMBlack: Sendable, Hashable {
  var userID: String
  /// Seconds.
  var createTime: Int64 = 0
  var ex = ""
}

/// Somebody wants to be a member of a group, or a member wants somebody to be one.
struct OpenIMGroupRequest: Sendable, Hashable {
  var userID: String
  var handleResult = OpenIMHandling.open
  var reqMsg: String
  var handleMsg = ""
  var reqTime: Int64
  var handleUserID = ""
  var handleTime: Int64 = 0
  var ex = ""
  var joinSource: Int64
  var inviterUserID: String
}

/// An entry of a user's own small store.
struct OpenIMCommand: Sendable, Hashable {
  var type: Int64
  var uuid: String
  var value: String
  var ex: String
  var createTime: Int64

  var json: JSONValue {
    [
      "type": .int(type), "createTime": .int(createTime), "uuid": .string(uuid), "value": .string(value),
      "ex": .string(ex),
    ]
  }
}

/// A device token for offline push.
struct OpenIMPushToken: Sendable, Hashable {
  var token: String
  /// ms since 1970; 0: for good.
  var expiresAt: Int64
}

// MARK: Saving

extension OpenIMFriend {
  var snapshot: JSONValue {
    [
      .string(userID), .string(remark), .int(createTime), .int(addSource), .string(operatorUserID), .string(ex),
      .bool(isPinned),
    ]
  }

  init(snapshot: JSONValue) {
    func text(_ index: Int) -> String { snapshot[index]?.string ?? "" }
    self.init(
      userID: text(0), remark: text(1), createTime: snapshot[2]?.int ?? 0, addSource: snapshot[3]?.int ?? 0,
      operatorUserID: text(4), ex: text(5), isPinned: snapshot[6]?.bool ?? false)
  }
}

extension OpenIMFriendRequest {
  var snapshot: JSONValue {
    [
      .string(from), .string(to), .int(handleResult), .string(reqMsg), .int(createTime), .string(handlerUserID),
      .string(handleMsg), .int(handleTime), .string(ex),
    ]
  }

  init(snapshot: JSONValue) {
    func text(_ index: Int) -> String { snapshot[index]?.string ?? "" }
    self.init(
      from: text(0), to: text(1), handleResult: snapshot[2]?.int ?? 0, reqMsg: text(3),
      createTime: snapshot[4]?.int ?? 0, handlerUserID: text(5), handleMsg: text(6),
      handleTime: snapshot[7]?.int ?? 0, ex: text(8))
  }
}

extension OpenIMGroupRequest {
  var snapshot: JSONValue {
    [
      .string(userID), .int(handleResult), .string(reqMsg), .string(handleMsg), .int(reqTime), .string(handleUserID),
      .int(handleTime), .string(ex), .int(joinSource), .string(inviterUserID),
    ]
  }

  init(snapshot: JSONValue) {
    func text(_ index: Int) -> String { snapshot[index]?.string ?? "" }
    self.init(
      userID: text(0), handleResult: snapshot[1]?.int ?? 0, reqMsg: text(2), handleMsg: text(3),
      reqTime: snapshot[4]?.int ?? 0, handleUserID: text(5), handleTime: snapshot[6]?.int ?? 0, ex: text(7),
      joinSource: snapshot[8]?.int ?? 0, inviterUserID: text(9))
  }
}

extension OpenIMCommand {
  init(snapshot: JSONValue) {
    func text(_ key: String) -> String { snapshot[key]?.string ?? "" }
    self.init(
      type: snapshot["type"]?.int ?? 0, uuid: text("uuid"), value: text("value"), ex: text("ex"),
      createTime: snapshot["createTime"]?.int ?? 0)
  }
}
