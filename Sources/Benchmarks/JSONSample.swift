import ChatJSON

/// A chat message as the JSON benchmarks read and write it: about 300 bytes on the wire.
struct SampleMessage: Codable, Equatable {
  struct Sender: Codable, Equatable {
    var userId: String
    var nickname: String
    var url: String
  }

  var msgId: Int64
  var channelId: String
  var clientId: String
  var type: String
  var text: String
  var customType: String
  var sender: Sender
  var mentions: [String]
  var silent: Bool
  var createdAt: Int64
  var updatedAt: Int64
}

extension SampleMessage {
  static func sample(_ number: Int) -> SampleMessage {
    let texts = [
      "the build is green again, thanks for looking at it", "今天下午三点在会议室见，别忘了带上报告",
      "line one\nline two with a \"quote\"", "ok 👍", "does anyone know why the cache misses after a restart?",
    ]
    let time = 1_700_000_000_000 + Int64(number) * 137
    return SampleMessage(
      msgId: 7_350_000_000_000 + Int64(number), channelId: "group_channel_\(1000 + number % 50)",
      clientId: "c0a42b25-e09d-3689-a27f-\(100_000_000_000 + number)", type: "text", text: texts[number % texts.count],
      customType: "",
      sender: Sender(userId: "user-\(number % 97)", nickname: "Ada L.", url: "https://a.example/\(number % 97).png"),
      mentions: number % 3 == 0 ? ["user-1", "user-22"] : [], silent: number % 7 == 0, createdAt: time, updatedAt: time)
  }
}

extension SampleMessage: JSONReadable {
  init(from reader: inout JSONReader) throws(JSONError) {
    var msgId: Int64?
    var channelId = ""
    var clientId = ""
    var type = ""
    var text = ""
    var customType = ""
    var sender: Sender?
    var mentions: [String] = []
    var silent = false
    var createdAt: Int64 = 0
    var updatedAt: Int64 = 0
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "msgId": msgId = try reader.readInt64()
      case "channelId": channelId = try reader.readString()
      case "clientId": clientId = try reader.readString()
      case "type": type = try reader.readString()
      case "text": text = try reader.readString()
      case "customType": customType = try reader.readString()
      case "sender": sender = try reader.read()
      case "mentions": mentions = try reader.readArray()
      case "silent": silent = try reader.readBool()
      case "createdAt": createdAt = try reader.readInt64()
      case "updatedAt": updatedAt = try reader.readInt64()
      default: try reader.skipValue()
      }
    }
    guard let msgId else { throw reader.missing("msgId") }
    guard let sender else { throw reader.missing("sender") }
    self.init(
      msgId: msgId, channelId: channelId, clientId: clientId, type: type, text: text, customType: customType,
      sender: sender, mentions: mentions, silent: silent, createdAt: createdAt, updatedAt: updatedAt)
  }
}

extension SampleMessage.Sender: JSONReadable {
  init(from reader: inout JSONReader) throws(JSONError) {
    var userId = ""
    var nickname = ""
    var url = ""
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "userId": userId = try reader.readString()
      case "nickname": nickname = try reader.readString()
      case "url": url = try reader.readString()
      default: try reader.skipValue()
      }
    }
    self.init(userId: userId, nickname: nickname, url: url)
  }
}

extension SampleMessage: JSONWritable {
  func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("msgId", msgId)
    writer.member("channelId", channelId)
    writer.member("clientId", clientId)
    writer.member("type", type)
    writer.member("text", text)
    writer.member("customType", customType)
    writer.member("sender", sender)
    writer.member("mentions", mentions)
    writer.member("silent", silent)
    writer.member("createdAt", createdAt)
    writer.member("updatedAt", updatedAt)
    writer.endObject()
  }
}

extension SampleMessage.Sender: JSONWritable {
  func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("userId", userId)
    writer.member("nickname", nickname)
    writer.member("url", url)
    writer.endObject()
  }
}
