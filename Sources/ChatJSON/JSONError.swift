/// Where and why a document is not what was expected.
public struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Reason: Sendable, Hashable {
    case unexpectedEnd
    case unexpectedByte(UInt8)
    case invalidNumber, invalidEscape, invalidUTF8, loneSurrogate
    case controlCharacter(UInt8)
    case duplicateKey, trailingBytes
    case tooDeep(limit: Int)
    case tooLarge(limit: Int)
    case missing
    case wrongType(expected: String, found: String)
    case outOfRange
    /// A member that the schema has no place for.
    case unknownMember
    case protobuf(ProtobufFault)
  }

  /// What only the protobuf form of a document can have wrong.
  public enum ProtobufFault: Sendable, Hashable {
    case varintTooLong
    case fieldNumber(UInt64)
    case wireType(UInt8)
    case unbalancedGroup, lengthBeyondEnd
    /// The schema has no message of this name.
    case unknownMessage(String)
    /// A field table says something that means nothing.
    case table(String)
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

  /// The same error seen from one level up.
  func inside(_ key: String) -> JSONError {
    JSONError(reason, path: JSONPointer.escape(key) + path, offset: offset)
  }

  public var description: String {
    "JSON: \(reason) at \(path.isEmpty ? "/" : path)" + (offset.map { " (byte \($0))" } ?? "")
  }
}

/// What the parser bounds and how it treats what RFC 8259 leaves open.
public struct JSONLimits: Sendable, Hashable {
  /// Nesting of arrays and objects. A value tree is never deeper than `JSONLimits.deepestTree`, whatever stands
  /// here; `JSONReader` itself obeys the number as it is, and needs no stack for it.
  public var depth: Int
  /// Bytes of the document.
  public var size: Int
  public var duplicateKeys: DuplicateKeys
  public var loneSurrogates: LoneSurrogates

  /// What two members of one object with the same key (after escapes, byte by byte) mean. With `lastWins` the later
  /// value stands at the earlier one's place.
  public enum DuplicateKeys: Sendable, Hashable { case lastWins, reject }

  /// What `\ud83d` without its other half means: an error, or U+FFFD in its place. RFC 8259 §8.2 leaves it open, and
  /// Swift's `String` cannot hold it; whoever must keep the original keeps the bytes beside the value.
  public enum LoneSurrogates: Sendable, Hashable { case reject, replace }

  /// The runtime releases a nested array by recursion, and trees are written by recursion: this depth fits the
  /// 512 KiB stack of a secondary thread on Apple's platforms, also without optimisation.
  public static let deepestTree = 512

  public init(
    depth: Int = 512, size: Int = 64 << 20, duplicateKeys: DuplicateKeys = .lastWins,
    loneSurrogates: LoneSurrogates = .reject
  ) {
    self.depth = depth
    self.size = size
    self.duplicateKeys = duplicateKeys
    self.loneSurrogates = loneSurrogates
  }
}
