/// Reads field tables. All names are collected first, so that messages may refer to each other in any order.
struct ProtobufTableLoader {
  private var messageIndex: [ByteKey: Int] = [:]
  private var enumIndex: [ByteKey: Int] = [:]
  private var schema: ProtobufSchema?

  mutating func load(_ tables: [JSONValue]) throws(JSONError) -> ProtobufSchema {
    var schema = ProtobufSchema.empty
    for (place, table) in tables.enumerated() {
      try Self.at(tables.count > 1 ? "\(place)" : nil) { () throws(JSONError) in
        try collectNames(table, &schema)
      }
    }
    schema.messageIndex = messageIndex
    for (place, table) in tables.enumerated() {
      try Self.at(tables.count > 1 ? "\(place)" : nil) { () throws(JSONError) in
        try readMessages(table, &schema)
      }
    }
    return schema
  }

  /// Runs `body` and puts `key` before the path of its errors.
  private static func at<Result>(
    _ key: String?, _ body: () throws(JSONError) -> Result
  ) throws(JSONError) -> Result {
    do { return try body() } catch { throw key.map { error.inside($0) } ?? error }
  }

  private static func fault(_ text: String, _ path: String = "") -> JSONError {
    JSONError(.protobuf(.table(text)), path: path)
  }

  private static func allow(_ names: [String], in object: JSONObject) throws(JSONError) {
    for key in object.keys where !names.contains(where: { ByteKey.equal($0, key) }) {
      throw JSONError(.unknownMember, path: JSONPointer.escape(key))
    }
  }

  // MARK: Names

  private mutating func collectNames(_ table: JSONValue, _ schema: inout ProtobufSchema) throws(JSONError) {
    try Self.allow(["syntax", "source", "comment", "messages", "enums"], in: table.asObject())
    for name in try table.requireObject("messages").keys {
      guard messageIndex.updateValue(schema.messages.count, forKey: ByteKey(name)) == nil else {
        throw Self.fault("two messages with this name", "/messages" + JSONPointer.escape(name))
      }
      schema.messages.append(.init(name: name, fields: [], byNumber: [:], byName: [:]))
    }
    guard let enums = table["enums"] else { return }
    for (name, numbers) in try enums.asObject(path: "/enums") {
      let path = "/enums" + JSONPointer.escape(name)
      guard enumIndex.updateValue(schema.enums.count, forKey: ByteKey(name)) == nil else {
        throw Self.fault("two enums with this name", path)
      }
      schema.enums.append(try Self.enumeration(numbers, path))
    }
  }

  private static func enumeration(_ table: JSONValue, _ path: String) throws(JSONError) -> ProtobufSchema.Enumeration {
    var enumeration = ProtobufSchema.Enumeration(numbers: [:], names: [:])
    for (name, value) in try table.asObject(path: path) {
      let place = path + JSONPointer.escape(name)
      guard let number = Int32(exactly: try value.asInt(path: place)) else { throw JSONError(.outOfRange, path: place) }
      enumeration.numbers[ByteKey(name)] = number
      if enumeration.names[number] == nil { enumeration.names[number] = name }
    }
    return enumeration
  }

  // MARK: Fields

  private func readMessages(_ table: JSONValue, _ schema: inout ProtobufSchema) throws(JSONError) {
    let syntax = try table.requireString("syntax")
    guard syntax == "proto2" || syntax == "proto3" else { throw Self.fault("proto2 or proto3", "/syntax") }
    for (name, fields) in try table.requireObject("messages") {
      guard let index = messageIndex[ByteKey(name)] else { continue }
      let path = "/messages" + JSONPointer.escape(name)
      for (place, field) in try fields.asArray(path: path).enumerated() {
        do {
          try add(readField(field, isProto3: syntax == "proto3"), to: &schema.messages[index])
        } catch {
          throw JSONError(error.reason, path: "\(path)/\(place)\(error.path)")
        }
      }
    }
    try checkTextMessages(schema)
  }

  private func add(_ field: ProtobufSchema.Field, to message: inout ProtobufSchema.Message) throws(JSONError) {
    let place = message.fields.count
    guard message.byNumber.updateValue(place, forKey: field.number) == nil else {
      throw Self.fault("the message has this number already", "/number")
    }
    guard message.byName.updateValue(place, forKey: ByteKey(field.name)) == nil else {
      throw Self.fault("the message has this name already", "/name")
    }
    message.fields.append(field)
  }

  private func readField(_ field: JSONValue, isProto3: Bool) throws(JSONError) -> ProtobufSchema.Field {
    try Self.allow(
      ["name", "number", "type", "of", "label", "packed", "oneof", "as", "key", "value", "comment", "source"],
      in: field.asObject())
    let name = try field.requireString("name")
    guard !ByteKey.equal(name, ProtobufSchema.unknownMember) else { throw Self.fault("a reserved name", "/name") }
    let type = try readType(field, mayBeMap: true)
    let oneof = try Self.optionalString(field, "oneof")
    var label = try Self.label(field, isProto3: isProto3)
    if case .map = type { label = .repeated }
    if case .message = type, label == .implicit { label = .optional }
    if oneof != nil {
      guard label != .repeated && label != .required else { throw Self.fault("not in a oneof", "/label") }
      label = .optional
    }
    let packed = try field["packed"].map { value throws(JSONError) in try value.asBool(path: "/packed") }
    return ProtobufSchema.Field(
      name: name, number: try Self.number(field), type: type, label: label,
      isPacked: label == .repeated && type.isPackable && packed ?? isProto3, oneof: oneof)
  }

