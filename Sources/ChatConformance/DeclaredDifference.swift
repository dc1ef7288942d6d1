/// Where a vendor differs from the model and no capability can say so. The list is closed: a harness names those that
/// are its vendor's, and can add none. A case that meets one checks the different behaviour and passes as declared.
public enum DeclaredDifference: String, Sendable, Hashable, CaseIterable {
  /// Any id may be a member: there is no register of users to ask.
  case usersNeedNoRegistration
  /// A login on another device never ends this one; only an administrator does.
  case loginExcludesNobody
  /// The service tells a removed channel to nobody.
  case deletionIsNotTold
  /// A channel of two exists without being made.
  case directNeedsNoCreation
  /// A distinct group stays the same channel when its members change.
  case distinctSurvivesMemberChange
  /// The owner must hand over before leaving.
  case ownerCannotLeave
  /// The channel that is left empty by a recall shows no tombstone as its last message.
  case recalledVanishFromPreview
  /// A kicked connection names the administrator, whoever kicked.
  case kickNamesAdmin
  /// Nobody can be shown to be disabled.
  case usersCannotBeDisabled
  /// Any member may remove members and change what they like.
  case membersMayDoAll
  /// Own sends leave unread messages unread.
  case sendingDoesNotRead
  /// Messages of a channel that was left stay readable.
  case leftHistoryReadable

  /// One sentence for reports.
  public var reason: String {
    switch self {
    case .usersNeedNoRegistration: "the service keeps no register of users, so no id is unknown to it"
    case .loginExcludesNobody: "the service lets a user have any number of sessions"
    case .deletionIsNotTold: "the service pushes nothing when a channel is deleted"
    case .directNeedsNoCreation: "a channel of two is named by its users and never created"
    case .distinctSurvivesMemberChange: "the service keeps the distinct flag when members change"
    case .ownerCannotLeave: "the service refuses an owner who leaves without a successor"
    case .recalledVanishFromPreview: "the service forgets a recalled message entirely"
    case .kickNamesAdmin: "the service has one way to end a session and gives no other reason"
    case .usersCannotBeDisabled: "the service has no state of a disabled user"
    case .membersMayDoAll: "the service asks for no role unless signatures are on"
    case .sendingDoesNotRead: "the service leaves the read mark alone when its owner writes"
    case .leftHistoryReadable: "the service lets former members read"
    }
  }

  /// Where that is known from: a section of the vendor notes, by vendor.
  public var source: String {
    switch self {
    case .usersNeedNoRegistration, .membersMayDoAll: "wire notes, clients and permissions"
    case .loginExcludesNobody, .kickNamesAdmin: "wire notes, kick and conflict"
    case .deletionIsNotTold, .directNeedsNoCreation, .distinctSurvivesMemberChange: "wire notes, channels"
    case .ownerCannotLeave, .usersCannotBeDisabled: "wire notes, error table"
    case .recalledVanishFromPreview, .leftHistoryReadable: "wire notes, history"
    case .sendingDoesNotRead: "wire notes, read marks"
    }
  }
}
