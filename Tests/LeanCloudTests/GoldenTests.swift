import ChatCrypto
import ChatJSON
import ChatTransport
import Foundation
import LeanCloudWire
import Testing

/// What official clients said, and what our emulator answered when it was recorded.
@Suite("Recorded clients")
struct GoldenTests {
  static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Golden/leancloud")

  static let files = [
    "javascript-5.0.0-rc.7-protobuf2-and-emulator", "javascript-5.0.0-rc.7-proto2base64-and-emulator",
    "javascript-5.0.0-rc.7-moderation-and-emulator", "javascript-2.4.0-json-and-emulator",
    "avchatclient-1.0.4-json-and-emulator",
  ]

  func entries(_ file: String) throws -> (codec: LeanCloudCodec, entries: [JSONValue]) {
    let text = try String(contentsOf: Self.folder.appending(path: file + ".jsonl"), encoding: .utf8)
    let lines = try text.split(separator: "\n").map { try JSONValue(parsing: String($0)) }
    let subprotocol = lines.first?["mode"]?.string.flatMap { LeanCloudSubprotocol(name: $0) } ?? .unnamed
    return (LeanCloudCodec(subprotocol), Array(lines.dropFirst()))
  }

  func payload(_ entry: JSONValue) throws -> LeanCloudPayload {
    if let text = entry["text"]?.string { return .text(text) }
    return .binary(try #require(entry["hex"]?.string.flatMap { Hex.decode($0) }))
  }

  @Test("every frame of the client is read whole: written again it says the same", arguments: files)
  func frames(_ file: String) throws {
    let (codec, entries) = try entries(file)
    var count = 0
    for entry in entries where entry["from"]?.string == "client" {
      let frame = try codec.decode(payload(entry))
      #expect(!frame.command.isEmpty)
      #expect(frame["@unknown"] == nil, "no field is unknown to the table")
      #expect(try codec.decode(codec.encode(frame)) == frame)
      count += 1
    }
    #expect(count >= 12)
  }

  /// The client of 2014 sends no serials: every frame towards it counts as an answer.
  func isAnswer(_ frame: LeanCloudFrame, _ file: String) -> Bool {
    frame.serial != nil || file.hasPrefix("avchatclient")
  }

  /// Command, operation and serial of each answer, by socket.
  func outline(_ frame: LeanCloudFrame) -> String { "\(frame.command)/\(frame.operation) \(frame.serial ?? 0)" }

  struct Ack: Hashable {
    var connection: Int64
    var serial: Int64
  }

  /// When the recorded server took each message.
  func acknowledgedTimes(_ entries: [JSONValue], _ codec: LeanCloudCodec) throws -> [Ack: Int64] {
    var times: [Ack: Int64] = [:]
    for entry in entries where entry["from"]?.string == "server" {
      guard let connection = entry["connection"]?.int else { continue }
      let frame = try codec.decode(payload(entry))
      guard frame.command == "ack", let serial = frame.serial, let time = frame.int("t") else { continue }
      times[Ack(connection: connection, serial: serial)] = time
    }
    return times
  }

  @Test("the recorded client gets the same answers again", arguments: files)
  func replay(_ file: String) async throws {
    let (codec, entries) = try entries(file)
    let times = try acknowledgedTimes(entries, codec)
    var now = times.values.min() ?? Bench.start
    let bench = try Bench(start: now) { $0.openAuthentication = true }
    var sockets: [Int64: RawSocket] = [:]
    var wanted: [Int64: [String]] = [:]
    for entry in entries {
      if let words = entry["rest"]?.string?.split(separator: " ").map(String.init), words.count == 2 {
        #expect(try await bench.rest(words[0], words[1], entry["body"]).status == 200)
      }
      guard let number = entry["connection"]?.int else { continue }
      if entry["event"]?.string == "upgrade" {
        sockets[number] = try await bench.socket(codec.subprotocol.isNamed ? [codec.subprotocol.name] : [])
      } else if entry["from"]?.string == "client" {
        let frame = try codec.decode(payload(entry))
        // Later commands name messages by id and time: both are to be what they were.
        if frame.command == "direct", let serial = frame.serial,
          let time = times[Ack(connection: number, serial: serial)]
        {
          await bench.host.advance(by: .milliseconds(max(0, time - now)))
          now = max(now, time)
        }
        // A session that was ended meanwhile may have closed its socket.
        try await sockets[number]?.send(frame)
      } else if entry["from"]?.string == "server" {
        let frame = try codec.decode(payload(entry))
        if isAnswer(frame, file) { wanted[number, default: []].append(outline(frame)) }
      }
    }
    #expect(!wanted.isEmpty)
    for (number, answers) in wanted {
      var got: [String] = []
      while got.count < answers.count {
        let frame = try await #require(sockets[number]).receive()
        if isAnswer(frame, file) { got.append(outline(frame)) }
      }
      #expect(got == answers)
    }
  }
}
