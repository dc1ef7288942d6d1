import ChatTransport
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

@Suite("Half of a surrogate pair", .timeLimit(.minutes(1)))
struct HalfPairTests {
  @Test("loses no frame: U+FFFD stands in its place")
  func frame() throws {
    let codec = LeanCloudCodec(LeanCloudSubprotocol(.json))
    let frame = try codec.decode(.text(#"{"cmd":"conv","name":"\ud83d half"}"#))
    #expect(frame["name"]?.string == "\u{FFFD} half")
  }

  /// Answers in which a word became what a client had cut off.
  struct Cutting: HTTPClient {
    let inner: any HTTPClient

    func send(
      _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws(TransportError) -> HTTPResponse {
      var response = try await inner.send(request, progress: progress)
      let text = String(decoding: response.body, as: UTF8.self).replacing("CUT", with: #"\ud83d"#)
      response.body = Array(text.utf8)
      return response
    }
  }

  @Test("loses no page of rows or of history over REST")
  func page() async throws {
    let bench = try Bench()
    try await bench.load([
      ["type": "channel", "id": "c", "kind": "group", "name": "CUT name"],
      ["type": "message", "channel": "c", "id": "m0", "sender": "bob", "createdAt": .int(Bench.start),
        "content": ["kind": "text", "text": "CUT here"]],
      RescueTests().message(1, at: Bench.start + 1),
    ])
    var transports = bench.host.transports
    transports.http = Cutting(inner: transports.http)
    let source = try LeanCloudSource(
      profile: bench.profile(), environment: bench.environment(), transports: transports)
    let channel = try #require(try await RescueTests().channels(source).first)
    #expect(channel.name == "\u{FFFD} name")
    let found = try await RescueTests().messages(source, channel.id)
    #expect(found.messages.map(\.content) == [.text("\u{FFFD} here"), .text("1")] && found.unreadable == [])
  }
}
