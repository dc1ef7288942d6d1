import ChatJSON
import SendbirdWire
import UnifiedChat

/// Whose invitation waits for an answer. The vendor's lists and counts tell both apart, its member objects do not.
enum Invitation: String {
  case byFriend = "invited_by_friend"
  case byNonFriend = "invited_by_non_friend"
}

// Who is asked into a group channel, and who is in it at once.
extension SendbirdEmulator {
  /// The two tables by user that a creation and an invitation may hold.
  enum StatusTable: String {
    case invitation = "invitation_status"
    case hiding = "hidden_status"

    var values: Set<String> {
      switch self {
      case .invitation: ["joined", "invited_by_friend", "invited_by_non_friend"]
      case .hiding: ["unhidden", "hidden_allow_auto_unhide", "hidden_prevent_auto_unhide"]
      }
    }
  }

  /// `{"user": "status"}`, or a list of `"user: status"`.
  func statuses(_ call: Call, _ table: StatusTable) throws(SendbirdFault) -> [UserID: String] {
    let name = table.rawValue
    var statuses: [UserID: String] = [:]
    for (user, status) in call.body.object(name) ?? JSONObject() { statuses[UserID(user)] = status.string ?? "" }
    for item in call.body.list(name).compactMap(\.string) {
      let parts = item.split(separator: ":", maxSplits: 1)
      if parts.count == 2 { statuses[UserID(String(parts[0]))] = String(parts[1].drop { $0 == " " }) }
    }
    guard statuses.values.allSatisfy(table.values.contains) else {
      throw SendbirdFault(400111, "\(name) holds an unknown status.")
    }
    return statuses
  }

  /// A block parts both: neither brings the other into a channel. The Platform API, where nobody acts, may.
  func mayInvite(_ guests: [Person], _ inviter: Person?) throws(SendbirdFault) {
    guard let inviter else { return }
    for guest in guests where guest !== inviter {
      if inviter.blocked.contains(guest.id) { throw SendbirdFault(400701, "You blocked \(guest.id).") }
      if guest.blocked.contains(inviter.id) { throw SendbirdFault(400702, "\(guest.id) blocked you.") }
    }
  }

  /// Makes members of those who are not yet; at once, unless a status, the user or the application says otherwise.
  func add(
    _ users: [Person], to room: Room, by inviter: Person?, statuses: [UserID: String] = [:],
    hidings: [UserID: String] = [:]
  ) {
    for person in users where room.members[person.id] == nil {
      let invitation = invitation(of: person, by: inviter, statuses[person.id])
      let isSelf = person === inviter
      let membership = Membership(person, state: invitation == nil ? "joined" : "invited", at: now)
      membership.invitation = invitation
      membership.invitedAt = isSelf ? 0 : now
      membership.inviter = isSelf ? nil : inviter?.id
      membership.hiddenState = hidings[person.id] ?? "unhidden"
      if !settings.historyForNewMembers { membership.historyOffset = now }
      room.members[person.id] = membership
      person.rooms[room.url] = room
      person.lost[room.url] = nil
    }
  }

  /// nil for those who join at once. A friend is whom the invited one has among his friends.
  private func invitation(of person: Person, by inviter: Person?, _ status: String?) -> Invitation? {
    if let status { return Invitation(rawValue: status) }
    if person === inviter || (person.autoAccept && settings.autoAcceptInvitations) { return nil }
    return inviter.map { person.friends.contains($0.id) } ?? false ? .byFriend : .byNonFriend
  }
}
