import LeanCloudWire
import Testing

@Suite("Half of a surrogate pair")
struct HalfPairTests {
  @Test("loses no frame: U+FFFD stands in its place")
  func frame() throws {
    let codec = LeanCloudCodec(LeanCloudSubprotocol(.json))
    let frame = try codec.decode(.text(#"{"cmd":"conv","name":"\ud83d half"}"#))
    #expect(frame["name"]?.string == "\u{FFFD} half")
  }
}
