import LeanCloudWire
import Testing

@Suite("Signatures")
struct SignatureTests {
  struct Vector: CustomTestStringConvertible {
    var text: String
    var hex: String
    var testDescription: String { text }
  }

  static let table = [
    Vector(
      text: LeanCloudSignature.open(app: "APPID", client: "Tom", timestamp: 1_700_000_000_000, nonce: "abc123"),
      hex: "4f01376f8828dfa21e0ed506c20d8f711759d34b"),
    Vector(
      text: LeanCloudSignature.start(
        app: "APPID", client: "Tom", members: ["Mary", "Jerry"], timestamp: 1_700_000_000_000, nonce: "abc123"),
      hex: "8540ecdc9b20fc58ca6dbe263164fe82a2c6ebec"),
    Vector(
      text: LeanCloudSignature.change(
        app: "APPID", client: "Tom", channel: "conv1", members: ["Mary", "Jerry"], timestamp: 1_700_000_000_000,
        nonce: "abc123", action: .invite), hex: "a7a8ac45631eeb9aa331f86327ec8feb5030c8c8"),
    Vector(
      text: LeanCloudSignature.change(
        app: "APPID", client: "Tom", channel: "conv1", members: ["Jerry"], timestamp: 1_700_000_000_000,
        nonce: "abc123", action: .kick), hex: "3fd47895adf826b8813ae9033b7029ba7f9bf1cc"),
    Vector(
      text: LeanCloudSignature.history(
        app: "APPID", client: "Tom", channel: "conv1", nonce: "abc123", timestamp: 1_700_000_000_000),
      hex: "7bf70c5100a485cc29d5b425d320a02f2ca1e1f8"),
    Vector(
      text: LeanCloudSignature.open(
        app: "APPID", client: "Tom", watching: ["Mary", "Jerry"], timestamp: 1_400_000_000, nonce: "abc123"),
      hex: "98ab0ba248a9dcee6461dc5364264df610ebfe30"),
    Vector(
      text: LeanCloudSignature.change(
        app: "APPID", client: "Tom", channel: "", members: [], timestamp: 1_400_000_000, nonce: "abc123",
        action: .join), hex: "ec711df232420402bc19e8296869819bd8b76ccb"),
    Vector(
      text: LeanCloudSignature.change(
        app: "APPID", client: "Tom", channel: "g1", members: [], timestamp: 1_400_000_000, nonce: "abc123",
        action: .join), hex: "8c61775c56ce65eb734ceed522889f96d1843e5c"),
  ]

  @Test("strings and their HMAC are those of the reference", arguments: table)
  func sign(_ vector: Vector) {
    #expect(LeanCloudSignature.sign(vector.text, key: "MASTERKEY") == vector.hex)
  }

  @Test("a request is signed over time and key")
  func requestSign() {
    #expect(
      LeanCloudSignature.requestSign(key: "UtOCzqb67d3sN12Kts4URwy8", isMaster: false, milliseconds: 1_453_014_943_466)
        == "d5bcbb897e19b2f6633c716dfdfaf9be,1453014943466")
    #expect(
      LeanCloudSignature.requestSign(key: "DyJegPlemooo4X1tg94gQkw1", isMaster: true, milliseconds: 1_453_014_943_466)
        == "e074720658078c898aa0d4b1b82bdf4b,1453014943466,master")
  }

  @Test("a pair of the first model is found by the digest of its sorted peers")
  func pair() {
    #expect(LeanCloudID.pair("Tom", "Jerry") == "c0a42b25e09d3689a27f346a9b498ea1")
    #expect(LeanCloudID.pair("Jerry", "Tom") == LeanCloudID.pair("Tom", "Jerry"))
  }
}
