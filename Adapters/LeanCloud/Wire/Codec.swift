import ChatCrypto
import ChatJSON

/// Frames to the bytes of one sub-protocol and back.
///
/// The protobuf forms differ from the flattened one in shape alone: the command's fields stand in a member of their own
/// (`sessionMessage`), operations are written with underscores.
public struct LeanCloudCodec: Sendable {
  public var subprotocol: LeanCloudSubprotocol

  public init(_ subprotocol: LeanCloudSubprotocol) { self.subprotocol = subprotocol }

  /// - Throws: when a member has a type that the command's field cannot hold.
  public func encode(_ frame: LeanCloudFrame) throws(LeanCloudFrameError) -> LeanCloudPayload {
    switch subprotocol.format {
    case .json: return .text(JSONValue.object(frame.object).text())
    case .protobuf2: return .binary(try Self.bytes(of: frame))
    case .proto2base64: return .text(Base64.encode(try Self.bytes(of: frame)))
    }
  }

  /// - Throws: for what is no frame of this sub-protocol.
  public func decode(_ payload: LeanCloudPayload) throws(LeanCloudFrameError) -> LeanCloudFrame {
    switch (subprotocol.format, payload) {
    case (.json, .text(let text)):
      guard let object = (try? JSONValue(parsing: text, limits: LeanCloudJSON.limits))?.object else {
        throw LeanCloudFrameError("a frame that is no JSON object")
      }
      return LeanCloudFrame(object: object)
    case (.protobuf2, .binary(let bytes)): return try Self.frame(of: bytes)
    case (.proto2base64, .text(let text)):
      guard let bytes = Base64.decode(text) else { throw LeanCloudFrameError("a frame that is no base64") }
      return try Self.frame(of: bytes)
    default: throw LeanCloudFrameError("a text frame in place of a binary one, or the reverse")
    }
  }

  // MARK: Protobuf

  private static let message = "GenericCommand"
  private static let schema = LeanCloudCommandFields.schema

  /// What stands beside the command's own fields.
  private static let envelope: Set<String> = [
    "cmd", "op", "appId", "peerId", "i", "installationId", "priority", "service", "serverTs", "clientTs",
    "notificationType",
  ]

  /// Commands with a message of their own; the others are the envelope alone.
  private static let commands: Set<String> = [
    "data", "session", "error", "direct", "ack", "unread", "read", "rcp", "logs", "conv", "room", "presence", "report",
    "patch", "pubsub", "blacklist",
  ]

  private static func bytes(of frame: LeanCloudFrame) throws(LeanCloudFrameError) -> [UInt8] {
    var outer = JSONObject()
    var inner = JSONObject()
    for member in frame.object {
      switch member.key {
      case "op": outer["op"] = .string(frame.operation.replacing("-", with: "_"))
      case "@unknown": outer["@unknown"] = member.value
      case let key where envelope.contains(key): outer[key] = member.value
      default: inner[member.key] = member.value
      }
    }
    if commands.contains(frame.command) { outer[frame.command + "Message"] = .object(inner) }
    // Old JSON clients say 1 for true; nobody means a member that the table does not know.
    let options = ProtobufOptions(checkRequired: false, unknownMembers: .ignore)
    do { return try schema.encode(message, .object(outer), options: options) } catch {
      throw LeanCloudFrameError("a \(frame.command) frame that cannot be written: \(error)")
    }
  }

  private static func frame(of bytes: [UInt8]) throws(LeanCloudFrameError) -> LeanCloudFrame {
    let outer: JSONObject
    do {
      outer =
        try schema.decode(message, from: bytes, options: ProtobufOptions(checkRequired: false)).object ?? JSONObject()
    } catch { throw LeanCloudFrameError("a frame that cannot be read: \(error)") }
    guard let command = outer["cmd"]?.string else { throw LeanCloudFrameError("a frame without a known command") }
    var flat = JSONObject()
    for member in outer {
      switch member.key {
      case "op": flat["op"] = .string((member.value.string ?? member.value.text()).replacing("_", with: "-"))
      case command + "Message":
        for field in member.value.object ?? JSONObject() where flat[field.key] == nil { flat[field.key] = field.value }
      default: flat[member.key] = member.value
      }
    }
    return LeanCloudFrame(object: flat)
  }
}

/// How JSON from the service is read, on the line, over REST and in files.
public enum LeanCloudJSON {
  /// Half of a surrogate pair, which some client cut off, becomes U+FFFD: a frame or a page is not lost for it.
  public static let limits = JSONLimits(loneSurrogates: .replace)
}
