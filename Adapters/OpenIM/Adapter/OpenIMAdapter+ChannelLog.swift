import ChatJSON
import OpenIMWire
import UnifiedChat

/// What changed in a user's channel list since a token (`channel.changelog`).
public struct OpenIMChannelChanges: Sendable, Hashable {
  /// New channels, and those whose group or own settings changed. What was said in them is no change.
  public var changed: [ChannelID]
  public var removed: [ChannelID]
  /// The server does not know any more what changed since the token: read the whole list.
  public var isFull: Bool
  public var next: Cursor
}

/// The vendor's incremental lists, beyond the contract. Reached by `chat.vendorAdapter(as: (any OpenIMChannelLog).self)`.
public protocol OpenIMChannelLog: Sendable {
  /// nil `since` gives the token of now, and `isFull`.
  /// - Throws: `.invalidArgument` for a token of something else.
  func channelChanges(since: Cursor?) async throws(ChatError) -> OpenIMChannelChanges
}

extension OpenIMAdapter: OpenIMChannelLog {
  /// The versions of both lists that a channel stands in.
  private struct Versions {
    var conversations: (id: String, number: Int64) = ("", 0)
    var groups: (id: String, number: Int64) = ("", 0)

    init() {}

    init?(_ cursor: Cursor) {
      guard let json = try? JSONValue(parsing: cursor.rawValue), let first = json[0]?.string, let one = json[1]?.int,
        let second = json[2]?.string, let two = json[3]?.int
      else { return nil }
      conversations = (first, one)
      groups = (second, two)
    }

    var cursor: Cursor {
      let parts: JSONValue = [
        .string(conversations.id), .int(conversations.number), .string(groups.id), .int(groups.number),
      ]
      return Cursor(parts.text())
    }
  }

  public func channelChanges(since: Cursor?) async throws(ChatError) -> OpenIMChannelChanges {
    var versions = Versions()
    if let since {
      guard let known = Versions(since) else {
        throw ChatError(.invalidArgument(field: "since"), operation: .listChannels)
      }
      versions = known
    }
    let conversations = try await listChanges("/conversation/get_incremental_conversations", &versions.conversations)
    let groups = try await listChanges("/group/get_incremental_join_groups", &versions.groups)
    var changed: [ChannelID] = []
    var removed: [ChannelID] = []
    for json in conversations.changed { if let id = json["conversationID"]?.string { changed.append(ChannelID(id)) } }
    for json in groups.changed {
      if let id = json["groupID"]?.string { changed.append(ChannelID(OpenIMConversationID.group(id))) }
    }
    removed += conversations.removed.map { ChannelID($0) }
    removed += groups.removed.map { ChannelID(OpenIMConversationID.group($0)) }
    let gone = Set(removed)
    var seen = gone
    return OpenIMChannelChanges(
      changed: changed.filter { seen.insert($0).inserted }, removed: gone.sorted(),
      isFull: conversations.isFull || groups.isFull, next: versions.cursor)
  }

  private func listChanges(
    _ path: String, _ version: inout (id: String, number: Int64)
  ) async throws(ChatError) -> (changed: [JSONValue], removed: [String], isFull: Bool) {
    let data = try await call(
      path,
      [
        "userID": .string(try me(.listChannels).rawValue), "versionID": .string(version.id),
        "version": .int(version.number),
      ], for: .listChannels)
    version = (data["versionID"]?.string ?? "", data["version"]?.int ?? 0)
    return (
      (data["insert"]?.array ?? []) + (data["update"]?.array ?? []),
      (data["delete"]?.array ?? []).compactMap(\.string), data["full"]?.bool ?? true
    )
  }
}
