import ChatCrypto
import ChatJSON
import LeanCloudWire
import OpenIMWire
import SendbirdWire
import UnifiedChat

/// Everything that a vendor's server may send, down to the contract's values.
extension FuzzTarget {
  static let sendbird = FuzzTarget(
    "sendbird",
    seeds: [
      #"MESG{"msg_id":7,"req_id":"r","channel_url":"c","channel_type":"group","message":"hi","data":"","custom_type":"","ts":1700000000000,"user":{"guest_id":"alice","nickname":"A","image":""},"mentioned_users":[],"reactions":[{"key":"k","user_ids":["a"],"updated_at":1}],"metaarray":{"k":["v"]}}"# + "\n",
      #"FILE{"msg_id":8,"channel_url":"c","url":"https://f","name":"n","type":"image/png","size":3,"thumbnails":[{"width":1,"height":2,"url":"u"}],"ts":1}"# + "\n" + #"PONG{"ts":1}"#,
      #"READ{"channel_url":"c","user":{"user_id":"a"},"ts":5}"#,
      #"{"channel_url":"c","name":"n","created_at":1,"is_distinct":true,"members":[{"user_id":"a","nickname":"A","state":"joined","role":"operator"}],"unread_message_count":3,"last_message":{"message_id":1,"type":"MESG","message":"x","created_at":1}}"#,
      "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\nxyz\r\n--b--\r\n",
    ]
  ) { bytes throws(BrokenLaw) in
    let text = String(decoding: bytes, as: UTF8.self)
    for case .success(let frame) in SendbirdFrame.parse(text) {
      let again = SendbirdFrame.parse(frame.text)
      guard again.count == 1, case .success(frame) = again[0] else { throw BrokenLaw("a frame changes on its way") }
      try message(frame.payload, command: frame.command)
    }
    if let object = (try? JSONValue(parsing: bytes))?.object {
      try message(object, command: "")
      if let channel = SendbirdChannel(object) { _ = channel.json }
      if let user = SendbirdUser(object) { _ = user.json }
    }
    _ = SendbirdMultipart(parsing: bytes, contentType: "multipart/form-data; boundary=b")
    let target = SendbirdTarget(text)
    _ = target.query.int("limit")
  }

  private static func message(_ object: JSONObject, command: String) throws(BrokenLaw) {
    guard let wire = SendbirdMessage(object, command: command) else { return }
    let shown = SendbirdMapping.message(wire, raw: object)
    try require(shown.channel == wire.channelURL, "a message moves to another channel")
  }

  /// The first byte chooses the form of the frame and the body inside.
  static let openIM = FuzzTarget(
    "openim",
    seeds: [
      [0] + OpenIMResponseFrame(operation: 1003, increment: "1", data: [0x0A, 1, 0x61]).jsonBytes(),
      [1] + OpenIMRequestFrame(operation: 1003, sender: "a", operationID: "o", increment: "1", data: [0x0A, 1, 0x61]).jsonBytes(),
      [2] + OpenIMCodec(form: .gob, isCompressed: true).encode(OpenIMResponseFrame(operation: 2001)),
      [3] + Array(#"{"content":"hi"}"#.utf8), [4] + Array(#"{"errCode":0,"errMsg":"","data":{"a":1}}"#.utf8),
      [5, 101] + Array(#"{"text":"@a hi","atUserList":["a"],"quoteMessage":{"contentType":101}}"#.utf8),
    ]
  ) { bytes throws(BrokenLaw) in
    guard let first = bytes.first else { return }
    let payload = Array(bytes.dropFirst())
    switch first % 6 {
    case 0: decodeResponse(OpenIMCodec(form: .json, isCompressed: false), payload)
    case 1:
      guard let frame = try? OpenIMRequestFrame(json: payload) else { return }
      try require((try? OpenIMRequestFrame(json: frame.jsonBytes())) == frame, "a request changes on its way")
    case 2: decodeResponse(OpenIMCodec(form: .gob, isCompressed: true), payload)
    case 4: _ = try? OpenIMREST.data(of: payload)
    default:
      guard let type = payload.first else { return }
      let types: [Int64] = [101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 114, 115, 117, 118, 1400, 1501, 2101]
      _ = OpenIMElements.decode(type: types[Int(type) % types.count], content: Array(payload.dropFirst()))
      if let json = try? JSONValue(parsing: payload) { _ = OpenIMMessageData(json: json).message(in: "si_a_b") }
    }
  }

  private static func decodeResponse(_ codec: OpenIMCodec, _ bytes: [UInt8]) {
    guard let frame = try? codec.decodeResponse(bytes) else { return }
    for body in OpenIMBody.allCases {
      guard let json = try? body.decode(frame.data) else { continue }
      if body == .messageData { _ = OpenIMMessageData(json: json).message(in: "sg_1") }
    }
  }

  /// The first byte chooses the sub-protocol.
  static let leanCloud = FuzzTarget(
    "leancloud",
    seeds: [
      [0] + Array(#"{"cmd":"direct","cid":"5f1a","i":3,"msg":"{\"_lctype\":-1,\"_lctext\":\"x\"}","peerId":"Tom","appId":"app","r":true,"timestamp":5,"id":"m"}"#.utf8),
      [1, 0x08, 0x02, 0x22, 0x05] + Array("alice".utf8) + [0x40, 0x02],
      [2] + Array("CAIiBWFsaWNlQAI=".utf8),
      [3] + Array(#"{"objectId":"5f1a","m":["a","b"],"name":"n","createdAt":"2020-01-01T00:00:00.000Z","lm":{"__type":"Date","iso":"2020-01-01T00:00:00.000Z"}}"#.utf8),
      [4] + Array(#"{"_lctype":-2,"_lcfile":{"url":"u","metaData":{"size":1,"width":2}},"_lcattrs":{"a":1}}"#.utf8),
    ]
  ) { bytes throws(BrokenLaw) in
    guard let first = bytes.first else { return }
    let payload = Array(bytes.dropFirst())
    let text = String(decoding: payload, as: UTF8.self)
    switch first % 5 {
    case 0: try leanCloudFrame(.json, .text(text))
    case 1: try leanCloudFrame(.protobuf2, .binary(payload))
    case 2: try leanCloudFrame(.proto2base64, .text(text))
    case 3:
      guard let object = (try? JSONValue(parsing: payload))?.object else { return }
      _ = LeanCloudConversation.channel(object, me: UserID("a"))
      let read = LeanCloudUser.user(object)
      _ = LeanCloudUser.columns(read.user, origin: read.origin)
    default:
      let stored = LeanCloudStoredMessage(
        channel: "c", id: "m", from: "a", timestamp: Int64(first) << 55, data: text, isBinary: first > 200)
      guard let decoded = try? LeanCloudBody.decode(stored) else { return }
      try require(decoded.message.id == MessageID("m"), "a message loses its id")
    }
  }

  private static func leanCloudFrame(
    _ format: LeanCloudSubprotocol.Format, _ payload: LeanCloudPayload
  ) throws(BrokenLaw) {
    let codec = LeanCloudCodec(LeanCloudSubprotocol(format))
    guard let frame = try? codec.decode(payload), let written = try? codec.encode(frame) else { return }
    guard let again = try? codec.decode(written), let settled = try? codec.encode(again) else {
      throw BrokenLaw("what was written is no frame")
    }
    try require(settled == written, "writing does not settle")
  }
}
