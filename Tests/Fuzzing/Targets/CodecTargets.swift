import ChatCrypto
import ChatJSON
import LeanCloudWire
import OpenIMWire

extension FuzzTarget {
  static let codecs: [FuzzTarget] = [json, protobuf, gob, compression, tokens]

  static let json = FuzzTarget(
    "json",
    seeds: [
      #"{"id":7350000000123,"text":"hi \"there\" 你好 😀","none":null,"ratio":-1.50e-3,"a":[[],{}]}"#,
      #"[0,-0,1e999,18446744073709551616,"\ud83d\ude00\\\/\b\f\n\r\t",true,false,{"a":{"b":[1]},"a":2}]"#,
    ]
  ) { bytes throws(BrokenLaw) in
    var value: JSONValue?
    var reading: JSONError?
    var skipping: JSONError?
    do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch { reading = error }
    do throws(JSONError) {
      try JSONReader.read(bytes) { reader throws(JSONError) in try reader.skipValue() }
    } catch { skipping = error }
    try require(reading == skipping, "reading says \(String(describing: reading)), skipping \(String(describing: skipping))")
    if let reading { try require((0...bytes.count).contains(reading.offset ?? -1), "an error outside the bytes") }
    guard let value else { return }
    try require((try? JSONValue(parsing: value.bytes())) == value, "what is written reads as another value")
    try require((try? JSONValue(parsing: value.canonicalBytes())) == value, "the canonical form is another value")
  }

  /// The first byte chooses the message.
  static let protobuf = FuzzTarget(
    "protobuf",
    seeds: [
      [0, 0x0A, 0x05] + Array("alice".utf8) + [0x12, 0x03] + Array("bob".utf8), [3, 0x0A, 0x06, 0x0A, 0x02, 0x73, 0x31, 0x10, 0x05],
      [6, 0x0A, 0x0D, 0x0A, 0x02, 0x73, 0x31, 0x12, 0x07, 0x0A, 0x05, 0x0A, 0x03, 0x62, 0x6F, 0x62],
      [10, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
    ]
  ) { bytes throws(BrokenLaw) in
    guard let first = bytes.first else { return }
    let body = OpenIMBody.allCases[Int(first) % OpenIMBody.allCases.count]
    guard let value = try? body.decode(Array(bytes.dropFirst())) else { return }
    guard let again = try? body.encode(value) else { throw BrokenLaw("\(body): what was read cannot be written") }
    // Zeros that were written out go at the first turn; from then on nothing changes.
    guard let settled = try? body.decode(again), let third = try? body.encode(settled) else {
      throw BrokenLaw("\(body): what was written cannot be read")
    }
    try require(third == again, "\(body): writing does not settle")
  }

  static let gob = FuzzTarget(
    "gob",
    seeds: [
      OpenIMGob.encode(
        OpenIMRequestFrame(operation: 1001, sender: "alice", operationID: "op", increment: "1", data: [1, 2])),
      OpenIMGob.encode(OpenIMResponseFrame(operation: 1001, increment: "1", operationID: "op", data: [1, 2])),
    ]
  ) { bytes throws(BrokenLaw) in
    if let frame = try? OpenIMGob.decodeRequest(bytes) {
      try require((try? OpenIMGob.decodeRequest(OpenIMGob.encode(frame))) == frame, "a request changes on its way")
    }
    if let frame = try? OpenIMGob.decodeResponse(bytes) {
      try require((try? OpenIMGob.decodeResponse(OpenIMGob.encode(frame))) == frame, "a response changes on its way")
    }
  }

  static let compression = FuzzTarget(
    "gzip", seeds: [(try? Gzip.compress(Array("hello hello hello".utf8))) ?? [], (try? Gzip.compress([])) ?? []]
  ) { bytes throws(BrokenLaw) in
    let limit = 1 << 16
    guard let plain = try? Gzip.decompress(bytes, limit: limit) else { return }
    try require(plain.count <= limit, "more than the limit came out")
  }

  /// Tokens and the encodings inside them.
  static let tokens = FuzzTarget(
    "token",
    seeds: [
      JSONWebToken.sign(claims: Array(#"{"UserID":"alice","PlatformID":1,"exp":4102444800}"#.utf8), secret: [1, 2, 3]),
      "aGVsbG8=", "68656c6c6f",
    ]
  ) { bytes throws(BrokenLaw) in
    let text = String(decoding: bytes, as: UTF8.self)
    let token = try? JSONWebToken(reading: text)
    try require(token?.isSigned(with: [9, 9, 9, 9]) != true, "a signature of a key that nobody has")
    _ = OpenIMToken(reading: text)
    if let plain = ChatCrypto.Base64.decode(text) {
      try require(ChatCrypto.Base64.decode(ChatCrypto.Base64.encode(plain)) == plain, "base64 changes bytes")
    }
    if let plain = Hex.decode(text) { try require(Hex.decode(Hex.encode(plain)) == plain, "hex changes bytes") }
  }
}
