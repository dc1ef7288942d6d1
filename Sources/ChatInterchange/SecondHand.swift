import ChatJSON

/// The mark of what is known at second hand: not told by the service, but read from what somebody kept of it, a client's own
/// database for one.
///
/// The mark is the first member of a record's raw form: `{"_secondHand":{"at":1594000000000,…},…}`. `at` says how much its
/// keeper knew: of a message when it was changed last (milliseconds since 1970; 0: never that they knew of), of a channel
/// when its row was written. Of two records of one item, what the service told stays or takes the place of the other,
/// whichever came first; of two at second hand the one that knows more does.
public enum SecondHand {
  public static let member = "_secondHand"
  private static let start = Array("{\"_secondHand\":{\"at\":".utf8)

  /// `row` with the mark before its members.
  /// - Parameter details: what else its keeper tells, beside `at`.
  public static func mark(_ row: JSONObject, at time: Int64, _ details: JSONObject = JSONObject()) -> JSONObject {
    var mark: [JSONObject.Member] = [("at", .int(max(time, 0)))]
    mark += details.members.filter { $0.key != "at" }
    let rest = row.members.filter { $0.key != member }
    return JSONObject([(member, .object(JSONObject(mark)))] + rest)
  }

  /// `at` of a raw form; nil for what the service told itself, and for records without a raw form.
  public static func knowledge(of raw: String?) -> Int64? {
    guard let bytes = raw?.utf8, bytes.starts(with: start) else { return nil }
    return Int64(String(decoding: bytes.dropFirst(start.count).prefix { (48...57).contains($0) }, as: UTF8.self)) ?? 0
  }

  /// Whether the record with the raw form `other` takes the place of the one with `known`, when both are at hand.
  public static func replaces(_ known: String?, with other: String?) -> Bool {
    guard let old = knowledge(of: known) else { return false }
    guard let new = knowledge(of: other) else { return true }
    return new > old
  }
}
