import ChatCrypto
import Foundation
import UnifiedChat

/// Which id a user gets at the destination.
///
/// The own id, or what the rule makes of it, where that fits; else one made of its SHA-256: the same in every run, and
/// of letters and digits only.
public struct UserMapping: Sendable, Hashable {
  /// A regular expression over the whole id, and what takes the place of a match (`$1` is the first group).
  public struct Rule: Sendable, Hashable {
    public var pattern: String
    public var template: String

    /// - Throws: `.invalidArgument(field: "rule")` for a pattern that is none.
    public init(pattern: String, template: String) throws(ChatError) {
      self.pattern = pattern
      self.template = template
      do { _ = try NSRegularExpression(pattern: pattern) } catch {
        throw ChatError(
          .invalidArgument(field: "rule"), operation: .plan, detail: "\"\(pattern)\" is no regular expression")
      }
    }

    func apply(to id: UserID) -> UserID {
      guard let expression = try? NSRegularExpression(pattern: pattern) else { return id }
      let text = id.rawValue
      let range = NSRange(text.startIndex..<text.endIndex, in: text)
      return UserID(expression.stringByReplacingMatches(in: text, range: range, withTemplate: template))
    }
  }

  /// Chosen by hand; they win over the rule.
  public var explicit: [UserID: UserID]
  public var rule: Rule?

  public init(explicit: [UserID: UserID] = [:], rule: Rule? = nil) {
    self.explicit = explicit
    self.rule = rule
  }

  /// What to try, in this order.
  func candidates(for user: UserID, limits: DestinationLimits) -> [UserID] {
    if let chosen = explicit[user] { return [chosen] }
    let wanted = rule?.apply(to: user) ?? user
    let fits = limits.userIDBytes.map { wanted.rawValue.utf8.count <= $0 } ?? true
    return (fits && !wanted.rawValue.isEmpty ? [wanted] : []) + derived(for: user, limits: limits)
  }

  /// For destinations that refuse the characters of the own id.
  func derived(for user: UserID, limits: DestinationLimits) -> [UserID] {
    let digest = Hex.encode(Digest.sha256(Array(user.rawValue.utf8)))
    let length = min(limits.userIDBytes ?? 32, 32)
    // A second and third cut of the digest, should the first belong to somebody else.
    return (0..<3).map { UserID("u" + digest.dropFirst($0 * 11).prefix(max(length - 1, 1))) }
  }
}

/// Users whom a mapping would melt into one.
public struct UserCollision: Sendable, Hashable, CustomStringConvertible {
  public var destination: UserID
  /// In the order of the archive, at least two.
  public var originals: [UserID]

  public var description: String {
    "\(destination) would be \(originals.map(\.rawValue).joined(separator: " and "))"
  }
}

extension UserMapping {
  /// At most `limit` ids that more than one user of the archive would get. Empty without file and rule: what is the
  /// own id of each cannot collide.
  public func collisions(
    in archive: Archive, limits: DestinationLimits, limit: Int = 100
  ) async throws(ChatError) -> [UserCollision] {
    try await collisions(limits: limits, limit: limit) { after throws(ChatError) in
      try await archive.users(after: after, limit: 500).map { ($0.ordinal, $0.id) }
    }
  }

  /// The same for users who come in pages of their ordinals and ids, up to an empty one.
  func collisions(
    limits: DestinationLimits, limit: Int = 100,
    _ users: (Int64) async throws(ChatError) -> [(ordinal: Int64, id: UserID)]
  ) async throws(ChatError) -> [UserCollision] {
    guard rule != nil || !explicit.isEmpty else { return [] }
    // On disk, since an archive may hold more users than fit into memory.
    let table = try Database(path: "", mode: .readWrite, operation: .plan)
    try table.execute("CREATE TABLE ids (destination TEXT, ordinal INTEGER, original TEXT)")
    var after: Int64 = 0
    while true {
      let page = try await users(after)
      guard let last = page.last else { break }
      after = last.ordinal
      try table.transaction { () throws(ChatError) in
        for user in page {
          guard let first = candidates(for: user.id, limits: limits).first else { continue }
          try table.run(
            "INSERT INTO ids VALUES (?, ?, ?)", .text(first.rawValue), .integer(user.ordinal),
            .text(user.id.rawValue))
        }
      }
    }
    let doubled = try table.rows(
      "SELECT destination FROM ids GROUP BY destination HAVING count(*) > 1 ORDER BY destination LIMIT ?",
      .integer(limit)
    ) { row in row.text(0) }
    return try doubled.map { destination throws(ChatError) in
      let originals = try table.rows(
        "SELECT original FROM ids WHERE destination = ? ORDER BY ordinal LIMIT 10", .text(destination)
      ) { row in UserID(row.text(0)) }
      return UserCollision(destination: UserID(destination), originals: originals)
    }
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
