import ChatCrypto
import ChatJSON
import UnifiedChat

/// How conversations are named (reference §4.4). Ids cannot be taken apart again without knowing one of the users,
/// because user ids may contain `_`.
public enum OpenIMConversationID {
  /// A single chat, whatever the order of the two.
  public static func single(_ one: String, _ two: String) -> String { "si_" + sortedPair(one, two) }
  public static func group(_ groupID: String) -> String { "sg_" + groupID }
  /// What a notification account says to one user.
  public static func service(_ one: String, _ two: String) -> String { "sn_" + sortedPair(one, two) }
  /// Of the notices between two users.
  public static func notices(_ one: String, _ two: String) -> String { "n_" + sortedPair(one, two) }
  public static func notices(ofGroup groupID: String) -> String { "n_" + groupID }

  /// The conversation of notices beside a conversation: the part before the first `_` becomes `n`.
  public static func twin(of conversationID: String) -> String {
    guard let underscore = conversationID.utf8.firstIndex(of: UInt8(ascii: "_")) else { return "n_" + conversationID }
    return "n" + conversationID[underscore...]
  }

  public static func isNotice(_ conversationID: String) -> Bool { conversationID.hasPrefix("n_") }

  public static func groupID(of conversationID: String) -> String? {
    guard conversationID.utf8.starts(with: "sg_".utf8) else { return nil }
    return String(conversationID.utf8.dropFirst(3)) ?? nil
  }

  public static func isService(_ conversationID: String) -> Bool { conversationID.utf8.starts(with: "sn_".utf8) }

  /// The other one of a single chat of `user`. Since the pair is sorted there is one answer at most.
  public static func peer(in conversationID: String, of user: String) -> String? {
    guard conversationID.utf8.starts(with: "si_".utf8) else { return nil }
    return other(in: conversationID, than: user)
  }

  /// The account whose words a service conversation of `user` holds.
  public static func account(in conversationID: String, of user: String) -> String? {
    isService(conversationID) ? other(in: conversationID, than: user) : nil
  }

  private static func other(in conversationID: String, than user: String) -> String? {
    let pair = Array(conversationID.utf8.dropFirst(3))
    let own = Array(user.utf8)
    guard pair.count > own.count + 1 else { return nil }
    let candidates = [
      pair.starts(with: own) ? Array(pair.dropFirst(own.count)).dropUnderscore() : nil,
      pair.suffix(own.count).elementsEqual(own) ? Array(pair.dropLast(own.count)).dropTrailingUnderscore() : nil,
    ]
    for case let bytes? in candidates {
      let peer = String(decoding: bytes, as: UTF8.self)
      if sortedPair(peer, user).utf8.elementsEqual(pair) { return peer }
    }
    return nil
  }

  /// Every pair of which the id of a single chat or of a service conversation may be made.
  public static func possiblePairs(of conversationID: String) -> [(String, String)] {
    guard conversationID.utf8.starts(with: "si_".utf8) || isService(conversationID) else { return [] }
    let pair = Array(conversationID.utf8.dropFirst(3))
    return pair.indices.compactMap { index in
      guard pair[index] == UInt8(ascii: "_"), index > 0, index + 1 < pair.count else { return nil }
      let left = String(decoding: pair[..<index], as: UTF8.self)
      let right = String(decoding: pair[(index + 1)...], as: UTF8.self)
      return left.utf8.lexicographicallyPrecedes(right.utf8) || left.utf8.elementsEqual(right.utf8)
        ? (left, right) : nil
    }
  }

  private static func sortedPair(_ one: String, _ two: String) -> String {
    two.utf8.lexicographicallyPrecedes(one.utf8) ? "\(two)_\(one)" : "\(one)_\(two)"
  }
}

extension [UInt8] {
  fileprivate func dropUnderscore() -> [UInt8]? { first == UInt8(ascii: "_") ? Array(dropFirst()) : nil }
  fileprivate func dropTrailingUnderscore() -> [UInt8]? { last == UInt8(ascii: "_") ? Array(dropLast()) : nil }
}

/// Which ids the server takes for users: letters and digits of any script, and `_`
/// (server tools, `datautil.IsLegalUserID`; observed for `:`, space and `-`).
public enum OpenIMUserID {
  public static func isLegal(_ id: String) -> Bool {
    !id.isEmpty
      && id.unicodeScalars.allSatisfy { scalar in
        scalar == "_" || scalar.properties.isAlphabetic && scalar.isLetter || scalar.properties.numericType != nil
      }
  }
}

extension Unicode.Scalar {
  /// Go's `unicode.IsLetter`: the general categories L*.
  fileprivate var isLetter: Bool {
    switch properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter: true
    default: false
    }
  }
}

/// How a client says in one number which list of ids it has: the first eight bytes of the MD5 of the list as compact
/// JSON, big-endian; 0 for an empty one (reference §5.4).
public enum OpenIMIDHash {
  public static func of(_ ids: [String]) -> UInt64 {
    guard !ids.isEmpty else { return 0 }
    let digest = Digest.md5(JSONValue.array(ids.map { .string($0) }).bytes())
    return digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
