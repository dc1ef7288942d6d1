import UnifiedChat

/// An official client library, as its database tells: by tables and columns, never by the file's name.
///
/// - Source: `IMLocalStorage.swift` of swift-sdk, `LCIMMessageCacheStoreSQL.h` and `LCIMConversationCacheStoreSQL.h` of
///   objc-sdk, `LCIMMessageStorage.java` and `AndroidDatabaseDelegate.java` of java-unified-sdk; see WIRE.md.
enum LeanCloudDeviceLibrary: String, Sendable, CaseIterable {
  case swift, objc, java

  /// nil for a database of something else.
  init?(_ database: LeanCloudDeviceDatabase) {
    let found = Self.allCases.first { library in
      let names = library.messages
      let present = Set(database.tables[library.messageTable] ?? [])
      return Set([names.channel, names.id, names.time, names.body]).isSubset(of: present)
    }
    guard let found else { return nil }
    self = found
  }

  var messageTable: String { self == .java ? "messages" : "message" }

  var channelTable: String {
    switch self {
    case .swift: "conversation"
    case .objc: "conversation_v2"
    case .java: "conversations"
    }
  }

  /// Names of columns; older versions of a library lack some.
  struct MessageColumns {
    var channel = "conversation_id"
    var id = "message_id"
    var sender = "from_peer_id"
    var status = "status"
    var breakpoint = "breakpoint"
    var time: String
    var body: String
    var delivered: String
    var read: String
    var patched: String
    var mentionsAll: String
    var mentions: String
    /// 1 for bytes that are no text.
    var binary: String?
    /// What the client calls a message that it has not sent yet.
    var token: String?

    var all: [String] {
      [channel, id, sender, status, breakpoint, time, body, delivered, read, patched, mentionsAll, mentions]
        + [binary, token].compactMap(\.self)
    }
  }

  var messages: MessageColumns {
    switch self {
    case .swift:
      MessageColumns(
        time: "sent_timestamp", body: "content", delivered: "delivered_timestamp", read: "read_timestamp",
        patched: "patched_timestamp", mentionsAll: "all_mentioned", mentions: "mentioned_list", binary: "binary")
    case .objc:
      MessageColumns(
        time: "timestamp", body: "payload", delivered: "receipt_timestamp", read: "read_timestamp",
        patched: "patch_timestamp", mentionsAll: "mention_all", mentions: "mention_list")
    case .java:
      MessageColumns(
        time: "timestamp", body: "payload", delivered: "receipt_timestamp", read: "readAt", patched: "updateAt",
        mentionsAll: "mentionAll", mentions: "mentionList", binary: "iType", token: "dtoken")
    }
  }

  var channelColumns: [String] {
    switch self {
    case .swift: ["id", "raw_data", "updated_timestamp", "created_timestamp"]
    case .objc:
      ["conversation_id", "name", "creator", "transient", "members", "attr", "create_at", "update_at", "last_message_at",
        "raw_data"]
    case .java:
      ["conversation_id", "attr", "instanceData", "updatedAt", "createdAt", "creator", "members", "isTransient", "lm",
        "sys", "temp"]
    }
  }

  /// The status of a message that the service never took.
  var failed: Int64 { self == .swift ? -1 : 4 }

  /// The status of a message that its sender recalled; only one library has it.
  var recalled: Int64? { self == .java ? 5 : nil }

  /// The library for Swift marks both ends of each run of messages that it read in one go, the others the first message
  /// alone.
  func isGap(before marked: Bool, after previous: Bool) -> Bool { self == .swift ? marked && previous : marked }
}
