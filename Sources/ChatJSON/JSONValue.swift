/// One JSON value, exact: integers keep all 64 bits, other numbers keep their text, objects keep their order.
public enum JSONValue: Sendable {
  case null
  case bool(Bool)
  /// An integer written without fraction or exponent that fits `Int64`.
  case int(Int64)
  /// An integer above `Int64.max` that fits `UInt64`.
  case uint(UInt64)
  /// Any other number, as the text that stood in the document.
  case number(JSONNumber)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)
}

extension JSONValue {
  public var isNull: Bool { if case .null = self { true } else { false } }

  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  public var int: Int64? { if case .int(let value) = self { value } else { nil } }

  public var uint: UInt64? {
    switch self {
    case .uint(let value): value
    case .int(let value): UInt64(exactly: value)
    default: nil
    }
  }

  /// The nearest double; nil for a number beyond its range.
  public var double: Double? {
    switch self {
    case .int(let value): Double(value)
    case .uint(let value): Double(value)
    case .number(let value): value.double.isFinite ? value.double : nil
    default: nil
    }
  }

  public var string: String? { if case .string(let value) = self { value } else { nil } }

  public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

  public var object: JSONObject? { if case .object(let value) = self { value } else { nil } }

  /// The member `key` of an object; nil for an absent member and for any value that is no object.
  public subscript(key: String) -> JSONValue? { object?[key] }

  /// The element at `index` of an array; nil out of range and for any value that is no array.
  public subscript(index: Int) -> JSONValue? {
    guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
    return elements[index]
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }
  public init(integerLiteral value: Int64) { self = .int(value) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(JSONObject(elements.map { (key: $0.0, value: $0.1) }))
  }
  /// `nil` is null where a `JSONValue` is wanted. Beware of `condition ? value : nil` with a `value` that is no
  /// optional: that is null too, and not "no value".
  public init(nilLiteral: ()) { self = .null }
}
