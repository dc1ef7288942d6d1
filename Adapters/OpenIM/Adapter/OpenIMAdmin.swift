import ChatInterchange
import ChatJSON
import ChatTransport
import OpenIMWire
import UnifiedChat

/// The admin's session: what sources, destinations and token servers act with.
actor OpenIMAdmin {
  nonisolated let userID: String
  nonisolated let rest: OpenIMRESTClient
  /// For what imports keep beside items.
  nonisolated let envelopes: EnvelopeReader
  private let secret: String
  private var token: String?

  init(profile: Profile, environment: AdapterEnvironment, http: any HTTPClient) throws(ChatError) {
    guard let secret = environment.adminSecret else {
      throw ChatError(
        .invalidArgument(field: "credentials.admin"), operation: .configuration,
        detail: "the server's secret is needed: name it under credentials.admin")
    }
    self.secret = secret
    envelopes = EnvelopeReader(environment)
    userID = try profile.textOption("adminUserID") ?? OpenIMProfile.defaultAdmin
    rest = OpenIMRESTClient(
      http: http, base: try profile.apiBase(), timeout: profile.retry.requestTimeout, environment: environment)
  }

  /// As the admin; a token that has run out is renewed once.
  func call(
    _ path: String, _ body: JSONValue, for operation: ChatError.Operation
  ) async throws(ChatError) -> JSONValue {
    let used = try await currentToken()
    do { return try await rest.call(path, body, token: used, for: operation) } catch {
      guard error.kind == .authentication else { throw error }
      if token == used { token = nil }
      return try await rest.call(path, body, token: try await currentToken(), for: operation)
    }
  }

  private func currentToken() async throws(ChatError) -> String {
    if let token { return token }
    let data = try await rest.call(
      "/auth/get_admin_token", ["secret": .string(secret), "userID": .string(userID)], token: nil,
      for: .renewCredential)
    guard let fresh = data["token"]?.string else {
      throw ChatError(.protocolViolation, operation: .renewCredential, detail: "no token in the answer")
    }
    token = fresh
    return fresh
  }

  /// What an app's token server gives to a user of `platform`. It makes the user's older tokens of that platform
  /// invalid.
  func issueToken(for user: UserID, platform: Int64) async throws(ChatError) -> String {
    let data = try await call(
      "/auth/get_user_token", ["userID": .string(user.rawValue), "platformID": .int(platform)],
      for: .renewCredential)
    guard let token = data["token"]?.string else {
      throw ChatError(.protocolViolation, operation: .renewCredential, detail: "no token in the answer")
    }
    return token
  }

  /// Pages of a list that the server numbers from 1.
  static func page(_ number: Int, size: Int) -> JSONValue {
    ["pageNumber": JSONValue(number), "showNumber": JSONValue(size)]
  }
}

extension Profile {
  func apiBase() throws(ChatError) -> String {
    guard let api = endpoints.api, !api.isEmpty else {
      throw ChatError(
        .invalidArgument(field: "endpoints.api"), operation: .configuration,
        detail: "OpenIM is self-hosted: name its REST address, for example http://host:10002")
    }
    return api
  }

  /// The gateway's address: as configured, else the REST address on the gateway's usual port.
  func gatewayBase() throws(ChatError) -> String {
    if let realtime = endpoints.realtime, !realtime.isEmpty { return realtime }
    var base = try apiBase()
    if base.hasSuffix("/") { base.removeLast() }
    if base.hasPrefix("http") { base = "ws" + base.dropFirst(4) }
    return base.hasSuffix(":10002") ? base.dropLast(5) + "10001" : base
  }

  func textOption(_ name: String) throws(ChatError) -> String? {
    guard let option = options[name] else { return nil }
    guard let text = (try? JSONValue(parsing: option.text))?.string, !text.isEmpty else {
      throw ChatError(
        .invalidArgument(field: "options.\(name)"), operation: .configuration, detail: "must be a text")
    }
    return text
  }

  func platform() throws(ChatError) -> Int64 {
    guard let option = options["platformID"] else { return OpenIMPlatform.web }
    guard let number = (try? JSONValue(parsing: option.text))?.int, OpenIMPlatform.isKnown(number) else {
      throw ChatError(
        .invalidArgument(field: "options.platformID"), operation: .configuration, detail: "must be 1 to 11")
    }
    return number
  }
}

/// Runs `body` for each item, at most `width` at once; results in the order of the items. The first error ends all.
func concurrently<Item: Sendable, Value: Sendable>(
  _ items: [Item], width: Int, _ body: @escaping @Sendable (Item) async throws(ChatError) -> Value
) async throws(ChatError) -> [Value] {
  let outcome = await withTaskGroup(of: (Int, Result<Value, ChatError>).self) { group in
    var results: [Value?] = Array(repeating: nil, count: items.count)
    var failure: ChatError?
    var next = 0
    func start() {
      guard next < items.count, failure == nil else { return }
      let (index, item) = (next, items[next])
      next += 1
      group.addTask {
        do throws(ChatError) { return (index, .success(try await body(item))) } catch { return (index, .failure(error)) }
      }
    }
    for _ in 0..<max(1, width) { start() }
    for await (index, result) in group {
      switch result {
      case .success(let value): results[index] = value
      case .failure(let error): failure = failure ?? error
      }
      start()
    }
    return failure.map { Result<[Value?], ChatError>.failure($0) } ?? .success(results)
  }
  return try outcome.get().compactMap(\.self)
}
