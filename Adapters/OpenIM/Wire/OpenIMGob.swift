import ChatJSON

/// The part of Go's gob encoding that the two envelope structs need: one type definition and one value per frame.
///
/// The vendor's iOS, Android and desktop clients speak this. Fields are matched by name, so type names, ids and order
/// may differ (reference §2.6). Integers, strings and byte strings are read; any other field type is refused.
public enum OpenIMGob {
  public static func encode(_ frame: OpenIMRequestFrame) -> [UInt8] {
    var value = GobWriter()
    value.field(1, int: frame.operation)
    value.field(2, string: frame.token)
    value.field(3, string: frame.sender)
    value.field(4, string: frame.operationID)
    value.field(5, string: frame.increment)
    value.field(6, bytes: frame.data)
    return requestDefinition + message(typeID: 64, value)
  }

  public static func encode(_ frame: OpenIMResponseFrame) -> [UInt8] {
    var value = GobWriter()
    value.field(1, int: frame.operation)
    value.field(2, string: frame.increment)
    value.field(3, string: frame.operationID)
    value.field(4, int: frame.code)
    value.field(5, string: frame.message)
    value.field(6, bytes: frame.data)
    return responseDefinition + message(typeID: 66, value)
  }

  public static func decodeRequest(_ bytes: [UInt8]) throws(OpenIMFrameError) -> OpenIMRequestFrame {
    let fields = try GobReader.readStruct(bytes)
    return OpenIMRequestFrame(
      operation: fields.int("ReqIdentifier"), token: fields.string("Token"), sender: fields.string("SendID"),
      operationID: fields.string("OperationID"), increment: fields.string("MsgIncr"), data: fields.bytes("Data"))
  }

  public static func decodeResponse(_ bytes: [UInt8]) throws(OpenIMFrameError) -> OpenIMResponseFrame {
    let fields = try GobReader.readStruct(bytes)
    return OpenIMResponseFrame(
      operation: fields.int("ReqIdentifier"), increment: fields.string("MsgIncr"),
      operationID: fields.string("OperationID"), code: fields.int("ErrCode"), message: fields.string("ErrMsg"),
      data: fields.bytes("Data"))
  }

  /// As the vendor's client writes it: `GeneralWsReq`, id 64.
  private static let requestDefinition = definition(
    name: "GeneralWsReq", typeID: 64,
    fields: [
      ("ReqIdentifier", 2), ("Token", 6), ("SendID", 6), ("OperationID", 6), ("MsgIncr", 6), ("Data", 5),
    ])

  /// As the vendor's server writes it: `Resp`, id 66.
  private static let responseDefinition = definition(
    name: "Resp", typeID: 66,
    fields: [
      ("ReqIdentifier", 2), ("MsgIncr", 6), ("OperationID", 6), ("ErrCode", 2), ("ErrMsg", 6), ("Data", 5),
    ])

  private static func definition(name: String, typeID: Int64, fields: [(String, Int64)]) -> [UInt8] {
    var body = GobWriter()
    body.int(-typeID)
    body.uint(3)  // wireType.StructT
    body.uint(1)  // StructType.CommonType
    body.uint(1)
    body.string(name)
    body.uint(1)
    body.int(typeID)
    body.uint(0)
    body.uint(1)  // StructType.Field
    body.uint(UInt64(fields.count))
    for (name, type) in fields {
      body.uint(1)
      body.string(name)
      body.uint(1)
      body.int(type)
      body.uint(0)
    }
    body.uint(0)
    body.uint(0)
    return framed(body.bytes)
  }

  private static func message(typeID: Int64, _ value: GobWriter) -> [UInt8] {
    var body = GobWriter()
    body.int(typeID)
    return framed(body.bytes + value.bytes + [0])
  }

  private static func framed(_ body: [UInt8]) -> [UInt8] {
    var head = GobWriter()
    head.uint(UInt64(body.count))
    return head.bytes + body
  }
}

/// gob's primitives, and the fields of one struct value (zero values are left out).
private struct GobWriter {
  var bytes: [UInt8] = []
  private var lastField = 0

  mutating func uint(_ value: UInt64) {
    guard value >= 128 else { return bytes.append(UInt8(value)) }
    let count = (64 - value.leadingZeroBitCount + 7) / 8
    bytes.append(UInt8(truncatingIfNeeded: 256 - count))
    for index in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(index)))) }
  }

  mutating func int(_ value: Int64) {
    uint(value < 0 ? (UInt64(bitPattern: ~value) << 1) | 1 : UInt64(value) << 1)
  }

  mutating func string(_ text: String) {
    uint(UInt64(text.utf8.count))
    bytes.append(contentsOf: text.utf8)
  }

  private mutating func step(to number: Int) {
    uint(UInt64(number - lastField))
    lastField = number
  }

  mutating func field(_ number: Int, int value: Int64) {
    guard value != 0 else { return }
    step(to: number)
    int(value)
  }

  mutating func field(_ number: Int, string value: String) {
    guard !value.isEmpty else { return }
    step(to: number)
    string(value)
  }

  mutating func field(_ number: Int, bytes value: [UInt8]) {
    guard !value.isEmpty else { return }
    step(to: number)
    uint(UInt64(value.count))
    bytes.append(contentsOf: value)
  }
}

