// Not yet built on Apple.
#if canImport(CryptoKit)
  import CryptoKit
  import Darwin

  /// A digest in the making.
  enum PlatformDigest: Sendable {
    case md5(Insecure.MD5)
    case sha1(Insecure.SHA1)
    case sha256(CryptoKit.SHA256)

    init(_ algorithm: DigestAlgorithm) {
      switch algorithm {
      case .md5: self = .md5(Insecure.MD5())
      case .sha1: self = .sha1(Insecure.SHA1())
      case .sha256: self = .sha256(CryptoKit.SHA256())
      }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
      switch self {
      case .md5(var function):
        function.update(bufferPointer: bytes)
        self = .md5(function)
      case .sha1(var function):
        function.update(bufferPointer: bytes)
        self = .sha1(function)
      case .sha256(var function):
        function.update(bufferPointer: bytes)
        self = .sha256(function)
      }
    }

    var value: [UInt8] {
      switch self {
      case .md5(let function): Array(function.finalize())
      case .sha1(let function): Array(function.finalize())
      case .sha256(let function): Array(function.finalize())
      }
    }
  }

  func platformHMAC(_ algorithm: DigestAlgorithm, key: [UInt8], message: [UInt8]) -> [UInt8] {
    let key = SymmetricKey(data: key)
    return switch algorithm {
    case .md5: Array(CryptoKit.HMAC<Insecure.MD5>.authenticationCode(for: message, using: key))
    case .sha1: Array(CryptoKit.HMAC<Insecure.SHA1>.authenticationCode(for: message, using: key))
    case .sha256: Array(CryptoKit.HMAC<CryptoKit.SHA256>.authenticationCode(for: message, using: key))
    }
  }

  func platformConstantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && timingsafe_bcmp(left, right, left.count) == 0
  }
#endif
