import ChatCrypto
import ChatJSON
import ChatTransport
import Foundation
import LeanCloudWire
import Testing

/// What the vendor's Python library asked over REST, and what our emulator answered when it was recorded.
@Suite("The recorded Python library")
struct PythonGoldenTests {
  static let file = GoldenTests.folder.appending(path: "python-3.0.2-rest-and-emulator.jsonl")

  func entries() throws -> [JSONValue] {
    let text = try String(contentsOf: Self.file, encoding: .utf8)
    return Array(try text.split(separator: "\n").map { try JSONValue(parsing: String($0)) }.dropFirst())
  }

  /// A request as it was recorded; addresses of the recording become those of the bench.
  func request(_ entry: JSONValue) throws -> HTTPRequest {
    let words = try #require(entry["http"]?.string).split(separator: " ", maxSplits: 1).map(String.init)
    var request = HTTPRequest(words[0], Bench.base + words[1])
    for member in entry["headers"]?.object ?? [:] { request.headers[member.key] = member.value.string }
    if let hex = entry["hex"]?.string { request.body = try #require(Hex.decode(hex)) }
    if let body = entry["body"] { request.body = body.bytes() }
    return request
  }

  /// Values that depend on the host or on the moment.
  static let moving: Set<String> = ["createdAt", "updatedAt", "url", "upload_url", "lm"]

  func still(_ value: JSONValue) -> JSONValue {
    if let array = value.array { return .array(array.map(still)) }
    guard let object = value.object else { return value }
    return .object(
      JSONObject(object.members.filter { !Self.moving.contains($0.key) }.map { ($0.key, still($0.value)) }))
  }

  /// When the recorded server made something.
  func time(_ entry: JSONValue) -> Int64? {
    guard entry["http"]?.string?.hasPrefix("POST") == true, let answer = entry["answer"] else { return nil }
    return answer["timestamp"]?.int ?? answer["createdAt"]?.string.flatMap { LeanCloudID.milliseconds(iso: $0) }
  }

  @Test("gets the same answers again, to requests that it signed itself")
  func replay() async throws {
    let entries = try entries()
    #expect(entries.count > 50)
    // The clock shows what it showed: later requests name messages by their times, and rows are sorted by theirs.
    let times = entries.map(time)
    var now = try #require(times.compactMap(\.self).first)
    let bench = try Bench(start: now)
    for (entry, time) in zip(entries, times) {
      if let time, time > now {
        await bench.host.advance(by: .milliseconds(time - now))
        now = time
      }
      let response = try await bench.host.transports.http.send(request(entry))
      let call = entry["http"]?.string ?? ""
      #expect(Int64(response.status) == entry["status"]?.int, "\(call)")
      if let answer = entry["answer"] {
        #expect(try still(JSONValue(parsing: response.body)) == still(answer), "\(call)")
      } else {
        #expect(String(decoding: response.body, as: UTF8.self) == entry["answerText"]?.string, "\(call)")
      }
    }
  }

  @Test("a request whose signature was made with another key is refused")
  func signature() async throws {
    let bench = try Bench()
    var request = try request(try #require(entries().first))
    let sign = LeanCloudSignature.requestSign(key: "another", isMaster: true, milliseconds: Bench.start)
    request.headers["X-LC-Sign"] = sign
    #expect(try await bench.host.transports.http.send(request).status == 401)
  }
}
