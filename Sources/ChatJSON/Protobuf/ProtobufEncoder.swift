extension ProtobufSchema {
  /// The bytes of the message `name`: its fields in the table's order, then what `@unknown` holds.
  ///
  /// Null is an absent field; a zero of a field without presence is left out.
  /// - Throws: `JSONError` with the path of the member: `.wrongType`, `.outOfRange`, `.missing` for a required
  ///   field, `.unknownMember` unless the options ignore it.
  public func encode(
    _ name: String, _ value: JSONValue, options: ProtobufOptions = ProtobufOptions()
  ) throws(JSONError) -> [UInt8] {
    guard let index = messageIndex[ByteKey(name)] else { throw JSONError(.protobuf(.unknownMessage(name))) }
    var encoder = ProtobufEncoder(schema: self, options: options)
    try encoder.write(index, value, depth: 1)
    guard encoder.output.count <= options.limits.size else {
      throw JSONError(.tooLarge(limit: options.limits.size))
    }
    return encoder.output
  }
}

struct ProtobufEncoder {
  let schema: ProtobufSchema
  let options: ProtobufOptions
  var output: [UInt8] = []

  private var depthLimit: Int { min(options.limits.depth, ProtobufSchema.deepestMessage) }

  init(schema: ProtobufSchema, options: ProtobufOptions) {
    self.schema = schema
    self.options = options
  }

  mutating func write(_ index: Int, _ value: JSONValue, depth: Int) throws(JSONError) {
    guard depth <= depthLimit else { throw JSONError(.tooDeep(limit: depthLimit)) }
    let object = try value.asObject()
    let message = schema.messages[index]
    try checkMembers(object, message)
    for field in message.fields {
      do {
        try write(field, object[field.name], depth: depth)
      } catch {
        throw error.inside(field.name)
      }
    }
    if let unknown = object[ProtobufSchema.unknownMember] { try writeUnknown(unknown) }
  }

  private func checkMembers(_ object: JSONObject, _ message: ProtobufSchema.Message) throws(JSONError) {
    guard options.unknownMembers == .reject else { return }
    for member in object where message.byName[ByteKey(member.key)] == nil {
      if ByteKey.equal(member.key, ProtobufSchema.unknownMember) { continue }
      throw JSONError(.unknownMember).inside(member.key)
    }
  }

  /// Checked, since a slip there would spoil the fields around it.
  private mutating func writeUnknown(_ value: JSONValue) throws(JSONError) {
    do {
      let bytes = try Self.base64(value)
      let limit = depthLimit
      try bytes.withUnsafeBufferPointer { buffer throws(JSONError) in
        var input = ProtobufInput(buffer)
        while !input.isAtEnd {
          let start = input.position
          let (number, type) = try input.tag()
          try input.skip(number, type, from: start, depthLimit: limit)
        }
      }
      output.append(contentsOf: bytes)
    } catch {
      throw error.inside(ProtobufSchema.unknownMember)
    }
  }

  // MARK: Fields

  private mutating func write(
    _ field: ProtobufSchema.Field, _ value: JSONValue?, depth: Int
  ) throws(JSONError) {
    guard let value, !(value.isNull && !field.keepsNull) else {
      if field.label == .required, options.checkRequired { throw JSONError(.missing) }
      return
    }
    if case .map(let key, let type) = field.type {
      return try writeMap(field.number, key, type, value.asObject(), depth: depth)
    }
    if field.label == .repeated { return try writeElements(field, value.asArray(), depth: depth) }
    let start = output.count
    putTag(field.number, field.type.wireType)
    let payload = output.count
    try writeOne(field.type, value, depth: depth)
    // All zeros, of a number or a length, are the default.
    if field.hasImplicitPresence, output[payload...].allSatisfy({ $0 == 0 }) {
      output.removeSubrange(start...)
    }
  }

