extension ProtobufSchema {
  /// The JSON value of the message `name` in `bytes`: an object with the members in the table's order, then
  /// `@unknown` if there is something that the table does not know.
  ///
  /// Within an entry of a map, a field that is neither key nor value is dropped, as protobuf's own libraries do.
  /// Of a field that comes twice the last one stays, messages are merged, as protobuf has it. Never traps.
  /// - Throws: `JSONError` with the path of members and the byte offset; `.protobuf(.unknownMessage)`.
  public func decode(
    _ name: String, from bytes: [UInt8], options: ProtobufOptions = ProtobufOptions()
  ) throws(JSONError) -> JSONValue {
    guard let index = messageIndex[ByteKey(name)] else { throw JSONError(.protobuf(.unknownMessage(name))) }
    guard bytes.count <= options.limits.size else { throw JSONError(.tooLarge(limit: options.limits.size)) }
    return try bytes.withUnsafeBufferPointer { buffer throws(JSONError) in
      let decoder = ProtobufDecoder(schema: self, options: options)
      var input = ProtobufInput(buffer)
      var state = ProtobufDecoder.State(messages[index])
      try decoder.read(index, &input, &state, depth: 1)
      return .object(try decoder.object(index, state))
    }
  }
}

struct ProtobufDecoder {
  let schema: ProtobufSchema
  let options: ProtobufOptions

  /// What has been read of a message so far. A message may come in parts, so it becomes JSON only at its end.
  struct State {
    var slots: [Slot]
    var unknown: [UInt8] = []

    init(_ message: ProtobufSchema.Message) { slots = Array(repeating: .absent, count: message.fields.count) }
  }

  enum Slot {
    case absent
    case value(JSONValue)
    case list([JSONValue])
    case map(JSONObject)
    case message(State)
  }

  private var depthLimit: Int { min(options.limits.depth, ProtobufSchema.deepestMessage) }

  /// Reads all of `input` into `state`.
  func read(_ index: Int, _ input: inout ProtobufInput, _ state: inout State, depth: Int) throws(JSONError) {
    guard depth <= depthLimit else { throw input.error(.tooDeep(limit: depthLimit), at: input.position) }
    let message = schema.messages[index]
    while !input.isAtEnd {
      let start = input.position
      let (number, type) = try input.tag()
      guard let place = message.byNumber[number], accepts(message.fields[place], type) else {
        try input.skip(number, type, from: start, depthLimit: depthLimit)
        state.unknown.append(contentsOf: input.buffer(start..<input.position))
        continue
      }
      let field = message.fields[place]
      do {
        try read(field, type, &input, &state.slots[place], depth: depth)
      } catch {
        throw error.inside(field.name)
      }
      if let oneof = field.oneof { clearOthers(of: oneof, than: place, message, &state) }
    }
  }

  private func accepts(_ field: ProtobufSchema.Field, _ type: WireType) -> Bool {
    if field.type.wireType == type { return true }
    return field.label == .repeated && field.type.isPackable && type == .lengthDelimited
  }

  private func clearOthers(of oneof: String, than place: Int, _ message: ProtobufSchema.Message, _ state: inout State) {
    for (other, field) in message.fields.enumerated() where other != place && field.oneof == oneof {
      state.slots[other] = .absent
    }
  }

  // MARK: Fields

  private func read(
    _ field: ProtobufSchema.Field, _ type: WireType, _ input: inout ProtobufInput, _ slot: inout Slot, depth: Int
  ) throws(JSONError) {
    if case .map(let key, let value) = field.type {
      return try readEntry(key, value, &input, &slot, depth: depth)
    }
    if field.label == .repeated { return try readElements(field, type, &input, &slot, depth: depth) }
    if case .message(let index, let asJSON) = field.type, !asJSON {
      return try merge(index, &input, &slot, depth: depth)
    }
    slot = .value(try readOne(field.type, &input, depth: depth))
  }

  private func merge(
    _ index: Int, _ input: inout ProtobufInput, _ slot: inout Slot, depth: Int
  ) throws(JSONError) {
    var part = input.part(try input.delimited())
    var state: State
    if case .message(let earlier) = slot { state = earlier } else { state = State(schema.messages[index]) }
    // Leaves `state` the only owner, so that many parts cost no copies.
    slot = .absent
    try read(index, &part, &state, depth: depth + 1)
    slot = .message(state)
  }

