/// JSON Pointer, RFC 6901.
public enum JSONPointer {
  /// One segment with its slash: `a/b` becomes `/a~1b`.
  public static func escape(_ key: String) -> String {
    var escaped = "/"
    for scalar in key.unicodeScalars {
      switch scalar {
      case "~": escaped += "~0"
      case "/": escaped += "~1"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  /// The segments of a pointer; nil if it is neither empty nor begins with a slash, or has a stray `~`.
  public static func segments(_ pointer: String) -> [String]? {
    guard !pointer.isEmpty else { return [] }
    var parts = pointer.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.removeFirst().isEmpty else { return nil }
    var segments: [String] = []
    for part in parts {
      guard let segment = unescape(part) else { return nil }
      segments.append(segment)
    }
    return segments
  }

  private static func unescape(_ part: Substring.UnicodeScalarView) -> String? {
    var text = ""
    var rest = part.makeIterator()
    while let scalar = rest.next() {
      guard scalar == "~" else {
        text.unicodeScalars.append(scalar)
        continue
      }
      switch rest.next() {
      case "0": text.unicodeScalars.append("~")
      case "1": text.unicodeScalars.append("/")
      default: return nil
      }
    }
    return text
  }

  /// An array index as RFC 6901 §4 writes it: digits without a leading zero.
  static func index(_ segment: String) -> Int? {
    guard let first = segment.utf8.first, segment.utf8.allSatisfy(\.isDigit), first != 0x30 || segment.utf8.count == 1
    else { return nil }
    return Int(segment)
  }
}

extension JSONValue {
  /// The value at an RFC 6901 pointer (`/ctx/0/id`); nil if nothing is there.
  ///
  /// Setting replaces the value there, adds a member to an object, or, at index `count` or `-`, appends to an array.
  /// Setting nil removes the member or element. A pointer whose parent is absent or no container changes nothing:
  /// use `set(_:at:)` to learn of it.
  public subscript(pointer pointer: String) -> JSONValue? {
    get { JSONPointer.segments(pointer).flatMap { read($0[...]) } }
    set { _ = set(newValue, at: pointer) }
  }

  /// As the subscript's setter. False if nothing was changed because the place does not exist or the pointer is none.
  public mutating func set(_ value: JSONValue?, at pointer: String) -> Bool {
    guard let segments = JSONPointer.segments(pointer) else { return false }
    return assign(value, segments[...])
  }

  private func read(_ segments: ArraySlice<String>) -> JSONValue? {
    var value = self
    for segment in segments {
      switch value {
      case .object(let object):
        guard let member = object[segment] else { return nil }
        value = member
      case .array(let elements):
        guard let index = JSONPointer.index(segment), elements.indices.contains(index) else { return nil }
        value = elements[index]
      default: return nil
      }
    }
    return value
  }

  private mutating func assign(_ value: JSONValue?, _ segments: ArraySlice<String>) -> Bool {
    guard let segment = segments.first else {
      guard let value else { return false }
      self = value
      return true
    }
    switch self {
    case .object(var object):
      guard let changed = Self.assign(value, segments, in: &object, segment) else { return false }
      if changed { self = .object(object) }
      return changed
    case .array(var elements):
      guard Self.assign(value, segments, in: &elements, segment) else { return false }
      self = .array(elements)
      return true
    default: return false
    }
  }

  private static func assign(
    _ value: JSONValue?, _ segments: ArraySlice<String>, in object: inout JSONObject, _ key: String
  ) -> Bool? {
    let rest = segments.dropFirst()
    if rest.isEmpty {
      if value == nil && object[key] == nil { return false }
      object[key] = value
      return true
    }
    guard var child = object[key], child.assign(value, rest) else { return false }
    object[key] = child
    return true
  }

  private static func assign(
    _ value: JSONValue?, _ segments: ArraySlice<String>, in elements: inout [JSONValue], _ segment: String
  ) -> Bool {
    let rest = segments.dropFirst()
    guard let index = segment == "-" ? elements.count : JSONPointer.index(segment), index <= elements.count else {
      return false
    }
    if index == elements.count {
      guard rest.isEmpty, let value else { return false }
      elements.append(value)
      return true
    }
    guard rest.isEmpty else { return elements[index].assign(value, rest) }
    if let value { elements[index] = value } else { elements.remove(at: index) }
    return true
  }
}