  private static func number(_ field: JSONValue) throws(JSONError) -> UInt32 {
    let number = try field.requireInt("number")
    guard (1...536_870_911).contains(number) else { throw JSONError(.outOfRange, path: "/number") }
    return UInt32(truncatingIfNeeded: number)
  }

  private static func optionalString(_ field: JSONValue, _ key: String) throws(JSONError) -> String? {
    guard let value = field[key] else { return nil }
    return try value.asString(path: JSONPointer.escape(key))
  }

  private static func label(_ field: JSONValue, isProto3: Bool) throws(JSONError) -> ProtobufSchema.Label {
    switch try optionalString(field, "label") {
    case nil: return isProto3 ? .implicit : .optional
    case "optional": return .optional
    case "required": return .required
    case "repeated": return .repeated
    default: throw fault("optional, required or repeated", "/label")
    }
  }

  // MARK: Types

  private func readType(_ field: JSONValue, mayBeMap: Bool) throws(JSONError) -> ProtobufSchema.FieldType {
    let type = try field.requireString("type")
    let form = try Self.optionalString(field, "as")
    switch type {
    case "enum":
      let index = try reference(field, enumIndex, "enum")
      guard form == nil || form == "number" || form == "name" else { throw Self.fault("name or number", "/as") }
      return .enumeration(index, asNumber: form == "number")
    case "message":
      let index = try reference(field, messageIndex, "message")
      guard form == nil || form == "json" else { throw Self.fault("json", "/as") }
      return .message(index, asJSON: form == "json")
    case "map" where mayBeMap:
      return try readMap(field)
    default:
      return .scalar(try Self.scalar(type, form))
    }
  }

  private func readMap(_ field: JSONValue) throws(JSONError) -> ProtobufSchema.FieldType {
    let key = try Self.scalar(field.requireString("key"), nil, path: "/key")
    switch key {
    case .float, .double, .bytes: throw Self.fault("an integer type, bool or string", "/key")
    default: break
    }
    let value = try field.require("value")
    do {
      try Self.allow(["type", "of", "as", "comment"], in: value.asObject())
      return .map(key: key, value: try readType(value, mayBeMap: false))
    } catch {
      throw error.inside("value")
    }
  }

  private func reference(
    _ field: JSONValue, _ index: [ByteKey: Int], _ what: String
  ) throws(JSONError) -> Int {
    guard let place = index[ByteKey(try field.requireString("of"))] else {
      throw Self.fault("no \(what) of this name", "/of")
    }
    return place
  }

  private static func scalar(
    _ name: String, _ form: String?, path: String = "/type"
  ) throws(JSONError) -> ProtobufSchema.Scalar {
    switch (name, form) {
    case ("string", nil): return .string(.text)
    case ("string", "json"): return .string(.json)
    case ("bytes", nil), ("bytes", "base64"): return .bytes(.base64)
    case ("bytes", "utf8"): return .bytes(.utf8)
    case ("bytes", "json"): return .bytes(.json)
    default: break
    }
    guard let scalar = numbers[name] else { throw fault("no type of this name, or none with this form", path) }
    guard form == nil else { throw fault("no form of this type", "/as") }
    return scalar
  }

  private static let numbers: [String: ProtobufSchema.Scalar] = [
    "int32": .int32, "int64": .int64, "uint32": .uint32, "uint64": .uint64, "sint32": .sint32, "sint64": .sint64,
    "fixed32": .fixed32, "fixed64": .fixed64, "sfixed32": .sfixed32, "sfixed64": .sfixed64, "bool": .bool,
    "float": .float, "double": .double,
  ]

  /// A message that stands for the JSON text in it has one field, a plain string.
  private func checkTextMessages(_ schema: ProtobufSchema) throws(JSONError) {
    for message in schema.messages {
      for field in message.fields {
        guard case .message(let index, asJSON: true) = field.type else { continue }
        guard schema.messages[index].textField == nil, !schema.messages[index].fields.isEmpty else { continue }
        throw Self.fault(
          "as json needs a message whose only field is a string",
          "/messages\(JSONPointer.escape(message.name))\(JSONPointer.escape(field.name))")
      }
    }
  }
}

extension ProtobufSchema {
  static let empty = ProtobufSchema()

  private init() {}
}

extension ProtobufSchema.Message {
  /// The only field, if it is a plain string.
  var textField: ProtobufSchema.Field? {
    guard fields.count == 1, let field = fields.first, field.label != .repeated,
      case .scalar(.string(.text)) = field.type
    else { return nil }
    return field
  }
}
