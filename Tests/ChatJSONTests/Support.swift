import ChatJSON

/// `"08 96 01"` as bytes.
func hex(_ text: String) -> [UInt8] {
  text.split(separator: " ").compactMap { UInt8($0, radix: 16) }
}

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// A small generator that gives the same numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// What a throwing call threw, or nil if it returned.
func failure(_ body: () throws(JSONError) -> some Any) -> JSONError? {
  do {
    _ = try body()
    return nil
  } catch { return error }
}