/// The values of one struct by field name.
private struct GobFields {
  var ints: [String: Int64] = [:]
  var texts: [String: [UInt8]] = [:]

  func int(_ name: String) -> Int64 { ints[name] ?? 0 }
  func string(_ name: String) -> String { String(decoding: texts[name] ?? [], as: UTF8.self) }
  func bytes(_ name: String) -> [UInt8] { texts[name] ?? [] }
}

private struct GobReader {
  private let bytes: [UInt8]
  private var cursor: Int
  private let end: Int

  private init(_ bytes: [UInt8], from cursor: Int, to end: Int) {
    self.bytes = bytes
    self.cursor = cursor
    self.end = end
  }

  private typealias Definition = [(name: String, type: Int64)]

  /// Reads definitions until a struct value of a defined type comes.
  static func readStruct(_ bytes: [UInt8]) throws(OpenIMFrameError) -> GobFields {
    var outer = GobReader(bytes, from: 0, to: bytes.count)
    var definitions: [Int64: Definition] = [:]
    while true {
      let length = try outer.length()
      var message = GobReader(bytes, from: outer.cursor, to: outer.cursor + length)
      outer.cursor += length
      let id = try message.int()
      if id < 0 {
        guard id > .min, definitions.count < 8 else { throw .malformed("gob: too many types") }
        definitions[-id] = try message.definition()
      } else {
        guard let definition = definitions[id] else { throw .malformed("gob: value of an undefined type") }
        return try message.value(definition)
      }
    }
  }

  private mutating func byte() throws(OpenIMFrameError) -> UInt8 {
    guard cursor < end else { throw .malformed("gob: truncated") }
    defer { cursor += 1 }
    return bytes[cursor]
  }

  private mutating func uint() throws(OpenIMFrameError) -> UInt64 {
    let first = try byte()
    if first < 128 { return UInt64(first) }
    let count = 256 - Int(first)
    guard count <= 8 else { throw .malformed("gob: integer of \(count) bytes") }
    var value: UInt64 = 0
    for _ in 0..<count { value = (value << 8) | UInt64(try byte()) }
    return value
  }

  private mutating func int() throws(OpenIMFrameError) -> Int64 {
    let value = try uint()
    let half = Int64(bitPattern: value >> 1)
    return value & 1 == 1 ? ~half : half
  }

  /// A length within what is left.
  private mutating func length() throws(OpenIMFrameError) -> Int {
    guard let count = Int(exactly: try uint()), count <= end - cursor else { throw .malformed("gob: truncated") }
    return count
  }

  private mutating func blob() throws(OpenIMFrameError) -> [UInt8] {
    let count = try length()
    defer { cursor += count }
    return Array(bytes[cursor..<cursor + count])
  }

  private mutating func expect(_ value: UInt64) throws(OpenIMFrameError) {
    guard try uint() == value else { throw .malformed("gob: unexpected type definition") }
  }

  /// A wireType that is a struct.
  private mutating func definition() throws(OpenIMFrameError) -> Definition {
    try expect(3)
    try expect(1)
    try skipCommonType()
    try expect(1)
    let count = try uint()
    guard count <= 64 else { throw .malformed("gob: struct of \(count) fields") }
    var fields: Definition = []
    for _ in 0..<count {
      try expect(1)
      let name = String(decoding: try blob(), as: UTF8.self)
      try expect(1)
      fields.append((name, try int()))
      try expect(0)
    }
    return fields
  }

  private mutating func skipCommonType() throws(OpenIMFrameError) {
    var field: UInt64 = 0
    while true {
      let step = try uint()
      if step == 0 { return }
      field &+= step
      switch field {
      case 1: _ = try blob()
      case 2: _ = try int()
      default: throw .malformed("gob: unexpected type definition")
      }
    }
  }

  private mutating func value(_ definition: Definition) throws(OpenIMFrameError) -> GobFields {
    var fields = GobFields()
    var place = -1
    while true {
      guard let step = Int(exactly: try uint()) else { throw .malformed("gob: field out of range") }
      if step == 0 { return fields }
      guard step <= definition.count - 1 - place else { throw .malformed("gob: field out of range") }
      place += step
      let (name, type) = definition[place]
      switch type {
      case 2: fields.ints[name] = try int()
      case 1, 3: fields.ints[name] = Int64(truncatingIfNeeded: try uint())
      case 5, 6: fields.texts[name] = try blob()
      default: throw .malformed("gob: field of type \(type)")
      }
    }
  }
}
