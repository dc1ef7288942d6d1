extension JSONValue {
  public init(_ value: String) { self = .string(value) }
  public init(_ value: Int64) { self = .int(value) }
  public init(_ value: Int) { self = .int(Int64(value)) }
  public init(_ value: Bool) { self = .bool(value) }
  public init(_ value: [JSONValue]) { self = .array(value) }
  public init(_ value: JSONObject) { self = .object(value) }

  /// `.int` if it fits `Int64`, else `.uint`.
  public init(_ value: UInt64) { self = Int64(exactly: value).map { .int($0) } ?? .uint(value) }

  /// Null if `value` is infinite or not a number, which JSON cannot say.
  public init(_ value: Double) { self = JSONNumber(value).map { .number($0) } ?? .null }

  /// "null", "bool", "integer", "number", "string", "array" or "object".
  public var typeName: String {
    switch self {
    case .null: "null"
    case .bool: "bool"
    case .int, .uint: "integer"
    case .number: "number"
    case .string: "string"
    case .array: "array"
    case .object: "object"
    }
  }
}

/// Members that must be there. `path` is the pointer to this object, for the error.
extension JSONValue {
  /// The member `key`.
  /// - Throws: `.wrongType` if this is no object, `.missing` if it has no such member; a null member is a value.
  public func require(_ key: String, path: String = "") throws(JSONError) -> JSONValue {
    guard case .object(let object) = self else {
      throw JSONError(.wrongType(expected: "object", found: typeName), path: path)
    }
    return try object.require(key, path: path)
  }

  public func requireString(_ key: String, path: String = "") throws(JSONError) -> String {
    try require(key, path: path).asString(path: path + JSONPointer.escape(key))
  }

  /// An integer within `Int64`; `1.0` is none.
  public func requireInt(_ key: String, path: String = "") throws(JSONError) -> Int64 {
    try require(key, path: path).asInt(path: path + JSONPointer.escape(key))
  }

  public func requireBool(_ key: String, path: String = "") throws(JSONError) -> Bool {
    try require(key, path: path).asBool(path: path + JSONPointer.escape(key))
  }

  public func requireArray(_ key: String, path: String = "") throws(JSONError) -> [JSONValue] {
    try require(key, path: path).asArray(path: path + JSONPointer.escape(key))
  }

  public func requireObject(_ key: String, path: String = "") throws(JSONError) -> JSONObject {
    try require(key, path: path).asObject(path: path + JSONPointer.escape(key))
  }
}

extension JSONObject {
  /// The member `key`. `path` is the pointer to this object, for the error.
  /// - Throws: `.missing`.
  public func require(_ key: String, path: String = "") throws(JSONError) -> JSONValue {
    guard let value = self[key] else { throw JSONError(.missing, path: path + JSONPointer.escape(key)) }
    return value
  }
}

/// This value as one type, or `.wrongType` with `path` in it.
extension JSONValue {
  public func asString(path: String = "") throws(JSONError) -> String {
    guard case .string(let value) = self else { throw mismatch("string", path) }
    return value
  }

  public func asInt(path: String = "") throws(JSONError) -> Int64 {
    switch self {
    case .int(let value): return value
    case .uint: throw JSONError(.outOfRange, path: path)
    default: throw mismatch("integer", path)
    }
  }

  public func asBool(path: String = "") throws(JSONError) -> Bool {
    guard case .bool(let value) = self else { throw mismatch("bool", path) }
    return value
  }

  public func asArray(path: String = "") throws(JSONError) -> [JSONValue] {
    guard case .array(let value) = self else { throw mismatch("array", path) }
    return value
  }

  public func asObject(path: String = "") throws(JSONError) -> JSONObject {
    guard case .object(let value) = self else { throw mismatch("object", path) }
    return value
  }

  private func mismatch(_ expected: String, _ path: String) -> JSONError {
    JSONError(.wrongType(expected: expected, found: typeName), path: path)
  }
}
