/// An object with one reserved member, for what does not fit the form that a table asks for.
enum JSONWrapper: String {
  case text = "@text"
  case base64 = "@base64"
  case message = "@message"

  func wrap(_ value: JSONValue) -> JSONValue { .object(JSONObject([(key: rawValue, value: value)])) }

  func unwrap(_ value: JSONValue) -> JSONValue? {
    guard case .object(let object) = value, object.count == 1 else { return nil }
    return object[rawValue]
  }
}

/// Floats as JSON numbers, and the three values that JSON has no number for as strings.
enum ProtobufFloat {
  static func json(_ value: Double) -> JSONValue {
    guard let number = JSONNumber(value) else { return .string(name(value)) }
    return .number(number)
  }

  /// The shortest text that reads back as this `Float`, shorter than that of its double.
  static func json(_ value: Float) -> JSONValue {
    guard value.isFinite else { return .string(name(Double(value))) }
    return .number(JSONNumber(validated: "\(value)"))
  }

  private static func name(_ value: Double) -> String {
    value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity"
  }

  /// Nil if `value` is neither a number nor one of the three names.
  static func double(_ value: JSONValue) -> Double? {
    switch value {
    case .string("NaN"): .nan
    case .string("Infinity"): .infinity
    case .string("-Infinity"): -.infinity
    default: value.double
    }
  }

  static func float(_ value: JSONValue) -> Float? {
    // From the text, since rounding twice is not rounding once.
    if case .number(let number) = value { return Float(number.text) }
    return double(value).map { Float($0) }
  }
}
