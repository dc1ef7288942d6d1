import AllAdapters
import ChatClient
import ChatEmulation
import ChatInterchange
import ChatJSON
import ChatTransport
import UnifiedChat

extension FuzzTarget {
  static let documents: [FuzzTarget] = [configuration, records, rules, texts]

  static let registry = AllAdapters.registry(transports: Unreachable.transports)

  static let configuration = FuzzTarget(
    "configuration",
    seeds: [
      #"{"use":"a","profiles":{"a":{"vendor":"sendbird","appID":"x","credentials":{"token":{"env":"T"}},"log":"info"}}}"#,
      #"{"use":"b","profiles":{"b":{"vendor":"openim","endpoints":{"api":"https://h","realtime":"wss://h"},"cache":{"maxBytes":1000000},"retry":{"maxAttempts":3,"baseDelaySeconds":0.5},"options":{"platformID":5}}}}"#,
      #"{"use":"c","profiles":{"c":{"vendor":"leancloud","model":"session","appID":"x","credentials":{"appKey":"literal"}}}}"#,
    ]
  ) { bytes throws(BrokenLaw) in
    let reading = ConfigurationFile.read(bytes, registry: registry)
    try require(reading.configuration != nil || !reading.errors.isEmpty, "neither a configuration nor an error")
  }

  /// JSON Lines of neutral records.
  static let records = FuzzTarget(
    "records",
    seeds: [
      #"{"type":"user","id":"alice","name":"Alice"}"#,
      #"{"type":"channel","id":"c1","kind":"group","name":"n","createdAt":1}"#,
      #"{"type":"member","channel":"c1","user":"alice","role":"owner"}"#,
      #"{"type":"message","channel":"c1","id":"m1","sender":"alice","createdAt":5,"content":{"kind":"text","text":"hi"}}"#,
      #"{"type":"file","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","name":"f","data":""}"#,
    ]
  ) { bytes throws(BrokenLaw) in
    for line in bytes.split(separator: 0x0A).prefix(8) {
      guard let json = try? JSONValue(parsing: Array(line)), let record = try? Record(json: json) else { continue }
      let written = record.json()
      guard let again = try? Record(json: written) else { throw BrokenLaw("what was written is no record: \(written.text())") }
      try require(again.json() == written, "a record changes on its way")
    }
  }

  /// Fault rules, as the control interface takes them.
  static let rules = FuzzTarget(
    "rules",
    seeds: [
      #"{"match":{"op":"send","direction":"in","user":"a","nth":2,"every":3,"times":null,"probability":0.5,"where":{"/a/0":1}},"phase":"afterCommit","do":[{"delay":{"ms":10,"jitter_ms":5}},{"duplicate":{"times":2}},{"closeSocket":{"clean":4000}}]}"#,
      #"{"do":["drop",{"patch":[{"op":"add","path":"/text","value":"x"},{"op":"remove","path":"/b"}]},{"raw":{"base64":"AQI="}},{"http":{"status":500,"body":{}}},{"corrupt":{"offset":1,"xor":255}},{"fragment":[1,2,3]}]}"#,
    ]
  ) { bytes throws(BrokenLaw) in
    guard let json = try? JSONValue(parsing: bytes) else { return }
    _ = try? FaultRule(json: json)
  }

  /// Small parsers of what stands in header fields and envelopes.
  static let texts = FuzzTarget(
    "text", seeds: ["Sun, 06 Nov 1994 08:49:37 GMT", #"{"unifiedchat":{"v":1,"origin":{"vendor":"x"}}}"#, "https://h/a?b=c#d"]
  ) { bytes throws(BrokenLaw) in
    let text = String(decoding: bytes, as: UTF8.self)
    _ = HTTPDate.milliseconds(text)
    _ = Provenance.unwrap(text)
    let shown = Redaction.url("https://h/?access_token=geheim&\(text)")
    try require(!shown.contains("geheim"), "a secret is shown: \(shown)")
    try require(shown.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "a control character is shown")
    if let segments = JSONPointer.segments(text) {
      try require(Array(segments.map(JSONPointer.escape).joined().utf8) == Array(text.utf8), "a pointer changes")
    }
  }
}

/// A network that nobody uses.
struct Unreachable: HTTPClient, WebSocketClient {
  static let transports = Transports(http: Unreachable(), webSocket: Unreachable())

  func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse { throw TransportError(.unreachable, nothingSent: true) }

  func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
    throw TransportError(.unreachable, nothingSent: true)
  }
}