  /// One element, or, packed, several.
  private func readElements(
    _ field: ProtobufSchema.Field, _ type: WireType, _ input: inout ProtobufInput, _ slot: inout Slot, depth: Int
  ) throws(JSONError) {
    var elements: [JSONValue] = []
    if case .list(let earlier) = slot { elements = earlier }
    slot = .absent
    do {
      if field.type.isPackable, type == .lengthDelimited {
        var part = input.part(try input.delimited())
        while !part.isAtEnd { elements.append(try readOne(field.type, &part, depth: depth)) }
      } else {
        elements.append(try readOne(field.type, &input, depth: depth))
      }
    } catch {
      throw error.inside("\(elements.count)")
    }
    slot = .list(elements)
  }

  private func readEntry(
    _ keyType: ProtobufSchema.Scalar, _ valueType: ProtobufSchema.FieldType, _ input: inout ProtobufInput,
    _ slot: inout Slot, depth: Int
  ) throws(JSONError) {
    var part = input.part(try input.delimited())
    var key: JSONValue?
    var value: JSONValue?
    while !part.isAtEnd {
      let start = part.position
      let (number, type) = try part.tag()
      if number == 1, type == keyType.wireType {
        key = try readScalar(keyType, &part)
      } else if number == 2, type == valueType.wireType {
        value = try readOne(valueType, &part, depth: depth)
      } else {
        try part.skip(number, type, from: start, depthLimit: depthLimit)
      }
    }
    var entries = JSONObject()
    if case .map(let earlier) = slot { entries = earlier }
    slot = .absent
    if value == nil { value = try zeroOrEmpty(valueType) }
    entries[Self.keyText(key ?? zero(.scalar(keyType)))] = value
    slot = .map(entries)
  }

  private static func keyText(_ key: JSONValue) -> String {
    if case .string(let text) = key { text } else { key.text() }
  }

  // MARK: Values

  private func readOne(
    _ type: ProtobufSchema.FieldType, _ input: inout ProtobufInput, depth: Int
  ) throws(JSONError) -> JSONValue {
    switch type {
    case .scalar(let scalar): return try readScalar(scalar, &input)
    case .enumeration(let index, let asNumber):
      return enumValue(index, Int32(truncatingIfNeeded: try input.varint()), asNumber: asNumber)
    case .message(let index, let asJSON):
      var part = input.part(try input.delimited())
      var state = State(schema.messages[index])
      try read(index, &part, &state, depth: depth + 1)
      return asJSON ? try textMessage(index, state) : .object(try object(index, state))
    case .map: return .null
    }
  }

  private func readScalar(
    _ scalar: ProtobufSchema.Scalar, _ input: inout ProtobufInput
  ) throws(JSONError) -> JSONValue {
    switch scalar {
    case .int32: return .int(Int64(Int32(truncatingIfNeeded: try input.varint())))
    case .int64: return .int(Int64(truncatingIfNeeded: try input.varint()))
    case .uint32: return .int(Int64(UInt32(truncatingIfNeeded: try input.varint())))
    case .uint64: return JSONValue(try input.varint())
    case .sint32: return .int(Int64(Int32(truncatingIfNeeded: Self.unzigzag(try input.varint() & 0xFFFF_FFFF))))
    case .sint64: return .int(Self.unzigzag(try input.varint()))
    case .fixed32: return .int(Int64(try input.fixed32()))
    case .fixed64: return JSONValue(try input.fixed64())
    case .sfixed32: return .int(Int64(Int32(bitPattern: try input.fixed32())))
    case .sfixed64: return .int(Int64(bitPattern: try input.fixed64()))
    case .bool: return .bool(try input.varint() != 0)
    case .float: return ProtobufFloat.json(Float(bitPattern: try input.fixed32()))
    case .double: return ProtobufFloat.json(Double(bitPattern: try input.fixed64()))
    case .string(let form): return try text(form, input.delimited(), input)
    case .bytes(let form): return bytes(form, input.buffer(try input.delimited()))
    }
  }

  private static func unzigzag(_ value: UInt64) -> Int64 {
    Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }

  private func enumValue(_ index: Int, _ number: Int32, asNumber: Bool) -> JSONValue {
    if !asNumber, let name = schema.enums[index].names[number] { return .string(name) }
    return .int(Int64(number))
  }

