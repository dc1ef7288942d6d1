import ChatJSON
import Testing

@Suite("Values, members and pointers")
struct ValueTests {
  @Test(
    "members are found, replaced in place, appended and removed, also when they are many", arguments: [3, 32, 33, 100])
  func members(_ count: Int) {
    var object = JSONObject((0..<count).map { (key: "k\($0)", value: JSONValue($0)) })
    object["k1"] = "changed"
    object["new"] = 1
    object["k0"] = nil
    object["nothing"] = nil
    #expect(object.count == count)
    #expect(object.keys == ["k1"] + (2..<count).map { "k\($0)" } + ["new"])
    #expect(object["k1"] == "changed" && object["k0"] == nil && object["k\(count - 1)"] == JSONValue(count - 1))
    for key in object.keys { object[key] = nil }
    #expect(object.isEmpty && object == [:])
  }

  @Test("null is a value of a member, nil is no member")
  func null() {
    var object: JSONObject = ["a": nil]
    #expect(object.count == 1 && object["a"] == .some(.null) && object["b"] == nil)
    object["b"] = .null
    #expect(object.keys == ["a", "b"])
    object["a"] = nil
    #expect(object.keys == ["b"])
  }

  @Test("texts and keys are equal by their bytes, never by normalisation")
  func bytewise() {
    let (composed, decomposed) = ("\u{e9}", "e\u{301}")
    #expect(composed == decomposed)
    #expect(JSONValue(composed) != JSONValue(decomposed))
    #expect(JSONValue.object([composed: 1]) != .object([decomposed: 1]))
    var object: JSONObject = [composed: 1]
    object[decomposed] = 2
    #expect(object.count == 2)
    #expect(Set([JSONValue(composed), JSONValue(decomposed)]).count == 2)
  }

