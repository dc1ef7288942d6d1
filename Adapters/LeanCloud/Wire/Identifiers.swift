import ChatCrypto
import Foundation
import UnifiedChat

/// How LeanCloud's ids and dates look.
public enum LeanCloudID {
  /// 24 lower-case hex digits.
  public static func isObjectID(_ text: String) -> Bool {
    text.utf8.count == 24 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  /// 22 characters of base64 without padding; old ones hold `+` and `/`.
  public static func isMessageID(_ text: String) -> Bool {
    text.utf8.count == 22
      && text.utf8.allSatisfy {
        (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
          || [43, 45, 47, 95].contains($0)
      }
  }

  /// The id itself where it is an object id, else one that is always the same for the same text.
  public static func objectID(for text: String) -> String {
    if isObjectID(text) || text.hasPrefix("_tmp:") { return text }
    return String(Hex.encode(Digest.md5(Array("object:\(text)".utf8))).prefix(24))
  }

  /// The id itself where it is a message id, else one that is always the same for the same text in the same channel.
  public static func messageID(for text: String, channel: String) -> String {
    if isMessageID(text) { return text }
    return Base64.urlEncode(Digest.md5(Array("message:\(channel):\(text)".utf8)))
  }

  /// `YYYY-MM-DDTHH:MM:SS.mmmZ`.
  public static func iso(_ milliseconds: Int64) -> String { Timestamp(milliseconds: milliseconds).description }

  /// Milliseconds of an ISO 8601 text with or without fraction; nil for anything else.
  public static func milliseconds(iso text: String) -> Int64? {
    let withFraction = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    let date = (try? withFraction.parse(text)) ?? (try? Date.ISO8601FormatStyle().parse(text))
    return date.flatMap { Int64(exactly: ($0.timeIntervalSince1970 * 1000).rounded()) }
  }
}

extension LeanCloudID {
  /// The id that the first model gives a pair of peers in history: MD5 of the sorted ids joined by a colon.
  public static func pair(_ one: String, _ other: String) -> String {
    Hex.encode(Digest.md5(Array(LeanCloudSignature.joined([one, other]).utf8)))
  }
}
