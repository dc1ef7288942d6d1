import ChatCrypto
import Testing

@Suite("Gzip")
struct GzipTests {
  /// `printf hello | gzip -n`, with the system's gzip.
  static let hello: [UInt8] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x86,
    0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00,
  ]

  /// Bytes that do not compress, the same at every run.
  static func noise(_ count: Int) -> [UInt8] {
    var state: UInt64 = 42
    return (0..<count).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }

  @Test("a file of the gzip program is read")
  func readsGzipProgram() throws {
    #expect(try Gzip.decompress(Self.hello, limit: 5) == Array("hello".utf8))
  }

  @Test("any length comes back", arguments: [0, 1, 65_535, 65_536, 65_537, 131_072, 1_000_003], [0, 1, 6, 9, 99])
  func roundTrip(count: Int, level: Int) throws {
    for bytes in [Self.noise(count), [UInt8](repeating: 7, count: count)] {
      #expect(try Gzip.decompress(Gzip.compress(bytes, level: level), limit: count) == bytes)
    }
  }

  @Test("several members are read as one")
  func members() throws {
    #expect(try Gzip.decompress(Self.hello + Self.hello, limit: 10) == Array("hellohello".utf8))
  }

  @Test("a small input that holds more than the limit is refused")
  func bomb() throws {
    let bomb = try Gzip.compress([UInt8](repeating: 0, count: 32 << 20))
    #expect(bomb.count < 64 << 10)
    #expect(throws: GzipError.tooLarge(limit: 1 << 20)) { try Gzip.decompress(bomb, limit: 1 << 20) }
    #expect(throws: GzipError.tooLarge(limit: 4)) { try Gzip.decompress(Self.hello, limit: 4) }
  }

  @Test("a file that ends early is refused, wherever it ends", arguments: 0..<25)
  func truncated(length: Int) {
    #expect(throws: GzipError.truncated) { try Gzip.decompress(Array(Self.hello.prefix(length)), limit: 100) }
  }

  @Test("damage of a byte that matters is noticed", arguments: [0, 1, 2, 10, 12, 17, 20, 21, 24])
  func damaged(index: Int) {
    var bytes = Self.hello
    bytes[index] ^= 0xFF
    #expect(throws: GzipError.self) { try Gzip.decompress(bytes, limit: 100) }
  }

  @Test("what follows the last member and is none is refused")
  func trailing() {
    #expect(throws: GzipError.corrupt) { try Gzip.decompress(Self.hello + [1, 2, 3], limit: 100) }
  }
}
