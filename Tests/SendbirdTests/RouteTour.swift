import ChatJSON
import Testing

/// One call of a tour through every endpoint.
struct TourStop: Sendable {
  var call: String
  var body: JSONValue?
  /// The user whose session makes the call; nil: the Platform API.
  var user: String?
  /// The error that is the right answer.
  var code: Int64?
  /// Keeps a member of the answer: `("m", "message_id")` stands for `<m>` in the paths that follow.
  var keeps: (name: String, member: String)?

  init(
    _ call: String, _ body: JSONValue? = nil, by user: String? = nil, fails code: Int64? = nil,
    keeps: (name: String, member: String)? = nil
  ) {
    (self.call, self.body, self.user, self.code, self.keeps) = (call, body, user, code, keeps)
  }

  /// All that the emulator serves, in an order in which each call succeeds. Bodies are those of the wire reference.
  static let all: [TourStop] = users + push + groups + members + bothKinds + messages + reports + platform
    + byCustomType("ban", "banned_list") + byCustomType("mute", "muted_list") + ends

  private static let users: [TourStop] = [
    TourStop("POST users", ["user_id": "eve", "nickname": "Eve", "profile_url": "", "metadata": ["k": "v"]]),
    TourStop("GET users?limit=3"), TourStop("GET users/eve?include_unread_count=true"),
    TourStop("PUT users/eve", ["nickname": "Eva", "issue_access_token": true, "preferred_languages": ["fr"]]),
    TourStop("PUT users/ana", ["nickname": "Ana", "profile_url": "http://x/a.png"], by: "ana"),
    TourStop("GET users/ana", by: "bob"),
    TourStop("POST users/dan/token", ["expires_at": 1_700_000_900_000]), TourStop("DELETE users/dan/token"),
    TourStop("POST users/dan/session_key", ["expiring_session": true]),
    TourStop("POST users/ana/block", ["target_id": "dan"], by: "ana"),
    TourStop("POST users/ana/block", ["user_ids": ["dan", "eve"]]),
    TourStop("GET users/ana/block"), TourStop("GET users/dan/block?list=blocking_me"),
    TourStop("DELETE users/ana/block/dan"), TourStop("DELETE users/ana/block/eve"),
    TourStop("POST users/ana/metadata", ["metadata": ["a": "1"]]), TourStop("GET users/ana/metadata"),
    TourStop("PUT users/ana/metadata", ["metadata": ["a": "2", "b": "1"], "upsert": true]),
    TourStop("PUT users/ana/metadata/a", ["value": "3"]), TourStop("DELETE users/ana/metadata/a"),
    TourStop("DELETE users/ana/metadata"),
    TourStop("PUT users/ana/channel_invitation_preference", ["auto_accept": false], by: "ana"),
    TourStop("GET users/ana/channel_invitation_preference"),
    TourStop("PUT users/ana/channel_invitation_preference", ["auto_accept": true]),
    TourStop("POST users/ana/friends", ["user_ids": ["bob", "cleo"]], by: "ana"), TourStop("GET users/ana/friends"),
    TourStop("DELETE users/ana/friends?user_ids=cleo"), TourStop("GET users/ana/friends/changelogs?token="),
    TourStop(
      "PUT users/ana/friend_discoveries", ["friend_discoveries": [["friend_discovery_key": "k", "friend_name": "n"]]]),
    TourStop("DELETE users/ana/friend_discoveries?friend_discovery_keys=k"),
    TourStop("PUT users/ana/allow_friend_discovery", ["allow_friend_discovery": false]),
    TourStop("GET users/ana/allow_friend_discovery"),
  ]

  private static let push: [TourStop] = [
    TourStop(
      "PUT users/ana/push_preference",
      ["push_trigger_option": "mention_only", "do_not_disturb": true, "start_hour": 22, "timezone": "Europe/Berlin"],
      by: "ana"),
    TourStop("GET users/ana/push_preference/"), TourStop("DELETE users/ana/push_preference"),
    TourStop("PUT users/ana/push/template", ["name": "alternative"]), TourStop("GET users/ana/push/template"),
    TourStop("POST users/ana/push/gcm", ["gcm_reg_token": "t1", "is_unique": true], by: "ana"),
    TourStop("POST users/ana/push/gcm", ["gcm_reg_token": "t2"]),
    TourStop("GET users/ana/push/gcm"), TourStop("GET users/ana/push/gcm/device_tokens?token="),
    TourStop("GET push/device_tokens/gcm/t1"), TourStop("DELETE push/device_tokens/gcm/t1"),
    TourStop("DELETE users/ana/push/gcm/t2"), TourStop("DELETE users/ana/push/gcm"), TourStop("DELETE users/ana/push"),
  ]

