import ChatEmulation
import ChatJSON
import ChatTransport
import SendbirdEmulator
import SendbirdWire
import Testing

/// A Sendbird emulator in process, and bare clients of it that speak the wire by hand.
struct Lab {
  let host: EmulatorHost
  static let start: Int64 = 1_700_000_000_000

  init(
    users: [(id: String, token: String)] = [], settings: [String: JSONValue] = [:],
    limits: EmulatorOptions.Limits = .real
  ) throws {
    host = try EmulatorHost(
      EmulatorFactory(SendbirdEmulator.self),
      options: EmulatorOptions(
        limits: limits, users: users, applicationID: "APP", adminSecret: "secret", baseURL: "http://sendbird.test",
        settings: settings), clock: .virtual(start: Self.start))
  }

  enum Who {
    case admin, nobody
    case key(String)
  }

  /// One REST call; `path` is below `/v3/`.
  @discardableResult
  func rest(
    _ method: String, _ path: String, _ body: JSONValue? = nil, as who: Who = .admin
  ) async throws -> (status: Int, json: JSONValue) {
    var request = HTTPRequest(method, "http://sendbird.test/v3/\(path)")
    switch who {
    case .admin: request.headers["Api-Token"] = "secret"
    case .key(let key): request.headers["Session-Key"] = key
    case .nobody: break
    }
    if let body {
      request.headers["Content-Type"] = "application/json"
      request.body = body.bytes()
    }
    let response = try await host.transports.http.send(request)
    let json = try JSONValue(parsing: response.body)
    // Whatever any test asks, the answer has the form that the schema says.
    if let call = SendbirdSchemas.call(method, "/v3/\(path)") {
      let problems = SendbirdSchemas.problems(call, request: body, response: json)
      #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
    }
    return (response.status, json)
  }

  func makeUsers(_ ids: String...) async throws {
    for id in ids {
      try await rest("POST", "users", ["user_id": .string(id), "nickname": .string(id), "profile_url": ""])
    }
  }

  func logIn(_ user: String, token: String = "null") async throws -> LabClient {
    let request = WebSocketRequest(
      "ws://sendbird.test/?p=JS&pv=noAgent&sv=3.1.33&ai=APP&user_id=\(user)&access_token=\(token)&active=1")
    let client = LabClient(socket: try await host.transports.webSocket.connect(request))
    try await client.read("LOGI")
    return client
  }
}

/// One socket that keeps what it has not been asked for.
final actor LabClient {
  let socket: any WebSocketConnection
  private var waiting: [SendbirdFrame] = []
  private(set) var login = SendbirdFrame("LOGI", JSONObject())
  private var lastRequest = 0

  init(socket: any WebSocketConnection) { self.socket = socket }

  var key: String { login.payload.text("key") ?? "" }

  /// The next frame of `command`; earlier ones of other commands are dropped.
  @discardableResult
  func read(_ command: String) async throws -> SendbirdFrame {
    while true {
      let frame = try await next()
      if frame.command == command {
        if command == "LOGI", frame.payload["key"] != nil { login = frame }
        return frame
      }
    }
  }

  func next() async throws -> SendbirdFrame {
    while waiting.isEmpty {
      guard case .text(let text) = try await socket.receive() else { continue }
      let frames = try SendbirdFrame.parse(text).map { try $0.get() }
      for frame in frames {
        let problems = SendbirdSchemas.problems(frame, isClient: false)
        #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
      }
      waiting += frames
    }
    return waiting.removeFirst()
  }

  func send(_ command: String, _ payload: JSONObject) async throws {
    try await socket.send(.text(SendbirdFrame(command, payload).text))
  }

  /// Sends with a `req_id` and returns the answer to it.
  func ask(_ command: String, _ payload: JSONObject) async throws -> SendbirdFrame {
    lastRequest += 1
    let id = "r\(lastRequest)"
    var payload = payload
    payload["req_id"] = .string(id)
    try await send(command, payload)
    while true {
      let frame = try await next()
      if frame.requestID == id { return frame }
    }
  }

  func say(_ text: String, in channel: String) async throws -> SendbirdFrame {
    try await ask(
      "MESG",
      [
        "channel_url": .string(channel), "message": .string(text), "data": "", "mention_type": "users",
        "mentioned_user_ids": [],
      ])
  }
}
