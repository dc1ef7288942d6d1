import Foundation

/// One JSON document as its text, kept byte for byte: custom data, unknown content, raw records.
///
/// The contract does not look into it; `decode` and `init(encoding:)` are for apps.
public struct JSONText: Sendable, Hashable, Codable, CustomStringConvertible {
  public let text: String

  /// `text` is not checked here; whoever puts it on a wire checks it there.
  public init(unchecked text: String) { self.text = text }

  /// - Throws: `.invalidArgument` when `text` is not one JSON document.
  public init(_ text: String) throws(ChatError) {
    do {
      _ = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
    } catch {
      throw ChatError(.invalidArgument(field: "json"), operation: .encode, detail: "not one JSON document")
    }
    self.text = text
  }

  public init(encoding value: some Encodable) throws(ChatError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do { text = String(decoding: try encoder.encode(value), as: UTF8.self) } catch {
      throw ChatError(.invalidArgument(field: "json"), operation: .encode, detail: "value cannot be encoded")
    }
  }

  public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws(ChatError) -> Value {
    do { return try JSONDecoder().decode(type, from: Data(text.utf8)) } catch {
      throw ChatError(.invalidArgument(field: "json"), operation: .decode, detail: "document is no \(type)")
    }
  }

  public static func == (left: JSONText, right: JSONText) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }
  public func hash(into hasher: inout Hasher) { hasher.combine(text.utf8.count) }

  public init(from decoder: any Decoder) throws { text = try decoder.singleValueContainer().decode(String.self) }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  public var description: String { text }
}