  private static let groups: [TourStop] = [
    TourStop(
      "POST group_channels",
      [
        "user_ids": ["ana", "bob"], "channel_url": "hall", "name": "Hall", "operator_ids": ["ana"], "is_public": true,
        "custom_type": "x",
      ]),
    TourStop("POST group_channels", ["user_ids": ["bob"], "is_distinct": true], by: "ana"),
    TourStop("GET group_channels?limit=5&show_member=true"),
    TourStop("GET users/ana/my_group_channels?limit=5&show_member=true&show_empty=true", by: "ana"),
    TourStop("GET users/ana/my_group_channels/changelogs?change_ts=0&show_member=true"),
    TourStop("GET sdk/group_channels/hall?show_member=true&show_read_receipt=true&show_delivery_receipt=true", by: "bob"),
    TourStop("GET users/ana/push_preference/hall"),
    TourStop("PUT users/ana/push_preference/hall", ["push_trigger_option": "off", "push_sound": "ping"], by: "ana"),
    TourStop("PUT users/ana/count_preference/hall", ["count_preference": "unread_message_count_only"]),
    TourStop("GET users/ana/count_preference/hall"),
    TourStop("POST open_channels", ["name": "Lobby", "channel_url": "lobby", "operators": ["ana"]]),
    TourStop("GET open_channels?limit=5"), TourStop("GET open_channels/lobby/participants"),
    TourStop("GET users/ana/unread_message_count"), TourStop("GET users/ana/unread_channel_count?super_mode=all"),
    TourStop("GET users/ana/unread_item_count?item_keys=group_channel_unread_message_count,super_group_channel_invitation_count"),
    TourStop("GET users/ana/group_channel_count?state=joined"),
  ]

  private static let members: [TourStop] = [
    TourStop(
      "POST group_channels/hall/invite",
      ["user_ids": ["cleo", "dan"], "invitation_status": ["cleo": "invited_by_friend", "dan": "invited_by_non_friend"]]),
    TourStop("PUT group_channels/hall/accept", ["user_id": "cleo"]),
    TourStop("PUT group_channels/hall/decline", ["user_id": "dan"]),
    TourStop("PUT group_channels/hall/join", ["user_id": "dan"]),
    TourStop("PUT group_channels/hall/leave", ["user_ids": ["dan"]]),
    TourStop("PUT group_channels/hall/hide", ["hide_previous_messages": true, "allow_auto_unhide": false], by: "bob"),
    TourStop("DELETE group_channels/hall/hide", by: "bob"),
    TourStop("PUT group_channels/hall/reset_user_history", [:], by: "bob"),
    TourStop("GET group_channels/hall/members?limit=5&show_read_receipt=true&show_delivery_receipt=true"),
    TourStop("GET group_channels/hall/members/bob"), TourStop("GET group_channels/hall/members/dan"),
    TourStop("POST group_channels/hall/typing", ["user_ids": ["bob"]]),
    TourStop("DELETE group_channels/hall/typing?user_ids=bob"),
    TourStop("POST group_channels/hall/screenshot", [:], by: "bob"),
  ]

  private static let bothKinds: [TourStop] = administered(at: "group_channels/hall") + administered(at: "open_channels/lobby")

