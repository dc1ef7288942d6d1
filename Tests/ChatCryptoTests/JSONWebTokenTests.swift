import ChatCrypto
import Testing

@Suite("JSON web tokens")
struct JSONWebTokenTests {
  /// RFC 7515 A.1.
  static let published =
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"
    + ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
  static let publishedKey =
    Base64.urlDecode("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow") ?? []

  @Test("the published token is read and verified")
  func published() throws {
    let token = try JSONWebToken(verifying: Self.published, secret: Self.publishedKey)
    #expect(
      String(decoding: token.claims, as: UTF8.self)
        == "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}")
  }

  @Test("a token of ours is a token by the letter")
  func signs() throws {
    let token = JSONWebToken.sign(claims: Array(#"{"sub":"1"}"#.utf8), secret: Array("key".utf8))
    #expect(token.hasPrefix("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0."))
    #expect(try JSONWebToken(verifying: token, secret: Array("key".utf8)).claims == Array(#"{"sub":"1"}"#.utf8))
  }

  @Test("a changed claim, a changed signature and another key are noticed")
  func forged() throws {
    let parts = Self.published.split(separator: ".").map(String.init)
    let other = Base64.urlEncode(Array(#"{"iss":"eve"}"#.utf8))
    for forged in ["\(parts[0]).\(other).\(parts[2])", "\(parts[0]).\(parts[1]).", "\(parts[0]).\(parts[1]).AAAA"] {
      #expect(throws: JSONWebTokenError.wrongSignature) {
        try JSONWebToken(verifying: forged, secret: Self.publishedKey)
      }
    }
    #expect(throws: JSONWebTokenError.wrongSignature) { try JSONWebToken(verifying: Self.published, secret: []) }
  }

  @Test("another algorithm is refused, none above all", arguments: ["none", "None", "HS384", "RS256", "hs256", ""])
  func algorithms(_ name: String) {
    let header = Base64.urlEncode(Array(#"{"alg":"\#(name)"}"#.utf8))
    #expect(throws: JSONWebTokenError.unsupportedAlgorithm) {
      try JSONWebToken(verifying: "\(header).e30.", secret: [])
    }
  }

  @Test(
    "what is no token is refused",
    arguments: [
      "", ".", "..", "...", "a.b.c", "e30.e30", "e30.e30.e30.e30", "W10.e30.", "eyJhbGciOiJIUzI1NiJ9.W10.AA",
      "eyJhbGciOiJIUzI1NiJ9.e30.+/+/", "\u{1F600}.\u{1F600}.\u{1F600}",
      String(repeating: "A", count: JSONWebToken.maximumLength + 1),
    ])
  func malformed(_ text: String) {
    #expect(throws: JSONWebTokenError.malformed) { try JSONWebToken(reading: text) }
  }
}
