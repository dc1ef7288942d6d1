import ChatCrypto
import Testing

@Suite("Encodings")
struct EncodingTests {
  /// RFC 4648 §10.
  static let vectors = [
    ("", "", ""), ("f", "Zg==", "66"), ("fo", "Zm8=", "666f"), ("foo", "Zm9v", "666f6f"),
    ("foob", "Zm9vYg==", "666f6f62"), ("fooba", "Zm9vYmE=", "666f6f6261"), ("foobar", "Zm9vYmFy", "666f6f626172"),
  ]

  @Test("base64, base64url and hexadecimal go both ways", arguments: vectors)
  func bothWays(plain: String, base64: String, hex: String) {
    let bytes = Array(plain.utf8)
    #expect(Base64.encode(bytes) == base64)
    #expect(Base64.decode(base64) == bytes)
    let unpadded = String(base64.prefix { $0 != "=" })
    #expect(Base64.urlEncode(bytes) == unpadded)
    #expect(Base64.urlDecode(unpadded) == bytes)
    #expect(Base64.urlDecode(base64) == bytes)
    #expect(Hex.encode(bytes) == hex)
    #expect(Hex.decode(hex) == bytes)
  }

  @Test("base64url has its own two characters")
  func urlAlphabet() {
    #expect(Base64.encode([0xFB, 0xFF]) == "+/8=")
    #expect(Base64.urlEncode([0xFB, 0xFF]) == "-_8")
    #expect(Base64.urlDecode("-_8") == [0xFB, 0xFF])
    #expect(Base64.urlDecode("+/8") == nil)
  }

  @Test(
    "what is not base64 is refused",
    arguments: ["Z", "Zg=", "Zg", "Zg==\n", "Z g=", "Zm9*", "====", "===", "A===", "Zm9v====", "Zg==Zg=="])
  func badBase64(_ text: String) { #expect(Base64.decode(text) == nil) }

  @Test("what is not base64url is refused", arguments: ["Z", "Zg=", "Z=", "Zm9*", "Zg==Zg", "é"])
  func badBase64URL(_ text: String) { #expect(Base64.urlDecode(text) == nil) }

  @Test("what is not hexadecimal is refused", arguments: ["0", "0g", "0x00", " 00", "é0"])
  func badHex(_ text: String) { #expect(Hex.decode(text) == nil) }

  @Test("hexadecimal is read in either case")
  func upperCase() { #expect(Hex.decode("DEADbeef") == [0xDE, 0xAD, 0xBE, 0xEF]) }
}