  private static func administered(at: String) -> [TourStop] {
    [
      TourStop("GET \(at)"), TourStop("PUT \(at)", ["name": "Renamed", "data": "d"]),
      TourStop("PUT \(at)/freeze", ["freeze": true]), TourStop("PUT \(at)/freeze", ["freeze": false]),
      TourStop("POST \(at)/metadata", ["metadata": ["k": "v"], "include_ts": true]),
      TourStop("GET \(at)/metadata?keys=k&include_ts=true"), TourStop("GET \(at)/metadata"),
      TourStop("PUT \(at)/metadata", ["metadata": ["k": "w", "l": "v"], "upsert": true]),
      TourStop("PUT \(at)/metadata/k", ["value": "x", "include_ts": true]),
      TourStop("DELETE \(at)/metadata/k?include_ts=true"), TourStop("DELETE \(at)/metadata"),
      TourStop("POST \(at)/metacounter", ["metacounter": ["n": 1]]), TourStop("GET \(at)/metacounter?keys=n"),
      TourStop("PUT \(at)/metacounter", ["metacounter": ["n": 2], "mode": "increase"]),
      TourStop("PUT \(at)/metacounter/n", ["value": 5, "mode": "set"]), TourStop("DELETE \(at)/metacounter/n"),
      TourStop("DELETE \(at)/metacounter"),
      TourStop("POST \(at)/operators", ["operator_ids": ["bob"]]), TourStop("GET \(at)/operators"),
      TourStop("DELETE \(at)/operators?operator_ids=bob"),
      TourStop("POST \(at)/mute", ["user_id": "bob", "seconds": 60, "description": "d"]), TourStop("GET \(at)/mute"),
      TourStop("GET \(at)/mute/bob"), TourStop("GET \(at)/mute/ana"), TourStop("GET users/bob/mute"),
      TourStop("DELETE \(at)/mute/bob"),
      TourStop("POST \(at)/ban", ["user_id": "cleo", "seconds": "60", "description": "d"]), TourStop("GET \(at)/ban"),
      TourStop("PUT \(at)/ban/cleo", ["seconds": 90, "description": "e"]), TourStop("GET \(at)/ban/cleo"),
      TourStop("GET users/cleo/ban"), TourStop("DELETE \(at)/ban/cleo"),
    ]
  }

  private static let messages: [TourStop] =
    said(at: "group_channels/hall") + onlyInGroups(at: "group_channels/hall")
    + [TourStop("DELETE group_channels/hall/messages/<m>")] + said(at: "open_channels/lobby")
    + notInOpenChannels(at: "open_channels/lobby") + [TourStop("DELETE open_channels/lobby/messages/<m>")]

  private static func said(at: String) -> [TourStop] {
    [
      TourStop(
        "POST \(at)/messages",
        [
          "message_type": "MESG", "user_id": "ana", "message": "hi", "mention_type": "users",
          "mentioned_user_ids": ["bob"], "sorted_metaarray": [["key": "k", "value": ["v"]]],
        ], keeps: ("m", "message_id")),
      TourStop(
        "POST \(at)/messages",
        [
          "message_type": "FILE", "user_id": "ana", "url": "http://x/a.png", "file_name": "a.png", "file_size": 10,
          "file_type": "image/png", "custom_field": "d",
        ]),
      TourStop("POST \(at)/messages", ["message_type": "ADMM", "message": "notice"]),
      TourStop(
        "POST \(at)/messages", ["message_type": "MESG", "user_id": "ana", "message": "reply", "parent_message_id": 1],
        fails: 400201),
      TourStop("GET \(at)/messages?message_ts=9007199254740991&prev_limit=20&next_limit=0&with_sorted_meta_array=true"),
      TourStop("GET \(at)/messages/<m>"),
      TourStop("PUT \(at)/messages/<m>", ["message_type": "MESG", "message": "changed"]),
      TourStop("GET \(at)/messages/total_count"), TourStop("GET \(at)/messages/changelogs?change_ts=0"),
      TourStop("POST \(at)/messages/<m>/sorted_metaarray", ["sorted_metaarray": [["key": "l", "value": ["a"]]]]),
      TourStop(
        "PUT \(at)/messages/<m>/sorted_metaarray",
        ["sorted_metaarray": [["key": "l", "value": ["b"]]], "mode": "add", "upsert": true]),
      TourStop("DELETE \(at)/messages/<m>/sorted_metaarray?keys=l"),
      TourStop("POST \(at)/messages/<m>/translation", ["target_langs": ["fr"]]),
      TourStop("POST \(at)/messages/<m>/pin", [:]), TourStop("DELETE \(at)/messages/<m>/pin"),
      TourStop(
        "POST \(at)/scheduled_messages", ["user_id": "ana", "message": "later", "scheduled_dt": "2030-01-31 10:00 UTC"]),
      TourStop("GET \(at)/scheduled_messages"),
      TourStop("POST report/\(at)", ["report_category": "spam", "reporting_user_id": "bob"]),
      TourStop("GET report/\(at)"),
      TourStop("POST report/\(at)/messages/<m>", ["report_category": "harassing", "offending_user_id": "ana"]),
      TourStop("GET report/\(at)/messages/<m>"),
    ]
  }

