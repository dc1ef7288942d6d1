/// A number kept as its text: a fraction, an exponent, an integer beyond 64 bits, or `-0`.
public struct JSONNumber: Sendable {
  /// The text, valid by RFC 8259 §6.
  public let text: String

  init(validated text: String) { self.text = text }

  /// A number by RFC 8259 §6 and nothing else, not even white space.
  public init(parsing text: String) throws(JSONError) {
    let bytes = Array(text.utf8)
    guard let first = bytes.first else { throw JSONError(.unexpectedEnd, offset: 0) }
    guard first.isDigit || first == UInt8(ascii: "-") else { throw JSONError(.invalidNumber, offset: 0) }
    let length = try JSONReader.read(bytes) { reader throws(JSONError) in try reader.scanNumber().count }
    guard length == bytes.count else { throw JSONError(.trailingBytes, offset: length) }
    self.text = text
  }

  /// The shortest text that reads back as `double`; nil if it is infinite or not a number, which JSON cannot say.
  public init?(_ double: Double) {
    guard double.isFinite else { return nil }
    text = "\(double)"
  }

  /// The nearest double; infinite when the text is beyond its range.
  public var double: Double { Double(text) ?? .nan }
}

extension JSONNumber: Hashable {
  /// Equal when the texts are: `1.0` and `1.00` differ, as what a document says differs.
  public static func == (left: JSONNumber, right: JSONNumber) -> Bool { ByteKey.equal(left.text, right.text) }
  public func hash(into hasher: inout Hasher) { ByteKey.hash(text, into: &hasher) }
}
