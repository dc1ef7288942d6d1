import ChatJSON
import Foundation
import Testing

@Suite("Any bytes give a value or an error")
struct MutationTests {
  /// Frames recorded between programs that we did not write, one JSON document a line. They lie beside the package.
  static let golden: URL = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("shared/golden")

  static let samples: [[UInt8]] = [
    #"{"msg_id":7350000000123,"channel_url":"sendbird_group_channel_1","message":"hi \"there\" 你好 😀","data":"","custom_type":null,"created_at":1700000000000,"mentioned_users":[{"user_id":"a","nickname":"\u00e9"}],"is_silent":false,"ratio":-1.50e-3}"#,
    #"{"reqIdentifier":1003,"token":"","sendID":"alice","operationID":"op-1","msgIncr":"alice_1796020920766638236","data":"CAEQAhoFaGVsbG8="}"#,
    #"{"cmd":"direct","cid":"5f1a","i":3,"msg":"{\"_lctype\":-1,\"_lctext\":\"x\"}","peerId":"Tom","appId":"app","r":true}"#,
    #"[[],{},[{}],"",0,-0,1e999,18446744073709551616,"\ud83d\ude00\\\/\b\f\n\r\t",true,false,null]"#,
  ].map { Array($0.utf8) }

  static let interesting: [UInt8] =
    Array("{}[]\",:\\/0123456789-+.eEtfnu \n\t".utf8) + [
      0, 0x1F, 0x7F, 0x80, 0xBF, 0xC0, 0xC3, 0xE4, 0xED, 0xF0, 0xF4, 0xFF,
    ]

  static func mutate(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let place = Int.random(in: 0...bytes.count, using: &random)
      let byte = interesting[Int.random(in: 0..<interesting.count, using: &random)]
      switch Int.random(in: 0..<6, using: &random) {
      case 0: bytes.insert(byte, at: place)
      case 1 where place < bytes.count: bytes[place] = byte
      case 2 where place < bytes.count: bytes.remove(at: place)
      case 3: bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 0...9, using: &random)))
      case 4: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 20)], at: place)
      case 5 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      default: break
      }
    }
    return bytes
  }

  /// What must hold of any bytes: reading and skipping agree, a value survives, an error points into the bytes.
  static func check(_ bytes: [UInt8], seed: UInt64) {
    var value: JSONValue?
    let reading = failure { () throws(JSONError) in value = try JSONValue(parsing: bytes) }
    let skipping = failure { () throws(JSONError) in
      try JSONReader.read(bytes) { reader throws(JSONError) in try reader.skipValue() }
    }
    #expect(reading == skipping, "seed \(seed): \(bytes)")
    if let reading { #expect((0...bytes.count).contains(reading.offset ?? -1), "seed \(seed): \(bytes)") }
    guard let value else { return }
    #expect((try? JSONValue(parsing: value.bytes())) == value, "seed \(seed): \(bytes)")
    #expect((try? JSONValue(parsing: value.canonicalBytes())) == value, "seed \(seed): \(bytes)")
  }

  @Test("JSON: samples, mutated", arguments: 0..<UInt64(8))
  func json(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for sample in Self.samples {
      for _ in 0..<400 { Self.check(Self.mutate(sample, &random), seed: seed) }
    }
  }

  @Test("JSON: random bytes that look like a document")
  func noise() {
    var random = SeededGenerator(seed: 99)
    for _ in 0..<4_000 {
      let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in
        Self.interesting[Int.random(in: 0..<Self.interesting.count, using: &random)]
      }
      Self.check(bytes, seed: 99)
    }
  }

  @Test(
    "JSON: recorded frames, as they are and mutated", .enabled(if: FileManager.default.fileExists(atPath: golden.path)))
  func recorded() throws {
    var random = SeededGenerator(seed: 7)
    var count = 0
    let files = FileManager.default.enumerator(at: Self.golden, includingPropertiesForKeys: nil)
    while let file = files?.nextObject() as? URL {
      guard file.pathExtension == "jsonl" else { continue }
      for line in try Data(contentsOf: file).split(separator: 0x0A) {
        let bytes = Array(line)
        #expect(try JSONValue(parsing: bytes).object != nil)
        Self.check(bytes, seed: 7)
        for _ in 0..<5 { Self.check(Self.mutate(bytes, &random), seed: 7) }
        count += 1
      }
    }
    #expect(count > 0)
  }

  @Test("protobuf: vectors joined and mutated", arguments: 0..<UInt64(8))
  func protobuf(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let vectors = (ProtobufVectors.exact + ProtobufVectors.tolerated).map { hex($0.bytes) }
    for _ in 0..<1_500 {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        bytes += vectors[Int.random(in: 0..<vectors.count, using: &random)]
      }
      bytes = Self.mutate(bytes, &random)
      guard let value = try? ProtobufVectors.proto3.decode("All", from: bytes) else { continue }
      let again = try ProtobufVectors.proto3.encode("All", value)
      let options = ProtobufOptions(emitDefaults: true)
      let full = try ProtobufVectors.proto3.decode("All", from: bytes, options: options)
      // Zeros that were written out go at the first turn; from then on nothing changes.
      let settled = try ProtobufVectors.proto3.decode("All", from: again)
      #expect(try ProtobufVectors.proto3.encode("All", settled) == again, "seed \(seed): \(bytes)")
      #expect(try ProtobufVectors.proto3.encode("All", full) == again, "seed \(seed): \(bytes)")
      #expect(try JSONValue(parsing: value.bytes()) == value, "seed \(seed): \(bytes)")
    }
  }

  @Test("protobuf: random bytes")
  func protobufNoise() {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<20_000 {
      let bytes = (0..<Int.random(in: 0...16, using: &random)).map { _ in
        UInt8.random(in: .min ... .max, using: &random)
      }
      let error = failure { () throws(JSONError) in try ProtobufVectors.proto3.decode("All", from: bytes) }
      if let offset = error?.offset { #expect((0...bytes.count).contains(offset)) }
    }
  }
}