  private static func notInOpenChannels(at: String) -> [TourStop] {
    let place = "\(at)/messages/<m>/reactions"
    let body: JSONValue = ["reaction": "smile", "user_id": "bob"]
    return [
      TourStop("GET \(place)", fails: 900090), TourStop("POST \(place)", body, fails: 900090),
      TourStop("DELETE \(place)?reaction=smile&user_id=bob", fails: 900090),
    ]
  }

  private static func onlyInGroups(at: String) -> [TourStop] {
    let gap =
      "prev_start_ts=0&prev_end_ts=1700000000001&prev_cache_count=0&next_start_ts=1&next_end_ts=1&next_cache_count=0"
    return [
      TourStop("POST \(at)/messages/<m>/reactions", ["reaction": "smile"], by: "bob"),
      TourStop("GET \(at)/messages/<m>/reactions?list_users=true"),
      TourStop("GET \(at)/messages/<m>?include_reactions=true"),
      TourStop("DELETE \(at)/messages/<m>/reactions?reaction=smile", by: "bob"),
      TourStop("PUT \(at)/messages/mark_as_read", ["user_id": "bob"]),
      TourStop("PUT \(at)/messages/mark_as_delivered", ["user_id": "bob", "ts": 1_700_000_000_000]),
      TourStop("GET \(at)/messages/unread_count?user_ids=bob,cleo"),
      TourStop("GET \(at)/messages_gap?\(gap)&reverse=true", by: "ana"),
      TourStop("PUT users/bob/mark_as_read_all", [:]),
      TourStop("GET search/messages?query=changed&user_id=ana&limit=5"),
    ]
  }

  private static let reports: [TourStop] = [
    TourStop(
      "POST report/users/bob",
      ["report_category": "suspicious", "channel_type": "group_channels", "channel_url": "hall"], by: "ana"),
    TourStop("GET report/users/bob"), TourStop("GET emoji_categories"), TourStop("GET emoji_categories/1"),
    TourStop("GET emojis/sendbird_emoji_laughing"),
  ]

  private static let platform: [TourStop] = [
    TourStop("POST bots", ["bot_userid": "helper", "bot_nickname": "Helper", "bot_profile_url": ""]),
    TourStop("GET bots"), TourStop("GET bots/helper"), TourStop("PUT bots/helper", ["bot_nickname": "H"]),
    TourStop("POST bots/helper/channels", ["channel_urls": ["hall"]]),
    TourStop("POST bots/helper/send", ["channel_url": "hall", "message": "beep"]),
    TourStop("DELETE bots/helper/channels/hall"), TourStop("DELETE bots/helper/channels"), TourStop("DELETE bots/helper"),
    TourStop(
      "POST announcements",
      [
        "message": ["type": "ADMM", "content": "closed"], "target_at": "target_channels", "target_list": ["hall"],
        "unique_id": "a1", "scheduled_at": 1_900_000_000_000,
      ]),
    TourStop("GET announcements?limit=5"), TourStop("GET announcements/a1"),
    TourStop("PUT announcements/a1", ["action": "pause"]),
    TourStop(
      "POST migration/hall",
      [
        "messages": [
          ["user_id": "ana", "message_type": "MESG", "message": "old", "timestamp": 1_580_000_000_000, "dedup_id": "1"]
        ]
      ]),
    TourStop(
      "POST export/messages", ["start_ts": 1_699_999_999_000, "end_ts": 1_700_000_001_000],
      keeps: ("x", "request_id")),
    TourStop("GET export/messages"), TourStop("GET export/messages/<x>"), TourStop("GET applications/ccu"),
  ]

  private static func byCustomType(_ kind: String, _ list: String) -> [TourStop] {
    let at = "applications/settings_by_channel_custom_type/news/\(kind)"
    return [
      TourStop("POST \(at)", .object([list: [["user_id": "bob", "seconds": 60, "description": "d"]]])),
      TourStop("GET \(at)"), TourStop("DELETE \(at)?user_ids=bob"),
    ]
  }

  private static let ends: [TourStop] = [
    TourStop("PUT users/bob/my_group_channels/leave", ["custom_type": "x"]), TourStop("DELETE group_channels/hall"),
    TourStop("DELETE open_channels/lobby"), TourStop("DELETE users/eve"),
  ]
}
