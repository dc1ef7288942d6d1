import ChatJSON
import Foundation
import Testing

@Suite("No document costs more than its limits")
struct LimitTests {
  static func nested(_ depth: Int, _ open: String = "[", _ inner: String = "", _ close: String = "]") -> [UInt8] {
    Array((String(repeating: open, count: depth) + inner + String(repeating: close, count: depth)).utf8)
  }

  @Test("depth is counted in arrays and objects together", arguments: [1, 2, 3, 63, 64, 65, 512])
  func depth(_ limit: Int) throws {
    let limits = JSONLimits(depth: limit)
    for (open, close) in [("[", "]"), (#"{"a":"#, "}")] {
      let inner = open == "[" ? "" : "1"
      let fits = Self.nested(limit, open, inner, close)
      let exceeds = Self.nested(limit + 1, open, inner, close)
      _ = try JSONValue(parsing: fits, limits: limits)
      try JSONReader.read(fits, limits: limits) { reader throws(JSONError) in try reader.skipValue() }
      let segment = open == "[" ? "/0" : "/a"
      let expected = JSONError(
        .tooDeep(limit: limit), path: String(repeating: segment, count: limit), offset: limit * open.utf8.count)
      #expect(failure { () throws(JSONError) in try JSONValue(parsing: exceeds, limits: limits) } == expected)
      let skipping = failure { () throws(JSONError) in
        try JSONReader.read(exceeds, limits: limits) { reader throws(JSONError) in try reader.skipValue() }
      }
      #expect(skipping == expected)
    }
  }

  @Test("512 is the depth that is allowed by default")
  func defaultDepth() throws {
    _ = try JSONValue(parsing: Self.nested(512))
    #expect(
      failure { () throws(JSONError) in try JSONValue(parsing: Self.nested(513)) }?.reason == .tooDeep(limit: 512))
  }

  @Test("a hundred thousand brackets are an error, whatever the limit says, and can be skipped")
  func deepDocument() throws {
    let limits = JSONLimits(depth: 200_000)
    let deep = Self.nested(100_000)
    let error = failure { () throws(JSONError) in try JSONValue(parsing: deep, limits: limits) }
    #expect(error?.reason == .tooDeep(limit: JSONLimits.deepestTree))
    #expect(failure { () throws(JSONError) in try JSONValue(parsing: [UInt8](repeating: 0x5B, count: 100_000)) } != nil)
    let raw = try JSONReader.read(deep, limits: limits) { reader throws(JSONError) in try reader.readRaw() }
    #expect(raw == deep)
    let objects = Self.nested(100_000, #"{"a":"#, "1", "}")
    #expect(
      try JSONReader.read(objects, limits: limits) { reader throws(JSONError) in try reader.readRaw() } == objects)
  }

  @Test("the deepest tree is read, compared, hashed, written and released on a small stack")
  func smallStack() {
    let limits = JSONLimits(depth: .max)
    let documents = [Self.nested(JSONLimits.deepestTree), Self.nested(JSONLimits.deepestTree, #"{"a":"#, "1", "}")]
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
      for document in documents {
        guard let value = try? JSONValue(parsing: document, limits: limits) else { continue }
        guard let other = try? JSONValue(parsing: document, limits: limits) else { continue }
        if value == other, value.hashValue == other.hashValue, value.bytes() == document,
          value.canonicalBytes() == document
        {
          done.signal()
        }
      }
    }
    thread.stackSize = 512 << 10
    thread.start()
    #expect(done.wait(timeout: .now() + 60) == .success)
    #expect(done.wait(timeout: .now() + 60) == .success)
  }

  @Test("a limit of zero or less allows scalars alone")
  func noDepth() throws {
    for depth in [0, -1, Int.min] {
      #expect(try JSONValue(parsing: "1", limits: JSONLimits(depth: depth)) == 1)
      #expect(failure { () throws(JSONError) in try JSONValue(parsing: "[]", limits: JSONLimits(depth: depth)) } != nil)
    }
  }

  @Test("size is counted in bytes")
  func size() throws {
    #expect(try JSONValue(parsing: "[1,2]", limits: JSONLimits(size: 5)) == [1, 2])
    #expect(
      failure { () throws(JSONError) in try JSONValue(parsing: "[1,2]", limits: JSONLimits(size: 4)) }
        == JSONError(.tooLarge(limit: 4), offset: 4))
  }

  @Test(
    "duplicate keys are refused where that is asked for, at the second one",
    arguments: [
      (#"{"a":1,"a":2}"#, "/a", 7), (#"{"x":{"a":1,"b":2,"\u0061":3}}"#, "/x/a", 18),
      ("{\"你\":1,\"\\u4f60\":2}", "/你", 9),
    ])
  func duplicates(_ document: String, _ path: String, _ offset: Int) {
    let limits = JSONLimits(duplicateKeys: .reject)
    let error = failure { () throws(JSONError) in try JSONValue(parsing: document, limits: limits) }
    #expect(error == JSONError(.duplicateKey, path: path, offset: offset))
  }

  @Test("keys that differ only in normalisation, or hide among a hundred, are told apart")
  func manyKeys() throws {
    let reject = JSONLimits(duplicateKeys: .reject)
    _ = try JSONValue(parsing: "{\"\u{e9}\":1,\"e\u{301}\":2}", limits: reject)
    var members = (0..<100).map { #""key\#($0)":\#($0)"# }
    let value = try JSONValue(parsing: "{\(members.joined(separator: ","))}", limits: reject)
    #expect(value.object?.count == 100)
    #expect((0..<100).allSatisfy { value["key\($0)"] == JSONValue($0) })
    for repeated in [0, 31, 32, 33, 98] {
      members.append(#""\u006bey\#(repeated)":-1"#)
      let document = "{\(members.joined(separator: ","))}"
      members.removeLast()
      #expect(
        failure { () throws(JSONError) in try JSONValue(parsing: document, limits: reject) }?.reason == .duplicateKey)
      let lastWins = try JSONValue(parsing: document)
      #expect(lastWins.object?.count == 100)
      #expect(lastWins["key\(repeated)"] == -1)
      #expect(lastWins.object?.keys[repeated] == "key\(repeated)")
    }
  }

  @Test("two hundred thousand members take no quadratic time")
  func wide() throws {
    let members = (0..<200_000).map { #""k\#($0)":0"# }
    let value = try JSONValue(
      parsing: "{\(members.joined(separator: ","))}", limits: JSONLimits(duplicateKeys: .reject))
    #expect(value.object?.count == 200_000)
    #expect(value["k199999"] == 0)
  }
}
