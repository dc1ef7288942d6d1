/// What the conformance suite has to know of a vendor beside its capabilities.
public struct ConformanceFacts: Sendable {
  /// Names of `DeclaredDifference`.
  public var differences: Set<String> = []
  /// Numbers by name: `text.bytes`, `text.characters`, `user.bytes`, `page.history`.
  public var limits: [String: Int64] = [:]
  /// Settings of the emulator by neutral name, as JSON objects.
  public var settings: [String: String] = [:]
  /// JSON Pointers into the frame of a pushed message; `{channel}` stands for its channel.
  public var paths: [String: String] = [:]
  /// Options of a profile, as JSON, with which a login ends another one of the same user.
  public var exclusive: [String: String] = [:]
}

extension AllAdapters {
  /// From the wire notes of each vendor.
  public static func facts(of vendor: String, model: String?) -> ConformanceFacts {
    switch (vendor, model) {
    case ("sendbird", _):
      ConformanceFacts(
        differences: ["loginExcludesNobody", "kickNamesAdmin"],
        limits: ["text.characters": 5000, "user.bytes": 80, "page.history": 200],
        settings: [
          "invite.acceptance": #"{"autoAcceptInvitations":false}"#, "history.newMembers": #"{"historyForNewMembers":true}"#,
        ],
        paths: ["id": "/msg_id", "time": "/ts", "sender": "/user/guest_id", "unknown": "/zz_unknown"])
    case ("openim", _):
      ConformanceFacts(
        differences: ["ownerCannotLeave", "usersCannotBeDisabled"],
        limits: ["page.history": 100],
        paths: [
          "time": "/data/msgs/{channel}/Msgs/0/sendTime", "type": "/data/msgs/{channel}/Msgs/0/contentType",
          "sender": "/data/msgs/{channel}/Msgs/0/sendID",
        ])
    case ("leancloud", "session"):
      ConformanceFacts(
        differences: ["usersNeedNoRegistration"],
        limits: ["user.bytes": 50, "page.history": 1000, "signature.seconds": 1], settings: ["signature": #"{"signature":true}"#],
        paths: ["id": "/id", "time": "/timestamp", "sender": "/fromPeerId", "unknown": "/zzUnknown"])
    case ("leancloud", _):
      ConformanceFacts(
        differences: ["usersNeedNoRegistration", "distinctSurvivesMemberChange"],
        limits: ["user.bytes": 64, "page.history": 100, "mute.timed": 0], settings: ["signature": #"{"signature":true}"#],
        // Its frames are protobuf: a member that the format does not name has no place in them.
        paths: ["id": "/id", "time": "/timestamp", "sender": "/fromPeerId"], exclusive: ["tag": #""mobile""#])
    default: ConformanceFacts()
    }
  }
}
