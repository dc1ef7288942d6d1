import ChatCrypto

enum OpenIMDigest {
  /// SHA-256 of a text, in lower-case hex.
  static func hex(_ text: String) -> String { Hex.encode(Digest.sha256(Array(text.utf8))) }
}
