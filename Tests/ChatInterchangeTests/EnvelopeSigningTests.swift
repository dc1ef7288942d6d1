import ChatInterchange
import ChatJSON
import Testing
import UnifiedChat

@Suite("The signature of an envelope")
struct EnvelopeSigningTests {
  static let origin = Origin(vendor: "x", id: "1", channel: "c")
  static let place = EnvelopePlace.message(channel: "there", sender: "ana", time: 5)

  private func key(_ secret: String = "secret") throws -> EnvelopeKey { try #require(EnvelopeKey(adminSecret: secret)) }

  private func signed(_ kept: JSONObject = ["createdAt": 1, "sender": "ana"]) throws -> String {
    Provenance(origin: Self.origin, kept: kept).wrap(
      JSONText(unchecked: "{}"), EnvelopeSigning(try key(), Self.place))
  }

  @Test("is believed where it was made, and its bytes are the same each time")
  func holds() throws {
    let text = try signed()
    #expect(try text == signed())
    // Made apart from this code: HMAC-SHA256 by RFC 2104 over the canonical form.
    #expect(text.contains(#""sig":"\#(Self.expected)""#), "\(text)")
    let (provenance, data, finding) = Provenance.unwrap(text, by: EnvelopeReader(key: try key()), at: Self.place)
    #expect(provenance?.origin == Self.origin && provenance?.kept["createdAt"] == 1)
    #expect(data?.text == "{}" && finding == nil)
  }

  static let expected = "0w7snU14iZobfDoFgpM3cbu6-W5KgCRtZxSJqtlwm44"

  static let elsewhere: [EnvelopePlace] = [
    .message(channel: "there", sender: "mallory", time: 5), .message(channel: "there", sender: "ana", time: 6),
    .message(channel: "other", sender: "ana", time: 5), .message(channel: "there", sender: "ana"),
    .message(channel: "there", sender: "ana", time: 5, body: "b"), .channel("there"), .user("ana"),
    .member("ana", channel: "there"), .message(channel: "there\u{0}", sender: "ana", time: 5),
  ]

  @Test("is worth nothing anywhere else", arguments: elsewhere)
  func copied(place: EnvelopePlace) throws {
    let text = try signed()
    let (provenance, data, finding) = Provenance.unwrap(text, by: EnvelopeReader(key: try key()), at: place)
    #expect(provenance == nil && data?.text == text && finding == .otherSignature)
  }

  @Test("does not hold for another origin, other fields, another secret, or half of itself")
  func changed() throws {
    let reader = EnvelopeReader(key: try key())
    let text = try signed()
    for (old, new) in [
      (#""id":"1""#, #""id":"2""#), (#""vendor":"x""#, #""vendor":"y""#), (#""channel":"c""#, #""channel":"d""#),
      (#""createdAt":1"#, #""createdAt":2"#), (#""sender":"ana""#, #""sender":"boss""#),
      (Self.expected, String(Self.expected.dropLast(22))), (Self.expected, ""), (Self.expected, "!"),
    ] {
      #expect(text.contains(old))
      let forged = text.replacing(old, with: new)
      let (provenance, data, finding) = Provenance.unwrap(forged, by: reader, at: Self.place)
      #expect(provenance == nil && data?.text == forged && finding == .otherSignature)
    }
    // é in two forms, which compare equal as strings.
    let composed = try signed(["sender": "an\u{E9}"])
    let bytes = String(decoding: Array(composed.utf8).replacing(Array("an\u{E9}".utf8), with: Array("ane\u{301}".utf8)), as: UTF8.self)
    #expect(Array(bytes.utf8) != Array(composed.utf8) && bytes == composed)
    #expect(Provenance.unwrap(bytes, by: reader, at: Self.place).finding == .otherSignature)
    let other = EnvelopeReader(key: try key("another secret"))
    #expect(Provenance.unwrap(text, by: other, at: Self.place).finding == .otherSignature)
    #expect(Provenance.unwrap(text, by: EnvelopeReader(key: nil), at: Self.place).finding == .noKey)
    #expect(try key().fingerprint != key("another secret").fingerprint)
  }

  @Test("is missed where it is not there, and not where all are believed; the app's own data are nobody's claim")
  func unsigned() throws {
    let text = Provenance(origin: Self.origin).wrap(nil)
    let reader = EnvelopeReader(key: try key())
    #expect(Provenance.unwrap(text, by: reader, at: Self.place).finding == .unsigned)
    let believing = EnvelopeReader(key: nil, trustsUnsigned: true)
    #expect(Provenance.unwrap(text, by: believing, at: Self.place).provenance?.origin == Self.origin)
    let own = Provenance.unwrap(#"{"a":1}"#, by: reader, at: Self.place)
    #expect(own.provenance == nil && own.customData?.text == #"{"a":1}"# && own.finding == nil)
    #expect(EnvelopeKey(adminSecret: nil) == nil && EnvelopeKey(adminSecret: "") == nil)
  }

  @Test("a client's draft, which claims no origin, is believed as far as its sender may speak")
  func drafts() throws {
    let view = EnvelopeView.tool(EnvelopeReader(key: try key()))
    let harmless: JSONObject = ["v": 1, "kept": ["content": ["kind": "markdown", "text": "# hi"]]]
    let greedy: JSONObject = ["v": 1, "kept": ["createdAt": 1]]
    let notice: JSONObject = ["v": 1, "kept": ["content": ["kind": "system", "notice": "other"]]]
    #expect(view.trust(harmless, at: Self.place, isDraft: true) == (.sender, nil))
    #expect(view.trust(greedy, at: Self.place, isDraft: true) == (.sender, .unsigned))
    #expect(view.trust(notice, at: Self.place, isDraft: true) == (.sender, .unsigned))
    #expect(view.trust(greedy, at: Self.place, isDraft: false) == (nil, .unsigned))
    #expect(EnvelopeView.client.trust(greedy, at: Self.place, isDraft: false) == (.sender, nil))
  }

  @Test("a key prints as nothing")
  func redacted() throws {
    #expect("\(try key())" == EnvelopeKey.redacted)
    #expect(!String(reflecting: try key()).contains("secret"))
  }
}
