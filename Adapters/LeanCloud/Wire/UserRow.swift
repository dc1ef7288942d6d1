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

  /// `idColumn` names the column that holds the client id.
  public static func user(_ row: JSONObject, idColumn: String = "objectId") -> (user: User, origin: Origin?) {
    let id = row[idColumn]?.string ?? row["objectId"]?.string ?? ""
    var user = User(id: UserID(id), name: row["nickname"]?.string)
    let username = row["username"]?.string
    // A row that we wrote has an object id of the service's making and says whom it means.
    let kept = row["attr"]?[LeanCloudBody.marker]?["kept"]
    if let named = kept?["client"]?.string { user.id = UserID(named) }
    // A user name that only repeats the id is no name that anybody chose.
    if user.name == nil, let username, UserID(username) != user.id { user.name = username }
    user.avatarURL = row["avatar"]?.string ?? row["avatar"]?["url"]?.string
    var attributes = row["attr"]?.object
    var origin: Origin?
    var customText: JSONText?
    if let envelope = attributes?[LeanCloudBody.marker], envelope["v"]?.int == 1 {
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
    return (user, origin)
  }

  /// The columns that hold a profile.
  /// `keepsID`: the row's own id will not be the client id.
  public static func columns(_ user: User, origin: Origin? = nil, keepsID: Bool = false) -> JSONObject {
    let kept: JSONObject = keepsID ? ["client": .string(user.id.rawValue)] : [:]
    var columns = LeanCloudConversation.columns(customData: user.customData, kept: kept, origin: origin)
    columns["nickname"] = user.name.map { .string($0) }
    columns["avatar"] = user.avatarURL.map { .string($0) }
    return columns
  }
}
