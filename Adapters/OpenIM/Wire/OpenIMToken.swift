import ChatCrypto
import ChatJSON

/// The claims of a token: a JSON Web Token signed with the server's secret (reference §1.3).
public struct OpenIMToken: Sendable, Hashable {
  public var userID: String
  public var platform: Int64
  /// Seconds since 1970.
  public var expiresAt: Int64
  public var issuedAt: Int64

  /// The server's default: 90 days.
  public static let lifetimeSeconds: Int64 = 7_776_000

  public init(userID: String, platform: Int64, expiresAt: Int64, issuedAt: Int64) {
    self.userID = userID
    self.platform = platform
    self.expiresAt = expiresAt
    self.issuedAt = issuedAt
  }

  /// As the server issues it at `now` (seconds): back-dated by five seconds.
  public static func issue(userID: String, platform: Int64, now: Int64, lifetime: Int64 = lifetimeSeconds) -> Self {
    OpenIMToken(userID: userID, platform: platform, expiresAt: now &+ lifetime, issuedAt: now &- 5)
  }

  public func signed(with secret: String) -> String {
    let claims: JSONValue = [
      "UserID": .string(userID), "PlatformID": .int(platform), "exp": .int(expiresAt), "iat": .int(issuedAt),
    ]
    return JSONWebToken.sign(claims: claims.bytes(), secret: Array(secret.utf8))
  }

  /// What a client may know of its own token, without verifying it.
  public init?(reading text: String) {
    guard let token = try? JSONWebToken(reading: text) else { return nil }
    self.init(claims: token.claims)
  }

  /// - Throws: the code that the server answers: 1503 for what cannot be read, 1505 for a wrong signature.
  public init(verifying text: String, secret: String) throws(OpenIMFault) {
    let token: JSONWebToken
    do { token = try JSONWebToken(reading: text) } catch { throw OpenIMFault(.tokenMalformed) }
    guard token.isSigned(with: Array(secret.utf8)) else { throw OpenIMFault(.tokenUnknown) }
    guard let claims = OpenIMToken(claims: token.claims) else { throw OpenIMFault(.tokenMalformed) }
    self = claims
  }

  private init?(claims: [UInt8]) {
    guard let claims = try? JSONValue(parsing: claims), let userID = claims["UserID"]?.string,
      let platform = claims["PlatformID"]?.int, let expiresAt = claims["exp"]?.int
    else { return nil }
    self.init(userID: userID, platform: platform, expiresAt: expiresAt, issuedAt: claims["iat"]?.int ?? 0)
  }
}
