import ChatJSON
import Testing

@Suite("Protobuf and JSON say the same")
struct ProtobufTests {
  typealias Vector = ProtobufVectors.Vector

  static let schema = ProtobufVectors.proto3
  static let commands = ProtobufVectors.proto2

  @Test("bytes become the value, and the value becomes the bytes", arguments: ProtobufVectors.exact)
  func exact(_ vector: Vector) throws {
    let value = try Self.schema.decode("All", from: hex(vector.bytes))
    #expect(value.text() == vector.json)
    #expect(try Self.schema.encode("All", JSONValue(parsing: vector.json)) == hex(vector.bytes))
  }

  @Test("what others may write is understood", arguments: ProtobufVectors.tolerated)
  func tolerated(_ vector: Vector) throws {
    let value = try Self.schema.decode("All", from: hex(vector.bytes))
    #expect(value.text() == vector.json)
    let again = try Self.schema.encode("All", value)
    #expect(try again.isEmpty || Self.schema.decode("All", from: again) == value)
  }

  @Test("bad bytes are refused with path and offset", arguments: ProtobufVectors.refused)
  func refused(_ refusal: ProtobufVectors.Refusal) {
    let error = failure { () throws(JSONError) in try Self.schema.decode("All", from: hex(refusal.bytes)) }
    #expect(error == JSONError(refusal.reason, path: refusal.path, offset: refusal.offset))
  }

