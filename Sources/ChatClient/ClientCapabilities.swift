import UnifiedChat

/// What the client adds to an adapter.
public enum ClientCapabilities {
  /// Made by the cache where the vendor has none, for this device alone.
  static let made: [Capability: String] = [
    .messageLocalExtension: "in the cache of this device",
    .messageDeleteForMe: "hidden on this device only",
    .channelPin: "on this device only",
    .channelHide: "on this device only",
    .channelDraft: "on this device only",
    .searchLocal: "over the cache of this device",
  ]

  /// What an app can do, as `Chat.capabilities` says it, where an adapter declares `adapter`.
  public static func effective(_ adapter: CapabilitySet) -> CapabilitySet {
    CapabilitySet(
      Dictionary(
        uniqueKeysWithValues: Capability.allCases.map { capability in
          let level = adapter[capability]
          if level != .native, let how = made[capability] { return (capability, .emulated(how)) }
          if level == .absent, let how = derived(capability, from: adapter) { return (capability, .emulated(how)) }
          return (capability, level)
        }))
  }

  /// What follows from other things that the vendor has.
  private static func derived(_ capability: Capability, from adapter: CapabilitySet) -> String? {
    switch capability {
    case .unreadTotal where adapter.has(.unreadChannel): "sum over the known channels"
    case .messageIdempotentSend where adapter.has(.messageClientID): "look before a second send"
    default: nil
    }
  }
}
