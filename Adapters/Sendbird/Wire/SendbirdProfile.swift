import UnifiedChat

/// How a profile names a Sendbird application.
public enum SendbirdProfile {
  public static let rules = ProfileRules(
    needsAppID: true,
    options: [
      "superGroupThreshold": "members above which an imported channel becomes a super group (default 99)",
      "exportFiles": "paths of files of the vendor's data export, zip or JSON: a source reads them and asks no server",
    ])

  /// Without a trailing slash: REST lives under `/v3` of it.
  public static func apiHost(_ profile: Profile) -> String {
    trimmed(profile.endpoints.api) ?? "https://api-\(profile.appID ?? "").sendbird.com"
  }

  /// A profile that names the REST endpoint alone reaches the socket at the same place.
  public static func socketHost(_ profile: Profile) -> String {
    if let own = trimmed(profile.endpoints.realtime) { return own }
    if let api = trimmed(profile.endpoints.api) {
      if api.hasPrefix("https://") { return "wss://" + api.dropFirst(8) }
      if api.hasPrefix("http://") { return "ws://" + api.dropFirst(7) }
    }
    return "wss://ws-\(profile.appID ?? "").sendbird.com"
  }

  /// Whether `url` lies with the application's own server, which alone is shown its keys: anybody may write a URL into
  /// a message.
  public static func isOwn(_ url: String, _ profile: Profile) -> Bool {
    if url.hasPrefix(apiHost(profile) + "/") { return true }
    guard url.hasPrefix("https://") else { return false }
    let host = url.dropFirst(8).prefix { $0 != "/" && $0 != "?" && $0 != "#" && $0 != "\\" }
    // By bytes: a mark that joins the dot before it would make another host look like one of theirs.
    return host.utf8.allSatisfy { $0 == 0x2D || $0 == 0x2E || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20) }
      && host.utf8.suffix(13).elementsEqual(".sendbird.com".utf8)
  }

  private static func trimmed(_ url: String?) -> String? {
    guard var url, !url.isEmpty else { return nil }
    while url.hasSuffix("/") { url.removeLast() }
    return url
  }
}

/// Numbers of the vendor that both sides obey. Sources: its API description unless noted.
public enum SendbirdLimits {
  public static let page = 100
  public static let messagePage = 200
  public static let migrationBatch = 100
  public static let inviteBatch = 100
  /// Members of an ordinary group; above it a super group is needed.
  public static let groupMembers = 100
  /// Of super groups the vendor says "tens of thousands": 20,000 here, by plan there.
  public static let superGroupMembers = 20_000
  /// Characters of a text: `max_length_message` of a published sample.
  public static let messageLength = 5000
  public static let nameLength = 191
  public static let customTypeLength = 128
  public static let urlLength = 2048
  public static let userIDLength = 80
  public static let channelURLLength = 100
  public static let nicknameLength = 80
  public static let metaArrays = 5
  /// Values of one array beside a message. The vendor has a code for too many and no number: 100 is chosen.
  public static let metaArrayValues = 100
  /// Of a classic open channel.
  public static let participants = 1000
  public static let metadataItems = 5
  public static let metadataKeyLength = 128
  public static let metadataValueLength = 190
  public static let reactionKeyLength = 192
  /// Of a mute or a ban.
  public static let descriptionLength = 250
  /// MiB of one file: what `LOGI` says by default.
  public static let uploadMiB: Int64 = 25
  /// `message_ts` that stands for "the newest": 2^53 - 1.
  public static let newestTime: Int64 = 9_007_199_254_740_991
}
