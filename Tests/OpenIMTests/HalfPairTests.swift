import OpenIMWire
import Testing

@Suite("Half of a surrogate pair")
struct HalfPairTests {
  @Test("loses no answer: U+FFFD stands in its place")
  func answer() throws {
    let data = try OpenIMREST.data(of: Array(#"{"errCode":0,"data":{"name":"\ud83d half"}}"#.utf8))
    #expect(data?["name"]?.string == "\u{FFFD} half")
  }
}
