import ChatTransport
import Testing

@Suite("Nothing that is printed shows a secret")
struct PrintingTests {
  static let secret = "s3cr3t-value"

  @Test("requests, answers and options print without secrets and bodies, in any way of printing")
  func carriers() {
    let headers: HTTPHeaders = ["Authorization": "Bearer \(Self.secret)", "X-LC-Key": Self.secret, "Accept": "a/b"]
    let url = "https://h.example/v3/users?access_token=\(Self.secret)&limit=5"
    let body = Array(#"{"message":"\#(Self.secret)"}"#.utf8)
    let values: [any Sendable] = [
      headers, headers.fields[0], HTTPRequest("POST", url, headers: headers, body: body),
      HTTPResponse(status: 200, headers: headers, body: body), WebSocketRequest(url, headers: headers),
      EmulatorOptions(users: [(id: "alice", token: Self.secret)], adminSecret: Self.secret),
      TransportError(.upgradeRefused(HTTPResponse(status: 401, headers: headers, body: body)), peer: "h.example:443"),
    ]
    for value in values {
      var dumped = ""
      dump(value, to: &dumped)
      for text in ["\(value)", String(reflecting: value), String(describing: [value]), dumped] {
        #expect(!text.contains(Self.secret))
      }
    }
    #expect("\(HTTPRequest("GET", url))" == "GET https://h.example/v3/users?access_token=…&limit=5 [] 0 B")
    #expect("\(headers)" == "[Authorization: …, X-LC-Key: …, Accept: a/b]")
  }
}
