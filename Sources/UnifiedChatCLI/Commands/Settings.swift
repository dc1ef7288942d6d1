import AllAdapters
import ChatClient
import Foundation
import UnifiedChat

/// The configuration that a command works with, its secrets resolved only when they are needed.
struct Settings {
  static let configOption = OptionSpec.value("config", "FILE", "the configuration (default unifiedchat.json)")
  static let profileOption = OptionSpec.value("profile", "NAME", "the profile (default: the one in use)")

  static let trustOption = OptionSpec.flag(
    "trust-unsigned-envelopes",
    "believe what imports kept beside items although this admin secret did not sign it; any member may have written it")

  private let trustsUnsigned: Bool
  let configuration: ChatConfiguration
  let registry: AdapterRegistry

  static func registry() -> AdapterRegistry { AllAdapters.registry() }

  /// - Throws: a configuration failure that lists every problem of the file.
  init(_ invocation: Invocation) throws {
    let path = invocation.value("config") ?? "unifiedchat.json"
    registry = AllAdapters.registry()
    trustsUnsigned = invocation.has(Self.trustOption.name)
    let reading = ConfigurationFile.read(path: path, registry: registry)
    for warning in reading.warnings { Standard.error("\(path): \(warning)") }
    guard let configuration = reading.configuration, reading.errors.isEmpty else {
      throw Failure(
        .configuration, reading.errors.map { "\(path): \($0)" }.joined(separator: "\nunifiedchat: "))
    }
    self.configuration = configuration
  }

  func profile(named name: String?) throws -> Profile { try configuration.profile(name) }

  /// Secrets of tools, which need the admin's beside the app's.
  func environment(_ profile: Profile, device: String) throws -> AdapterEnvironment {
    Secrets.warn(profile.credentials)
    var environment = AdapterEnvironment(device: device)
    environment.appKey = try profile.credentials.appKey?.resolve(field: "credentials/appKey")
    guard let admin = profile.credentials.admin else {
      throw Failure(
        .configuration,
        "profile \"\(profile.name)\" has no credentials.admin: tools need the API token, server secret or master key, "
          + "for example {\"file\": \"secrets/\(profile.name).admin\"}")
    }
    environment.adminSecret = try admin.resolve(field: "credentials/admin")
    environment.trustsUnsignedEnvelopes = trustsUnsigned
    return environment
  }

  func source(_ profile: Profile) throws -> any ChatSource {
    try registry.entry(for: profile.vendor).makeSource(profile, environment(profile, device: "source"))
  }

  func destination(_ profile: Profile) throws -> any ChatDestination {
    try registry.entry(for: profile.vendor).makeDestination(profile, environment(profile, device: "destination"))
  }
}
