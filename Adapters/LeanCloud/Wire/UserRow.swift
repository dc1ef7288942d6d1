import ChatInterchange
import ChatJSON
import UnifiedChat

/// A row of `_User` and the unified user.
///
/// The service has no profiles for clients; an app that logs users in uses the object id as the client id, and keeps
/// names where it likes. Ours are the columns `nickname`, `avatar` and `attr`; an app's own columns join the custom data
/// as `_columns`.
public enum LeanCloudUser {
  private static let knownColumns: Set<String> = [
    "objectId", "username", "createdAt", "updatedAt", "nickname", "avatar", "attr", "ACL", "authData", "email",
    "emailVerified", "mobilePhoneNumber", "mobilePhoneVerified", "password", "salt", "sessionToken", "__type",
    "className", "shortId",
  ]

  /// A row as it was read.
  public struct Read: Sendable, Hashable {
    public var user: User
    /// Where the user came from if it was imported by us.
    public var origin: Origin?
    /// Why an envelope in the row's `attr` is not believed. A user may write the own row.
    public var finding: EnvelopeFinding?
  }

  /// `idColumn` names the column that holds the client id.
  public static func user(_ row: JSONObject, idColumn: String = "objectId", _ view: EnvelopeView = .client) -> Read {
    let id = row[idColumn]?.string ?? row["objectId"]?.string ?? ""
    var user = User(id: UserID(id), name: row["nickname"]?.string)
    let username = row["username"]?.string
    // A row that we wrote has an object id of the service's making and says whom it means.
    var envelope = row["attr"]?[LeanCloudBody.marker]
    if envelope?["v"]?.int != 1 { envelope = nil }
    var finding: EnvelopeFinding?
    if let own = envelope?.object, case .tool(let reader) = view {
      finding = reader.finding(of: own, at: .user(username ?? ""))
      if finding != nil { envelope = nil }
    }
    let kept = envelope?["kept"]
    if let named = kept?["client"]?.string { user.id = UserID(named) }
    // A user name that only repeats the id is no name that anybody chose.
    if user.name == nil, let username, UserID(username) != user.id { user.name = username }
    user.avatarURL = row["avatar"]?.string ?? row["avatar"]?["url"]?.string
    var attributes = row["attr"]?.object
    var origin: Origin?
    var customText: JSONText?
    if let envelope {
      origin = Provenance(envelope)?.origin
      customText = kept?["customData"]?.string.map { JSONText(unchecked: $0) }
      attributes?[LeanCloudBody.marker] = nil
      if attributes?.isEmpty == true { attributes = nil }
    }
    let extra = row.members.filter { !knownColumns.contains($0.key) }
    if !extra.isEmpty {
      attributes = attributes ?? JSONObject()
      attributes?[LeanCloudConversation.extraColumns] = .object(JSONObject(extra))
    }
    user.customData = customText ?? attributes.map { JSONText(unchecked: JSONValue.object($0).text()) }
    return Read(user: user, origin: origin, finding: finding)
  }

  /// The columns that hold a profile.
  /// `keepsID`: the row's own id will not be the client id.
  /// The row is signed for its `username`, which is the user's id.
  public static func columns(
    _ user: User, origin: Origin? = nil, keepsID: Bool = false, _ key: EnvelopeKey? = nil
  ) -> JSONObject {
    let kept: JSONObject = keepsID ? ["client": .string(user.id.rawValue)] : [:]
    var columns = LeanCloudConversation.columns(
      customData: user.customData, kept: kept, origin: origin, EnvelopeSigning(key, .user(user.id.rawValue)))
    columns["nickname"] = user.name.map { .string($0) }
    columns["avatar"] = user.avatarURL.map { .string($0) }
    return columns
  }
}
