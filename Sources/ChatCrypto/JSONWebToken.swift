import Foundation

/// Why a token can't be used.
public enum JSONWebTokenError: Error, Sendable, Hashable {
  /// Not three parts of base64url with a JSON object in the first two.
  case malformed
  /// Signed otherwise than by HMAC with SHA-256, `none` included.
  case unsupportedAlgorithm
  case wrongSignature
}

/// A JSON Web Token signed with HMAC-SHA-256 (RFC 7515, `HS256`).
///
/// Claims are JSON text, so that the caller reads them with the parser of its choice. Times in them are not checked
/// here: the caller has the clock.
public struct JSONWebToken: Sendable, Hashable {
  /// The claims as they stand in the token, byte for byte.
  public let claims: [UInt8]
  private let signedText: [UInt8]
  private let signature: [UInt8]

  /// Tokens longer than this are refused unread.
  public static let maximumLength = 64 << 10

  /// Reads a token without verifying it: for what a client may know of its own token, such as its expiry.
  public init(reading token: String) throws(JSONWebTokenError) {
    guard token.utf8.count <= Self.maximumLength else { throw .malformed }
    let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard parts.count == 3, let header = Base64.urlDecode(parts[0]), let claims = Base64.urlDecode(parts[1]),
      let signature = Base64.urlDecode(parts[2]), let fields = Self.object(header), Self.object(claims) != nil
    else { throw .malformed }
    guard fields["alg"] as? String == "HS256" else { throw .unsupportedAlgorithm }
    self.claims = claims
    self.signature = signature
    signedText = Array((parts[0] + "." + parts[1]).utf8)
  }

  /// Reads a token and verifies its signature.
  public init(verifying token: String, secret: [UInt8]) throws(JSONWebTokenError) {
    try self.init(reading: token)
    guard isSigned(with: secret) else { throw .wrongSignature }
  }

  public func isSigned(with secret: [UInt8]) -> Bool {
    SecureBytes.areEqual(signature, HMAC.sha256(key: secret, message: signedText))
  }

  /// The token for `claims`, which must be the text of a JSON object.
  public static func sign(claims: [UInt8], secret: [UInt8]) -> String {
    let header = Base64.urlEncode(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8))
    let text = header + "." + Base64.urlEncode(claims)
    return text + "." + Base64.urlEncode(HMAC.sha256(key: secret, message: Array(text.utf8)))
  }

  private static func object(_ text: [UInt8]) -> [String: Any]? {
    // The reason for a refusal is of no use to anyone: a token is good or it is not.
    (try? JSONSerialization.jsonObject(with: Data(text))) as? [String: Any]
  }
}
