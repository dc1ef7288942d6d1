import UnifiedChat

/// From when on changes of messages are asked for again, by the server's clock alone: a device's own may be hours off.
struct LeanCloudPatchClock: Sendable, Hashable {
  /// Asked for again although known: the answer to an own change, or the push of another message's, may have overtaken
  /// one that got lost, and several may be of one millisecond. Those that are known change nothing.
  static let overlap: Int64 = 60_000

  /// When the session was begun; nil before its first login. Changes from before it are not asked for.
  private var first: Int64?
  /// The newest change that this session knows.
  private(set) var last: Int64 = 0

  /// nil: nothing is known of the server's clock.
  var since: Int64? { first.map { max(last &- Self.overlap, $0 &- 1) } }

  /// The server's time at a login. Only the first one of a session begins it.
  mutating func begin(at time: Int64) {
    guard first == nil else { return }
    first = max(0, time)
    saw(time)
  }

  /// Goes on where an earlier session of the user stood; nothing happens in one that has begun.
  mutating func begin(after cursor: Cursor) {
    guard let time = Int64(cursor.rawValue), time >= -1, time < .max else { return }
    begin(at: time + 1)
  }

  /// For `begin(after:)` in a later process.
  var cursor: Cursor? { since.map { Cursor(String($0)) } }

  mutating func saw(_ time: Int64) { last = max(last, time) }
}
