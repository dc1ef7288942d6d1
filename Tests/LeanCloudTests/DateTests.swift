import LeanCloudWire
import Testing

@Suite("Dates")
struct DateTests {
  static let table: [(Int64, String)] = [
    (0, "1970-01-01T00:00:00.000Z"), (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
    (951_782_400_000, "2000-02-29T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
    (4_107_542_399_999, "2100-02-28T23:59:59.999Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
  ]

  @Test("milliseconds and their text lead to one another", arguments: table)
  func examples(_ time: Int64, _ text: String) {
    #expect(LeanCloudID.iso(time) == text)
    #expect(LeanCloudID.milliseconds(iso: text) == time)
  }

  @Test(
    "what is no date is refused",
    arguments: [
      "", "2023", "2023-11-14", "2023-13-14T22:13:20Z", "2023-11-14T22:13:20", "2023-11-14T22:13:20.Z",
      "2023x11-14T22:13:20Z",
    ])
  func refusals(_ text: String) { #expect(LeanCloudID.milliseconds(iso: text) == nil) }

  @Test("a fraction may have any length")
  func fraction() {
    #expect(LeanCloudID.milliseconds(iso: "1970-01-01T00:00:01Z") == 1000)
    #expect(LeanCloudID.milliseconds(iso: "1970-01-01T00:00:01.5Z") == 1500)
    #expect(LeanCloudID.milliseconds(iso: "1970-01-01T00:00:01.123456Z") == 1123)
  }
}
