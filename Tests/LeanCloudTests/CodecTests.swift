import ChatJSON
import Foundation
import Testing

@testable import LeanCloudWire

@Suite("Sub-protocols")
struct CodecTests {
  @Test("the generated field table is that of the schema folder")
  func generated() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = try JSONValue(
      parsing: Array(Data(contentsOf: root.appending(path: "Schemas/leancloud/commands.fields.json"))))
    #expect(try JSONValue(parsing: LeanCloudCommandFields.text) == file)
  }

  struct Example: Sendable, CustomTestStringConvertible {
    var frame: JSONObject
    /// As protoc writes it; hexadecimal.
    var hex: String
    var testDescription: String { JSONValue.object(frame).text() }
  }

  @Test(
    "a frame has the bytes of its field numbers",
    arguments: [
      Example(
        frame: [
          "cmd": "session", "op": "open", "appId": "A", "peerId": "T", "i": 1, "ua": "js", "r": false,
          "configBitmap": 187,
        ], hex: "080010011a01412201542801b2060a22026a7328009801bb01"),
      Example(
        frame: ["cmd": "conv", "op": "members-joined", "cid": "c", "m": ["x", "y"]],
        hex: "08011021f206090a01780a0179220163"),
      Example(frame: ["cmd": "echo", "i": 3], hex: "080e2803"),
    ])
  func bytes(_ example: Example) throws {
    let codec = LeanCloudCodec(LeanCloudSubprotocol(.protobuf2))
    guard case .binary(let bytes) = try codec.encode(LeanCloudFrame(object: example.frame)) else {
      Issue.record("not binary")
      return
    }
    let hex = bytes.map { String(Int($0) + 256, radix: 16).suffix(2) }.joined()
    #expect(hex == example.hex)
    #expect(try codec.decode(.binary(bytes)).object == example.frame)
  }
}
