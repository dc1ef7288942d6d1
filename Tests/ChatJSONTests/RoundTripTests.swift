import ChatJSON
import Testing

@Suite("A document survives reading and writing")
struct RoundTripTests {
  @Test(
    "the shortest form comes back byte for byte",
    arguments: [
      #"null"#, #"true"#, #"false"#, #"0"#, #"-0"#, #"1.0"#, #"1e3"#, #"-1E+400"#, #"0.10"#,
      #"9223372036854775807"#, #"-9223372036854775808"#, #"9223372036854775808"#, #"18446744073709551615"#,
      #"18446744073709551616"#, #"-9223372036854775809"#, #""""#, #""a""#, #""\"\\\b\f\n\r\t\u0000\u001f/""#,
      #""你好 👩‍👩‍👧 é e\#u{301}""#, #"[]"#, #"{}"#, #"[[],{},[[]],{"":{"":[]}}]"#,
      #"{"b":1,"a":[1,2.50,"x"],"é":1,"e\#u{301}":2}"#, #""\#u{7F}\#u{2028}""#,
    ])
  func shortest(_ text: String) throws {
    #expect(try JSONValue(parsing: text).text() == text)
    #expect(try Array(JSONValue(parsing: text).text().utf8) == Array(text.utf8))
  }

  @Test("white space goes, the value stays")
  func whiteSpace() throws {
    let value = try JSONValue(parsing: " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n")
    #expect(value.text() == #"{"a":[1,2],"b":{}}"#)
  }

  @Test("canonical bytes sort members by the bytes of their keys at every level")
  func canonical() throws {
    let value = try JSONValue(parsing: #"{"b":{"z":1,"é":2,"a":3},"a":[{"y":1,"x":2}],"B":0}"#)
    #expect(
      String(decoding: value.canonicalBytes(), as: UTF8.self)
        == #"{"B":0,"a":[{"x":2,"y":1}],"b":{"a":3,"z":1,"é":2}}"#)
  }
}
