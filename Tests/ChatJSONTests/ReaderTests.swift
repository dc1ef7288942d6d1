import ChatJSON
import Testing

@Suite("Typed values are read without a tree")
struct ReaderTests {
  struct Note: JSONReadable, JSONWritable, Equatable {
    var id: Int64
    var text: String?
    var tags: [String] = []
    var rest: [String: [UInt8]] = [:]

    init(id: Int64, text: String? = nil, tags: [String] = [], rest: [String: [UInt8]] = [:]) {
      (self.id, self.text, self.tags, self.rest) = (id, text, tags, rest)
    }

    init(from reader: inout JSONReader) throws(JSONError) {
      var id: Int64?
      var text: String?
      var tags: [String] = []
      var rest: [String: [UInt8]] = [:]
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "id": id = try reader.readInt64()
        case "text": text = try reader.readOptional()
        case "tags": tags = try reader.readArray()
        default:
          let name = key.text
          rest[name] = try reader.readRaw()
        }
      }
      guard let id else { throw reader.missing("id") }
      self.init(id: id, text: text, tags: tags, rest: rest)
    }

    func write(to writer: inout JSONWriter) {
      writer.beginObject()
      writer.member("id", id)
      writer.memberUnlessNil("text", text)
      writer.member("tags", tags)
      for (name, raw) in rest.sorted(by: { $0.key < $1.key }) {
        writer.key(name)
        writer.writeRaw(raw)
      }
      writer.endObject()
    }
  }

  @Test("members come in any order, unknown ones are kept raw and written back")
  func members() throws {
    let document = #"{ "x" : { "deep" : [ 1.50 ] } , "tags":["a","b"],"id":9007199254740993,"\u0074ext":null}"#
    let note = try Note(json: Array(document.utf8))
    #expect(
      note == Note(id: 9_007_199_254_740_993, tags: ["a", "b"], rest: ["x": Array("{ \"deep\" : [ 1.50 ] }".utf8)]))
    #expect(text(note.jsonBytes()) == #"{"id":9007199254740993,"tags":["a","b"],"x":{ "deep" : [ 1.50 ] }}"#)
  }

  @Test(
    "what is not as expected has path and offset",
    arguments: [
      (#"[{"id":1},{"id":"2"}]"#, JSONError.Reason.wrongType(expected: "integer", found: "string"), "/1/id", 16),
      (#"[{"id":1.0}]"#, .wrongType(expected: "integer", found: "number"), "/0/id", 7),
      (#"[{"id":1e3}]"#, .wrongType(expected: "integer", found: "number"), "/0/id", 7),
      (#"[{"id":9223372036854775808}]"#, .outOfRange, "/0/id", 7),
      (#"[{"id":99999999999999999999}]"#, .outOfRange, "/0/id", 7),
      (#"[{"id":null}]"#, .wrongType(expected: "integer", found: "null"), "/0/id", 7),
      (#"[{"id":1,"tags":{}}]"#, .wrongType(expected: "array", found: "object"), "/0/tags", 16),
      (#"[{"id":1,"tags":["a",true]}]"#, .wrongType(expected: "string", found: "bool"), "/0/tags/1", 21),
      (#"[{"id":1},7]"#, .wrongType(expected: "object", found: "number"), "/1", 10),
      (#"[{"id":1},{"text":"x","tags":[]}]"#, .missing, "/1/id", 31),
      (#"[{}]"#, .missing, "/0/id", 2),
      (#"[{"id":1,}]"#, .unexpectedByte(0x7D), "/0", 9),
      (#"[{"id":1},]"#, .unexpectedByte(0x5D), "/1", 10),
      (#"[{"id":1 "text":"x"}]"#, .unexpectedByte(0x22), "/0/id", 9),
      (#"[{"id" 1}]"#, .unexpectedByte(0x31), "/0/id", 7),
      (#"[{"id":1}"#, .unexpectedEnd, "/0", 9),
      (#"[{"id":1}]]"#, .trailingBytes, "", 10),
      (#"[{"id":1,"y":[1,{"z":tru}]}]"#, .unexpectedByte(0x7D), "/0/y/1/z", 24),
      (#"{"id":1}"#, .wrongType(expected: "array", found: "object"), "", 0),
      (#"[{"id":-}]"#, .invalidNumber, "/0/id", 8),
      (#"[{"id":?}]"#, .unexpectedByte(0x3F), "/0/id", 7),
      ("[{\"id\":1,\"\u{1}\":2}]", .controlCharacter(1), "/0", 10),
    ])
  func mismatches(_ document: String, _ reason: JSONError.Reason, _ path: String, _ offset: Int) {
    let error = failure { () throws(JSONError) in try [Note](json: Array(document.utf8)) }
    #expect(error == JSONError(reason, path: path, offset: offset))
  }

  @Test("keys and texts of each length are read alike, in the middle and at the end of a document")
  func everyLength() throws {
    for length in 0...40 {
      let plain = String((0..<length).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
      for special in ["", "\"", "\\", "\n", "é", "你"] {
        for place in Set([0, length / 2, length]) {
          let text = String(plain.prefix(place)) + special + String(plain.dropFirst(place))
          for tail in ["", ",\"padding\":\"0123456789012345678901234567890\""] {
            let quoted = JSONValue(text).text()
            let document = Array("{\(quoted):\(quoted)\(tail)}".utf8)
            let (key, value) = try JSONReader.read(document) { reader throws(JSONError) in
              try reader.beginObject()
              let key = try reader.nextKey()?.text
              let value = try reader.readString()
              while try reader.nextKey() != nil { try reader.skipValue() }
              return (key, value)
            }
            #expect(key.map { Array($0.utf8) } == Array(text.utf8))
            #expect(Array(value.utf8) == Array(text.utf8))
          }
        }
      }
    }
  }

  @Test("integers of each length are read alike, in the middle and at the end of a document")
  func everyInteger() throws {
    for digits in 1...20 {
      let text = String("98765432109876543210".prefix(digits))
      for (tail, isInteger) in [
        ("]", true), (" ]                   ", true), (",0,0,0,0,0,0,0,0,0,0,0,0]", true),
        (".5,0,0,0,0,0,0,0,0,0,0]", false), ("e5,0,0,0,0,0,0,0,0,0,0]", false),
      ] {
        for sign in ["", "-"] {
          let document = Array("[\(sign)\(text)\(tail)".utf8)
          let first = try? JSONReader.read(document) { reader throws(JSONError) in
            try reader.beginArray()
            _ = try reader.nextElement()
            let value = try reader.readInt64()
            while try reader.nextElement() { try reader.skipValue() }
            return value
          }
          #expect(first == (isInteger ? Int64(sign + text) : nil), "\(sign)\(text)\(tail)")
        }
      }
    }
  }

  @Test("integers are exact at the edges of each type")
  func edges() throws {
    #expect(try Int64(json: Array("-9223372036854775808".utf8)) == .min)
    #expect(try Int64(json: Array("9223372036854775807".utf8)) == .max)
    #expect(try UInt64(json: Array("18446744073709551615".utf8)) == .max)
    #expect(try Int32(json: Array("-2147483648".utf8)) == .min)
    #expect(try Int64(json: Array("-0".utf8)) == 0)
    #expect(try UInt64(json: Array("-0".utf8)) == 0)
    for text in ["2147483648", "-2147483649", "18446744073709551615"] {
      #expect(failure { () throws(JSONError) in try Int32(json: Array(text.utf8)) }?.reason == .outOfRange)
    }
    for text in ["-1", "18446744073709551616"] {
      #expect(failure { () throws(JSONError) in try UInt64(json: Array(text.utf8)) }?.reason == .outOfRange)
    }
  }

  @Test(
    "doubles are the nearest to their text",
    arguments: [
      ("0.1", 0.1), ("1", 1), ("-0.0", -0.0), ("1e308", 1e308), ("5e-324", .leastNonzeroMagnitude),
      ("1e400", .infinity),
      ("9007199254740993", 9_007_199_254_740_992.0), ("18446744073709551615", 18_446_744_073_709_551_616),
      ("123456789012345678901234567890", 123_456_789_012_345_677_877_719_597_056),
    ])
  func doubles(_ document: String, _ expected: Double) throws {
    let value = try Double(json: Array(document.utf8))
    #expect(value == expected && value.sign == expected.sign)
  }

  @Test("bool, null, and optional")
  func small() throws {
    #expect(try [Bool](json: Array("[true,false]".utf8)) == [true, false])
    let texts = try JSONReader.read(Array(#"[null,"a"]"#.utf8)) { reader throws(JSONError) in
      var texts: [String?] = []
      try reader.beginArray()
      while try reader.nextElement() { texts.append(try reader.readOptional()) }
      return texts
    }
    #expect(texts == [nil, "a"])
  }

  @Test("a value tree can be read in the middle of a typed one")
  func mixed() throws {
    let value = try JSONReader.read(Array(#"{"a":{"b":[1]},"c":2}"#.utf8)) { reader throws(JSONError) in
      var found: JSONValue = nil
      try reader.beginObject()
      while let key = try reader.nextKey() {
        if key == "a" { found = try reader.readValue() } else { _ = try reader.readInt64() }
      }
      return found
    }
    #expect(value == ["b": [1]])
    let nested = failure { () throws(JSONError) in
      try JSONReader.read(Array("[[[1]]]".utf8), limits: JSONLimits(depth: 2)) { reader throws(JSONError) in
        try reader.beginArray()
        _ = try reader.nextElement()
        return try reader.readValue()
      }
    }
    #expect(nested == JSONError(.tooDeep(limit: 2), path: "/0/0", offset: 2))
  }

  static let calls = 13

  static func call(_ number: Int, _ reader: inout JSONReader) throws(JSONError) {
    switch number {
    case 0: _ = try reader.nextKey()
    case 1: _ = try reader.nextElement()
    case 2: try reader.beginObject()
    case 3: try reader.beginArray()
    case 4: _ = try reader.readString()
    case 5: _ = try reader.readInt64()
    case 6: _ = try reader.readDouble()
    case 7: _ = try reader.readBool()
    case 8: _ = try reader.readNull()
    case 9: _ = try reader.readValue()
    case 10: try reader.skipValue()
    case 11: _ = try reader.readRaw()
    default: throw reader.missing("x")
    }
  }

  /// A caller may also go on after an error.
  static func misuse(_ document: [UInt8], _ calls: [Int]) -> Int? {
    var offset: Int?
    _ = failure { () throws(JSONError) in
      try JSONReader.read(document) { reader throws(JSONError) in
        for number in calls {
          do { try call(number, &reader) } catch {}
          offset = reader.offset
        }
      }
    }
    return offset
  }

  @Test("a reader that is used wrongly throws and does not trap")
  func misuse() {
    var random = SeededGenerator(seed: 11)
    for document in [#"{"a":[1,"x",{"b":null}],"c":true}"#, "[[],{},-1.5]", "]", "}", "", "{", #"["\"#, "1"] {
      for _ in 0..<2_000 {
        let calls = (0..<12).map { _ in Int.random(in: 0..<Self.calls, using: &random) }
        let offset = Self.misuse(Array(document.utf8), calls)
        #expect(document.isEmpty || (0...document.utf8.count).contains(offset ?? -1), "\(document) \(calls)")
      }
    }
  }
}
