import ChatJSON
import ChatTransport
import SendbirdWire

// How many calls a second may hold, and what answers say of it.
extension SendbirdEmulator {
  /// What is left of the present second; the vendor counts by endpoint.
  struct Rate: Sendable {
    var limit: Int64
    var remaining: Int64
    /// When the next span begins; Unix seconds.
    var reset: Int64

    /// The one that a refusal tells of when no rate is set: a fault that was asked for.
    static func exceeded(at now: Int64) -> Rate { Rate(limit: 0, remaining: 0, reset: now / 1000 &+ 1) }
  }

  /// True when `key` was used more than `limit` times within the present second.
  func isOverRate(_ key: String, limit: Int64?) -> Bool {
    guard let limit else { return false }
    let second = now / 1000
    var rate = rates[key] ?? (second, 0)
    if rate.second != second { rate = (second, 0) }
    rate.count += 1
    rates[key] = rate
    return rate.count > limit
  }

  func rate(_ key: String) -> Rate {
    let limit = settings.maxRequestsPerSecond ?? 0
    return Rate(
      limit: limit, remaining: max(0, limit &- Int64(rates[key]?.count ?? 0)), reset: now / 1000 &+ 1)
  }

  /// Answers tell the rate only where one is set.
  func rated(_ response: HTTPResponse, _ key: String) -> HTTPResponse {
    guard settings.maxRequestsPerSecond != nil else { return response }
    var response = response
    Self.tell(rate(key), in: &response)
    return response
  }

  private static func tell(_ rate: Rate, in response: inout HTTPResponse) {
    response.headers["X-RateLimit-Limit"] = String(rate.limit)
    response.headers["X-RateLimit-Remaining"] = String(rate.remaining)
    response.headers["X-RateLimit-Reset"] = String(rate.reset)
  }

  static func tooManyRequests(_ rate: Rate) -> HTTPResponse {
    var response = Self.response(SendbirdFault(500910, "Too many requests.", httpStatus: 429))
    tell(rate, in: &response)
    // Seconds. The standard's own field is of use to clients that know no vendor.
    response.headers["X-RateLimit-RetryAfter"] = "1"
    response.headers["Retry-After"] = "1"
    return response
  }
}

/// What the vendor calls the members of bodies, for its codes 400100 to 400104. `null` counts as absent: the
/// JavaScript client sends it.
enum BodyTypes {
  private enum Kind: Int64 {
    case string = 400_100
    case number = 400_101
    case list = 400_102
    case json = 400_103
    case boolean = 400_104

    var word: String {
      switch self {
      case .string: "string"
      case .number: "number"
      case .list: "list"
      case .json: "JSON"
      case .boolean: "boolean"
      }
    }
  }

  private static let kinds: [String: Kind] = {
    var kinds: [String: Kind] = [:]
    for name in [
      "access_code", "channel_url", "cover_url", "custom_field", "custom_type", "data", "dedup_id", "description",
      "inviter_id", "mention_type", "message_type", "name", "nickname", "profile_url", "push_option",
      "push_trigger_option", "reaction", "report_category", "report_description", "reporting_user_id", "target_id",
      "timezone", "user_id",
    ] { kinds[name] = .string }
    for name in [
      "created_at", "end_hour", "end_min", "end_ts", "expires_at", "last_seen_at", "message_survival_seconds",
      "parent_message_id", "scheduled_at", "snooze_end_ts", "snooze_start_ts", "start_hour", "start_min", "start_ts",
      "timestamp",
    ] { kinds[name] = .number }
    for name in [
      "channel_urls", "discovery_keys", "friend_discoveries", "mentioned_user_ids", "messages", "operator_ids",
      "operators", "preferred_languages", "sorted_metaarray", "target_langs", "target_list", "user_ids", "users",
    ] { kinds[name] = .list }
    for name in ["create_channel_options", "metacounter", "metadata"] { kinds[name] = .json }
    for name in [
      "allow_auto_unhide", "allow_friend_discovery", "auto_accept", "do_not_disturb", "freeze",
      "hide_previous_messages", "include_ts", "is_active", "is_broadcast", "is_discoverable", "is_distinct",
      "is_ephemeral", "is_public", "is_silent", "is_super", "is_unique", "issue_access_token", "mark_as_read",
      "pin_message", "send_push", "snooze_enabled", "strict", "upsert",
    ] { kinds[name] = .boolean }
    return kinds
  }()

  /// Where a file is in the call, all else travels as fields of the form: lists with commas, numbers and flags as text.
  static func body(of form: SendbirdMultipart) -> JSONObject {
    var body = JSONObject()
    for part in form.parts where part.fileName == nil && !files.contains(part.name) {
      let value = value(String(decoding: part.bytes, as: UTF8.self), kinds[part.name])
      // A list may also come as several fields of one name.
      if let more = value.array, let known = body[part.name]?.array {
        body[part.name] = .array(known + more)
      } else {
        body[part.name] = value
      }
    }
    return body
  }

  private static let files: Set<String> = ["file", "cover_file", "profile_file"]

  /// What is none of its kind stays a text, which the check of kinds refuses.
  private static func value(_ text: String, _ kind: Kind?) -> JSONValue {
    switch kind {
    case .list: .array(text.split(separator: ",").map { .string(String($0)) })
    case .number: Int64(text).map { .int($0) } ?? .string(text)
    case .json: (try? JSONValue(parsing: text)) ?? .string(text)
    case .boolean: text == "true" ? true : text == "false" ? false : .string(text)
    case .string, nil: .string(text)
    }
  }

  /// - Parameter isMessage: a text is expected where other calls have a message object.
  static func check(_ body: JSONObject, isMessage: Bool) throws(SendbirdFault) {
    for (name, value) in body {
      guard let kind = kinds[name] ?? (isMessage && name == "message" ? .string : nil), !value.isNull else { continue }
      let fits =
        switch kind {
        case .string: value.string != nil
        case .number: value.double != nil
        case .list: value.array != nil
        case .json: value.object != nil
        case .boolean: value.bool != nil
        }
      guard fits else { throw SendbirdFault(kind.rawValue, "\"\(name)\" should be \(kind.word).") }
    }
  }
}
