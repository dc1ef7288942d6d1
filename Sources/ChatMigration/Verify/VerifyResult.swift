import ChatInterchange
import Foundation
import UnifiedChat

/// One character a channel, as copying tools print it.
public enum VerifySign: String, Sendable, Hashable, CaseIterable, Codable, CodingKeyRepresentable {
  /// The same on both sides, but for declared losses.
  case equal = "="
  /// Something is missing at the destination.
  case missing = "+"
  /// Something is at the destination that the archive does not have.
  case extra = "-"
  /// There on both sides, and different.
  case different = "*"
  /// Could not be read or checked.
  case failed = "!"

  public var meaning: String {
    switch self {
    case .equal: "equal"
    case .missing: "missing at the destination"
    case .extra: "not in the archive"
    case .different: "different"
    case .failed: "not verified"
    }
  }
}

/// One item that is not as it should be.
public struct VerifyFinding: Sendable, Hashable, Codable {
  /// `user`, `channel`, `member`, `message` or `file`.
  public var kind: String
  public var sign: VerifySign
  /// The original id, or the destination's where there is no original.
  public var id: String
  /// The path of the field, or what happened: `missing`, `doubled`, `order`.
  public var what: String

  public init(kind: String, sign: VerifySign, id: String, what: String) {
    self.kind = kind
    self.sign = sign
    self.id = id
    self.what = what
  }
}

/// A channel of the archive against the same one of the destination.
public struct ChannelVerification: Sendable, Hashable, Codable {
  /// Examples kept of each channel.
  public static let exampleLimit = 20

  public var channel: ChannelID
  public var destination: ChannelID?
  /// Messages in the archive.
  public var expected = 0
  /// Messages at the destination that came from the archive, each counted once.
  public var found = 0
  public var missing = 0
  /// Twice or more at the destination.
  public var doubled = 0
  /// At the destination and neither from the archive nor a notice of the service.
  public var extra = 0
  /// Notices that the service itself wrote, which is no error.
  public var notices = 0
  public var different = 0
  public var outOfOrder = 0
  /// Could not be checked, for example attachments that do not download.
  public var unverified = 0
  /// Listed as refused or skipped when they were to be written.
  public var excepted = 0
  public var expectedDigest: String?
  public var actualDigest: String?
  public var memberProblems = 0
  public var channelProblems = 0
  public var examples: [VerifyFinding] = []
  public var failure: String?

  public init(channel: ChannelID, destination: ChannelID? = nil) {
    self.channel = channel
    self.destination = destination
  }

  public var digestsAreEqual: Bool { expectedDigest != nil && expectedDigest == actualDigest }

  public var sign: VerifySign {
    if failure != nil { return .failed }
    if different + outOfOrder + doubled + memberProblems + channelProblems > 0 { return .different }
    if missing > 0, extra > 0 { return .different }
    if missing > 0 { return .missing }
    if extra > 0 { return .extra }
    return unverified > 0 ? .failed : .equal
  }

  mutating func note(_ finding: VerifyFinding) {
    if examples.count < Self.exampleLimit { examples.append(finding) }
  }
}

/// What a verification found, in all.
public struct VerifyResult: Sendable, Hashable, Codable {
  public var users = 0
  public var usersFound = 0
  public var userProblems = 0
  public var userExamples: [VerifyFinding] = []
  /// All that are not equal, and of the equal ones the first thousand.
  public var channels: [ChannelVerification] = []
  public var channelCounts: [VerifySign: Int] = [:]
  public var totals = ChannelVerification(channel: "")
  /// Differences that declared losses explain, by field of the loss.
  public var explained: [String: Int] = [:]
  /// Differences that nothing explains, by path.
  public var unexplained: [String: Int] = [:]
  /// How many messages have each field.
  public var fieldCounts: [String: Int] = [:]
  /// Channels, users and messages that were refused or skipped and listed.
  public var excepted = 0
  /// Envelopes of imports at the destination that were not believed: a member wrote them, or another admin secret, or a
  /// version that did not sign. What an import wrote counts as missing without its envelope.
  public var envelopes = 0
  public var envelopeExamples: [VerifyFinding] = []

  public init() {}

