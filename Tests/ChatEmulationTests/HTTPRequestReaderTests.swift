import ChatTransport
import Testing

@testable import ChatEmulation

@Suite("Requests on a connection")
struct HTTPRequestReaderTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var title: String
    var text: String
    /// `METHOD TARGET BODY` of each request, then `STATUS` of a failure; `continue` where it is asked for.
    var events: [String]
    var testDescription: String { title }

    init(_ title: String, _ text: String, _ events: String...) {
      self.title = title
      self.text = text.replacing("\n", with: "\r\n")
      self.events = events
    }
  }

  static let cases: [Case] = [
    Case("a GET", "GET /a?b=c HTTP/1.1\nHost: h\n\n", "GET /a?b=c "),
    Case("the target stays as it was sent", "GET /a%2Fb//./c?x=1%2B2+3 HTTP/1.1\n\n", "GET /a%2Fb//./c?x=1%2B2+3 "),
    Case("an unknown method", "FETCH / HTTP/1.1\n\n", "FETCH / "),
    Case("a body by length, and the next request", "POST /a HTTP/1.1\nContent-Length: 3\n\nxyzGET /b HTTP/1.1\n\n", "POST /a xyz", "GET /b "),
    Case("the same length twice", "POST / HTTP/1.1\nContent-Length: 1\ncontent-length: 1\n\nx", "POST / x"),
    Case("two lengths", "POST / HTTP/1.1\nContent-Length: 1\nContent-Length: 2\n\nxx", "400"),
    Case("chunks, an extension and a trailer", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n3;a=b\nabc\nA\n0123456789\n0\nX: y\n\nGET /b HTTP/1.1\n\n", "PUT / abc0123456789", "GET /b "),
    Case("a chunk that is longer", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n1\nabc\n", "400"),
    Case("a chunk without a size", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n\n", "400"),
    Case("a chunk's size with a sign", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n+1\na\n", "400"),
    Case("a chunk's size with a prefix", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n0x1\na\n", "400"),
    Case("a chunk's size behind a blank", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n 1\na\n", "400"),
    Case("a chunk's size with words behind it", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n1 a\na\n", "400"),
    Case("blanks before an extension", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n1 ;x\na\n0\n\n", "PUT / a"),
    Case("two codings", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\nTransfer-Encoding: identity\n\n", "400"),
    Case("a coding behind another name for it", "PUT / HTTP/1.1\nTransfer-Encoding: xchunked\n\n", "501"),
    Case("a coding in two lines", "PUT / HTTP/1.1\nTransfer-Encoding:\n chunked\n\n", "400"),
    Case("a coding before HTTP/1.1", "PUT / HTTP/1.0\nTransfer-Encoding: chunked\n\n", "400"),
    Case("a blank before the colon", "PUT / HTTP/1.1\nContent-Length : 1\n\nx", "400"),
    Case("a list of lengths", "PUT / HTTP/1.1\nContent-Length: 1, 1\n\nx", "400"),
    Case("two hosts", "GET / HTTP/1.1\nHost: a\nHost: b\n\n", "400"),
    Case("a bare carriage return", "GET / HTTP/1.1\nX: a\rContent-Length: 5\n\n", "400"),
    Case("a NUL in a field", "GET / HTTP/1.1\nX: a\0b\n\n", "400"),
    Case("more fields than anyone sends", "GET / HTTP/1.1\n" + String(repeating: "a: b\n", count: 257) + "\n", "431"),
    Case("as many fields as are served", "GET / HTTP/1.1\n" + String(repeating: "a: b\n", count: 256) + "\n", "GET / "),
    Case("a negative chunk", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n-1\n", "400"),
    Case("an endless size", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\nFFFFFFFFFFFFFFFFFF\n", "400"),
    Case("chunks above the limit", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\n\n3e8\n", "413"),
    Case("length and coding", "PUT / HTTP/1.1\nTransfer-Encoding: chunked\nContent-Length: 3\n\n", "400"),
    Case("another coding", "PUT / HTTP/1.1\nTransfer-Encoding: gzip\n\n", "501"),
    Case("a length above the limit", "PUT / HTTP/1.1\nContent-Length: 101\n\n", "413"),
    Case("a length above every integer", "PUT / HTTP/1.1\nContent-Length: 99999999999999999999\n\n", "413"),
    Case("a length that is no number", "PUT / HTTP/1.1\nContent-Length: +1\n\nx", "400"),
    Case("100-continue", "PUT / HTTP/1.1\nExpect: 100-continue\nContent-Length: 1\n\nx", "continue", "PUT / x"),
    Case("100-continue of HTTP/1.0", "PUT / HTTP/1.0\nExpect: 100-continue\nContent-Length: 1\n\nx", "PUT / x"),
    Case("empty lines before", "\n\nGET / HTTP/1.1\n\n", "GET / "),
    Case("HTTP/1.0", "GET / HTTP/1.0\n\n", "GET / "),
    Case("HTTP/2", "PRI * HTTP/2.0\n\n", "400"),
    Case("no target", "GET HTTP/1.1\n\n", "400"),
    Case("a space in the target", "GET /a b HTTP/1.1\n\n", "400"),
    Case("a field without a name", "GET / HTTP/1.1\n: x\n\n", "400"),
    Case("a space before the colon", "GET / HTTP/1.1\nA : x\n\n", "400"),
    Case("a folded field", "GET / HTTP/1.1\nA: x\n y\n\n", "400"),
    Case("fields without end", "GET / HTTP/1.1\nA: " + String(repeating: "x", count: 70_000), "431"),
  ]

  @Test("are read whole, byte by byte and in pieces", arguments: cases)
  func events(_ test: Case) {
    let bytes = Array(test.text.utf8)
    for step in [bytes.count, 1, 5] {
      var reader = HTTPRequestReader(bodyLimit: 100)
      var input = InputBuffer()
      var events: [String] = []
      reading: for start in stride(from: 0, to: bytes.count, by: step) {
        input.append(Array(bytes[start..<min(start + step, bytes.count)]))
        while let event = reader.next(&input) {
          events.append(Self.describe(event))
          if case .failure = event { break reading }
        }
      }
      #expect(events == test.events)
    }
  }

  static func describe(_ event: HTTPRequestReader.Event) -> String {
    switch event {
    case .expectsContinue: "continue"
    case .request(let head, let body): "\(head.method) \(head.target) \(String(decoding: body, as: UTF8.self))"
    case .failure(let status, _): "\(status)"
    }
  }

  @Test("header fields keep their names, order and values")
  func fields() throws {
    var reader = HTTPRequestReader(bodyLimit: 100)
    var input = InputBuffer()
    input.append(Array("GET / HTTP/1.1\r\nX-LC-Id:  a b \r\nApi-Token:\r\nX-LC-Id: 你\r\n\r\n".utf8))
    guard case .request(let head, _)? = reader.next(&input) else { throw WebSocketClose(reason: "no request") }
    #expect(head.headers == HTTPHeaders([.init("X-LC-Id", "a b"), .init("Api-Token", ""), .init("X-LC-Id", "你")]))
  }

  @Test("any bytes give requests or a failure, never a trap")
  func anyBytes() {
    var random = EmulatorRandom(seed: 5)
    let alphabet = Array("GET / HTTP/1.1\r\nContent-Length: 0123\r\nTransfer-Encoding: chunked\r\n\r\n:;".utf8)
    for _ in 0..<3000 {
      var reader = HTTPRequestReader(bodyLimit: 100)
      var input = InputBuffer()
      input.append(Array("POST / HTTP/1.1\r\n".utf8))
      input.append((0..<Int.random(in: 0..<120, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? 0 })
      for _ in 0..<300 { if reader.next(&input) == nil { break } }
    }
  }
}
