import ChatInterchange
import ChatJSON
import OpenIMWire
import UnifiedChat

/// What belongs to chat here and is no user, channel or message: whom each user has as a friend, whom they block, and how
/// they set their conversations.
enum OpenIMRows {
  static let leftOut = [
    "applications for friendship and for groups that nobody has answered",
    "push tokens of devices, which the server does not tell",
  ]

  /// A conversation's settings where any is set; all else is in the channel.
  static func isSet(_ json: JSONValue) -> Bool {
    ["isPinned", "isPrivateChat", "isMsgDestruct"].contains { json[$0]?.bool == true }
      || ["recvMsgOpt", "burnDuration"].contains { (json[$0]?.int ?? 0) != 0 }
      || json["attachedInfo"]?.nonEmptyString != nil
  }
}

extension OpenIMSource {
  /// Users whose rows are one page.
  private static let rowUsers = 50

  public func rows(after cursor: Cursor?) async throws(ChatError) -> SourcePage<VendorRow> {
    let number = try pageNumber(cursor, prefix: "")
    let (users, isLast) = try await userPage(number, size: Self.rowUsers)
    let ids = users.compactMap { $0["userID"]?.string }
    let found = try await concurrently(ids, width: Self.width) { (id) async throws(ChatError) in try await self.rows(of: id) }
    return SourcePage(items: found.flatMap(\.self), next: isLast ? nil : Cursor(String(number + 1)))
  }

  private func rows(of user: String) async throws(ChatError) -> [VendorRow] {
    let friends = try await list("/friend/get_friend_list", "friendsInfo", of: user)
    let blacks = try await list("/friend/get_black_list", "blacks", of: user)
    let all = try await call("/conversation/get_all_conversations", ["ownerUserID": .string(user)])
    func row(_ kind: String, _ other: String?, _ json: JSONValue, in channel: ChannelID? = nil) -> VendorRow? {
      guard let other else { return nil }
      return VendorRow(
        kind: kind, id: "\(user)/\(other)", user: UserID(user), channel: channel, raw: JSONText(unchecked: json.text()))
    }
    return friends.compactMap { row("friend", $0["friendUser"]?["userID"]?.string, $0) }
      + blacks.compactMap { row("black", $0["blackUserInfo"]?["userID"]?.string, $0) }
      + (all["conversations"]?.array ?? []).filter(OpenIMRows.isSet).compactMap { json in
        row("conversation", json["conversationID"]?.string, json, in: json["conversationID"]?.string.map { ChannelID($0) })
      }
  }

  private func list(_ path: String, _ key: String, of user: String) async throws(ChatError) -> [JSONValue] {
    var items: [JSONValue] = []
    var walk = PageWalk()
    for number in 1... {
      let data = try await call(
        path, ["userID": .string(user), "pagination": OpenIMAdmin.page(number, size: Self.memberPage)])
      let page = data[key]?.array ?? []
      guard let first = page.first else { break }
      // A server without an end of pages repeats its last one.
      try walk.advance(to: first.text(), .readSource)
      items += page
      if items.count >= data["total"]?.int ?? 0 { break }
    }
    return items
  }
}