  /// Nothing missing, doubled, different, out of order or too much, and everything was checked. Items that the load
  /// listed as refused or skipped are not counted here, but in `excepted`.
  public var isEqual: Bool {
    userProblems == 0 && channelCounts.allSatisfy { $0.key == .equal || $0.value == 0 }
  }

  mutating func add(_ channel: ChannelVerification) {
    channelCounts[channel.sign, default: 0] += 1
    if channel.sign != .equal || channelCounts[.equal, default: 0] <= 1000 { channels.append(channel) }
    totals.expected += channel.expected
    totals.found += channel.found
    totals.missing += channel.missing
    totals.doubled += channel.doubled
    totals.extra += channel.extra
    totals.notices += channel.notices
    totals.different += channel.different
    totals.outOfOrder += channel.outOfOrder
    totals.unverified += channel.unverified
    totals.excepted += channel.excepted
    totals.memberProblems += channel.memberProblems
    totals.channelProblems += channel.channelProblems
  }

  /// One sentence for the last line.
  public var sentence: String { sentence(from: nil, to: nil) }

  /// The same with the names of both sides.
  public func sentence(from source: VendorName?, to place: VendorName?) -> String {
    let count = channelCounts.values.reduce(0, +)
    let there = place.map { "on \($0)" } ?? "at the destination"
    let origin = source.map { " of \($0)" } ?? ""
    if isEqual {
      let listed = totals.excepted + excepted
      let rest = listed == 0 ? "" : ", \(listed) listed as refused or skipped"
      let all = totals.found == totals.expected ? "all \(totals.found)" : "\(totals.found) of \(totals.expected)"
      return "The migration looks good: \(all) messages\(origin) in \(count) channels are \(there), none missing, none "
        + "doubled\(rest)."
    }
    let parts = [
      (totals.missing, "missing"), (totals.doubled, "doubled"), (totals.extra, "too much"),
      (totals.different, "different"), (totals.outOfOrder, "out of order"), (totals.unverified, "not verified"),
      (userProblems, "users wrong"), (totals.memberProblems, "members wrong"),
      (totals.channelProblems, "channels wrong"), (channelCounts[.failed] ?? 0, "channels not verified"),
    ].filter { $0.0 > 0 }
    return "The migration is NOT equal: of \(totals.expected) messages\(origin) in \(count) channels, "
      + "\(totals.found) are \(there); "
      + parts.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
      + (envelopes == 0 ? "" : "; \(envelopes) envelopes of imports are not signed with this admin secret") + "."
  }
}

extension VerifyResult {
  /// For the ledger.
  func stored() -> String? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) }
  }

  /// nil for what another version of the program stored.
  init?(stored: String) {
    guard let result = try? JSONDecoder().decode(VerifyResult.self, from: Data(stored.utf8)) else { return nil }
    self = result
  }
}

/// Counts that several channels add to at the same time.
struct VerifyTally: Sendable {
  var explained: [String: Int] = [:]
  var unexplained: [String: Int] = [:]
  var fieldCounts: [String: Int] = [:]
  var envelopes = 0
  var envelopeExamples: [VerifyFinding] = []

  /// What could not be read; envelopes are counted apart, since their items were.
  mutating func sorting(_ records: [UnreadableRecord]) -> [UnreadableRecord] {
    for record in records where record.isEnvelope {
      envelopes += 1
      guard envelopeExamples.count < ChannelVerification.exampleLimit else { continue }
      envelopeExamples.append(
        VerifyFinding(kind: record.kind, sign: .failed, id: record.id ?? "", what: record.reason))
    }
    return records.filter { !$0.isEnvelope }
  }

  mutating func add(_ comparison: Comparison) {
    for (_, loss) in comparison.explained { explained[loss.field, default: 0] += 1 }
    for difference in comparison.unexplained { unexplained[difference.path, default: 0] += 1 }
  }

  mutating func merge(_ other: VerifyTally) {
    explained.merge(other.explained, uniquingKeysWith: +)
    unexplained.merge(other.unexplained, uniquingKeysWith: +)
    fieldCounts.merge(other.fieldCounts, uniquingKeysWith: +)
    envelopes += other.envelopes
    envelopeExamples += other.envelopeExamples.prefix(ChannelVerification.exampleLimit - envelopeExamples.count)
  }
}
