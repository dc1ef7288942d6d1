import ChatJSON
import ChatTransport
import Foundation
import LeanCloudAdapter
import OpenIMAdapter
import SendbirdAdapter
import UnifiedChat

/// What the conformance suite needs of a vendor that is neither a call of the contract nor a fault: acts of the service
/// itself, exports of its dashboard, and calls of its own.
public struct ConformanceActs: Sendable {
  private let vendor: String
  private let profile: Profile
  private let environment: AdapterEnvironment
  private let http: any HTTPClient

  /// - Parameters:
  ///   - profile: leads to the service.
  ///   - environment: with the admin's secret.
  public init(vendor: String, profile: Profile, environment: AdapterEnvironment, http: any HTTPClient) {
    self.vendor = vendor
    self.profile = profile
    self.environment = environment
    self.http = http
  }

  // MARK: Service channels

  /// The service says these texts to each reader, in a channel in which nobody else may speak.
  /// - Returns: the channel's id where it is known; else the readers are told of it.
  public func announce(_ texts: [String], to readers: [UserID]) async throws -> ChannelID? {
    switch vendor {
    case "openim": try await announceByAccount(texts, to: readers)
    case "leancloud": try await announceBySubscription(texts, to: readers)
    default: throw ChatError.unsupported(.channelService, operation: .createChannel)
    }
  }

  private func announceByAccount(_ texts: [String], to readers: [UserID]) async throws -> ChannelID? {
    let token = try await openIMToken()
    _ = try await post(
      "/user/add_notification_account",
      ["userID": "news", "nickName": "News", "faceURL": "", "appMangerLevel": 3], ["operationID": "acts", "token": token])
    for reader in readers {
      for text in texts {
        _ = try await post(
          "/msg/send_msg",
          [
            "sendID": "news", "recvID": .string(reader.rawValue), "contentType": 1400, "sessionType": 4,
            "content": ["notificationName": "News", "text": .string(text), "mixType": 0],
          ], ["operationID": "acts", "token": token])
      }
    }
    return nil
  }

  private func openIMToken() async throws -> String {
    let answer = try await post(
      "/auth/get_admin_token",
      ["secret": .string(environment.adminSecret ?? ""), "userID": "imAdmin"],
      ["operationID": "acts"])
    guard let token = answer["data"]?["token"]?.string else { throw Self.malformed }
    return token
  }

  private func announceBySubscription(_ texts: [String], to readers: [UserID]) async throws -> ChannelID? {
    let headers = leanCloudHeaders
    let base = "/1.2/rtm/service-conversations"
    guard let id = try await post(base, ["name": "News"], headers)["objectId"]?.string else { throw Self.malformed }
    for reader in readers {
      _ = try await post("\(base)/\(id)/subscribers", ["client_id": .string(reader.rawValue)], headers)
    }
    for text in texts {
      let message: JSONValue = ["_lctype": -1, "_lctext": .string(text)]
      _ = try await post(
        "\(base)/\(id)/broadcasts", ["from_client": "news", "message": .string(message.text())], headers)
    }
    return ChannelID(id)
  }

  // MARK: Requests to join

  /// From now on nobody comes into a channel but who asks and is let in.
  public func closeDoor(of channel: ChannelID, by owner: any ChatAdapter) async throws {
    try await contacts(owner).setJoining(.application, of: channel)
  }

  public func askToJoin(_ channel: ChannelID, _ text: String, by user: any ChatAdapter) async throws {
    try await contacts(user).requestToJoin(channel, text: text)
  }

  /// Requests that nobody has answered, as one who may answer them sees them.
  public func openRequests(seenBy user: any ChatAdapter) async throws -> [(user: UserID, channel: ChannelID, text: String)] {
    try await contacts(user).joinRequests().filter { $0.answer == .open }.compactMap { request in
      request.channel.map { (request.from, $0, request.text) }
    }
  }

  public func answer(_ user: UserID, _ channel: ChannelID, accept: Bool, by manager: any ChatAdapter) async throws {
    try await contacts(manager).answerJoinRequest(of: user, to: channel, accept: accept, text: "")
  }

  private func contacts(_ adapter: any ChatAdapter) throws -> any OpenIMContacts {
    guard let face = adapter as? any OpenIMContacts else {
      throw ChatError.unsupported(.memberJoinRequest, operation: .join)
    }
    return face
  }