  private func text(
    _ form: ProtobufSchema.TextForm, _ range: Range<Int>, _ input: ProtobufInput
  ) throws(JSONError) -> JSONValue {
    let buffer = input.buffer(range)
    guard let text = String(validating: buffer, as: UTF8.self) else {
      let invalid = buffer.baseAddress.flatMap { UTF8Check.firstInvalid($0, buffer.count) } ?? 0
      throw input.error(.invalidUTF8, at: range.lowerBound + invalid)
    }
    guard form == .json else { return .string(text) }
    return json(buffer, .text) ?? JSONWrapper.text.wrap(.string(text))
  }

  private func bytes(_ form: ProtobufSchema.BytesForm, _ buffer: UnsafeBufferPointer<UInt8>) -> JSONValue {
    switch form {
    case .base64: return .string(Base64.encode(buffer))
    case .utf8:
      if let text = String(validating: buffer, as: UTF8.self) { return .string(text) }
    case .json:
      if let value = json(buffer, .base64) { return value }
    }
    return JSONWrapper.base64.wrap(.string(Base64.encode(buffer)))
  }

  /// Nil if the bytes are no JSON text, or one that would be taken for a wrapper.
  private func json(_ buffer: UnsafeBufferPointer<UInt8>, _ wrapper: JSONWrapper) -> JSONValue? {
    guard let value = try? JSONValue(parsing: buffer, limits: options.limits), wrapper.unwrap(value) == nil else {
      return nil
    }
    return value
  }

  private func textMessage(_ index: Int, _ state: State) throws(JSONError) -> JSONValue {
    let object = try object(index, state)
    if let field = schema.messages[index].textField, object.count == 1, case .string(var text)? = object[field.name],
      let value = text.withUTF8({ json($0, .message) })
    {
      return value
    }
    return JSONWrapper.message.wrap(.object(object))
  }

  // MARK: The whole message

  func object(_ index: Int, _ state: State) throws(JSONError) -> JSONObject {
    var members: [JSONObject.Member] = []
    members.reserveCapacity(state.slots.count)
    for (place, field) in schema.messages[index].fields.enumerated() {
      do {
        if let value = try value(field, state.slots[place]) { members.append((field.name, value)) }
      } catch {
        throw error.inside(field.name)
      }
    }
    if !state.unknown.isEmpty {
      members.append((ProtobufSchema.unknownMember, .string(Base64.encode(state.unknown))))
    }
    return JSONObject(members)
  }

  private func value(_ field: ProtobufSchema.Field, _ slot: Slot) throws(JSONError) -> JSONValue? {
    switch slot {
    case .value(let value): return value
    case .list(let elements): return .array(elements)
    case .map(let entries): return .object(entries)
    case .message(let state):
      guard case .message(let index, _) = field.type else { return nil }
      return .object(try object(index, state))
    case .absent: break
    }
    if field.label == .required, options.checkRequired { throw JSONError(.missing) }
    guard options.emitDefaults else { return nil }
    if case .map = field.type { return .object(JSONObject()) }
    if field.label == .repeated { return .array([]) }
    // Not a conditional expression: there `nil` would be the JSON value null.
    guard field.label == .implicit else { return nil }
    return zero(field.type)
  }

  /// What an absent value of a map entry means.
  private func zeroOrEmpty(_ type: ProtobufSchema.FieldType) throws(JSONError) -> JSONValue {
    guard case .message(let index, let asJSON) = type else { return zero(type) }
    let state = State(schema.messages[index])
    return asJSON ? try textMessage(index, state) : .object(try object(index, state))
  }

  private func zero(_ type: ProtobufSchema.FieldType) -> JSONValue {
    switch type {
    case .enumeration(let index, let asNumber): enumValue(index, 0, asNumber: asNumber)
    case .message, .map: .null
    case .scalar(.bool): .bool(false)
    case .scalar(.string(.text)), .scalar(.bytes(.base64)), .scalar(.bytes(.utf8)): .string("")
    case .scalar(.string(.json)): JSONWrapper.text.wrap(.string(""))
    case .scalar(.bytes(.json)): JSONWrapper.base64.wrap(.string(""))
    case .scalar: .int(0)
    }
  }
}
