import Foundation
import Testing
import UnifiedChat

@Suite("Values of the contract")
struct ValueTests {
  @Test(
    "a time is written in RFC 3339 to the exact millisecond",
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"), (-1, "1969-12-31T23:59:59.999Z"),
      (1_600_000_000_123, "2020-09-13T12:26:40.123Z"), (1_709_164_799_999, "2024-02-28T23:59:59.999Z"),
      (1_709_164_800_010, "2024-02-29T00:00:00.010Z"), (-12_219_292_800_000, "1582-10-15T00:00:00.000Z"), (-12_219_292_800_001, "-12219292800001 ms"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (253_402_300_800_000, "253402300800000 ms"),
      (.min, "-9223372036854775808 ms"), (.max, "9223372036854775807 ms"),
    ] as [(Int64, String)])
  func times(_ milliseconds: Int64, _ text: String) {
    #expect(Timestamp(milliseconds: milliseconds).description == text)
  }

  @Test("every millisecond of a second is its own text")
  func fractions() {
    let texts = Set((0..<1000).map { Timestamp(milliseconds: 1_700_000_000_000 + $0).description })
    #expect(texts.count == 1000)
  }

  @Test("ids are told apart and hashed by their bytes", arguments: ["é", "Å", "한", "👨‍👩‍👧", ""])
  func bytes(_ text: String) {
    let composed = UserID(text.precomposedStringWithCanonicalMapping)
    let decomposed = UserID(text.decomposedStringWithCanonicalMapping)
    let isOneForm = Array(composed.rawValue.utf8) == Array(decomposed.rawValue.utf8)
    #expect((composed == decomposed) == isOneForm)
    #expect(Set([composed, decomposed]).count == (isOneForm ? 1 : 2))
  }

  @Test("originals whose ids differ in their Unicode form alone are two", arguments: ["é", "Å", "한"])
  func origins(_ text: String) {
    let forms = [text.precomposedStringWithCanonicalMapping, text.decomposedStringWithCanonicalMapping]
    let origins = Set(forms.map { Origin(vendor: "sendbird", id: $0) })
    #expect(origins.count == 2)
  }

  @Test("a bridged string and a native one with the same bytes are one id")
  func bridged() {
    let native = ChannelID("канал-频道")
    let bridged = ChannelID(NSString(string: "канал-频道") as String)
    #expect(native == bridged)
    #expect(native.hashValue == bridged.hashValue)
  }
}
