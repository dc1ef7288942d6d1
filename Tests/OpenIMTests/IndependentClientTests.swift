import ChatCrypto
import ChatJSON
import ChatTransport
import Foundation
import OpenIMWire
import Testing
import UnifiedChat

@testable import OpenIMEmulator

/// What a client that others wrote in Python sent over sockets, byte for byte: gob inside gzip, as the vendor's own
/// clients have it. What the emulator answers is compared with what it answered then, which that client understood.
@Suite("The recorded traffic of an independent client")
struct OpenIMIndependentClientTests {
  struct Told: Equatable {
    var operation: Int64
    var increment: String
    var operationID: String
    var code: Int64
    var body: JSONValue
  }

  @Test("messages of every kind, a group, uploads, refusals, a fresh start and a logout by force")
  func replay() throws {
    let lines = try Recording.lines("python-client.jsonl")
    let start = try #require(lines.first)
    let machine = try Machine(options: EmulatorOptions(adminSecret: "emulated-secret"))
    let admin = machine.adminToken(secret: "emulated-secret")
    machine.register(["alice", "bob"], admin: admin)
    machine.context.now = ((start["iat"]?.int ?? 0) + 5) * 1000
    var tokens = ["imAdmin": admin]
    for user in ["alice", "bob"] { tokens[user] = machine.userToken(user, platform: 4, admin: admin) }
    var sockets: [String: EmulatorConnectionID] = [:]
    var recorded: [EmulatorConnectionID: [Told]] = [:]
    var uploads: [String: String] = [:]
    for line in lines.dropFirst() {
      let user = line["user"]?.string ?? ""
      switch line["k"]?.string {
      case "ws-open":
        if let old = sockets[user] { machine.feed(.closed(old, WebSocketClose())) }
        sockets[user] = machine.open(try #require(line["uri"]?.string))
        #expect(machine.refusal == nil)
      case "ws<":
        let bytes = try #require(Base64.decode(line["bytes"]?.string ?? ""))
        machine.feed(.message(try #require(sockets[user]), .binary(bytes)))
      case "ws>": recorded[try #require(sockets[user]), default: []].append(try told(line))
      case "http": try request(line, machine, tokens, &uploads)
      default: break
      }
    }
    #expect(recorded.count == 3)
    for (id, expected) in recorded {
      var frames: [Told] = []
      while let next = machine.next(id) { if case .frame(let frame) = next { frames.append(try told(frame)) } }
      #expect(frames == expected)
    }
  }

  /// What others write is understood: no message of theirs is of an unknown kind.
  @Test("each message of that client is of a known kind")
  func kinds() throws {
    var kinds: Set<String> = []
    for line in try Recording.lines("python-client.jsonl") where line["k"] == "ws>" && line["id"] == 2001 {
      let body = try OpenIMBody.push.decode(try #require(Base64.decode(line["data"]?.string ?? "")))
      for entry in body["msgs"]?.object ?? [:] {
        for json in entry.value["Msgs"]?.array ?? [] {
          let message = try #require(OpenIMMessageData(json: json).message(in: entry.key))
          kinds.insert(message.content.kindName + (message.mentions.isEmpty ? "" : " with a mention"))
          #expect(message.content.attachment?.url != "")
        }
      }
    }
    #expect(kinds == ["text", "text with a mention", "image", "file", "audio", "video"])
  }

  private func told(_ line: JSONValue) throws -> Told {
    try told(
      OpenIMResponseFrame(
        operation: line["id"]?.int ?? 0, increment: line["incr"]?.string ?? "", operationID: line["op"]?.string ?? "",
        code: line["err"]?.int ?? 0, data: try #require(Base64.decode(line["data"]?.string ?? ""))))
  }

  private func told(_ frame: OpenIMResponseFrame) throws -> Told {
    let body = try OpenIMOperation(rawValue: frame.operation)?.answer?.decode(frame.data) ?? [:]
    return Told(
      operation: frame.operation, increment: frame.increment, operationID: frame.operationID, code: frame.code,
      body: Normaliser()(body))
  }

  /// Ids of uploads are made anew; the later requests name them.
  private func request(
    _ line: JSONValue, _ machine: Machine, _ tokens: [String: String], _ uploads: inout [String: String]
  ) throws {
    func ours(_ text: String) -> String {
      uploads.reduce(text) { $0.replacingOccurrences(of: $1.key, with: $1.value) }
    }
    var headers: HTTPHeaders = [:]
    let operationID = line["op"]?.string ?? ""
    if !operationID.isEmpty { headers["operationID"] = operationID }
    headers["token"] = tokens[line["as"]?.string ?? ""]
    let plain = line["body"].map { Array(ours($0.text()).utf8) }
    let path = ours(line["path"]?.string ?? "")
    let body = try plain ?? #require(Base64.decode(line["body64"]?.string ?? ""))
    let response = machine.request(line["m"]?.string ?? "", path, body: body, headers: headers)
    #expect(Int64(response.status) == line["status"]?.int, "\(path)")
    guard let answer = line["resp"], !answer.isNull else { return }
    let answered = try JSONValue(parsing: response.body)
    if let old = answer["data"]?["upload"]?["uploadID"]?.string, let new = answered["data"]?["upload"]?["uploadID"]?.string {
      uploads[old] = new
    }
    #expect(answered["errCode"] == answer["errCode"], "\(path)")
  }
}
