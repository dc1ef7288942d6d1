/// Where a vendor differs from the model and no capability can say so. The list is closed: a harness names those that
/// are its vendor's, and can add none. A case that meets one checks the different behaviour and passes as declared.
public enum DeclaredDifference: String, Sendable, Hashable, CaseIterable {
  /// Any id may be a member: there is no register of users to ask.
  case usersNeedNoRegistration
  /// A login on another device never ends this one; only an administrator does.
  case loginExcludesNobody
  /// A distinct group stays the same channel when its members change.
  case distinctSurvivesMemberChange
  /// The owner must hand over before leaving.
  case ownerCannotLeave
  /// A kicked connection names the administrator, whoever kicked.
  case kickNamesAdmin
  /// Nobody can be shown to be disabled.
  case usersCannotBeDisabled
  /// A member is silenced until somebody ends it.
  case mutesHaveNoEnd
  /// Who writes in a service channel is heard by the service alone.
  case serviceHearsReaders

  /// One sentence for reports.
  public var reason: String {
    switch self {
    case .usersNeedNoRegistration: "the service keeps no register of users, so no id is unknown to it"
    case .loginExcludesNobody: "the service lets a user have any number of sessions"
    case .distinctSurvivesMemberChange: "the service keeps the distinct flag when members change"
    case .ownerCannotLeave: "the service refuses an owner who leaves without a successor"
    case .kickNamesAdmin: "the service has one way to end a session and gives no other reason"
    case .usersCannotBeDisabled: "the service has no state of a disabled user"
    case .mutesHaveNoEnd: "a client silences without end; only an administrator's call has one"
    case .serviceHearsReaders: "the service takes what its subscribers write, and shows it to none of them"
    }
  }

  /// Where that is known from: a section of the vendor notes, by vendor.
  public var source: String {
    switch self {
    case .usersNeedNoRegistration, .mutesHaveNoEnd, .serviceHearsReaders: "wire notes, clients and permissions"
    case .loginExcludesNobody, .kickNamesAdmin: "wire notes, kick and conflict"
    case .distinctSurvivesMemberChange: "wire notes, channels"
    case .ownerCannotLeave, .usersCannotBeDisabled: "wire notes, error table"
    }
  }
}
