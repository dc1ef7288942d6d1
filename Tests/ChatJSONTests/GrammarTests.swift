import ChatJSON
import Testing

@Suite("RFC 8259 to the letter")
struct GrammarTests {
  @Test("what the grammar allows is accepted, as this value", arguments: GrammarTables.accepted)
  func accepted(_ item: GrammarTables.Accepted) throws {
    #expect(try JSONValue(parsing: item.text) == item.value)
    #expect(try JSONValue(parsing: item.value.bytes()) == item.value)
  }

  @Test(
    "what it does not allow is refused, with reason, path and offset",
    arguments: GrammarTables.structure + GrammarTables.numbers + GrammarTables.strings + GrammarTables.illFormed)
  func rejected(_ item: GrammarTables.Rejected) {
    let expected = JSONError(item.reason, path: item.path, offset: item.offset)
    #expect(failure { () throws(JSONError) in try JSONValue(parsing: item.bytes) } == expected)
  }

  @Test(
    "what is skipped is checked as strictly as what is read",
    arguments: GrammarTables.structure + GrammarTables.numbers + GrammarTables.strings + GrammarTables.illFormed)
  func skipped(_ item: GrammarTables.Rejected) {
    let expected = JSONError(item.reason, path: item.path, offset: item.offset)
    let error = failure { () throws(JSONError) in
      try JSONReader.read(item.bytes) { reader throws(JSONError) in try reader.skipValue() }
    }
    #expect(error == expected)
  }

  @Test("what is accepted can be skipped and kept raw", arguments: GrammarTables.accepted)
  func kept(_ item: GrammarTables.Accepted) throws {
    let raw = try JSONReader.read(Array(item.text.utf8)) { reader throws(JSONError) in try reader.readRaw() }
    #expect(try JSONValue(parsing: raw) == item.value)
    #expect(item.text.contains(text(raw)))
  }

  @Test("each prefix of a document is an error, and none but the whole is a value")
  func prefixes() throws {
    let document = Array(#"{"a":[1,-2.5e3,"x\u00e9\ud83d\ude00你",true,false,null],"b":{"c":{}}}"#.utf8)
    for length in 0..<document.count {
      #expect(failure { () throws(JSONError) in try JSONValue(parsing: Array(document[..<length])) } != nil)
    }
    #expect(try JSONValue(parsing: document).object?.count == 2)
  }

  @Test("well-formed UTF-8 at the edges of each length is kept", arguments: GrammarTables.wellFormed)
  func wellFormed(_ sequence: String) throws {
    let bytes = hex(sequence)
    let quoted = bytes == [0] ? Array(#""\u0000""#.utf8) : [0x22] + bytes + [0x22]
    let value = try JSONValue(parsing: quoted)
    #expect(value.string.map { Array($0.utf8) } == bytes)
    #expect(value.bytes() == quoted)
  }

  @Test("strings of each length and each place of a special byte are found whole")
  func everyLength() throws {
    for length in 0...40 {
      let plain = String((0..<length).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
      for special in ["", "\"", "\\", "\n", "é", "你", "😀"] {
        for place in 0...length {
          let index = plain.index(plain.startIndex, offsetBy: place)
          let string = String(plain[..<index]) + special + String(plain[index...])
          for padding in ["", "                "] {
            let bytes = Array((JSONValue(string).text() + padding).utf8)
            #expect(try JSONValue(parsing: bytes).string.map { Array($0.utf8) } == Array(string.utf8))
          }
        }
      }
    }
  }

  @Test("every byte but those of a value's beginning is refused as one")
  func everyByte() {
    for byte in UInt8.min...UInt8.max {
      let error = failure { () throws(JSONError) in try JSONValue(parsing: [byte]) }
      #expect((error == nil) == (0x30...0x39).contains(byte))
    }
  }

  @Test(
    "a lone surrogate becomes U+FFFD where that is asked for",
    arguments: [
      (#""\ud83d""#, "\u{FFFD}"), (#""a\udc00b""#, "a\u{FFFD}b"), (#""\udc00\ud800""#, "\u{FFFD}\u{FFFD}"),
      (#""\ud83d\ud83d\ude00""#, "\u{FFFD}\u{1F600}"), (#""\ud83d\u0041""#, "\u{FFFD}A"),
      (#""\ud83d\n""#, "\u{FFFD}\n"),
    ])
  func surrogates(_ document: String, _ expected: String) throws {
    let limits = JSONLimits(loneSurrogates: .replace)
    #expect(try JSONValue(parsing: document, limits: limits) == .string(expected))
  }
}
