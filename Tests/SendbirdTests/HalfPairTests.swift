import SendbirdWire
import Testing

@Suite("Half of a surrogate pair")
struct HalfPairTests {
  @Test("loses no frame: U+FFFD stands in its place")
  func frame() throws {
    let frames = SendbirdFrame.parse(#"MESG{"msg_id":1,"message":"\ud83d half"}"#)
    let frame = try #require(try frames.first?.get())
    #expect(frames.count == 1)
    #expect(frame.payload["message"]?.string == "\u{FFFD} half")
  }
}
