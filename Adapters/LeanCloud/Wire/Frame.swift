import ChatJSON

/// One command of the realtime socket in its flattened form: envelope and command fields side by side, `cmd` and `op`
/// in lower case with hyphens, times as numbers. Whatever the sub-protocol, everything above the codec sees this form;
/// members that nobody knows stay where they are.
///
/// - Source: wire reference §3 (`GenericCommand`, and the JSON form of `lc.json.N`).
public struct LeanCloudFrame: Sendable, Hashable {
  public var object: JSONObject

  public init(object: JSONObject) { self.object = object }

  public init(_ command: String, _ operation: String? = nil) {
    object = JSONObject()
    object["cmd"] = .string(command)
    object["op"] = operation.map { .string($0) }
  }

  /// The empty object `{}`: the ping of the JSON sub-protocols.
  public static let ping = LeanCloudFrame(object: JSONObject())
  public var isPing: Bool { object.isEmpty }

  public var command: String { object["cmd"]?.string ?? "" }
  public var operation: String { object["op"]?.string ?? "" }

  /// The serial number that a reply repeats; a push has none.
  public var serial: Int64? {
    get { object["i"]?.int }
    set { object["i"] = newValue.map { .int($0) } }
  }

  public var peerID: String? {
    get { string("peerId") }
    set { object["peerId"] = newValue.map { .string($0) } }
  }

  /// Setting nil leaves the member out, which is how the wire says "absent".
  public subscript(key: String) -> JSONValue? {
    get { object[key].flatMap { $0.isNull ? nil : $0 } }
    set { object[key] = newValue }
  }

  public func string(_ key: String) -> String? { object[key]?.string }
  public func int(_ key: String) -> Int64? { object[key]?.int }

  /// Old clients write 1 for true.
  public func bool(_ key: String) -> Bool? { object[key]?.bool ?? object[key]?.int.map { $0 != 0 } }

  /// The strings of an array; a missing one is empty, and what is no string is left out.
  public func strings(_ key: String) -> [String] { object[key]?.array?.compactMap(\.string) ?? [] }
}

extension JSONValue {
  /// An array of strings.
  public static func strings(_ texts: some Sequence<String>) -> JSONValue { .array(texts.map { .string($0) }) }
}

/// What a sub-protocol's frames are made of.
public enum LeanCloudPayload: Sendable, Hashable {
  case text(String)
  case binary([UInt8])

  public var byteCount: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}

/// Why a frame could not be read or written.
public struct LeanCloudFrameError: Error, Sendable, Hashable, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}

/// `lc.<format>.<version>`, as it stands in `Sec-WebSocket-Protocol` or in the query of the URL.
public struct LeanCloudSubprotocol: Sendable, Hashable {
  public enum Format: String, Sendable, Hashable, CaseIterable {
    /// JSON text, flattened. Also what a client without any sub-protocol speaks.
    case json
    /// `GenericCommand` bytes.
    case protobuf2
    /// The base64 of the same bytes, as text.
    case proto2base64
  }

  public var format: Format
  /// 1: the server pushes stored messages after login. 2 and 3: it tells unread counts instead; with 3 only `read`
  /// clears them.
  public var version: Int
  /// The client named a sub-protocol, and the server must repeat it.
  public var isNamed: Bool

  public init(_ format: Format, version: Int = 3, isNamed: Bool = true) {
    self.format = format
    self.version = version
    self.isNamed = isNamed
  }

  /// What clients of the first and second generation speak: no name, JSON, behaviour of version 1.
  public static let unnamed = LeanCloudSubprotocol(.json, version: 1, isNamed: false)

  /// nil for a name that is not served.
  public init?(name: String) {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0] == "lc", let format = Format(rawValue: String(parts[1])),
      let version = Int(parts[2]), (1...3).contains(version)
    else { return nil }
    self.init(format, version: version)
  }

  public var name: String { "lc.\(format.rawValue).\(version)" }
}
