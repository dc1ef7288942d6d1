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
    "javascript-2.4.0-json-and-emulator",
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
    #expect(count >= 15)
  }

  /// Command, operation and serial of each answer, by socket.
  func outline(_ frame: LeanCloudFrame) -> String { "\(frame.command)/\(frame.operation) \(frame.serial ?? 0)" }

  @Test("the recorded client gets the same answers again", arguments: files)
  func replay(_ file: String) async throws {
    let (codec, entries) = try entries(file)
    let bench = try Bench { $0.openAuthentication = true }
    var sockets: [Int64: RawSocket] = [:]
    var wanted: [Int64: [String]] = [:]
    for entry in entries {
      guard let number = entry["connection"]?.int else { continue }
      if entry["event"]?.string == "upgrade" {
        sockets[number] = try await bench.socket(codec.subprotocol.isNamed ? [codec.subprotocol.name] : [])
      } else if entry["from"]?.string == "client" {
        // A session that was ended meanwhile may have closed its socket.
        try await sockets[number]?.send(codec.decode(payload(entry)))
      } else if entry["from"]?.string == "server" {
        let frame = try codec.decode(payload(entry))
        if frame.serial != nil { wanted[number, default: []].append(outline(frame)) }
      }
    }
    #expect(!wanted.isEmpty)
    for (number, answers) in wanted {
      var got: [String] = []
      while got.count < answers.count {
        let frame = try await #require(sockets[number]).receive()
        if frame.serial != nil { got.append(outline(frame)) }
      }
      #expect(got == answers)
    }
  }
}
