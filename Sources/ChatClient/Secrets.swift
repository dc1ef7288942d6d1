import Foundation
import UnifiedChat

#if canImport(Security)
  import Security
#endif

extension SecretReference {
  /// The secret itself. Of a file one line end at its end is dropped.
  /// - Parameter field: where the reference stands, for the error.
  /// - Throws: `.invalidArgument(field)` with the mend when there is nothing; the secret is in no message.
  public func resolve(
    field: String, environment: [String: String] = ProcessInfo.processInfo.environment
  ) throws(ChatError) -> String {
    func refuse(_ what: String, _ mend: String) -> ChatError {
      ChatError(.invalidArgument(field: field), operation: .configuration, detail: "\(self) \(what); \(mend)")
    }
    switch self {
    case .literal(let secret): return secret
    case .environment(let name):
      guard let secret = environment[name] else { throw refuse("is not set", "export it") }
      guard !secret.isEmpty else { throw refuse("is empty", "give it a value") }
      return secret
    case .file(let path):
      guard let data = FileManager.default.contents(atPath: path) else {
        throw refuse("cannot be read", "make it, readable for this user")
      }
      guard var secret = String(validating: data, as: UTF8.self) else { throw refuse("is no text", "write the secret as text") }
      if secret.hasSuffix("\r\n") || secret.hasSuffix("\n") { secret.removeLast() }
      guard !secret.isEmpty else { throw refuse("is empty", "write the secret into it") }
      return secret
    case .keychain(let item):
      guard let secret = Self.keychainItem(item) else { throw refuse("is not there", Self.keychainMend) }
      return secret
    }
  }

  #if canImport(Security)
    private static let keychainMend = "add a generic password of this service name"

    private static func keychainItem(_ service: String) -> String? {
      let query: [CFString: Any] = [
        kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecReturnData: true,
        kSecMatchLimit: kSecMatchLimitOne,
      ]
      var found: CFTypeRef?
      guard SecItemCopyMatching(query as CFDictionary, &found) == errSecSuccess, let data = found as? Data else {
        return nil
      }
      return String(validating: data, as: UTF8.self)
    }
  #else
    private static let keychainMend = "a keychain exists on Apple platforms only: use {\"env\": …} or {\"file\": …}"

    private static func keychainItem(_ service: String) -> String? { nil }
  #endif
}