  private mutating func writeElements(
    _ field: ProtobufSchema.Field, _ elements: [JSONValue], depth: Int
  ) throws(JSONError) {
    if elements.isEmpty { return }
    if field.isPacked {
      putTag(field.number, .lengthDelimited)
      return try delimited { encoder throws(JSONError) in
        for (place, element) in elements.enumerated() { try encoder.writeElement(field, element, place, depth: depth) }
      }
    }
    for (place, element) in elements.enumerated() {
      putTag(field.number, field.type.wireType)
      try writeElement(field, element, place, depth: depth)
    }
  }

  private mutating func writeElement(
    _ field: ProtobufSchema.Field, _ element: JSONValue, _ place: Int, depth: Int
  ) throws(JSONError) {
    do {
      try writeOne(field.type, element, depth: depth)
    } catch {
      throw error.inside("\(place)")
    }
  }

  private mutating func writeMap(
    _ number: UInt32, _ keyType: ProtobufSchema.Scalar, _ valueType: ProtobufSchema.FieldType, _ entries: JSONObject,
    depth: Int
  ) throws(JSONError) {
    for entry in entries {
      putTag(number, .lengthDelimited)
      do {
        let key = try Self.key(entry.key, keyType)
        try delimited { encoder throws(JSONError) in
          encoder.putTag(1, keyType.wireType)
          try encoder.writeScalar(keyType, key)
          encoder.putTag(2, valueType.wireType)
          try encoder.writeOne(valueType, entry.value, depth: depth)
        }
      } catch {
        throw error.inside(entry.key)
      }
    }
  }

  private static func key(_ text: String, _ type: ProtobufSchema.Scalar) throws(JSONError) -> JSONValue {
    if case .string = type { return .string(text) }
    let value = try? JSONValue(parsing: text)
    switch (type, value) {
    case (.bool, .bool?), (_, .int?), (_, .uint?): return value ?? .null
    default: throw JSONError(.wrongType(expected: "\(type) as text", found: "string"))
    }
  }

  // MARK: Values

  private mutating func writeOne(
    _ type: ProtobufSchema.FieldType, _ value: JSONValue, depth: Int
  ) throws(JSONError) {
    switch type {
    case .scalar(let scalar): try writeScalar(scalar, value)
    case .enumeration(let index, _): putVarint(UInt64(bitPattern: Int64(try enumNumber(index, value))))
    case .message(let index, let asJSON):
      let inner = asJSON ? wrapText(index, value) : value
      try delimited { encoder throws(JSONError) in try encoder.write(index, inner, depth: depth + 1) }
    case .map: throw JSONError(.wrongType(expected: "value", found: "map"))
    }
  }

  /// The message that a JSON value stands for.
  private func wrapText(_ index: Int, _ value: JSONValue) -> JSONValue {
    if let message = JSONWrapper.message.unwrap(value) { return message }
    let name = schema.messages[index].textField?.name ?? ""
    return .object(JSONObject([(key: name, value: .string(value.text()))]))
  }

  private func enumNumber(_ index: Int, _ value: JSONValue) throws(JSONError) -> Int32 {
    switch value {
    case .string(let name):
      guard let number = schema.enums[index].numbers[ByteKey(name)] else { throw JSONError(.outOfRange) }
      return number
    default: return try Self.integer(value)
    }
  }

  private mutating func writeScalar(_ scalar: ProtobufSchema.Scalar, _ value: JSONValue) throws(JSONError) {
    switch scalar {
    case .int32: putVarint(UInt64(bitPattern: Int64(try Self.integer(value) as Int32)))
    case .int64: putVarint(UInt64(bitPattern: try Self.integer(value) as Int64))
    case .uint32: putVarint(UInt64(try Self.integer(value) as UInt32))
    case .uint64: putVarint(try Self.integer(value))
    case .sint32: putVarint(Self.zigzag(Int64(try Self.integer(value) as Int32)))
    case .sint64: putVarint(Self.zigzag(try Self.integer(value)))
    case .fixed32: putFixed(try Self.integer(value) as UInt32)
    case .fixed64: putFixed(try Self.integer(value) as UInt64)
    case .sfixed32: putFixed(UInt32(bitPattern: try Self.integer(value) as Int32))
    case .sfixed64: putFixed(UInt64(bitPattern: try Self.integer(value) as Int64))
    case .bool: putVarint(try value.asBool() ? 1 : 0)
    case .float:
      guard let float = ProtobufFloat.float(value) else { throw Self.mismatch("number", value) }
      putFixed(float.bitPattern)
    case .double:
      guard let double = ProtobufFloat.double(value) else { throw Self.mismatch("number", value) }
      putFixed(double.bitPattern)
    case .string(let form): putBytes(try Self.text(form, value))
    case .bytes(let form): putBytes(try Self.bytes(form, value))
    }
  }

