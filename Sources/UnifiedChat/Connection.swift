/// Where a connection stands. The legal transitions are those of `canMove(to:)`.
public enum ConnectionState: Sendable, Hashable {
  case disconnected(DisconnectReason)
  case connecting
  case connected
  /// The n-th try since the link was lost, from 1.
  case reconnecting(attempt: Int)
  /// No network path, or in the background: nothing is tried until `resume()`.
  case suspended
  /// Final: nothing is tried until `connect` is called again.
  case refused(RefusalReason)

  public func canMove(to next: ConnectionState) -> Bool {
    switch (self, next) {
    case (_, .disconnected(.requested)): true
    case (.disconnected, .connecting), (.refused, .connecting): true
    case (.connecting, .connected), (.connecting, .refused), (.connecting, .disconnected): true
    case (.connected, .reconnecting), (.connected, .refused), (.connected, .suspended): true
    case (.reconnecting, .connected), (.reconnecting, .reconnecting), (.reconnecting, .refused),
      (.reconnecting, .suspended), (.reconnecting, .disconnected(.gaveUp)):
      true
    case (.suspended, .reconnecting): true
    default: false
    }
  }
}

public enum DisconnectReason: Sendable, Hashable {
  /// Never connected yet.
  case initial
  case requested, gaveUp
  case failed(ChatError)
}

public enum RefusalReason: Sendable, Hashable {
  case kickedByOtherDevice, kickedByAdmin, credentialExpired, credentialInvalid, userDisabled, appDisabled
  case protocolRefused
}

/// Whether what was missed has been fetched.
public enum SyncState: Sendable, Hashable {
  case idle
  /// 0…1 where it is known.
  case syncing(Double?)
  case upToDate
}

/// What opens a connection. Never printed.
public enum Credential: Sendable, Hashable {
  /// For services that let any user id in, or sign by the provider.
  case none
  case token(String)
}

/// A signature over one operation, for vendors that sign (`auth.signature`).
public struct SignedOperation: Sendable, Hashable {
  public var signature: String
  public var timestamp: Int64
  public var nonce: String

  public init(signature: String, timestamp: Int64, nonce: String) {
    self.signature = signature
    self.timestamp = timestamp
    self.nonce = nonce
  }
}

/// The app's own server, asked for credentials.
public protocol CredentialProvider: Sendable {
  /// - Throws: anything; the connection is then refused with the cause.
  func credential(for user: UserID) async throws -> Credential
  /// Asked only by vendors that sign; nil means unsigned. `fields` are the parts to sign in the vendor's order,
  /// without timestamp and nonce.
  func sign(_ operation: String, fields: [String], for user: UserID) async throws -> SignedOperation?
}

extension CredentialProvider {
  public func sign(_ operation: String, fields: [String], for user: UserID) async throws -> SignedOperation? { nil }
}
