#if !canImport(CryptoKit)
  import CCrypto

  /// A digest in the making, copied on write.
  struct PlatformDigest: Sendable {
    /// Owns one libcrypto context.
    // @unchecked: a box is changed only while one value alone refers to it (see `update`), and read otherwise.
    private final class Box: @unchecked Sendable {
      let context: OpaquePointer

      init(_ algorithm: DigestAlgorithm) {
        context = newContext()
        // Fails only when memory runs out, or where a FIPS policy forbids the function: nothing can be answered then.
        precondition(EVP_DigestInit_ex(context, evp(algorithm), nil) == 1, "libcrypto refuses \(algorithm)")
      }

      init(copying other: Box) {
        context = newContext()
        precondition(EVP_MD_CTX_copy_ex(context, other.context) == 1, "libcrypto is out of memory")
      }

      deinit { EVP_MD_CTX_free(context) }
    }

    private var box: Box

    init(_ algorithm: DigestAlgorithm) { box = Box(algorithm) }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
      guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
      if !isKnownUniquelyReferenced(&box) { box = Box(copying: box) }
      EVP_DigestUpdate(box.context, start, bytes.count)
    }

    var value: [UInt8] {
      let last = Box(copying: box)
      return [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
        var length: UInt32 = 0
        EVP_DigestFinal_ex(last.context, buffer.baseAddress, &length)
        count = Int(length)
      }
    }
  }

  func platformHMAC(_ algorithm: DigestAlgorithm, key: [UInt8], message: [UInt8]) -> [UInt8] {
    // libcrypto counts a key in 32 bits; a longer key is replaced by its digest, which is what HMAC does with it anyway.
    let key = key.count > Int(Int32.max) ? Digest.of(key, algorithm) : key
    return [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
      var length: UInt32 = 0
      let done = CCrypto.HMAC(
        evp(algorithm), key, Int32(key.count), message, message.count, buffer.baseAddress, &length)
      precondition(done != nil, "libcrypto refuses HMAC with \(algorithm)")
      count = Int(length)
    }
  }

  private func newContext() -> OpaquePointer {
    guard let context = EVP_MD_CTX_new() else { fatalError("libcrypto is out of memory") }
    return context
  }

  private func evp(_ algorithm: DigestAlgorithm) -> OpaquePointer? {
    switch algorithm {
    case .md5: EVP_md5()
    case .sha1: EVP_sha1()
    case .sha256: EVP_sha256()
    }
  }

  func platformConstantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
  }
#endif