  private static func mismatch(_ expected: String, _ value: JSONValue) -> JSONError {
    JSONError(.wrongType(expected: expected, found: value.typeName))
  }

  private static func integer<Integer: FixedWidthInteger>(_ value: JSONValue) throws(JSONError) -> Integer {
    let exact: Integer?
    switch value {
    case .int(let value): exact = Integer(exactly: value)
    case .uint(let value): exact = Integer(exactly: value)
    default: throw mismatch("integer", value)
    }
    guard let exact else { throw JSONError(.outOfRange) }
    return exact
  }

  private static func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: value &<< 1 ^ value &>> 63) }

  private static func text(_ form: ProtobufSchema.TextForm, _ value: JSONValue) throws(JSONError) -> [UInt8] {
    switch form {
    case .text: return Array(try value.asString().utf8)
    case .json:
      guard let plain = JSONWrapper.text.unwrap(value) else { return value.bytes() }
      return Array(try plain.asString().utf8)
    }
  }

  private static func bytes(_ form: ProtobufSchema.BytesForm, _ value: JSONValue) throws(JSONError) -> [UInt8] {
    if form != .base64, let wrapped = JSONWrapper.base64.unwrap(value) { return try base64(wrapped) }
    switch form {
    case .base64: return try base64(value)
    case .utf8: return Array(try value.asString().utf8)
    case .json: return value.bytes()
    }
  }

  private static func base64(_ value: JSONValue) throws(JSONError) -> [UInt8] {
    guard let bytes = Base64.decode(try value.asString()) else {
      throw JSONError(.wrongType(expected: "base64", found: "string"))
    }
    return bytes
  }

  // MARK: Bytes

  private mutating func putTag(_ number: UInt32, _ type: WireType) {
    putVarint(UInt64(number) << 3 | UInt64(type.rawValue))
  }

  private mutating func putVarint(_ value: UInt64) {
    if value < 0x80 {
      output.append(UInt8(value))
    } else {
      output.append(contentsOf: Self.varint(value))
    }
  }

  private static func varint(_ value: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
    return bytes
  }

  private mutating func putFixed(_ value: some FixedWidthInteger & UnsignedInteger) {
    withUnsafeBytes(of: value.littleEndian) { output.append(contentsOf: $0) }
  }

  private mutating func putBytes(_ bytes: [UInt8]) {
    putVarint(UInt64(bytes.count))
    output.append(contentsOf: bytes)
  }

  /// What `body` writes, behind its length. One byte is kept for it, the usual case.
  private mutating func delimited(
    _ body: (inout ProtobufEncoder) throws(JSONError) -> Void
  ) throws(JSONError) {
    let start = output.count
    output.append(0)
    try body(&self)
    let length = output.count - start - 1
    if length < 0x80 {
      output[start] = UInt8(length)
      return
    }
    output.replaceSubrange(start...start, with: Self.varint(UInt64(length)))
  }
}

extension ProtobufSchema.Field {
  /// Whether null is a value of it and not its absence: the JSON text `null`.
  var keepsNull: Bool {
    guard label != .repeated else { return false }
    switch type {
    case .scalar(.string(.json)), .scalar(.bytes(.json)), .message(_, asJSON: true): return true
    default: return false
    }
  }
}
