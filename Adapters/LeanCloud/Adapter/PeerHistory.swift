import ChatJSON
import LeanCloudWire
import UnifiedChat

/// A pair of the 2014 model. The service has no object for it: its history goes by an MD5 of the two peers, which
/// cannot be turned back, so the channel's id names the peers themselves: `pair:` and both ids as JSON.
enum LeanCloudPair {
  private static let prefix = "pair:"

  static func channel(_ one: UserID, _ other: UserID) -> ChannelID {
    let sorted = [one, other].sorted()
    return ChannelID(prefix + JSONValue.strings(sorted.map(\.rawValue)).text())
  }

  static func peers(of channel: ChannelID) -> [UserID]? {
    guard channel.rawValue.hasPrefix(prefix),
      let names = (try? JSONValue(parsing: String(channel.rawValue.dropFirst(prefix.count))))?.array?.compactMap(
        \.string),
      names.count == 2
    else { return nil }
    return names.map { UserID($0) }
  }

  /// The id by which history knows the channel.
  static func historyID(of channel: ChannelID) -> String {
    guard let peers = peers(of: channel) else { return channel.rawValue }
    return LeanCloudID.pair(peers[0].rawValue, peers[1].rawValue)
  }
}
