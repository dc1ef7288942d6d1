/// The place of a committed message in its channel: a total order, never by local clock. Not comparable between
/// channels.
///
/// Either the vendor's sequence number, or the server's time in ms followed by the vendor's id, as a number where ids
/// are numbers, else by bytes.
public struct MessagePosition: Sendable, Hashable, Comparable {
  /// Sequence number, or ms since 1970.
  public let major: Int64
  /// The numeric id among equal times; 0 where there is none.
  public let minor: Int64
  /// The id's bytes among equal numbers; "" where there is none.
  public let tail: String

  public init(sequence: Int64) { self.init(major: sequence, minor: 0, tail: "") }
  public init(time: Timestamp, number: Int64) { self.init(major: time.milliseconds, minor: number, tail: "") }
  public init(time: Timestamp, id: MessageID) { self.init(major: time.milliseconds, minor: 0, tail: id.rawValue) }

  public init(major: Int64, minor: Int64, tail: String) {
    self.major = major
    self.minor = minor
    self.tail = tail
  }

  public static func == (left: Self, right: Self) -> Bool {
    left.major == right.major && left.minor == right.minor && left.tail.utf8.elementsEqual(right.tail.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(major)
    hasher.combine(minor)
  }

  public static func < (left: Self, right: Self) -> Bool {
    if left.major != right.major { return left.major < right.major }
    if left.minor != right.minor { return left.minor < right.minor }
    return left.tail.utf8.lexicographicallyPrecedes(right.tail.utf8)
  }
}

extension MessagePosition: Codable, LosslessStringConvertible {
  /// `major/minor/tail`
  public var description: String { "\(major)/\(minor)/\(tail)" }

  public init?(_ description: String) {
    let parts = description.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let major = Int64(parts[0]), let minor = Int64(parts[1]) else { return nil }
    self.init(major: major, minor: minor, tail: String(parts[2]))
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let position = Self(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not major/minor/tail")
    }
    self = position
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
