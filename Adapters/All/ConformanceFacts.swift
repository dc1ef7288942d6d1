/// What the conformance suite has to know of a vendor beside its capabilities.
public struct ConformanceFacts: Sendable {
  /// Names of `DeclaredDifference`.
  public var differences: Set<String> = []
  /// Numbers by name; see `ConformanceHarness.limits`.
  public var limits: [String: Int64] = [:]
  /// Settings of the emulator by neutral name, as JSON objects.
  public var settings: [String: String] = [:]
  /// JSON Pointers into the frame of a pushed message; `{channel}` stands for its channel. Those that begin with
  /// `channel.` or `history.` lead into such answers; `push.prefix` is what stands before a frame's JSON.
  public var paths: [String: String] = [:]
  /// Changes that make a pushed text message an odd one: JSON Pointers into its frame, and values as JSON.
  /// `unknownType` brings the member `zz`, `loneSurrogate` and `escapedKeys` a text. A key that begins with `~` is a
  /// piece of the frame's text instead, and the value what stands in its place. `history.unknownType` and
  /// `emptyHistory` change the answer to a page.
  public var odd: [String: [String: String]] = [:]
  /// Codes with which a send is refused for good, and the names of their kinds.
  public var codes: [Int: String] = [:]
  /// The body of an answer with status 200 and an error inside, and its code; nil where clients ask by frames.
  public var errorBody: (text: String, code: String)?
  /// Options of a profile, as JSON, with which a login ends another one of the same user.
  public var exclusive: [String: String] = [:]
  /// Options of a profile, as JSON, with which frames are JSON.
  public var json: [String: String] = [:]
}

extension AllAdapters {
  /// From the wire notes of each vendor.
  public static func facts(of vendor: String, model: String?) -> ConformanceFacts {
    switch (vendor, model) {
    case ("sendbird", _):
      ConformanceFacts(
        differences: ["loginExcludesNobody", "kickNamesAdmin"],
        limits: ["text.characters": 5000, "user.bytes": 80, "page.history": 200, "file.bytes": 25 << 20],
        settings: [
          "invite.acceptance": #"{"autoAcceptInvitations":false}"#, "history.newMembers": #"{"historyForNewMembers":false}"#,
        ],
        paths: [
          "id": "/msg_id", "number": "/msg_id", "time": "/created_at", "unknown": "/zz_unknown", "push.prefix": "MESG",
          "channel.unknown": "/zz_unknown", "channel.unread": "/unread_message_count", "channel.data": "/data",
          "history.list": "/messages",
        ],
        odd: [
          "standingToken": ["/next": #""stuck""#, "/has_more": "true"], "emptyHistory": ["/messages": "[]"],
          "history.unknownType": ["/messages/0/type": #""ZZZZ""#, "/messages/0/zz": "[1.0, 1e2, 9007199254740993]"],
          "loneSurrogate": ["~to be changed": #"\ud83d half"#],
          "escapedKeys": [#"~"message":"to be changed""#: #""mess\u0061ge":"escaped""#],
        ],
        codes: [
          900_020: "permission", 900_041: "permission", 900_050: "permission", 900_060: "permission", 900_080: "permission",
          900_070: "notFound", 400_201: "notFound",
        ],
        errorBody: (#"{"error":true,"code":900500,"message":"nobody"}"#, "900500"))
    case ("openim", _):
      ConformanceFacts(
        differences: ["ownerCannotLeave", "usersCannotBeDisabled"],
        limits: ["page.history": 100, "frame.bytes": 51_200],
        paths: [
          "time": "/data/msgs/{channel}/Msgs/0/sendTime", "number": "/data/msgs/{channel}/Msgs/0/seq", "pull.list": "/data/msgs/{channel}/Msgs",
        ],
        odd: [
          "unknownType": ["/data/msgs/{channel}/Msgs/0/contentType": "9999", "/data/msgs/{channel}/Msgs/0/content": #""eyJ6eiIgOiBbMS4wLCAxZTIsIDkwMDcxOTkyNTQ3NDA5OTNdfQ==""#],
          "readAboveMax": ["/data/conversations/0/readSeq": "999"],
          "emptyHistory": ["/data/msgs/{channel}/Msgs": "[]"],
          "loneSurrogate": ["/data/msgs/{channel}/Msgs/0/content": #""eyJjb250ZW50IjoiXHVkODNkIGhhbGYifQ==""#], "escapedKeys": ["/data/msgs/{channel}/Msgs/0/content": #""eyJcdTAwNjNvbnRlbnQiOiJlc2NhcGVkIn0=""#],
        ],
        codes: [1302: "permission", 1402: "permission", 1403: "permission", 1204: "notFound", 1101: "notFound"],
        errorBody: (#"{"errCode":1004,"errMsg":"RecordNotFoundError","errDlt":"nobody"}"#, "1004"))
    case ("leancloud", "session"):
      ConformanceFacts(
        differences: ["usersNeedNoRegistration"],
        limits: ["user.bytes": 50, "page.history": 1000, "signature.seconds": 1, "frame.bytes": 5120],
        settings: ["signature": #"{"signature":true}"#, "retention": #"{"retentionDays":30}"#],
        paths: ["id": "/id", "time": "/timestamp", "unknown": "/zzUnknown", "peer": "/peerId"],
        odd: leanCloudOdd)
    case ("leancloud", _):
      ConformanceFacts(
        differences: ["usersNeedNoRegistration", "distinctSurvivesMemberChange", "mutesHaveNoEnd", "serviceHearsReaders"],
        limits: [
          "user.bytes": 64, "page.history": 100, "group.members": 500, "frame.bytes": 5120, "channel.frame.bytes": 5120,
        ],
        settings: ["signature": #"{"signature":true}"#, "retention": #"{"retentionDays":30}"#],
        paths: [
          "id": "/id", "time": "/timestamp", "unknown": "/zzUnknown", "peer": "/peerId",
          "history.time": "/t", "history.id": "/mid", "history.list": "/logs",
        ], odd: leanCloudOdd,
        codes: [4315: "permission", 4317: "permission", 4401: "notFound", 4303: "notFound", 4109: "tooLarge"],
        exclusive: ["tag": #""mobile""#], json: ["protocol": #""json""#])
    default: ConformanceFacts()
    }
  }

  /// The bodies of odd messages of both of LeanCloud's models, which have their JSON in a string.
  private static let leanCloudOdd = [
    "unknownType": ["/msg": #""{\"_lctype\":-77,\"zz\" : [1.0, 1e2, 9007199254740993]}""#],
    "loneSurrogate": ["/msg": #""{\"_lctype\":-1,\"_lctext\":\"\\ud83d half\"}""#],
    "escapedKeys": ["/msg": #""{\"\\u005flctype\":-1,\"_lct\\u0065xt\":\"escaped\"}""#],
  ]
}
