/// The hash functions that the vendors' signatures and our digests need.
///
/// MD5 and SHA-1 are here because wires demand them; nothing of ours rests on them.
public enum DigestAlgorithm: String, Sendable, Hashable, CaseIterable {
  case md5, sha1, sha256

  /// The length of a digest in bytes: 16, 20 or 32.
  public var byteCount: Int {
    switch self {
    case .md5: 16
    case .sha1: 20
    case .sha256: 32
    }
  }
}

/// Digests of bytes that are in memory as a whole.
public enum Digest {
  public static func md5(_ bytes: [UInt8]) -> [UInt8] { of(bytes, .md5) }
  public static func sha1(_ bytes: [UInt8]) -> [UInt8] { of(bytes, .sha1) }
  public static func sha256(_ bytes: [UInt8]) -> [UInt8] { of(bytes, .sha256) }

  /// The digest of `bytes`; `algorithm.byteCount` bytes long.
  public static func of(_ bytes: [UInt8], _ algorithm: DigestAlgorithm) -> [UInt8] {
    var digest = RunningDigest(algorithm)
    digest.update(bytes)
    return digest.value
  }
}

/// A digest of bytes that arrive in pieces. A value: a copy goes its own way from the moment it is made.
public struct RunningDigest: Sendable {
  public let algorithm: DigestAlgorithm
  private var state: PlatformDigest

  public init(_ algorithm: DigestAlgorithm) {
    self.algorithm = algorithm
    state = PlatformDigest(algorithm)
  }

  public mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { state.update($0) } }

  public mutating func update(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { state.update($0) } }

  public mutating func update(_ bytes: UnsafeRawBufferPointer) { state.update(bytes) }

  /// The digest of everything so far; more may follow afterwards.
  public var value: [UInt8] { state.value }
}

/// Keyed digests (RFC 2104). Any length of key and message, empty ones too.
public enum HMAC {
  public static func sha1(key: [UInt8], message: [UInt8]) -> [UInt8] {
    platformHMAC(.sha1, key: key, message: message)
  }

  public static func sha256(key: [UInt8], message: [UInt8]) -> [UInt8] {
    platformHMAC(.sha256, key: key, message: message)
  }
}