  // MARK: Exports

  /// In how many forms the vendor's export files come; 0 where it has none.
  public var exportForms: Int {
    switch vendor {
    case "sendbird": 1
    case "leancloud": 3
    default: 0
    }
  }

  /// Parts of messages that the files of an export do not have, or have in another way than the live service.
  public var absentFromExports: Set<String> {
    switch vendor {
    case "sendbird": ["message.reactions"]
    default: []
    }
  }

  /// Writes what the vendor's export has of everything into a folder, and reads it from there.
  /// - Parameter form: counts from 0 to `exportForms`.
  public func export(to folder: String, form: Int) async throws -> any ChatSource {
    switch vendor {
    case "sendbird":
      for kind in ["users", "channels", "messages"] { try await exportZip(kind, to: folder) }
    case "leancloud":
      for name in ["_Conversation", "_User", "AVOSRealtimeGroups"] {
        let rows = try await get("/1.1/classes/\(name)?limit=1000", leanCloudHeaders)["results"]?.array ?? []
        if !rows.isEmpty { try write(rows, "\(folder)/\(name)", form) }
      }
      let messages = try await get("/1.2/rtm/messages?limit=1000", leanCloudHeaders).array ?? []
      try write(messages, "\(folder)/messages-1", form)
    default: break
    }
    let entry = try AllAdapters.registry(transports: Transports(http: http, webSocket: NoWebSocket())).entry(
      for: VendorName(vendor))
    guard let read = entry.readExport else { throw ChatError.unsupported(.sourceReadAll, operation: .readSource) }
    return try read(folder, environment)
  }

  private func exportZip(_ kind: String, to folder: String) async throws {
    let headers = ["Api-Token": environment.adminSecret ?? ""]
    let now = environment.clock.now.milliseconds
    let asked = try await post(
      "/v3/export/\(kind)", ["start_ts": .int(now - 30 * 86_400_000), "end_ts": .int(now + 1000)], headers)
    guard let id = asked["request_id"]?.string,
      let url = try await get("/v3/export/\(kind)/\(id)", headers)["file"]?["url"]?.string
    else { throw Self.malformed }
    let file = try await http.send(HTTPRequest("GET", url, headers: Self.fields(headers)))
    try Data(file.body).write(to: URL(fileURLWithPath: "\(folder)/\(kind).zip"))
  }

  /// Lines, an array, or the answer of a query.
  private func write(_ rows: [JSONValue], _ path: String, _ form: Int) throws {
    let (bytes, suffix): ([UInt8], String) =
      switch form {
      case 0: (Array(rows.map { $0.text() + "\n" }.joined().utf8), "jsonl")
      case 1: (JSONValue.array(rows).bytes(), "json")
      default: (JSONValue.object(["results": .array(rows)]).bytes(), "results.json")
      }
    try Data(bytes).write(to: URL(fileURLWithPath: "\(path).\(suffix)"))
  }

  // MARK: Requests

  private var leanCloudHeaders: [String: String] {
    ["X-LC-Id": profile.appID ?? "", "X-LC-Key": (environment.adminSecret ?? "") + ",master"]
  }

  private static func fields(_ headers: [String: String]) -> HTTPHeaders {
    HTTPHeaders(headers.sorted { $0.key < $1.key }.map { HTTPHeaders.Field($0.key, $0.value) })
  }

  private func get(_ path: String, _ headers: [String: String]) async throws -> JSONValue {
    let response = try await http.send(
      HTTPRequest("GET", (profile.endpoints.api ?? "") + path, headers: Self.fields(headers)))
    return try JSONValue(parsing: response.body)
  }

  private func post(_ path: String, _ body: JSONValue, _ headers: [String: String]) async throws -> JSONValue {
    var fields = Self.fields(headers)
    fields["Content-Type"] = "application/json"
    let response = try await http.send(
      HTTPRequest("POST", (profile.endpoints.api ?? "") + path, headers: fields, body: body.bytes()))
    guard response.status < 400 else {
      throw ChatError(.server, operation: .emulate, detail: "\(path): \(response.status)")
    }
    return try JSONValue(parsing: response.body)
  }

  private static let malformed = ChatError(.protocolViolation, operation: .emulate)
}

/// Files are read without any link.
private struct NoWebSocket: WebSocketClient {
  func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
    throw TransportError(.other, detail: "exports are read from files")
  }
}
