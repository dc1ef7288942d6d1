/// Where and why a document is not what was expected.
public struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Reason: Sendable, Hashable {
    case unexpectedEnd, unexpectedByte(UInt8), invalidNumber, invalidEscape, invalidUTF8, loneSurrogate
    case controlCharacter(UInt8), duplicateKey, trailingBytes, tooDeep(limit: Int), tooLarge(limit: Int)
    case missing, wrongType(expected: String, found: String), outOfRange
  }

  public var reason: Reason
  /// A JSON Pointer (RFC 6901) to the value, "" for the document itself.
  public var path: String
  /// The offset of the offending byte, where bytes were read.
  public var offset: Int?

  public init(_ reason: Reason, path: String = "", offset: Int? = nil) {
    self.reason = reason
    self.path = path
    self.offset = offset
  }

  public var description: String {
    "JSON: \(reason) at \(path.isEmpty ? "/" : path)" + (offset.map { " (byte \($0))" } ?? "")
  }
}

/// What the parser bounds and how it treats what RFC 8259 leaves open.
public struct JSONLimits: Sendable, Hashable {
  /// Nesting of arrays and objects.
  public var depth: Int
  /// Bytes of the document.
  public var size: Int
  public var duplicateKeys: DuplicateKeys

  public enum DuplicateKeys: Sendable, Hashable { case lastWins, reject }

  public init(depth: Int = 512, size: Int = 64 << 20, duplicateKeys: DuplicateKeys = .lastWins) {
    self.depth = depth
    self.size = size
    self.duplicateKeys = duplicateKeys
  }
}

extension JSONValue {
  /// Parses one document: exactly one value with white space around it.
  public init(parsing bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) {
    throw JSONError(.unexpectedEnd)
  }

  public init(parsing text: String, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    try self.init(parsing: Array(text.utf8), limits: limits)
  }

  /// The shortest form: no white space, members in order, only what must be escaped is escaped.
  public func bytes() -> [UInt8] { [] }

  public func text() -> String { String(decoding: bytes(), as: UTF8.self) }

  /// Members sorted by the bytes of their keys at every level, otherwise as `bytes()`: equal values give equal bytes.
  public func canonicalBytes() -> [UInt8] { [] }
}
