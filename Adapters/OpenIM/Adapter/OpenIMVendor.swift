import ChatTransport
import OpenIMWire
import UnifiedChat

/// What the registry lists of this vendor.
public enum OpenIMVendor {
  public static func entry(transports: Transports) -> AdapterRegistry.Entry {
    AdapterRegistry.Entry(
      vendor: "openim", capabilities: ["": OpenIMCapabilities.native], rules: OpenIMProfile.rules,
      makeAdapter: { (profile, environment) throws(ChatError) in
        try OpenIMAdapter(profile: profile, environment: environment, transports: transports)
      },
      makeSource: { (profile, environment) throws(ChatError) in
        try OpenIMSource(profile: profile, environment: environment, transports: transports)
      },
      makeDestination: { (profile, environment) throws(ChatError) in
        try OpenIMDestination(profile: profile, environment: environment, transports: transports)
      },
      issueCredential: { (user, profile, environment) async throws(ChatError) in
        let admin = try OpenIMAdmin(profile: profile, environment: environment, http: transports.http)
        return .token(try await admin.issueToken(for: user, platform: try profile.platform()))
      })
  }
}
