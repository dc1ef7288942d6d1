import ChatJSON
import Foundation
import Testing

@Suite("Foundation says the same where both must agree")
struct FoundationTests {
  /// Foundation's value as ours: numbers that are no integers are compared as doubles.
  static func same(_ ours: JSONValue, _ theirs: Any) -> Bool {
    switch (ours, theirs) {
    case (.null, is NSNull): true
    case (.string(let one), let two as String): Array(one.utf8) == Array(two.utf8)
    case (.bool(let one), let two as Bool): one == two
    case (.int(let one), let two as NSNumber): one == two.int64Value
    case (.uint(let one), let two as NSNumber): one == two.uint64Value
    case (.number(let one), let two as NSNumber): one.double == two.doubleValue
    case (.array(let one), let two as [Any]): one.count == two.count && zip(one, two).allSatisfy { same($0, $1) }
    case (.object(let one), let two as [String: Any]):
      one.count == two.count
        && one.members.allSatisfy { member in two[member.key].map { same(member.value, $0) } ?? false }
    default: false
    }
  }

  @Test("what we read, it reads as the same", arguments: MutationTests.samples.prefix(3))
  func reading(_ sample: [UInt8]) throws {
    let theirs = try JSONSerialization.jsonObject(with: Data(sample))
    #expect(Self.same(try JSONValue(parsing: sample), theirs))
  }

  @Test("what it writes, we read, and what we write, it reads")
  func writing() throws {
    var random = SeededGenerator(seed: 3)
    for _ in 0..<300 {
      let value = Self.random(&random, depth: 3)
      let ours = value.bytes()
      let theirs = try JSONSerialization.jsonObject(with: Data(ours), options: .fragmentsAllowed)
      #expect(Self.same(value, theirs), "\(value.text())")
      let written = try JSONSerialization.data(withJSONObject: [theirs])
      #expect(Self.same(try JSONValue(parsing: Array(written))[0] ?? "none", theirs), "\(value.text())")
    }
  }

  static func random(_ random: inout SeededGenerator, depth: Int) -> JSONValue {
    switch Int.random(in: 0..<(depth > 0 ? 7 : 5), using: &random) {
    case 0: return nil
    case 1: return JSONValue(Bool.random(using: &random))
    case 2: return JSONValue(Int64.random(in: .min ... .max, using: &random))
    case 3: return JSONValue(Double(Int.random(in: -99_999...99_999, using: &random)) / 64)
    case 4: return JSONValue(text(&random))
    case 5:
      return .array((0..<Int.random(in: 0...4, using: &random)).map { _ in Self.random(&random, depth: depth - 1) })
    default:
      return .object(
        JSONObject(
          (0..<Int.random(in: 0...4, using: &random)).map {
            (key: "k\($0)" + text(&random), value: Self.random(&random, depth: depth - 1))
          }))
    }
  }

  private static func text(_ random: inout SeededGenerator) -> String {
    let scalars: [Unicode.Scalar] = [
      "a", "Z", "\"", "\\", "/", "\n", "\u{1}", "\u{7f}", "é", "你", "\u{1F600}", "\u{2028}", " ",
    ]
    return String(
      String.UnicodeScalarView(
        (0..<Int.random(in: 0...20, using: &random)).map { _ in
          scalars[Int.random(in: 0..<scalars.count, using: &random)]
        }))
  }

  struct Sample: Codable, Equatable {
    var id: Int64
    var text: String
    var ratio: Double
    var flags: [Bool]
    var inner: [String: String]
  }

  @Test("JSONEncoder's documents become our values and back")
  func codable() throws {
    let sample = Sample(id: .max, text: "tab\t\u{1F600}/\"", ratio: 0.1, flags: [true, false], inner: ["k": "v"])
    let value = try JSONValue(parsing: Array(JSONEncoder().encode(sample)))
    #expect(value["id"] == .int(.max) && value["text"] == JSONValue(sample.text) && value["ratio"]?.double == 0.1)
    #expect(try JSONDecoder().decode(Sample.self, from: Data(value.bytes())) == sample)
  }
}
