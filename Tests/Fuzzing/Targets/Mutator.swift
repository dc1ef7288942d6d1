/// Changes bytes at random, the same for the same seed. Blind, but at home in any build: coverage is libFuzzer's part.
public struct Mutator {
  private var state: UInt64

  /// Bytes that mean something to some parser, and the ends of number ranges.
  private static let telling: [UInt8] =
    Array("{}[]\",:\\/0123456789-+.eEtfnu \r\n\t%&=;?#@".utf8) + [
      0, 1, 0x1F, 0x7E, 0x7F, 0x80, 0x81, 0xBF, 0xC0, 0xED, 0xF0, 0xF4, 0xFE, 0xFF,
    ]

  public init(seed: UInt64) { state = seed }

  /// SplitMix64.
  private mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// Below `limit`, which is above zero.
  private mutating func number(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }

  /// One of `seeds` with one to eight changes, sometimes joined to a part of another one.
  public mutating func variant(of seeds: [[UInt8]]) -> [UInt8] {
    guard !seeds.isEmpty else { return [] }
    var bytes = seeds[number(seeds.count)]
    if number(8) == 0 { bytes += seeds[number(seeds.count)].prefix(64) }
    for _ in 0...number(8) { change(&bytes) }
    return bytes
  }

  private mutating func change(_ bytes: inout [UInt8]) {
    let place = number(bytes.count + 1)
    let byte = Self.telling[number(Self.telling.count)]
    switch number(8) {
    case 0: bytes.insert(byte, at: place)
    case 1 where place < bytes.count: bytes[place] = byte
    case 2 where place < bytes.count: bytes[place] ^= 1 << UInt8(number(8))
    case 3: bytes.removeSubrange(place..<min(bytes.count, place + 1 + number(9)))
    case 4: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 20)], at: place)
    case 5: bytes.insert(contentsOf: [UInt8](repeating: byte, count: 1 + number(40)), at: place)
    case 6: bytes.removeSubrange(place..<bytes.count)
    case 7 where !bytes.isEmpty:
      // A piece from elsewhere in the same input.
      let start = number(bytes.count)
      bytes.insert(contentsOf: Array(bytes[start..<min(bytes.count, start + 1 + number(16))]), at: place)
    default: break
    }
  }
}
