import ChatCrypto
import ChatTransport

/// Responses as bytes, with what a browser asks for to let a page of another origin read them.
enum HTTPResponseWriter {
  /// A response to `head`; its body is left out where HTTP forbids one.
  static func bytes(_ response: HTTPResponse, to head: HTTPRequestHead?, keepsAlive: Bool) -> [UInt8] {
    let hasNoBody = response.status == 204 || response.status == 304 || (100..<200).contains(response.status)
    var headers = response.headers
    headers["Content-Length"] = hasNoBody ? nil : String(response.body.count)
    headers["Transfer-Encoding"] = nil
    headers["Connection"] = keepsAlive ? "keep-alive" : "close"
    if let origin = head?.headers["origin"] { allow(origin, &headers) }
    var bytes = start(response.status, headers)
    if !hasNoBody, head?.method != "HEAD" { bytes.append(contentsOf: response.body) }
    return bytes
  }

  private static func allow(_ origin: String, _ headers: inout HTTPHeaders) {
    if headers["Access-Control-Allow-Origin"] == nil {
      headers["Access-Control-Allow-Origin"] = origin
      headers["Access-Control-Allow-Credentials"] = "true"
      headers.fields.append(HTTPHeaders.Field("Vary", "Origin"))
    }
    // A star would not count for requests with credentials.
    if headers["Access-Control-Expose-Headers"] == nil {
      headers["Access-Control-Expose-Headers"] = headers.fields.map(\.name).joined(separator: ", ")
    }
  }

  /// The answer to a browser's question before a request of another origin; nil when `head` is no such question.
  static func preflight(_ head: HTTPRequestHead) -> HTTPResponse? {
    guard head.method == "OPTIONS", head.headers["origin"] != nil,
      let method = head.headers["access-control-request-method"]
    else { return nil }
    var headers: HTTPHeaders = [
      "Access-Control-Allow-Methods": method, "Access-Control-Max-Age": "600",
      "Access-Control-Allow-Private-Network": "true",
    ]
    headers["Access-Control-Allow-Headers"] = head.headers["access-control-request-headers"]
    return HTTPResponse(status: 204, headers: headers)
  }

  /// `101 Switching Protocols` for a request with this key.
  static func switching(key: String, subprotocol: String?) -> [UInt8] {
    let digest = Digest.sha1(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
    var headers: HTTPHeaders = [
      "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": Base64.encode(digest),
    ]
    headers["Sec-WebSocket-Protocol"] = subprotocol
    return start(101, headers)
  }

  private static func start(_ status: Int, _ headers: HTTPHeaders) -> [UInt8] {
    var text = "HTTP/1.1 \(status) \(reasons[status] ?? "Status")\r\n"
    for field in headers.fields { text += "\(clean(field.name)): \(clean(field.value))\r\n" }
    text += "\r\n"
    return Array(text.utf8)
  }

  /// A line break inside a field would end it: a machine may echo what a client sent.
  private static func clean(_ text: String) -> String {
    guard text.utf8.contains(where: { $0 == 13 || $0 == 10 || $0 == 0 }) else { return text }
    return String(decoding: text.utf8.filter { $0 != 13 && $0 != 10 && $0 != 0 }, as: UTF8.self)
  }

  private static let reasons = [
    100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content",
    206: "Partial Content", 301: "Moved Permanently", 302: "Found", 304: "Not Modified", 400: "Bad Request",
    401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
    409: "Conflict", 413: "Content Too Large", 415: "Unsupported Media Type", 426: "Upgrade Required",
    429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
    501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
  ]
}