  @Test("objects are equal in any order, arrays are not, and equal values have equal hashes")
  func equality() throws {
    let one = try JSONValue(parsing: #"{"a":1,"b":[{"x":null,"y":[true]}],"c":2.50}"#)
    let two = try JSONValue(parsing: #"{"c":2.50,"b":[{"y":[true],"x":null}],"a":1}"#)
    #expect(one == two && one.hashValue == two.hashValue && one.canonicalBytes() == two.canonicalBytes())
    #expect([1, 2] as JSONValue != [2, 1])
    #expect(JSONValue.int(1) == .uint(1) && JSONValue.int(1).hashValue == JSONValue.uint(1).hashValue)
    #expect(JSONValue.int(-1) != .uint(.max))
    #expect(try JSONValue(parsing: "1") != JSONValue(parsing: "1.0"))
    #expect(try JSONValue(parsing: "2.5") != JSONValue(parsing: "2.50"))
  }

  static let tree: JSONValue = ["a": [1, ["b/c": ["~d": "x"]]], "": [:], "n": nil]

  @Test(
    "a pointer finds what RFC 6901 says",
    arguments: [
      ("/a/0", "1"), ("/a/1/b~1c/~0d", #""x""#), ("/", "{}"), ("/n", "null"), ("/a/1/b~1c", #"{"~d":"x"}"#),
    ])
  func found(_ pointer: String, _ expected: String) {
    #expect(Self.tree[pointer: pointer]?.text() == expected)
  }

  @Test(
    "a pointer to nothing, or none at all, finds nothing",
    arguments: [
      "a", "/b", "/a/2", "/a/-", "/a/01", "/a/-1", "/a/+1", "/a/1/b/c", "/a/0/x", "/n/x", "/~", "/~2",
      "/a/99999999999999999999",
    ])
  func absent(_ pointer: String) {
    #expect(Self.tree[pointer: pointer] == nil)
    var copy = Self.tree
    if pointer != "/b", pointer != "/a/2", pointer != "/a/-" {
      let changed = copy.set("new", at: pointer)
      #expect(!changed && copy == Self.tree)
    }
  }

  @Test(
    "setting by pointer replaces, adds, appends and removes",
    arguments: [
      ("", JSONValue.int(5), "5"), ("/a", 5, #"{"a":5}"#), ("/a/0", 5, #"{"a":[5,2]}"#), ("/a/2", 5, #"{"a":[1,2,5]}"#),
      ("/a/-", 5, #"{"a":[1,2,5]}"#), ("/b", [:], #"{"a":[1,2],"b":{}}"#), ("/a/0", nil, #"{"a":[2]}"#),
      ("/a", nil, "{}"),
      ("/a/1", .some(.null), #"{"a":[1,null]}"#),
    ] as [(String, JSONValue?, String)])
  func set(_ pointer: String, _ value: JSONValue?, _ expected: String) {
    var tree: JSONValue = ["a": [1, 2]]
    let changed = tree.set(value, at: pointer)
    #expect(changed)
    #expect(tree.text() == expected)
    var other: JSONValue = ["a": [1, 2]]
    other[pointer: pointer] = value
    #expect(other == tree)
  }

  @Test("required members have their path in the error")
  func required() throws {
    let value: JSONValue = [
      "s": "x", "i": 5, "b": true, "o": ["k/1": "y"], "l": [1], "n": nil, "f": .number(try JSONNumber(parsing: "1.0")),
    ]
    #expect(try value.requireString("s") == "x" && value.requireInt("i") == 5 && value.requireBool("b"))
    #expect(try value.requireArray("l") == [1] && value.requireObject("o").count == 1 && value.require("n") == .null)
    #expect(failure { () throws(JSONError) in try value.requireString("zz") } == JSONError(.missing, path: "/zz"))
    #expect(
      failure { () throws(JSONError) in try value.requireInt("f") }
        == JSONError(.wrongType(expected: "integer", found: "number"), path: "/f"))
    #expect(
      failure { () throws(JSONError) in try value.require("o").requireInt("k/1", path: "/o") }
        == JSONError(.wrongType(expected: "integer", found: "string"), path: "/o/k~11"))
    #expect(
      failure { () throws(JSONError) in try JSONValue(1).require("x", path: "/p") }
        == JSONError(.wrongType(expected: "object", found: "integer"), path: "/p"))
    #expect(failure { () throws(JSONError) in try JSONValue(UInt64.max).asInt() }?.reason == .outOfRange)
  }

  @Test("a number is what RFC 8259 calls one, and nothing else")
  func numbers() throws {
    #expect(try JSONNumber(parsing: "-1.50e+3").double == -1500)
    #expect(JSONNumber(0.1)?.text == "0.1" && JSONNumber(1e300)?.text == "1e+300" && JSONNumber(-0.0)?.text == "-0.0")
    #expect(JSONNumber(.infinity) == nil && JSONNumber(.nan) == nil && JSONValue(Double.nan) == .null)
    for text in ["", " 1", "1 ", "01", "+1", "1.", ".1", "0x1", "NaN", "1e", "--1", "1,2", "\"1\"", "[1]", "null"] {
      #expect(failure { () throws(JSONError) in try JSONNumber(parsing: text) } != nil, "\(text)")
    }
    for double in [0.1, 1e21, Double.leastNonzeroMagnitude, Double.greatestFiniteMagnitude, -123.456, 1e16, 0.000001] {
      let text = JSONValue(double).text()
      #expect(try JSONValue(parsing: text).double == double)
    }
  }

  @Test("integers keep their 64 bits, and what is larger keeps its text")
  func integers() throws {
    #expect(try JSONValue(parsing: "9223372036854775807") == .int(.max))
    #expect(try JSONValue(parsing: "-9223372036854775808") == .int(.min))
    #expect(try JSONValue(parsing: "9223372036854775808") == .uint(1 << 63))
    #expect(try JSONValue(parsing: "18446744073709551615") == .uint(.max))
    for text in ["18446744073709551616", "-9223372036854775809", "100000000000000000000", "-0", "1.0", "1e3"] {
      guard case .number(let number) = try JSONValue(parsing: text) else {
        Issue.record("\(text) is not kept as text")
        continue
      }
      #expect(number.text == text)
    }
    var power: UInt64 = 1
    for _ in 0..<19 {
      for near in [power &- 1, power, power &+ 1] where near <= UInt64(Int64.max) {
        #expect(try JSONValue(parsing: "\(near)") == .int(Int64(near)))
        #expect(JSONValue(near).text() == "\(near)")
        if near > 0 { #expect(try JSONValue(parsing: "-\(near)") == .int(-Int64(near))) }
      }
      power &*= 10
    }
    #expect(JSONValue(UInt64.max).text() == "18446744073709551615")
    #expect(JSONValue(Int64.min).text() == "-9223372036854775808")
  }

  @Test("the writer escapes what must be escaped and nothing else")
  func escapes() throws {
    for scalar in (0..<0x180).compactMap(Unicode.Scalar.init) {
      for text in [
        String(Character(scalar)), "1234567" + String(Character(scalar)), "12345678" + String(Character(scalar)) + "x",
      ] {
        let written = JSONValue(text).text()
        let mustEscape = scalar.value < 0x20 || scalar == "\"" || scalar == "\\"
        #expect(written.contains("\\") == mustEscape)
        #expect(try JSONValue(parsing: written) == JSONValue(text))
      }
    }
  }

  @Test("a writer can be used again")
  func reuse() {
    var writer = JSONWriter(capacity: 0)
    writer.write([1, "a"] as JSONValue)
    writer.removeAll()
    writer.beginArray()
    writer.write(UInt64.max)
    writer.write(Int.min)
    writer.write(false)
    writer.writeNull()
    writer.endArray()
    #expect(text(writer.bytes()) == "[18446744073709551615,-9223372036854775808,false,null]")
  }
}
