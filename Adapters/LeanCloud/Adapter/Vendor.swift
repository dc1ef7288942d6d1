import ChatInterchange
import ChatTransport
import UnifiedChat

/// The line by which a registry knows LeanCloud.
public enum LeanCloudVendor {
  public static func entry(transports: Transports) -> AdapterRegistry.Entry {
    AdapterRegistry.Entry(
      vendor: "leancloud",
      capabilities: [
        "": LeanCloudCapabilities.conversation,
        LeanCloudModel.conversation.rawValue: LeanCloudCapabilities.conversation,
        LeanCloudModel.session.rawValue: LeanCloudCapabilities.session,
      ],
      rules: LeanCloudProfile.rules,
      makeAdapter: { (profile, environment) throws(ChatError) in
        switch try LeanCloudModel(profile) {
        case .conversation:
          try LeanCloudAdapter(profile: profile, environment: environment, transports: transports)
        case .session:
          try LeanCloudPeerAdapter(profile: profile, environment: environment, transports: transports)
        }
      },
      makeSource: { (profile, environment) throws(ChatError) in
        if let path = try LeanCloudProfile.text("export", profile) {
          return try LeanCloudExport(
            path: path, http: transports.http, options: try LeanCloudSourceOptions(profile),
            timeout: profile.retry.requestTimeout, envelopes: EnvelopeReader(environment))
        }
        return try LeanCloudSource(profile: profile, environment: environment, transports: transports)
      },
      makeDestination: { (profile, environment) throws(ChatError) in
        try LeanCloudDestination(profile: profile, environment: environment, transports: transports)
      },
      readExport: { (path, environment) throws(ChatError) in
        try LeanCloudExport(path: path, http: transports.http, envelopes: EnvelopeReader(environment))
      })
  }
}
