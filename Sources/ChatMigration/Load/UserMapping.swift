import ChatCrypto
import UnifiedChat

/// Which id a user gets at the destination.
///
/// The own id where it fits, else one made of its SHA-256: the same in every run, and of letters and digits only.
public struct UserMapping: Sendable, Hashable {
  /// Chosen by hand; they win over the rule.
  public var explicit: [UserID: UserID]

  public init(explicit: [UserID: UserID] = [:]) { self.explicit = explicit }

  /// What to try, in this order.
  func candidates(for user: UserID, limits: DestinationLimits) -> [UserID] {
    if let chosen = explicit[user] { return [chosen] }
    let fits = limits.userIDBytes.map { user.rawValue.utf8.count <= $0 } ?? true
    return (fits ? [user] : []) + derived(for: user, limits: limits)
  }

  /// For destinations that refuse the characters of the own id.
  func derived(for user: UserID, limits: DestinationLimits) -> [UserID] {
    let digest = Hex.encode(Digest.sha256(Array(user.rawValue.utf8)))
    let length = min(limits.userIDBytes ?? 32, 32)
    // A second and third cut of the digest, should the first belong to somebody else.
    return (0..<3).map { UserID("u" + digest.dropFirst($0 * 11).prefix(max(length - 1, 1))) }
  }
}

/// Ids of users at the destination, as the ledger knows them, with the newest at hand.
actor UserDirectory {
  private let ledger: any Ledger
  private let mapping: UserMapping
  private let limits: DestinationLimits
  private var known: [UserID: UserID] = [:]
  /// Beyond this the memory is let go and filled again.
  private static let capacity = 50_000

  init(ledger: any Ledger, mapping: UserMapping, limits: DestinationLimits) {
    self.ledger = ledger
    self.mapping = mapping
    self.limits = limits
  }

  /// An id for each of `users`, total and injective: those whom the archive does not know get one as well.
  func destinations(of users: Set<UserID>) async throws(ChatError) -> [UserID: UserID] {
    var result: [UserID: UserID] = [:]
    let missing = users.filter { known[$0] == nil }
    if !missing.isEmpty {
      let found = try await ledger.destinations(of: Array(missing))
      if known.count + found.count > Self.capacity { known = [:] }
      known.merge(found) { _, new in new }
    }
    for user in users.sorted() {
      if let destination = known[user] {
        result[user] = destination
      } else {
        let assigned = try await ledger.assign(user, oneOf: mapping.candidates(for: user, limits: limits))
        known[user] = assigned
        result[user] = assigned
      }
    }
    return result
  }

  func forget(_ user: UserID) { known[user] = nil }
}
