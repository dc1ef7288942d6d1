import ChatJSON

/// The numbers of `contentType` (reference §4.1, §4.2).
public enum OpenIMContentType {
  public static let text: Int64 = 101
  public static let picture: Int64 = 102
  public static let voice: Int64 = 103
  public static let video: Int64 = 104
  public static let file: Int64 = 105
  public static let atText: Int64 = 106
  public static let merger: Int64 = 107
  public static let card: Int64 = 108
  public static let location: Int64 = 109
  public static let custom: Int64 = 110
  public static let typing: Int64 = 113
  public static let quote: Int64 = 114
  public static let face: Int64 = 115
  public static let advancedText: Int64 = 117
  public static let markdown: Int64 = 118
  public static let customNotTriggering: Int64 = 119
  public static let customOnlineOnly: Int64 = 120
  public static let announcement: Int64 = 1400

  /// What the admin's `send_msg` takes; anything else is an argument error there.
  public static let importable: Set<Int64> = [101, 102, 103, 104, 105, 106, 110, 114, 118, 1400]

  /// Numbers that the server takes for notices in permission checks.
  public static func isNotice(_ type: Int64) -> Bool { (1000...5000).contains(type) }
}

/// Notices that both sides of us act on.
public enum OpenIMNotice {
  public static let friendAgreed: Int64 = 1201
  public static let friendRefused: Int64 = 1202
  public static let friendAsked: Int64 = 1203
  public static let friendAdded: Int64 = 1204
  public static let friendDeleted: Int64 = 1205
  public static let friendRemarkSet: Int64 = 1206
  public static let blackAdded: Int64 = 1207
  public static let blackDeleted: Int64 = 1208
  public static let friendInfoUpdated: Int64 = 1209
  public static let friendsUpdated: Int64 = 1210
  public static let conversationChanged: Int64 = 1300
  public static let userInfoUpdated: Int64 = 1303
  public static let commandAdded: Int64 = 1305
  public static let commandDeleted: Int64 = 1306
  public static let commandUpdated: Int64 = 1307
  public static let groupCreated: Int64 = 1501
  public static let groupInfoSet: Int64 = 1502
  public static let joinAsked: Int64 = 1503
  public static let joinAgreed: Int64 = 1505
  public static let joinRefused: Int64 = 1506
  public static let memberQuit: Int64 = 1504
  public static let ownerTransferred: Int64 = 1507
  public static let memberKicked: Int64 = 1508
  public static let memberInvited: Int64 = 1509
  public static let memberEntered: Int64 = 1510
  public static let groupDismissed: Int64 = 1511
  public static let memberMuted: Int64 = 1512
  public static let memberUnmuted: Int64 = 1513
  public static let groupMuted: Int64 = 1514
  public static let groupUnmuted: Int64 = 1515
  public static let memberInfoSet: Int64 = 1516
  public static let memberMadeAdmin: Int64 = 1517
  public static let memberMadeOrdinary: Int64 = 1518
  public static let announcementSet: Int64 = 1519
  public static let groupNameSet: Int64 = 1520
  public static let privateChatSet: Int64 = 1701
  public static let historyCleared: Int64 = 1703
  public static let conversationsDeleted: Int64 = 1704
  /// A key and data of the app's own, from its backend.
  public static let business: Int64 = 2001
  public static let revoked: Int64 = 2101
  public static let deleted: Int64 = 2102
  public static let read: Int64 = 2200

  /// Those that also stand as messages in the conversation itself, and so take a sequence number there.
  public static let alsoMessages: Set<Int64> = [
    1501, 1504, 1507, 1508, 1509, 1510, 1511, 1512, 1513, 1514, 1515, 1519, 1520, 1201, 1701,
  ]

  /// `content` of a notice: the tips as JSON text inside a JSON object.
  public static func content(detail: JSONValue) -> [UInt8] {
    JSONValue.object(["detail": .string(detail.text())]).bytes()
  }

  /// The tips inside `content`; nil when it is no notice.
  public static func detail(of content: [UInt8]) -> JSONValue? {
    guard let outer = try? JSONValue(parsing: content), let text = outer["detail"]?.string else { return nil }
    return try? JSONValue(parsing: text)
  }
}

/// Kinds of conversation.
public enum OpenIMSessionType {
  public static let single: Int64 = 1
  /// Refused on send by every v3 server.
  public static let writeGroup: Int64 = 2
  public static let group: Int64 = 3
  public static let service: Int64 = 4
}

/// Why a group conversation asks for attention (`groupAtType`, reference §4.4).
public enum OpenIMAtType {
  public static let none: Int64 = 0
  public static let me: Int64 = 1
  public static let everyone: Int64 = 2
  public static let everyoneAndMe: Int64 = 3
  public static let announcement: Int64 = 4
}

public enum OpenIMMessageStatus {
  public static let sending: Int64 = 1
  public static let sent: Int64 = 2
  public static let failed: Int64 = 3
  /// Deleted for the reader, or a hole that only keeps the sequence whole: never shown.
  public static let deleted: Int64 = 4
}

/// The options map of a message: an absent key means true (reference §4.5).
public enum OpenIMOptions {
  /// What an online-only message turns off.
  public static let transient: [String] = [
    "conversationUpdate", "history", "offlinePush", "persistent", "senderConversationUpdate", "senderSync",
    "unreadCount",
  ]

  /// The eleven keys of a notice, in the order of their names as the server writes maps.
  public static func notice(stored: Bool, alsoMessage: Bool = false) -> [(key: String, value: Bool)] {
    [
      ("conversationUpdate", false), ("history", stored), ("isNotNotification", false), ("isSendMsg", alsoMessage),
      ("notPrivate", false), ("offlinePush", false), ("persistent", stored), ("reactionFromCache", false),
      ("senderConversationUpdate", false), ("senderSync", true), ("unreadCount", false),
    ]
  }
}

public enum OpenIMRole {
  public static let owner: Int64 = 100
  public static let admin: Int64 = 60
  public static let member: Int64 = 20
}

/// Platforms and the classes that exclude each other (reference §1.4).
public enum OpenIMPlatform {
  public static let iOS: Int64 = 1
  public static let macOS: Int64 = 4
  public static let web: Int64 = 5
  public static let linux: Int64 = 7
  public static let admin: Int64 = 10

  public static func isKnown(_ platform: Int64) -> Bool { (1...11).contains(platform) }

  /// Terminals that some login policies take for one.
  public enum Class: Sendable, Hashable { case mobile, computer, pad, web, miniWeb, admin, harmony, unknown }

  public static func classOf(_ platform: Int64) -> Class {
    switch platform {
    case 1, 2: .mobile
    case 3, 4, 7: .computer
    case 8, 9: .pad
    case 5: .web
    case 6: .miniWeb
    case 10: .admin
    case 11: .harmony
    default: .unknown
    }
  }
}
