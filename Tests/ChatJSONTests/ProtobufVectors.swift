import ChatJSON
import Testing

/// Tables and vectors whose bytes were worked out by hand from the protobuf encoding specification.
enum ProtobufVectors {
  static let proto3 = ProtobufSchema(
    generated: #"""
      {"syntax": "proto3", "source": "made up", "messages": {
        "All": [
          {"name": "i32", "number": 1, "type": "int32"},
          {"name": "i64", "number": 2, "type": "int64"},
          {"name": "u32", "number": 3, "type": "uint32"},
          {"name": "u64", "number": 4, "type": "uint64"},
          {"name": "s32", "number": 5, "type": "sint32"},
          {"name": "s64", "number": 6, "type": "sint64"},
          {"name": "f32", "number": 7, "type": "fixed32"},
          {"name": "f64", "number": 8, "type": "fixed64"},
          {"name": "sf32", "number": 9, "type": "sfixed32"},
          {"name": "sf64", "number": 10, "type": "sfixed64"},
          {"name": "flag", "number": 11, "type": "bool"},
          {"name": "float", "number": 12, "type": "float"},
          {"name": "double", "number": 13, "type": "double"},
          {"name": "text", "number": 14, "type": "string"},
          {"name": "raw", "number": 15, "type": "bytes"},
          {"name": "utf8", "number": 16, "type": "bytes", "as": "utf8"},
          {"name": "doc", "number": 17, "type": "bytes", "as": "json"},
          {"name": "textDoc", "number": 18, "type": "string", "as": "json"},
          {"name": "color", "number": 19, "type": "enum", "of": "Color"},
          {"name": "colorNumber", "number": 20, "type": "enum", "of": "Color", "as": "number"},
          {"name": "child", "number": 21, "type": "message", "of": "All"},
          {"name": "numbers", "number": 22, "type": "int32", "label": "repeated"},
          {"name": "loose", "number": 23, "type": "int32", "label": "repeated", "packed": false},
          {"name": "texts", "number": 24, "type": "string", "label": "repeated"},
          {"name": "children", "number": 25, "type": "message", "of": "All", "label": "repeated"},
          {"name": "byText", "number": 26, "type": "map", "key": "string", "value": {"type": "int64"}},
          {"name": "byNumber", "number": 27, "type": "map", "key": "int32", "value": {"type": "message", "of": "All"}},
          {"name": "byFlag", "number": 28, "type": "map", "key": "bool", "value": {"type": "enum", "of": "Color"}},
          {"name": "maybe", "number": 29, "type": "int32", "label": "optional"},
          {"name": "one", "number": 30, "type": "int32", "oneof": "choice"},
          {"name": "other", "number": 31, "type": "string", "oneof": "choice"},
          {"name": "attr", "number": 32, "type": "message", "of": "JsonObject", "as": "json"}
        ],
        "JsonObject": [{"name": "data", "number": 1, "type": "string"}]
      }, "enums": {"Color": {"red": 0, "green": 1, "back": -1, "verde": 1}}}
      """#)

  static let proto2 = ProtobufSchema(
    generated: #"""
      {"syntax": "proto2", "messages": {
        "Command": [
          {"name": "cmd", "number": 1, "type": "enum", "of": "Kind", "label": "required"},
          {"name": "i", "number": 5, "type": "int32"},
          {"name": "ids", "number": 6, "type": "int64", "label": "repeated"},
          {"name": "tuple", "number": 7, "type": "message", "of": "Tuple", "label": "repeated"}
        ],
        "Tuple": [{"name": "cid", "number": 1, "type": "string", "label": "required"}]
      }, "enums": {"Kind": {"session": 0, "conv": 1}}}
      """#)

  struct Vector: CustomTestStringConvertible, Sendable {
    var bytes: String
    var json: String
    var testDescription: String { "\(bytes) is \(json)" }
  }

  /// Right in both directions.
  static let exact: [Vector] = [
    Vector(bytes: "", json: "{}"),
    Vector(bytes: "08 96 01", json: #"{"i32":150}"#),
    Vector(bytes: "08 FF FF FF FF FF FF FF FF FF 01", json: #"{"i32":-1}"#),
    Vector(bytes: "08 80 80 80 80 F8 FF FF FF FF 01", json: #"{"i32":-2147483648}"#),
    Vector(bytes: "10 FF FF FF FF FF FF FF FF 7F", json: #"{"i64":9223372036854775807}"#),
    Vector(bytes: "10 80 80 80 80 80 80 80 80 80 01", json: #"{"i64":-9223372036854775808}"#),
    Vector(bytes: "18 FF FF FF FF 0F", json: #"{"u32":4294967295}"#),
    Vector(bytes: "20 FF FF FF FF FF FF FF FF FF 01", json: #"{"u64":18446744073709551615}"#),
    Vector(bytes: "28 01", json: #"{"s32":-1}"#),
    Vector(bytes: "28 FF FF FF FF 0F", json: #"{"s32":-2147483648}"#),
    Vector(bytes: "28 FE FF FF FF 0F", json: #"{"s32":2147483647}"#),
    Vector(bytes: "30 03", json: #"{"s64":-2}"#),
    Vector(bytes: "30 FF FF FF FF FF FF FF FF FF 01", json: #"{"s64":-9223372036854775808}"#),
    Vector(bytes: "3D 01 00 00 80", json: #"{"f32":2147483649}"#),
    Vector(bytes: "41 00 00 00 00 00 00 00 80", json: #"{"f64":9223372036854775808}"#),
    Vector(bytes: "4D FE FF FF FF", json: #"{"sf32":-2}"#),
    Vector(bytes: "51 FE FF FF FF FF FF FF FF", json: #"{"sf64":-2}"#),
    Vector(bytes: "58 01", json: #"{"flag":true}"#),
    Vector(bytes: "65 00 00 C0 3F", json: #"{"float":1.5}"#),
    Vector(bytes: "65 CD CC CC 3D", json: #"{"float":0.1}"#),
    Vector(bytes: "65 00 00 C0 7F", json: #"{"float":"NaN"}"#),
    Vector(bytes: "69 00 00 00 00 00 00 F0 FF", json: #"{"double":"-Infinity"}"#),
    Vector(bytes: "69 00 00 00 00 00 00 00 80", json: #"{"double":-0.0}"#),
    Vector(bytes: "69 9A 99 99 99 99 99 B9 3F", json: #"{"double":0.1}"#),
    Vector(bytes: "72 06 E4 BD A0 E5 A5 BD", json: #"{"text":"你好"}"#),
    Vector(bytes: "7A 03 00 FF 10", json: #"{"raw":"AP8Q"}"#),
    Vector(bytes: "82 01 02 68 69", json: #"{"utf8":"hi"}"#),
    Vector(bytes: "82 01 02 FF 69", json: #"{"utf8":{"@base64":"/2k="}}"#),
    Vector(bytes: "8A 01 07 7B 22 61 22 3A 31 7D", json: #"{"doc":{"a":1}}"#),
    Vector(bytes: "8A 01 04 6E 75 6C 6C", json: #"{"doc":null}"#),
    Vector(bytes: "8A 01 02 7B 7D", json: #"{"doc":{}}"#),
    Vector(bytes: "8A 01 01 7B", json: #"{"doc":{"@base64":"ew=="}}"#),
    Vector(bytes: "92 01 03 5B 31 5D", json: #"{"textDoc":[1]}"#),
    Vector(bytes: "92 01 02 5B 31", json: #"{"textDoc":{"@text":"[1"}}"#),
    Vector(bytes: "98 01 01", json: #"{"color":"green"}"#),
    Vector(bytes: "98 01 FF FF FF FF FF FF FF FF FF 01", json: #"{"color":"back"}"#),
    Vector(bytes: "98 01 07", json: #"{"color":7}"#),
    Vector(bytes: "A0 01 01", json: #"{"colorNumber":1}"#),
    Vector(bytes: "AA 01 00", json: #"{"child":{}}"#),
    Vector(bytes: "AA 01 03 08 96 01", json: #"{"child":{"i32":150}}"#),
    Vector(bytes: "B2 01 04 01 02 96 01", json: #"{"numbers":[1,2,150]}"#),
    Vector(bytes: "B8 01 01 B8 01 00", json: #"{"loose":[1,0]}"#),
    Vector(bytes: "C2 01 01 61 C2 01 00", json: #"{"texts":["a",""]}"#),
    Vector(bytes: "CA 01 02 08 01 CA 01 00", json: #"{"children":[{"i32":1},{}]}"#),
    Vector(bytes: "D2 01 05 0A 01 61 10 05", json: #"{"byText":{"a":5}}"#),
    Vector(bytes: "DA 01 06 08 03 12 02 08 01", json: #"{"byNumber":{"3":{"i32":1}}}"#),
    Vector(bytes: "E2 01 04 08 01 10 01", json: #"{"byFlag":{"true":"green"}}"#),
    Vector(bytes: "E8 01 00", json: #"{"maybe":0}"#),
    Vector(bytes: "F0 01 00", json: #"{"one":0}"#),
    Vector(bytes: "82 02 09 0A 07 7B 22 61 22 3A 31 7D", json: #"{"attr":{"a":1}}"#),
    Vector(bytes: "82 02 03 0A 01 7B", json: #"{"attr":{"@message":{"data":"{"}}}"#),
    Vector(bytes: "82 02 00", json: #"{"attr":{"@message":{}}}"#),
    // 40 is no field of the message: each wire type, a group in a group.
    Vector(bytes: "08 01 C0 02 05", json: #"{"i32":1,"@unknown":"wAIF"}"#),
    Vector(bytes: "C3 02 08 01 0B 0C C4 02", json: #"{"@unknown":"wwIIAQsMxAI="}"#),
    Vector(bytes: "C1 02 01 02 03 04 05 06 07 08", json: #"{"@unknown":"wQIBAgMEBQYHCA=="}"#),
    Vector(bytes: "C5 02 01 02 03 04 C2 02 01 61", json: #"{"@unknown":"xQIBAgMEwgIBYQ=="}"#),
    // The number is known, the wire type is another.
    Vector(bytes: "0A 01 61", json: #"{"@unknown":"CgFh"}"#),
    Vector(bytes: "AA 01 03 C0 02 05", json: #"{"child":{"@unknown":"wAIF"}}"#),
  ]

  /// What other programs may write, and we would write otherwise.
  static let tolerated: [Vector] = [
    Vector(bytes: "08 00", json: #"{"i32":0}"#),
    Vector(bytes: "08 81 00", json: #"{"i32":1}"#),
    Vector(bytes: "08 01 08 02", json: #"{"i32":2}"#),
    Vector(bytes: "08 FF FF FF FF 0F", json: #"{"i32":-1}"#),
    Vector(bytes: "58 02", json: #"{"flag":true}"#),
    Vector(bytes: "B0 01 01 B2 01 02 02 03 B0 01 04", json: #"{"numbers":[1,2,3,4]}"#),
    Vector(bytes: "BA 01 02 01 02", json: #"{"loose":[1,2]}"#),
    Vector(bytes: "B2 01 00", json: #"{"numbers":[]}"#),
    Vector(bytes: "AA 01 02 08 01 AA 01 02 10 02", json: #"{"child":{"i32":1,"i64":2}}"#),
    Vector(bytes: "10 02 08 01", json: #"{"i32":1,"i64":2}"#),
    Vector(bytes: "D2 01 00", json: #"{"byText":{"":0}}"#),
    Vector(bytes: "D2 01 07 10 05 0A 01 61 18 01", json: #"{"byText":{"a":5}}"#),
    Vector(bytes: "D2 01 05 0A 01 61 10 05 D2 01 05 0A 01 61 10 06", json: #"{"byText":{"a":6}}"#),
    Vector(bytes: "DA 01 02 08 03", json: #"{"byNumber":{"3":{}}}"#),
    Vector(bytes: "E2 01 00", json: #"{"byFlag":{"false":"red"}}"#),
    Vector(bytes: "F0 01 05 FA 01 01 61", json: #"{"other":"a"}"#),
    Vector(bytes: "FA 01 01 61 F0 01 05", json: #"{"one":5}"#),
    Vector(bytes: "C0 02 05 08 01 C0 02 06", json: #"{"i32":1,"@unknown":"wAIFwAIG"}"#),
    Vector(bytes: "8A 01 09 7B 20 22 61 22 3A 20 31 7D", json: #"{"doc":{"a":1}}"#),
  ]

  struct Refusal: CustomTestStringConvertible, Sendable {
    var bytes: String
    var reason: JSONError.Reason
    var path: String
    var offset: Int?
    var testDescription: String { "\(bytes) is refused" }
  }

  static let refused: [Refusal] = [
    Refusal(bytes: "08", reason: .unexpectedEnd, path: "/i32", offset: 1),
    Refusal(bytes: "08 80", reason: .unexpectedEnd, path: "/i32", offset: 2),
    Refusal(bytes: "80", reason: .unexpectedEnd, path: "", offset: 1),
    Refusal(
      bytes: "08 FF FF FF FF FF FF FF FF FF 02", reason: .protobuf(.varintTooLong), path: "/i32", offset: 1),
    Refusal(
      bytes: "08 80 80 80 80 80 80 80 80 80 80 00", reason: .protobuf(.varintTooLong), path: "/i32", offset: 1),
    Refusal(bytes: "08 01 0E", reason: .protobuf(.wireType(6)), path: "", offset: 2),
    Refusal(bytes: "0F", reason: .protobuf(.wireType(7)), path: "", offset: 0),
    Refusal(bytes: "00 01", reason: .protobuf(.fieldNumber(0)), path: "", offset: 0),
    Refusal(bytes: "80 80 80 80 10 01", reason: .protobuf(.fieldNumber(536_870_912)), path: "", offset: 0),
    Refusal(bytes: "3D 01 02 03", reason: .unexpectedEnd, path: "/f32", offset: 4),
    Refusal(bytes: "41 01 02 03 04 05 06 07", reason: .unexpectedEnd, path: "/f64", offset: 8),
    Refusal(bytes: "72 02 61", reason: .protobuf(.lengthBeyondEnd), path: "/text", offset: 1),
    Refusal(
      bytes: "72 FF FF FF FF FF FF FF FF FF 01", reason: .protobuf(.lengthBeyondEnd), path: "/text", offset: 1),
    Refusal(bytes: "72 03 61 C0 80", reason: .invalidUTF8, path: "/text", offset: 3),
    Refusal(bytes: "72 03 ED A0 80", reason: .invalidUTF8, path: "/text", offset: 2),
    Refusal(bytes: "AA 01 02 08 80", reason: .unexpectedEnd, path: "/child/i32", offset: 5),
    Refusal(bytes: "AA 01 04 AA 01 01 08", reason: .unexpectedEnd, path: "/child/child/i32", offset: 7),
    Refusal(bytes: "B2 01 02 01 80", reason: .unexpectedEnd, path: "/numbers/1", offset: 5),
    Refusal(bytes: "CA 01 00 CA 01 01 08", reason: .unexpectedEnd, path: "/children/1/i32", offset: 7),
    Refusal(bytes: "C3 02 08 01", reason: .unexpectedEnd, path: "", offset: 4),
    Refusal(bytes: "C3 02 08 01 CC 02", reason: .protobuf(.unbalancedGroup), path: "", offset: 4),
    Refusal(bytes: "C4 02", reason: .protobuf(.unbalancedGroup), path: "", offset: 0),
    Refusal(bytes: "D2 01 02 10 80", reason: .unexpectedEnd, path: "/byText", offset: 5),
  ]
}
