import ChatCrypto
import UnifiedChat

/// The strings that LeanCloud signs, and their signature: lower-case hex of HMAC-SHA1 with the master key.
///
/// - Source: wire reference §8, with test vectors.
public enum LeanCloudSignature {
  /// An action of a conversation whose name ends the signed string.
  public enum Action: String, Sendable, Hashable, CaseIterable {
    case invite, kick, join
    case block = "conversation-block-clients"
    case unblock = "conversation-unblock-clients"
  }

  /// Ids are sorted by their bytes and joined by colons.
  public static func joined(_ ids: [String]) -> String {
    ids.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.joined(separator: ":")
  }

  /// `session/open` and `refresh`; the first model puts the watched peers in the middle.
  public static func open(
    app: String, client: String, watching: [String] = [], timestamp: Int64, nonce: String
  ) -> String { "\(app):\(client):\(joined(watching)):\(timestamp):\(nonce)" }

  public static func start(
    app: String, client: String, members: [String], timestamp: Int64, nonce: String
  ) -> String { "\(app):\(client):\(joined(members)):\(timestamp):\(nonce)" }

  public static func change(
    app: String, client: String, channel: String, members: [String], timestamp: Int64, nonce: String, action: Action
  ) -> String { "\(app):\(client):\(channel):\(joined(members)):\(timestamp):\(nonce):\(action.rawValue)" }

  /// REST history puts the nonce before the timestamp.
  public static func history(
    app: String, client: String, channel: String, nonce: String, timestamp: Int64
  ) -> String { "\(app):\(client):\(channel):\(nonce):\(timestamp)" }

  public static func sign(_ text: String, key: String) -> String {
    Hex.encode(HMAC.sha1(key: Array(key.utf8), message: Array(text.utf8)))
  }

  /// The value of `X-LC-Sign`: an MD5 over time and key in place of the key itself.
  public static func requestSign(key: String, isMaster: Bool, milliseconds: Int64) -> String {
    let digest = Hex.encode(Digest.md5(Array("\(milliseconds)\(key)".utf8)))
    return "\(digest),\(milliseconds)" + (isMaster ? ",master" : "")
  }
}
