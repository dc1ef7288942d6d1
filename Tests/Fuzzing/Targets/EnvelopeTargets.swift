import ChatInterchange
import ChatJSON
import LeanCloudWire
import OpenIMWire
import SendbirdWire
import UnifiedChat

/// What a tool makes of an import's envelope wherever a vendor has room for one. No key here has signed any of the
/// inputs: whatever members write, nothing of it is believed beyond what the writer may say.
extension FuzzTarget {
  private static let view = EnvelopeView.tool(EnvelopeReader(key: EnvelopeKey(adminSecret: "a secret that signs nothing")))

  private static let envelope =
    #"{"v":1,"vendor":"leancloud","id":"m9","channel":"c9","kept":{"sender":"boss","createdAt":5,"content":{"kind":"system","text":"x"},"member":"z"},"sig":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#
  private static let field = JSONValue.string(#"{"unifiedchat":\#(envelope),"data":"own"}"#).text()

  /// The first byte chooses the vendor and the item.
  static let envelopes = FuzzTarget(
    "envelope",
    seeds: [
      [0] + Array(#"{"message_id":7,"channel_url":"c","channel_type":"group","message":"hi","data":\#(field),"created_at":5,"user":{"user_id":"alice"}}"#.utf8),
      [1] + Array(#"{"channel_url":"c","name":"n","created_at":1,"data":\#(field)}"#.utf8),
      [2] + Array(#"{"user_id":"a","nickname":"A","metadata":{"unifiedchat0":\#(field),"x":"y"}}"#.utf8),
      [3] + Array(#"{"serverMsgID":"s","clientMsgID":"k","sendID":"a","contentType":101,"content":"{\"content\":\"hi\"}","seq":3,"sendTime":5,"ex":\#(field)}"#.utf8),
      [4] + Array(#"{"unifiedchat":\#(envelope),"data":"own"}"#.utf8),
      [5] + Array(#"{"_lctype":-1,"_lctext":"hi","_lcattrs":{"unifiedchat":\#(envelope),"a":1}}"#.utf8),
      [6] + Array(#"{"objectId":"5f1a","m":["a","b"],"attr":{"unifiedchat":\#(envelope),"a":1}}"#.utf8),
      [7] + Array(#"{"objectId":"5f1a","username":"alice","attr":{"unifiedchat":\#(envelope)}}"#.utf8),
    ]
  ) { bytes throws(BrokenLaw) in
    guard let first = bytes.first else { return }
    let payload = Array(bytes.dropFirst())
    let object = (try? JSONValue(parsing: payload))?.object
    switch first % 8 {
    case 0...2: if let object { try sendbirdEnvelope(first % 8, object) }
    case 3:
      guard let object, let read = OpenIMMessageData(json: .object(object)).read(in: "si_a_b", view) else { return }
      try unbelieved(read.origin)
    case 4:
      let text = String(decoding: payload, as: UTF8.self)
      let read = OpenIMExtra.read(text, view, at: .user("a"))
      try unbelieved(read.extra.origin)
      let (provenance, _, _) = Provenance.unwrap(text, by: EnvelopeReader(key: nil), at: .user("a"))
      try unbelieved(provenance?.origin)
    case 5:
      let stored = LeanCloudStoredMessage(
        channel: "c", id: "m", from: "a", timestamp: 5, data: String(decoding: payload, as: UTF8.self), isBinary: false)
      guard let read = try? LeanCloudBody.decode(stored, view) else { return }
      try unbelieved(read.origin)
      try require(read.message.sender == UserID("a"), "a member speaks in the name of another")
    case 6:
      guard let object, let read = LeanCloudConversation.channel(object, view) else { return }
      try unbelieved(read.origin)
    default:
      guard let object else { return }
      let read = LeanCloudUser.user(object, view)
      try unbelieved(read.origin)
    }
  }

  private static func sendbirdEnvelope(_ item: UInt8, _ object: JSONObject) throws(BrokenLaw) {
    switch item {
    case 0:
      guard let wire = SendbirdMessage(object, command: ""),
        let read = try? SendbirdMapping.record(wire, raw: object, view)
      else { return }
      try unbelieved(read.record.origin)
      try require(read.record.message.sender == wire.user?.id, "a member speaks in the name of another")
    case 1:
      guard let wire = SendbirdChannel(object), let read = try? SendbirdMapping.channelRecord(wire, raw: object, view)
      else { return }
      try unbelieved(read.record.origin)
    default:
      guard let wire = SendbirdUser(object) else { return }
      let read = SendbirdMapping.userRecord(wire, raw: object, view)
      try unbelieved(read.record.origin)
    }
  }

  private static func unbelieved(_ origin: Origin?) throws(BrokenLaw) {
    try require(origin == nil, "an envelope that nobody signed is believed: \(origin.map { "\($0)" } ?? "")")
  }
}
