import ChatJSON
import Testing

/// What RFC 8259 allows and what it does not.
enum GrammarTables {
  struct Accepted: CustomTestStringConvertible, Sendable {
    var text: String
    var value: JSONValue
    var testDescription: String { text }

    init(_ text: String, _ value: JSONValue) {
      self.text = text
      self.value = value
    }
  }

  private static func number(_ text: String) -> JSONValue {
    // A literal of this file: text that is no number fails the test that uses it.
    (try? JSONNumber(parsing: text)).map { .number($0) } ?? .string("no number: \(text)")
  }

  static let accepted: [Accepted] = [
    // §3 values
    Accepted("null", nil), Accepted("true", true), Accepted("false", false),
    // §2 white space, at every place
    Accepted(" null", nil), Accepted("null ", nil), Accepted("\t\n\r null\r\n\t ", nil),
    Accepted("[ ]", []), Accepted("[\n1\t,\r2 ]", [1, 2]), Accepted("{ }", [:]),
    Accepted(" { \"a\" : 1 , \"b\" : 2 } ", ["a": 1, "b": 2]),
    // §4 objects
    Accepted("{}", [:]), Accepted(#"{"":0}"#, ["": 0]), Accepted(#"{"a":{"a":{"a":null}}}"#, ["a": ["a": ["a": nil]]]),
    Accepted(#"{"a":1,"a":2}"#, ["a": 2]), Accepted(#"{"a":1,"b":2,"a":3}"#, ["a": 3, "b": 2]),
    Accepted(#"{"\u0061":1}"#, ["a": 1]), Accepted(#"{"a":1,"\u0061":2}"#, ["a": 2]),
    Accepted("{\"\u{e9}\":1,\"e\u{301}\":2}", ["\u{e9}": 1, "e\u{301}": 2]),
    Accepted(#"{"a\u0000b":1}"#, ["a\0b": 1]), Accepted(#"{"\"":1}"#, ["\"": 1]),
    Accepted(#"{"a":[],"b":{}}"#, ["a": [], "b": [:]]),
    // §5 arrays
    Accepted("[]", []), Accepted("[null]", [nil]), Accepted("[[]]", [[]]), Accepted("[[],[[]]]", [[], [[]]]),
    Accepted(#"[1,"1",true,null,{},[]]"#, [1, "1", true, nil, [:], []]),
    // §6 numbers
    Accepted("0", 0), Accepted("-0", number("-0")), Accepted("7", 7), Accepted("-7", -7), Accepted("10", 10),
    Accepted("0.0", number("0.0")), Accepted("-0.0", number("-0.0")), Accepted("1.0", number("1.0")),
    Accepted("1.50", number("1.50")), Accepted("0.1", number("0.1")), Accepted("1e0", number("1e0")),
    Accepted("1E0", number("1E0")), Accepted("1e+1", number("1e+1")), Accepted("1e-1", number("1e-1")),
    Accepted("0e0", number("0e0")), Accepted("0E+00", number("0E+00")), Accepted("1.5e10", number("1.5e10")),
    Accepted("-1.5E-10", number("-1.5E-10")), Accepted("1e999", number("1e999")), Accepted("1e00", number("1e00")),
    Accepted("[0,1]", [0, 1]), Accepted("[-0]", [number("-0")]),
    // §7 strings
    Accepted(#""""#, ""), Accepted(#""a""#, "a"), Accepted(#"" ""#, " "), Accepted(#""/""#, "/"),
    Accepted(#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"), Accepted(#""\u0041""#, "A"),
    Accepted(#""\u00e9""#, "\u{e9}"), Accepted(#""\u00E9""#, "\u{e9}"), Accepted(#""\u4f60""#, "\u{4f60}"),
    Accepted(#""\ud83d\ude00""#, "\u{1F600}"), Accepted(#""\uD83D\uDE00""#, "\u{1F600}"),
    Accepted(#""\uDBFF\uDFFF""#, "\u{10FFFF}"), Accepted(#""\u0000""#, "\0"), Accepted(#""\u001f""#, "\u{1f}"),
    Accepted(#""\uFFFF""#, "\u{FFFF}"), Accepted(#""\u2028\u2029""#, "\u{2028}\u{2029}"),
    Accepted(#""\\u0041""#, "\\u0041"), Accepted("\"\u{7f}\"", "\u{7f}"), Accepted("\"\u{2028}\"", "\u{2028}"),
    Accepted("\"\u{1F469}\u{200D}\u{1F680}\"", "\u{1F469}\u{200D}\u{1F680}"), Accepted("\"\u{FEFF}\"", "\u{FEFF}"),
    Accepted("\"\u{10FFFF}\"", "\u{10FFFF}"), Accepted(#""[{,:}]""#, "[{,:}]"), Accepted(#""null""#, "null"),
    Accepted(#""1234567\"""#, "1234567\""), Accepted(#""12345678\"""#, "12345678\""),
    Accepted(#""123456789012345""#, "123456789012345"), Accepted(#""1234567890123456""#, "1234567890123456"),
    // §9: any text of the grammar, also a scalar alone
    Accepted("9", 9), Accepted(#""text""#, "text"),
  ]

  struct Rejected: CustomTestStringConvertible, Sendable {
    var bytes: [UInt8]
    var reason: JSONError.Reason
    var path: String
    var offset: Int
    var testDescription: String { String(decoding: bytes, as: UTF8.self) + " \(bytes.count) bytes" }

    init(_ text: String, _ reason: JSONError.Reason, _ path: String, _ offset: Int) {
      self.init(Array(text.utf8), reason, path, offset)
    }

    init(_ bytes: [UInt8], _ reason: JSONError.Reason, _ path: String, _ offset: Int) {
      (self.bytes, self.reason, self.path, self.offset) = (bytes, reason, path, offset)
    }
  }

  private static func byte(_ character: Unicode.Scalar) -> JSONError.Reason {
    .unexpectedByte(UInt8(ascii: character))
  }

  static let structure: [Rejected] = [
    Rejected("", .unexpectedEnd, "", 0), Rejected("  \n", .unexpectedEnd, "", 3),
    Rejected("nul", .unexpectedEnd, "", 3), Rejected("nulL", byte("L"), "", 3), Rejected("tru", .unexpectedEnd, "", 3),
    Rejected("True", byte("T"), "", 0), Rejected("fals", .unexpectedEnd, "", 4), Rejected("falze", byte("z"), "", 3),
    Rejected("NULL", byte("N"), "", 0), Rejected("undefined", byte("u"), "", 0),
    Rejected("nullx", .trailingBytes, "", 4),
    Rejected("null null", .trailingBytes, "", 5), Rejected("{}{}", .trailingBytes, "", 2),
    Rejected("1 2", .trailingBytes, "", 2),
    Rejected("[]]", .trailingBytes, "", 2), Rejected("{}}", .trailingBytes, "", 2),
    Rejected("1,", .trailingBytes, "", 1),
    Rejected("'a'", byte("'"), "", 0), Rejected("a", byte("a"), "", 0), Rejected(",", byte(","), "", 0),
    Rejected(":", byte(":"), "", 0), Rejected("]", byte("]"), "", 0), Rejected("}", byte("}"), "", 0),
    Rejected("[", .unexpectedEnd, "/0", 1), Rejected("[1", .unexpectedEnd, "/0", 2),
    Rejected("[1,", .unexpectedEnd, "/1", 3),
    Rejected("[,", byte(","), "/0", 1), Rejected("[,1]", byte(","), "/0", 1), Rejected("[1,]", byte("]"), "/1", 3),
    Rejected("[1,,2]", byte(","), "/1", 3), Rejected("[1 2]", byte("2"), "/0", 3),
    Rejected("[1:2]", byte(":"), "/0", 2),
    Rejected("[1}", byte("}"), "/0", 2), Rejected("[[1]", .unexpectedEnd, "/0", 4),
    Rejected("[\"a\"", .unexpectedEnd, "/0", 4),
    Rejected("[1;2]", byte(";"), "/0", 2), Rejected("[/*c*/1]", byte("/"), "/0", 1),
    Rejected("[1]//c", .trailingBytes, "", 3),
    Rejected("{", .unexpectedEnd, "", 1), Rejected("{,}", byte(","), "", 1), Rejected("{1:2}", byte("1"), "", 1),
    Rejected("{a:1}", byte("a"), "", 1), Rejected("{'a':1}", byte("'"), "", 1), Rejected("{null:1}", byte("n"), "", 1),
    Rejected(#"{"a"}"#, byte("}"), "/a", 4), Rejected(#"{"a":}"#, byte("}"), "/a", 5),
    Rejected(#"{"a":1,}"#, byte("}"), "", 7),
    Rejected(#"{"a":1,,"b":2}"#, byte(","), "", 7), Rejected(#"{"a" 1}"#, byte("1"), "/a", 5),
    Rejected(#"{"a"::1}"#, byte(":"), "/a", 5),
    Rejected(#"{"a":1 "b":2}"#, byte("\""), "/a", 7), Rejected(#"{"a":1]"#, byte("]"), "/a", 6),
    Rejected(#"{"a":1"#, .unexpectedEnd, "/a", 6),
    Rejected(#"{"a":1,"#, .unexpectedEnd, "", 7), Rejected(#"{"a":1,"b"#, .unexpectedEnd, "", 9),
    Rejected(#"{"a":1,"b""#, .unexpectedEnd, "/b", 10),
    Rejected(#"{"a":1,2}"#, byte("2"), "", 7), Rejected(#"{"a":[1,{"b":x}]}"#, byte("x"), "/a/1/b", 13),
    Rejected(#"{"a/b":{"c~d":[0,?]}}"#, byte("?"), "/a~1b/c~0d/1", 17),
    Rejected(#"{"\u0061\n":[}"#, byte("}"), "/a\n/0", 13),
    Rejected(#"[{"a":1},{"a":2},{"a":!}]"#, byte("!"), "/2/a", 22), Rejected(#"[[1,2],[3,@]]"#, byte("@"), "/1/1", 10),
    // No byte order mark, no other white space.
    Rejected([0xEF, 0xBB, 0xBF, 0x31], .unexpectedByte(0xEF), "", 0),
    Rejected([0xFE, 0xFF, 0x00, 0x31], .unexpectedByte(0xFE), "", 0),
    Rejected([0x31, 0x00], .trailingBytes, "", 1), Rejected([0x00], .unexpectedByte(0), "", 0),
    Rejected([0x0C, 0x31], .unexpectedByte(0x0C), "", 0),
    Rejected([0x0B, 0x31], .unexpectedByte(0x0B), "", 0), Rejected([0xC2, 0xA0, 0x31], .unexpectedByte(0xC2), "", 0),
    Rejected("[1\u{3000}]", .unexpectedByte(0xE3), "/0", 2), Rejected("[\u{85}1]", .unexpectedByte(0xC2), "/0", 1),
  ]

  static let numbers: [Rejected] = [
    Rejected("-", .unexpectedEnd, "", 1), Rejected("+1", byte("+"), "", 0), Rejected("--1", .invalidNumber, "", 1),
    Rejected("-a", .invalidNumber, "", 1),
    Rejected("00", .invalidNumber, "", 0), Rejected("01", .invalidNumber, "", 0),
    Rejected("-01", .invalidNumber, "", 1), Rejected("-00", .invalidNumber, "", 1),
    Rejected("007.5", .invalidNumber, "", 0), Rejected("0123456789", .invalidNumber, "", 0),
    Rejected("1.", .unexpectedEnd, "", 2), Rejected("-1.", .unexpectedEnd, "", 3),
    Rejected(".5", byte("."), "", 0), Rejected("-.5", .invalidNumber, "", 1), Rejected("1.e1", .invalidNumber, "", 2),
    Rejected("1..2", .invalidNumber, "", 2),
    Rejected("1.2.3", .trailingBytes, "", 3), Rejected("1e", .unexpectedEnd, "", 2),
    Rejected("1e+", .unexpectedEnd, "", 3), Rejected("1e-", .unexpectedEnd, "", 3),
    Rejected("1ee1", .invalidNumber, "", 2), Rejected("1e1.5", .trailingBytes, "", 3),
    Rejected("1e+-1", .invalidNumber, "", 3), Rejected("0x10", .trailingBytes, "", 1),
    Rejected("1_000", .trailingBytes, "", 1), Rejected("1,000", .trailingBytes, "", 1),
    Rejected("1a", .trailingBytes, "", 1), Rejected("NaN", byte("N"), "", 0),
    Rejected("nan", byte("a"), "", 1), Rejected("Infinity", byte("I"), "", 0),
    Rejected("-Infinity", .invalidNumber, "", 1), Rejected("1 e1", .trailingBytes, "", 2),
    Rejected("[1.]", .invalidNumber, "/0", 3), Rejected("[-]", .invalidNumber, "/0", 2),
    Rejected("[01]", .invalidNumber, "/0", 1), Rejected(#"{"a":1.x}"#, .invalidNumber, "/a", 7),
    Rejected("\u{FF11}", .unexpectedByte(0xEF), "", 0), Rejected("1\u{0661}", .trailingBytes, "", 1),
    Rejected("12345678 9", .trailingBytes, "", 9),
  ]

  static let strings: [Rejected] = [
    Rejected("\"", .unexpectedEnd, "", 1), Rejected("\"a", .unexpectedEnd, "", 2),
    Rejected(#""\"#, .unexpectedEnd, "", 2), Rejected(#""\""#, .unexpectedEnd, "", 3),
    Rejected(#""1234567\"#, .unexpectedEnd, "", 9), Rejected(#""a\x""#, .invalidEscape, "", 2),
    Rejected(#""\a""#, .invalidEscape, "", 1), Rejected(#""\'""#, .invalidEscape, "", 1),
    Rejected(#""\0""#, .invalidEscape, "", 1), Rejected(#""\U0041""#, .invalidEscape, "", 1),
    Rejected(#""\N""#, .invalidEscape, "", 1), Rejected(#""\u""#, .invalidEscape, "", 1),
    Rejected(#""\u0""#, .invalidEscape, "", 1), Rejected(#""\u004""#, .invalidEscape, "", 1),
    Rejected(#""\u004g""#, .invalidEscape, "", 1), Rejected(#""\u+041""#, .invalidEscape, "", 1),
    Rejected(#""\u 041""#, .invalidEscape, "", 1), Rejected(#""\u{41}""#, .invalidEscape, "", 1),
    Rejected("\"\\\u{e9}\"", .invalidEscape, "", 1), Rejected("\"\\\n\"", .invalidEscape, "", 1),
    Rejected("\"a\nb\"", .controlCharacter(10), "", 2), Rejected("\"\t\"", .controlCharacter(9), "", 1),
    Rejected("\"\r\"", .controlCharacter(13), "", 1), Rejected("\"\0\"", .controlCharacter(0), "", 1),
    Rejected("\"\u{1f}\"", .controlCharacter(0x1f), "", 1), Rejected("\"1234567\u{1}\"", .controlCharacter(1), "", 8),
    Rejected("\"12345678\u{1}\"", .controlCharacter(1), "", 9),
    Rejected(#""\ud800""#, .loneSurrogate, "", 1), Rejected(#""\udfff""#, .loneSurrogate, "", 1),
    Rejected(#""\udc00\ud800""#, .loneSurrogate, "", 1), Rejected(#""a\ud83d""#, .loneSurrogate, "", 2),
    Rejected(#""\ud83dx""#, .loneSurrogate, "", 1), Rejected(#""\ud83d\n""#, .loneSurrogate, "", 1),
    Rejected(#""\ud83d\u0041""#, .loneSurrogate, "", 1), Rejected(#""\ud83d\ud83d\ude00""#, .loneSurrogate, "", 1),
    Rejected(#""\ud83d\ude0""#, .loneSurrogate, "", 1), Rejected(#""\ud83d\\ude00""#, .loneSurrogate, "", 1),
    Rejected(#"{"a":"\q"}"#, .invalidEscape, "/a", 6), Rejected(#"{"\q":1}"#, .invalidEscape, "", 2),
    Rejected(#"["ok","\udead"]"#, .loneSurrogate, "/1", 7),
  ]

  /// The bytes stand inside a string, from offset 1; the offset is that of the ill-formed sequence.
  static let illFormed: [Rejected] = [
    ("80", 1), ("BF", 1), ("41 80", 2), ("C0 80", 1), ("C0 AF", 1), ("C1 BF", 1), ("C2", 1), ("C2 41", 1),
    ("C2 C2 80", 1), ("DF", 1), ("C3 A9 C3", 3),
    ("E0 80 80", 1), ("E0 9F BF", 1), ("E0 A0", 1), ("E1 80", 1), ("E1 80 41", 1), ("E4 BD", 1), ("ED A0 80", 1),
    ("ED AF BF", 1), ("ED B0 80", 1), ("ED BF BF", 1), ("ED A0 BD ED B8 80", 1),
    ("EF BF", 1), ("F0 80 80 80", 1), ("F0 8F BF BF", 1), ("F0 90 80", 1), ("F0 9F 98", 1), ("F0 9F 98 41", 1),
    ("F4 90 80 80", 1), ("F5 80 80 80", 1), ("F7 BF BF BF", 1),
    ("F8 88 80 80 80", 1), ("FC 84 80 80 80 80", 1), ("FE", 1), ("FF", 1), ("41 42 43 44 45 46 47 48 49 FF", 10),
    ("E4 BD A0 E5 A5 BD E4 BD", 7), ("5C 6E 80", 3), ("80 5C 6E", 1),
  ].map { Rejected([0x22] + hex($0.0) + [0x22], .invalidUTF8, "", $0.1) }

  static let wellFormed: [String] = [
    "00", "7F", "C2 80", "DF BF", "E0 A0 80", "E1 80 80", "EC BF BF", "ED 80 80", "ED 9F BF", "EE 80 80", "EF BF BD",
    "EF BF BF", "F0 90 80 80", "F1 80 80 80", "F3 BF BF BF", "F4 80 80 80", "F4 8F BF BF",
  ]
}
