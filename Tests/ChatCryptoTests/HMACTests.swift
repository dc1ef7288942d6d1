import ChatCrypto
import Testing

/// Vectors of RFC 2202 §3 (SHA-1) and RFC 4231 §4 (SHA-256), which share keys and data but for the lengths of keys.
struct HMACCase: Sendable, CustomTestStringConvertible {
  let name: String
  let key: [UInt8]
  let message: [UInt8]
  var sha1: String?
  var sha256: String?
  var testDescription: String { name }

  static let all = [
    HMACCase(
      name: "key of twenty bytes", key: bytes(0x0b, 20), message: Array("Hi There".utf8),
      sha1: "b617318655057264e28bc0b6fb378c8ef146be00",
      sha256: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    HMACCase(
      name: "key shorter than the digest", key: Array("Jefe".utf8),
      message: Array("what do ya want for nothing?".utf8), sha1: "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
      sha256: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    HMACCase(
      name: "binary data", key: bytes(0xaa, 20), message: bytes(0xdd, 50),
      sha1: "125d7342b9ac11cd91a39af48aa17b4f63f175d3",
      sha256: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    HMACCase(
      name: "key of twenty-five bytes", key: Array(1...25), message: bytes(0xcd, 50),
      sha1: "4c9007f4026250c6bc8414f9bf50c86c2d7235da",
      sha256: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
    HMACCase(
      name: "key longer than a block, SHA-1", key: bytes(0xaa, 80),
      message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      sha1: "aa4ae5e15272d00e95705637ce8a3b55ed402112"),
    HMACCase(
      name: "key and data longer than a block, SHA-1", key: bytes(0xaa, 80),
      message: Array("Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data".utf8),
      sha1: "e8e99d0f45237d786d6bbaa7965c7808bbff1a91"),
    HMACCase(
      name: "key longer than a block, SHA-256", key: bytes(0xaa, 131),
      message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      sha256: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
    HMACCase(
      name: "empty key and message", key: [], message: [], sha1: "fbdb1d1b18aa6c08324b7d64b71fb76370690e1d",
      sha256: "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
  ]

  private static func bytes(_ value: UInt8, _ count: Int) -> [UInt8] { [UInt8](repeating: value, count: count) }
}

@Suite("Keyed digests")
struct HMACTests {
  @Test("HMAC-SHA-1 equals the published vector", arguments: HMACCase.all.filter { $0.sha1 != nil })
  func sha1(_ vector: HMACCase) {
    #expect(Hex.encode(HMAC.sha1(key: vector.key, message: vector.message)) == vector.sha1)
  }

  @Test("HMAC-SHA-256 equals the published vector", arguments: HMACCase.all.filter { $0.sha256 != nil })
  func sha256(_ vector: HMACCase) {
    #expect(Hex.encode(HMAC.sha256(key: vector.key, message: vector.message)) == vector.sha256)
  }
}

@Suite("Secure bytes")
struct SecureBytesTests {
  @Test("random bytes have the length asked for and do not repeat")
  func random() {
    #expect(SecureBytes.random(0).isEmpty)
    #expect(SecureBytes.random(-1).isEmpty)
    let drawn = (0..<64).map { _ in SecureBytes.random(16) }
    #expect(drawn.allSatisfy { $0.count == 16 })
    #expect(Set(drawn).count == 64)
  }

  @Test(
    "bytes are equal only if all of them are",
    arguments: [
      ([], [], true), ([1], [1], true), ([1, 2, 3], [1, 2, 3], true), ([1, 2, 3], [1, 2, 4], false),
      ([0, 2, 3], [1, 2, 3], false), ([1], [], false), ([1, 2], [1], false),
    ] as [([UInt8], [UInt8], Bool)])
  func equality(left: [UInt8], right: [UInt8], isEqual: Bool) {
    #expect(SecureBytes.areEqual(left, right) == isEqual)
  }
}
