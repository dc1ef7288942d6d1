import ChatInterchange
import ChatJSON
import Testing
import UnifiedChat

@Suite("Records keep everything that they are given")
struct RecordCodingTests {
  static let contents: [MessageContent] = [
    .text("a\u{0}b"), .markdown("# x"), .location(Location(latitude: -0.5, longitude: 179.999999, name: nil)),
    .image(
      Attachment(
        url: "https://x/y?sig=1", name: "a.png", size: 1, mimeType: "image/png", width: 1, height: 2,
        thumbnails: [.init(url: "https://x/t", width: 3)], metadata: JSONText(unchecked: "{}"))),
    .audio(Attachment(durationMilliseconds: 1234)), .video(Attachment(size: .max)), .file(Attachment(name: "")),
    .card("u", name: "n", avatarURL: nil), .sticker(JSONText(unchecked: "{\"i\":1}")),
    .custom(JSONText(unchecked: "{\"a\":1,\"a\":1.0}")),
    .merged(
      title: "t",
      messages: [
        QuotedMessage(
          id: "1", sender: "u", senderName: "n", createdAt: Timestamp(milliseconds: 1),
          content: .merged(title: "deep", messages: []))
      ]),
    .system(SystemNotice(kind: "other", actor: "a", subjects: ["b"], text: "t", raw: JSONText(unchecked: "1"))),
    .recalled(by: "u", at: Timestamp(milliseconds: 2)), .recalled(by: nil, at: nil),
    .unknown(kind: "9999", raw: JSONText(unchecked: "\u{7}not json")),
  ]

  @Test("every kind of content reads back equal", arguments: contents)
  func content(content: MessageContent) throws {
    let bytes = content.json().bytes()
    #expect(try MessageContent(json: JSONValue(parsing: bytes)) == content)
  }

  @Test("members at their default are left out, not null")
  func noNulls() {
    let message = Message(channel: "c", id: "m", sender: nil, createdAt: Timestamp(milliseconds: 1), content: .text(""))
    #expect(message.json().object?.keys == ["channel", "id", "createdAt", "content"])
  }

  @Test("a full message reads back equal, also through its provenance")
  func message() throws {
    var message = Message(
      channel: "c", id: "m", clientMessageID: "k", sender: "s", senderName: "S",
      position: MessagePosition(major: -1, minor: 2, tail: "a/b"), createdAt: Timestamp(milliseconds: .min),
      content: .text("t"), mentions: Mentions(users: ["x"], everyone: true),
      replyTo: Reply(id: "r", quoted: QuotedMessage(content: .text("q"))), threadParent: "p", customType: "ct",
      customData: JSONText(unchecked: "{}"), reactions: [Reaction(key: "👍", users: ["x", "y"])],
      editedAt: Timestamp(milliseconds: 9))
    #expect(try Message(json: message.json()) == message)

    let origin = Origin(vendor: "v", id: "m", channel: "c")
    let provenance = Provenance(origin: origin, of: message, keeping: Set(MessageField.allCases))
    let text = provenance.wrap(message.customData)
    let (read, data) = Provenance.unwrap(text)
    #expect(read == provenance && data == message.customData)
    let full = message
    message = Message(channel: "c", id: "m", sender: nil, createdAt: Timestamp(milliseconds: 0), content: .text(""))
    try read?.apply(to: &message, .importer)
    #expect(message.json()["content"] == full.json()["content"])
    #expect(message.reactions == full.reactions && message.editedAt == full.editedAt && message.replyTo == full.replyTo)
  }

  @Test(
    "a field that is not ours stays the app's own data",
    arguments: ["plain", "{}", #"{"unifiedchat":1}"#, #"{"unifiedchat":{"v":2,"vendor":"x","id":"1"}}"#, "[\"unifiedchat\"]"])
  func foreignData(text: String) {
    let (provenance, data) = Provenance.unwrap(text)
    #expect(provenance == nil)
    #expect(data?.text == text)
  }

  @Test("an empty field is no custom data")
  func emptyData() {
    let (provenance, data) = Provenance.unwrap("")
    #expect(provenance == nil && data == nil)
  }

  @Test(
    "a wrong member is named by its path",
    arguments: [
      (#"{"type":"message","channel":"c","createdAt":"1","content":{"kind":"text","text":""}}"#, "/createdAt"),
      (#"{"type":"message","channel":"c","createdAt":1,"content":{"kind":"image"}}"#, "/content/attachment"),
      (#"{"type":"message","channel":"c","createdAt":1,"content":{"kind":"text","text":""},"reactions":[{}]}"#, "/reactions/0/key"),
      (#"{"type":"member","channel":"c","user":"u","state":"gone"}"#, "/state"),
      (#"{"type":"member","channel":"c","user":"u","readPosition":"1"}"#, "/readPosition"),
      (#"{"type":"channel","id":"c"}"#, "/kind"), (#"{"type":"user","id":""}"#, "/id"),
      (#"{"type":"user","id":"u","origin":{"vendor":"v"}}"#, "/origin/id"),
    ])
  func wrongMember(text: String, path: String) throws {
    let json = try JSONValue(parsing: text)
    let error = #expect(throws: RecordError.self) { try Record(json: json) }
    #expect(error?.path.hasSuffix(path) == true)
  }

  @Test("a channel whose metadata has one key in two Unicode forms is refused, not read in part")
  func metadataForms() throws {
    let json = try JSONValue(
      parsing: Array(#"{"type":"channel","id":"c","kind":"group","metadata":{"\u00E9":"1","e\u0301":"2"}}"#.utf8))
    #expect { try Record(json: json) } throws: { error in
      (error as? RecordError).map { $0.description.contains("Unicode form") } ?? false
    }
  }

  @Test("merged messages nested without end are refused")
  func nesting() {
    var content = MessageContent.text("x")
    for _ in 0..<40 { content = .merged(title: "", messages: [QuotedMessage(content: content)]) }
    let json = content.json()
    #expect(throws: RecordError.self) { try MessageContent(json: json) }
  }
}
