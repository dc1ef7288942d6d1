import ChatInterchange
import ChatJSON
import LeanCloudWire
import Synchronization
import UnifiedChat

// What changes or removes what an earlier run wrote. The service names a message by id, time and sender together, so
// that each one is looked for in the history first, from the newest on.

extension LeanCloudDestination {
  struct Located: Sendable {
    var timestamp: Int64
    var from: String
  }

  /// Those of `ids` that are in the channel.
  private func locate(_ ids: Set<MessageID>, in channel: ChannelID) async throws(ChatError) -> [MessageID: Located] {
    var found: [MessageID: Located] = [:]
    var query = [("convid", channel.rawValue), ("limit", String(LeanCloudSource.pageSize))]
    var walk = PageWalk()
    while found.count < ids.count {
      try walk.advance(to: query.last?.1 ?? "", .writeDestination)
      let rows = try await call("GET", "/1.1/rtm/messages/history", query: query).array ?? []
      for row in rows {
        guard let id = row["msg-id"]?.string, ids.contains(MessageID(id)), let time = row["timestamp"]?.int else {
          continue
        }
        found[MessageID(id)] = Located(timestamp: time, from: row["from"]?.string ?? "")
      }
      guard let last = rows.last, let time = last["timestamp"]?.int, let id = last["msg-id"]?.string else { break }
      query = Array(query.prefix(2)) + [("max_ts", String(time)), ("msgid", id)]
    }
    return found
  }

  /// A recalled message becomes the text of a tombstone in place of the vendor's own recall, which would lose where the
  /// message came from.
  public func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID> {
    guard let place = try await locate([id], in: channel)[id] else {
      return .refused(ChatError(.notFound, operation: .writeDestination, detail: "no message \(id) in \(channel)"))
    }
    let path = "/1.2/rtm/\(try await path(of: channel))/\(LeanCloudREST.percent(channel.rawValue))"
    _ = try await call(
      "PUT", path + "/messages/\(LeanCloudREST.percent(id.rawValue))",
      [
        "from_client": .string(place.from), "message": .string(encoded(message, in: channel, from: place.from).text),
        "timestamp": .int(place.timestamp),
      ])
    return .written(id)
  }

  public func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError) {
    for (id, place) in try await locate(Set(ids), in: channel).sorted(by: { $0.key < $1.key }) {
      try await remove(id, place, in: channel)
    }
  }

  private func remove(_ id: MessageID, _ place: Located, in channel: ChannelID) async throws(ChatError) {
    let query = [
      ("convid", channel.rawValue), ("msgid", id.rawValue), ("timestamp", String(place.timestamp)),
      ("from", place.from),
    ]
    try await unlessGone { () throws(ChatError) in _ = try await call("DELETE", "/1.1/rtm/messages/logs", query: query)
    }
  }

  public func removeMembers(_ users: [UserID], from channel: ChannelID) async throws(ChatError) {
    guard !users.isEmpty else { return }
    let base = "/1.2/rtm/\(try await path(of: channel))/\(LeanCloudREST.percent(channel.rawValue))"
    try await unlessGone { () throws(ChatError) in
      guard try await path(of: channel) == "service-conversations" else {
        _ = try await call("DELETE", base + "/members", ["client_ids": .strings(users.map(\.rawValue))])
        return
      }
      for user in users { _ = try await call("DELETE", base + "/subscribers/\(LeanCloudREST.percent(user.rawValue))") }
    }
  }

  /// Its messages first: the service would keep them in the history of the app.
  public func removeChannel(_ channel: ChannelID) async throws(ChatError) {
    var walk = PageWalk()
    while true {
      let query = [("convid", channel.rawValue), ("limit", String(LeanCloudSource.pageSize))]
      let rows = try await call("GET", "/1.1/rtm/messages/history", query: query).array ?? []
      for row in rows {
        guard let id = row["msg-id"]?.string, let time = row["timestamp"]?.int else { continue }
        try await remove(MessageID(id), Located(timestamp: time, from: row["from"]?.string ?? ""), in: channel)
      }
      guard let first = rows.first else { break }
      // A service that does not delete would give the same page for ever.
      try walk.advance(to: first["msg-id"]?.string ?? "", .writeDestination)
    }
    let path = LeanCloudREST.percent(channel.rawValue)
    try await unlessGone { () throws(ChatError) in
      _ = try await call("DELETE", "/1.1/classes/_Conversation/\(path)")
    }
    kinds.forget(channel)
  }

  public func removeUsers(_ users: [UserID]) async throws(ChatError) {
    for user in users {
      let condition: JSONValue = ["username": .string(user.rawValue)]
      let found = try await call("GET", "/1.1/classes/_User", query: [("where", condition.text()), ("limit", "1")])
      guard let id = found["results"]?[0]?["objectId"]?.string else { continue }
      try await unlessGone { () throws(ChatError) in
        _ = try await call("DELETE", "/1.1/users/\(LeanCloudREST.percent(id))")
      }
    }
  }

  private func unlessGone(_ body: () async throws(ChatError) -> Void) async throws(ChatError) {
    do { try await body() } catch  where error.kind == .notFound { return }
  }

  // MARK: Kinds

  /// The part of a path that stands for the channel's kind; asked for once.
  func path(of channel: ChannelID) async throws(ChatError) -> String {
    if let known = kinds.path(of: channel) { return known }
    let row = try await call("GET", "/1.1/classes/_Conversation/\(LeanCloudREST.percent(channel.rawValue))")
    let path: String
    if row["sys"]?.bool == true {
      path = "service-conversations"
    } else {
      path = row["tr"]?.bool == true ? "chatrooms" : "conversations"
    }
    kinds.remember(path, of: channel)
    return path
  }
}

/// Which channels are chat rooms and which are services. Copies of a destination share it.
final class LeanCloudKinds: Sendable {
  private let paths = Mutex<[ChannelID: String]>([:])

  func path(of channel: ChannelID) -> String? { paths.withLock { $0[channel] } }
  func remember(_ path: String, of channel: ChannelID) { paths.withLock { $0[channel] = path } }
  func forget(_ channel: ChannelID) { paths.withLock { $0[channel] = nil } }

  /// Made by earlier runs, as their ledger says.
  private let resumed = Mutex<[Origin: ChannelID]>([:])

  func resume(_ channel: ChannelID, of origin: Origin) { resumed.withLock { $0[origin] = channel } }
  func resumed(_ origin: Origin) -> ChannelID? { resumed.withLock { $0[origin] } }
}
