import ChatInterchange
import ChatJSON
import Testing
import UnifiedChat

@Suite("An envelope in a field that anybody may write")
struct ProvenanceTests {
  static let native = Message(
    channel: "c", id: "1", sender: "mallory", senderName: "Mallory", createdAt: Timestamp(milliseconds: 5),
    content: .text("hi"))

  static let forged: [JSONObject] = [
    ["sender": "boss"], ["senderName": "Boss"], ["createdAt": 0],
    ["reactions": [["key": "+1", "users": ["boss"]]]],
    ["content": ["kind": "system", "notice": "other", "text": "you are fired"]],
    ["content": ["kind": "recalled", "by": "boss"]],
  ]

  @Test("speaks for its writer alone: who, when and what others did stays the vendor's word", arguments: forged)
  func sender(kept: JSONObject) throws {
    var message = Self.native
    do { try Provenance(origin: Origin(vendor: "x", id: "1"), kept: kept).apply(to: &message, .sender) } catch {}
    #expect(message.json() == Self.native.json())
  }

  @Test("stays, with all that is noted in it, when an app replaces its own data beside it", arguments: [
    ("", "new"), ("old", "new"), (#"{"data":"old"}"#, "new"), (#"{"unifiedchat":7,"data":"old"}"#, "new"),
    (
      #"{"unifiedchat":{"v":1,"vendor":"x","id":"1","sig":"s","notes":{"guests":["g"]}},"data":"old","more":1.0}"#,
      #"{"unifiedchat":{"v":1,"vendor":"x","id":"1","sig":"s","notes":{"guests":["g"]}},"data":"new","more":1.0}"#
    ),
    (#"{"unifiedchat":{"v":1,"vendor":"x","id":"1"}}"#, #"{"unifiedchat":{"v":1,"vendor":"x","id":"1"},"data":"new"}"#),
  ])
  func replaced(text: String, expected: String) {
    #expect(Provenance.replacing(customData: JSONText(unchecked: "new"), in: text) == expected)
  }

  @Test("gives back what a sender may say, and to an importer all")
  func own() throws {
    let kept: JSONObject = [
      "content": ["kind": "markdown", "text": "# hi"], "customType": "t", "sender": "original", "createdAt": 1,
    ]
    let provenance = Provenance(origin: Origin(vendor: "x", id: "1"), kept: kept)
    var (shown, read) = (Self.native, Self.native)
    try provenance.apply(to: &shown, .sender)
    try provenance.apply(to: &read, .importer)
    #expect(shown.content == .markdown("# hi") && shown.customType == "t")
    #expect(shown.sender == "mallory" && shown.createdAt == Self.native.createdAt)
    #expect(read.sender == "original" && read.createdAt == Timestamp(milliseconds: 1))
  }

  static let odd: [MessageContent] = [
    .location(Location(latitude: .infinity, longitude: 0)), .location(Location(latitude: 0, longitude: .nan)),
    .image(Attachment(url: "u", width: -1, height: -2, thumbnails: [.init(url: "t", width: -3, height: -4)])),
    .file(Attachment(size: -1, durationMilliseconds: -1)),
  ]

  @Test("whatever a vendor lets through is written so that it can be read", arguments: odd)
  func readable(content: MessageContent) throws {
    let json = content.json()
    #expect(try MessageContent(json: json).json() == json)
  }
}
