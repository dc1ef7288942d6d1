import LeanCloudWire
import UnifiedChat

/// Which of the vendor's two models a profile speaks.
enum LeanCloudModel: String, Sendable, CaseIterable {
  /// Conversations.
  case conversation
  /// Peers and groups (AVSession, AVGroup, 2014).
  case session

  init(_ profile: Profile) throws(ChatError) {
    let name = profile.model ?? "conversation"
    guard let model = LeanCloudModel(rawValue: name) else {
      throw ChatError(
        .invalidArgument(field: "model"), operation: .configuration,
        detail: "\"\(name)\" is no model of leancloud; it may be conversation or session")
    }
    self = model
  }
}

enum LeanCloudProfile {
  static let rules = ProfileRules(
    models: LeanCloudModel.allCases.map(\.rawValue), needsAppID: true, needsAPIEndpoint: false, needsAppKey: true,
    options: LeanCloudSourceOptions.names.merging(
      [
        "protocol": "sub-protocol of the socket: protobuf2 (the default), proto2base64 or json",
        "tag": "a user's login with the same tag ends the other one",
        "export": "archive: read the exported files in this folder in place of the service",
      ], uniquingKeysWith: { first, _ in first }))

  /// A string option.
  static func text(_ name: String, _ profile: Profile) throws(ChatError) -> String? {
    guard let value = profile.options[name] else { return nil }
    do { return try value.decode(String.self) } catch {
      throw ChatError(
        .invalidArgument(field: "options.\(name)"), operation: .configuration, detail: "must be a string")
    }
  }

  static func subprotocol(_ profile: Profile) throws(ChatError) -> LeanCloudSubprotocol {
    let name = try text("protocol", profile) ?? "protobuf2"
    guard let format = LeanCloudSubprotocol.Format(rawValue: name) else {
      throw ChatError(
        .invalidArgument(field: "options.protocol"), operation: .configuration,
        detail: "\"\(name)\" is none of json, protobuf2, proto2base64")
    }
    return LeanCloudSubprotocol(format)
  }
}
