import ChatJSON
import Testing

@Suite("A length beyond what is there is refused by name, and no room is made for it")
struct LengthFieldTests {
  /// Of each kind of field that has a length: the field's number in `ProtobufVectors.proto3`, and its path.
  static let fields: [(number: UInt64, path: String)] = [
    (14, "/text"), (15, "/raw"), (16, "/utf8"), (17, "/doc"), (18, "/textDoc"), (21, "/child"), (22, "/numbers/0"),
    (24, "/texts/0"), (25, "/children/0"), (26, "/byText"), (27, "/byNumber"), (31, "/other"), (32, "/attr"),
  ]
  /// A gigabyte, and the lengths at which arithmetic would go wrong.
  static let lengths: [UInt64] = [1 << 30, 1 << 31, 1 << 32, UInt64(Int64.max), UInt64(Int64.max) + 1, .max]

  private static func varint(_ value: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  @Test("in every kind of field", arguments: fields, lengths)
  func known(_ field: (number: UInt64, path: String), _ length: UInt64) {
    let tag = Self.varint(field.number << 3 | 2)
    let bytes = tag + Self.varint(length) + [0x61, 0x62]
    let error = failure { () throws(JSONError) in try ProtobufVectors.proto3.decode("All", from: bytes) }
    #expect(error?.reason == .protobuf(.lengthBeyondEnd) && error?.offset == tag.count)
    #expect(error?.path == field.path)
  }

  @Test("in fields that the table does not know, and inside of groups", arguments: lengths)
  func unknown(_ length: UInt64) {
    for opening in [[], Self.varint(900 << 3 | 3)] as [[UInt8]] {
      let bytes = opening + Self.varint(901 << 3 | 2) + Self.varint(length) + [0x61]
      let error = failure { () throws(JSONError) in try ProtobufVectors.proto3.decode("All", from: bytes) }
      #expect(error?.reason == .protobuf(.lengthBeyondEnd))
    }
  }

  @Test("inside of a message that is itself whole", arguments: lengths)
  func nested(_ length: UInt64) {
    let inner = Self.varint(14 << 3 | 2) + Self.varint(length) + [0x61]
    // What lies behind the inner message must not be taken for its rest.
    let bytes = Self.varint(21 << 3 | 2) + Self.varint(UInt64(inner.count)) + inner + [UInt8](repeating: 0x61, count: 64)
    let error = failure { () throws(JSONError) in try ProtobufVectors.proto3.decode("All", from: bytes) }
    #expect(error?.reason == .protobuf(.lengthBeyondEnd) && error?.path == "/child/text")
  }
}
