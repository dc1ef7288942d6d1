import ChatCrypto
import Testing

struct DigestCase: Sendable, CustomTestStringConvertible {
  let algorithm: DigestAlgorithm
  let input: [UInt8]
  let digest: String
  let source: String
  var testDescription: String { "\(algorithm), \(input.count) bytes (\(source))" }

  init(_ algorithm: DigestAlgorithm, _ input: String, _ digest: String, _ source: String) {
    self.init(algorithm, Array(input.utf8), digest, source)
  }

  init(_ algorithm: DigestAlgorithm, _ input: [UInt8], _ digest: String, _ source: String) {
    self.algorithm = algorithm
    self.input = input
    self.digest = digest
    self.source = source
  }

  static let all = [
    DigestCase(.md5, "", "d41d8cd98f00b204e9800998ecf8427e", "RFC 1321 A.5"),
    DigestCase(.md5, "a", "0cc175b9c0f1b6a831c399e269772661", "RFC 1321 A.5"),
    DigestCase(.md5, "abc", "900150983cd24fb0d6963f7d28e17f72", "RFC 1321 A.5"),
    DigestCase(.md5, "message digest", "f96b697d7cb7938d525a2f31aaf161d0", "RFC 1321 A.5"),
    DigestCase(.md5, "abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b", "RFC 1321 A.5"),
    DigestCase(
      .md5, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f",
      "RFC 1321 A.5"),
    DigestCase(
      .md5, String(repeating: "1234567890", count: 8), "57edf4a22be3c955ac49da2e2107b67a", "RFC 1321 A.5"),
    DigestCase(.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d", "RFC 3174 §7.3"),
    DigestCase(
      .sha1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "84983e441c3bd26ebaae4aa1f95129e5e54670f1", "RFC 3174 §7.3"),
    DigestCase(
      .sha1, [UInt8](repeating: 0x61, count: 1_000_000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
      "RFC 3174 §7.3"),
    DigestCase(
      .sha1, String(repeating: "01234567", count: 80), "dea356a2cddd90c7a7ecedc5ebb563934f460452",
      "RFC 3174 §7.3"),
    DigestCase(
      .sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "RFC 6234 §8.5"),
    DigestCase(
      .sha256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", "RFC 6234 §8.5"),
    DigestCase(
      .sha256, [UInt8](repeating: 0x61, count: 1_000_000),
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", "RFC 6234 §8.5"),
    DigestCase(
      .sha256, [0x19], "68aa2e2ee5dff96e3355e6c7ee373e3d6a4e17f75f9518d843709c0c9bc3e3d4", "RFC 6234 §8.5"),
  ]
}

@Suite("Digests")
struct DigestTests {
  @Test("a digest equals the published vector", arguments: DigestCase.all)
  func equalsVector(_ vector: DigestCase) {
    let digest = Digest.of(vector.input, vector.algorithm)
    #expect(Hex.encode(digest) == vector.digest)
    #expect(digest.count == vector.algorithm.byteCount)
  }

  @Test("bytes that arrive in pieces have the same digest", arguments: DigestCase.all)
  func piecesEqualWhole(_ vector: DigestCase) {
    for size in [1, 63, 64, 65, 4096] where vector.input.count / size < 20_000 {
      var digest = RunningDigest(vector.algorithm)
      var rest = vector.input[...]
      while !rest.isEmpty {
        digest.update(rest.prefix(size))
        rest = rest.dropFirst(size)
      }
      #expect(Hex.encode(digest.value) == vector.digest)
    }
  }

  @Test("a copy of a running digest goes its own way", arguments: DigestAlgorithm.allCases)
  func copiesAreIndependent(_ algorithm: DigestAlgorithm) {
    var original = RunningDigest(algorithm)
    original.update(Array("ab".utf8))
    var copy = original
    copy.update(Array("c".utf8))
    #expect(original.value == Digest.of(Array("ab".utf8), algorithm))
    #expect(copy.value == Digest.of(Array("abc".utf8), algorithm))
    original.update(Array("d".utf8))
    #expect(original.value == Digest.of(Array("abd".utf8), algorithm))
    #expect(copy.value == Digest.of(Array("abc".utf8), algorithm))
  }

  @Test("the short names give the digest of their algorithm")
  func shortNames() {
    let bytes = Array("abc".utf8)
    #expect(Digest.md5(bytes) == Digest.of(bytes, .md5))
    #expect(Digest.sha1(bytes) == Digest.of(bytes, .sha1))
    #expect(Digest.sha256(bytes) == Digest.of(bytes, .sha256))
  }
}
