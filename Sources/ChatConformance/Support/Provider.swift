import Synchronization
import UnifiedChat

/// The app's token server as a case scripts it: counts what it is asked.
final class TestProvider: CredentialProvider {
  private let answer: @Sendable (UserID) async throws -> Credential
  private let signer: (@Sendable (String, [String], UserID) async throws -> SignedOperation?)?
  private let count = Mutex(0)

  init(
    sign: (@Sendable (String, [String], UserID) async throws -> SignedOperation?)? = nil,
    _ answer: @escaping @Sendable (UserID) async throws -> Credential
  ) {
    signer = sign
    self.answer = answer
  }

  /// How often a credential was asked for.
  var calls: Int { count.withLock { $0 } }

  func credential(for user: UserID) async throws -> Credential {
    count.withLock { $0 += 1 }
    return try await answer(user)
  }

  func sign(_ operation: String, fields: [String], for user: UserID) async throws -> SignedOperation? {
    try await signer?(operation, fields, user)
  }
}