  @Test(
    "values that do not fit are refused with their path",
    arguments: [
      (#"[]"#, JSONError(.wrongType(expected: "object", found: "array"))),
      (#"{"i32":2147483648}"#, JSONError(.outOfRange, path: "/i32")),
      (#"{"u32":-1}"#, JSONError(.outOfRange, path: "/u32")),
      (#"{"u64":-1}"#, JSONError(.outOfRange, path: "/u64")),
      (#"{"i64":9223372036854775808}"#, JSONError(.outOfRange, path: "/i64")),
      (#"{"i32":1.0}"#, JSONError(.wrongType(expected: "integer", found: "number"), path: "/i32")),
      (#"{"flag":1}"#, JSONError(.wrongType(expected: "bool", found: "integer"), path: "/flag")),
      (#"{"raw":"AP8"}"#, JSONError(.wrongType(expected: "base64", found: "string"), path: "/raw")),
      (#"{"raw":"AB=="}"#, JSONError(.wrongType(expected: "base64", found: "string"), path: "/raw")),
      (#"{"double":"x"}"#, JSONError(.wrongType(expected: "number", found: "string"), path: "/double")),
      (#"{"color":"blue"}"#, JSONError(.outOfRange, path: "/color")),
      (
        #"{"child":{"children":[{},{"text":5}]}}"#,
        JSONError(.wrongType(expected: "string", found: "integer"), path: "/child/children/1/text")
      ),
      (#"{"numbers":{}}"#, JSONError(.wrongType(expected: "array", found: "object"), path: "/numbers")),
      (
        #"{"byNumber":{"x":{}}}"#,
        JSONError(.wrongType(expected: "int32 as text", found: "string"), path: "/byNumber/x")
      ),
      (#"{"child":{"nope":1}}"#, JSONError(.unknownMember, path: "/child/nope")),
      (#"{"@unknown":"CA=="}"#, JSONError(.unexpectedEnd, path: "/@unknown", offset: 1)),
    ])
  func unfit(_ json: String, _ expected: JSONError) {
    #expect(failure { () throws(JSONError) in try Self.schema.encode("All", JSONValue(parsing: json)) } == expected)
  }

  @Test("null is an absent field, and a zero without presence is not written")
  func absent() throws {
    let value: JSONValue = [
      "i32": nil, "i64": 0, "text": "", "flag": false, "color": "red", "numbers": [], "byText": [:],
    ]
    #expect(try Self.schema.encode("All", value) == [])
  }

  @Test("an unknown member may be ignored")
  func ignored() throws {
    let options = ProtobufOptions(unknownMembers: .ignore)
    #expect(try Self.schema.encode("All", ["i32": 1, "nope": 2], options: options) == [8, 1])
  }

  @Test("defaults are written out when asked for, in the table's order")
  func defaults() throws {
    let value = try Self.schema.decode("All", from: [], options: ProtobufOptions(emitDefaults: true))
    #expect(
      value.text() == #"{"i32":0,"i64":0,"u32":0,"u64":0,"s32":0,"s64":0,"f32":0,"f64":0,"sf32":0,"sf64":0,"#
        + #""flag":false,"float":0,"double":0,"text":"","raw":"","utf8":"","doc":{"@base64":""},"#
        + #""textDoc":{"@text":""},"color":"red","colorNumber":0,"numbers":[],"loose":[],"texts":[],"children":[],"#
        + #""byText":{},"byNumber":{},"byFlag":{}}"#)
    #expect(try Self.schema.encode("All", value) == [])
  }

  @Test("proto2 keeps presence, and writes repeated numbers one by one")
  func presence() throws {
    let bytes = hex("08 00 28 00 30 01 30 02")
    let value = try Self.commands.decode("Command", from: bytes)
    #expect(value.text() == #"{"cmd":"session","i":0,"ids":[1,2]}"#)
    #expect(try Self.commands.encode("Command", value) == bytes)
    #expect(try Self.commands.decode("Command", from: hex("08 01 32 02 01 02"))["ids"] == [1, 2])
  }

  @Test("a required field that is absent is an error, both ways, unless it is allowed")
  func required() throws {
    let lenient = ProtobufOptions(checkRequired: false)
    #expect(
      failure { () throws(JSONError) in try Self.commands.decode("Command", from: hex("08 00 3A 00")) }
        == JSONError(.missing, path: "/tuple/0/cid"))
    #expect(
      failure { () throws(JSONError) in try Self.commands.encode("Command", ["i": 1]) }
        == JSONError(.missing, path: "/cmd"))
    #expect(try Self.commands.decode("Command", from: [], options: lenient) == [:])
    #expect(try Self.commands.encode("Command", [:], options: lenient) == [])
  }

  @Test("depth and size are bounded")
  func bounds() throws {
    var nested: [UInt8] = []
    for _ in 0..<99 { nested = [0xAA, 0x01] + Self.varint(nested.count) + nested }
    #expect(try Self.schema.encode("All", Self.schema.decode("All", from: nested)) == nested)
    let deeper = [0xAA, 0x01] + Self.varint(nested.count) + nested
    let error = failure { () throws(JSONError) in try Self.schema.decode("All", from: deeper) }
    #expect(error?.reason == .tooDeep(limit: 100))
    let small = ProtobufOptions(limits: JSONLimits(depth: 2, size: 3))
    #expect(
      failure { () throws(JSONError) in try Self.schema.decode("All", from: [8, 1, 8, 1], options: small) }?.reason
        == .tooLarge(limit: 3))
    #expect(
      failure { () throws(JSONError) in try Self.schema.encode("All", ["child": ["child": [:]]], options: small) }
        == JSONError(.tooDeep(limit: 2), path: "/child/child"))
    let groups = [UInt8](repeating: 0x0B, count: 100_000)
    #expect(
      failure { () throws(JSONError) in try Self.schema.decode("All", from: groups) }?.reason == .tooDeep(limit: 100))
  }

  @Test("a message that the schema lacks is named")
  func noMessage() {
    #expect(
      failure { () throws(JSONError) in try Self.schema.decode("Nope", from: []) }?.reason
        == .protobuf(.unknownMessage("Nope")))
  }

  @Test("lengths of 128 bytes and more take two bytes and three")
  func longLengths() throws {
    for count in [127, 128, 16_383, 16_384] {
      let text = String(repeating: "x", count: count)
      let inner = [0x72] + Self.varint(count) + Array(text.utf8)
      let bytes = [0xAA, 0x01] + Self.varint(inner.count) + inner
      #expect(try Self.schema.encode("All", ["child": ["text": .string(text)]]) == bytes)
      #expect(try Self.schema.decode("All", from: bytes)["child"]?["text"]?.string == text)
    }
  }

  static func varint(_ value: Int) -> [UInt8] {
    value < 128 ? [UInt8(value)] : [UInt8(value & 127 | 128)] + varint(value >> 7)
  }
}

@Suite("A field table that means nothing is refused")
struct ProtobufTableTests {
  @Test(
    "with the path of what is wrong",
    arguments: [
      (#"{"messages":{}}"#, JSONError(.missing, path: "/syntax")),
      (#"{"syntax":"proto4","messages":{}}"#, JSONError(.protobuf(.table("proto2 or proto3")), path: "/syntax")),
      (#"{"syntax":"proto3","messages":{},"extra":1}"#, JSONError(.unknownMember, path: "/extra")),
      (
        #"{"syntax":"proto3","messages":{"A":[{"name":"x","number":0,"type":"bool"}]}}"#,
        JSONError(.outOfRange, path: "/messages/A/0/number")
      ),
      (
        #"{"syntax":"proto3","messages":{"A":[{"name":"x","number":1,"type":"int"}]}}"#,
        JSONError(.protobuf(.table("no type of this name, or none with this form")), path: "/messages/A/0/type")
      ),
      (
        #"{"syntax":"proto3","messages":{"A":[{"name":"x","number":1,"type":"message","of":"B"}]}}"#,
        JSONError(.protobuf(.table("no message of this name")), path: "/messages/A/0/of")
      ),
      (
        #"{"syntax":"proto3","messages":{"A":[{"name":"x","number":1,"type":"bool"},{"name":"y","number":1,"type":"bool"}]}}"#,
        JSONError(.protobuf(.table("the message has this number already")), path: "/messages/A/1/number")
      ),
      (
        #"{"syntax":"proto3","messages":{"A":[{"name":"x","number":1,"type":"bool","lable":"repeated"}]}}"#,
        JSONError(.unknownMember, path: "/messages/A/0/lable")
      ),
      (
        #"{"syntax":"proto3","messages":{"A":[{"name":"@unknown","number":1,"type":"bool"}]}}"#,
        JSONError(.protobuf(.table("a reserved name")), path: "/messages/A/0/name")
      ),
      (
        #"{"syntax":"proto3","messages":{"A":[{"name":"x","number":1,"type":"map","key":"bytes","value":{"type":"bool"}}]}}"#,
        JSONError(.protobuf(.table("an integer type, bool or string")), path: "/messages/A/0/key")
      ),
    ])
  func faults(_ table: String, _ expected: JSONError) {
    #expect(failure { () throws(JSONError) in try ProtobufSchema(table: JSONValue(parsing: table)) } == expected)
  }

  @Test("several tables share their names")
  func several() throws {
    let schema = try ProtobufSchema(tables: [
      JSONValue(parsing: #"{"syntax":"proto3","messages":{"A":[{"name":"b","number":1,"type":"message","of":"B"}]}}"#),
      JSONValue(parsing: #"{"syntax":"proto2","messages":{"B":[{"name":"x","number":1,"type":"int32"}]}}"#),
    ])
    #expect(try schema.decode("A", from: hex("0A 02 08 00")).text() == #"{"b":{"x":0}}"#)
    #expect(schema.messageNames == ["A", "B"])
  }
}
