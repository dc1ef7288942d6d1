/// A user and what is known of them.
public struct User: Sendable, Hashable {
  public var id: UserID
  /// nil where the vendor keeps no profile; "" is a name that is empty.
  public var name: String?
  public var avatarURL: String?
  /// One JSON object.
  public var customData: JSONText?
  public var presence: Presence?

  public init(
    id: UserID, name: String? = nil, avatarURL: String? = nil, customData: JSONText? = nil, presence: Presence? = nil
  ) {
    self.id = id
    self.name = name
    self.avatarURL = avatarURL
    self.customData = customData
    self.presence = presence
  }
}

public enum Presence: Sendable, Hashable {
  case online
  case offline(lastSeen: Timestamp?)
}

/// What a member may do. `unknown` keeps a vendor's role that has no counterpart.
public enum MemberRole: Sendable, Hashable {
  case owner, admin, member
  case unknown(String)
}

public enum MembershipState: String, Sendable, Hashable, CaseIterable { case joined, invited, left, banned }

/// One user in one channel.
public struct Member: Sendable, Hashable {
  public var user: User
  public var role: MemberRole
  public var state: MembershipState
  public var joinedAt: Timestamp?
  /// True while the member may not send; without `mutedUntil`, until told otherwise.
  public var isMuted: Bool
  public var mutedUntil: Timestamp?
  /// Everything up to here is read; nil when the vendor does not tell.
  public var readPosition: MessagePosition?
  public var deliveredPosition: MessagePosition?

  public init(
    user: User, role: MemberRole = .member, state: MembershipState = .joined, joinedAt: Timestamp? = nil,
    isMuted: Bool = false, mutedUntil: Timestamp? = nil, readPosition: MessagePosition? = nil,
    deliveredPosition: MessagePosition? = nil
  ) {
    self.user = user
    self.role = role
    self.state = state
    self.joinedAt = joinedAt
    self.isMuted = isMuted
    self.mutedUntil = mutedUntil
    self.readPosition = readPosition
    self.deliveredPosition = deliveredPosition
  }
}
