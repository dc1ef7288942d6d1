import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// Sendbird, for a registry of vendors.
public enum SendbirdVendor {
  public static func entry(transports: Transports) -> AdapterRegistry.Entry {
    AdapterRegistry.Entry(
      vendor: SendbirdErrors.vendor, capabilities: ["": SendbirdCapabilities.all], rules: SendbirdProfile.rules,
      makeAdapter: { (profile, environment) throws(ChatError) in
        SendbirdAdapter(profile: profile, environment: environment, transports: transports)
      },
      makeSource: { (profile, environment) throws(ChatError) in
        if let files = profile.options["exportFiles"] {
          return try SendbirdExportSource(option: files, environment, transports)
        }
        return try SendbirdSource(profile: profile, environment: environment, transports: transports)
      },
      makeDestination: { (profile, environment) throws(ChatError) in
        try SendbirdDestination(profile: profile, environment: environment, transports: transports)
      },
      issueCredential: { (user, profile, environment) async throws(ChatError) in
        try await issue(user, profile, environment, transports)
      },
      readExport: { (path, environment) throws(ChatError) in
        try SendbirdExportSource(path: path, environment, transports)
      })
  }

  /// A session token of the vendor's usual life of seven days.
  private static func issue(
    _ user: UserID, _ profile: Profile, _ environment: AdapterEnvironment, _ transports: Transports
  ) async throws(ChatError) -> Credential {
    let admin = try SendbirdAdmin(
      profile: profile, environment: environment, transports: transports, operation: .renewCredential)
    let json = try await admin.call("POST", ["users", user.rawValue, "token"], body: JSONObject())
    guard let token = json.text("token") else { throw SendbirdAdapter.malformed(.renewCredential) }
    return .token(token)
  }
}
