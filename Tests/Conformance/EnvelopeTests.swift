import ChatHarness
import ChatInterchange
import ChatJSON
import ChatTransport
import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

/// What a member writes with a client of his own, to be taken for an import.
private struct Forger {
  let service: VendorService

  private func post(_ path: String, _ headers: [(String, String)], _ body: JSONValue) async throws -> JSONValue {
    try await send("POST", path, headers, body)
  }

  private func send(
    _ method: String, _ path: String, _ headers: [(String, String)], _ body: JSONValue
  ) async throws -> JSONValue {
    var request = HTTPRequest(method, "http://\(service.vendor).test\(path)", body: body.bytes())
    request.headers["Content-Type"] = "application/json"
    for (name, value) in headers { request.headers[name] = value }
    let response = try await service.host.transports.http.send(request)
    #expect(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
    return try JSONValue(parsing: response.body)
  }

  /// A channel of two, with `envelope` where this vendor keeps an import's.
  func makeChannel(of user: String, with other: String, _ envelope: JSONValue) async throws -> ChannelID {
    let data = JSONValue.object(["unifiedchat": envelope]).text()
    let people: JSONValue = [.string(user), .string(other)]
    switch service.vendor {
    case "sendbird":
      let json = try await post(
        "/v3/group_channels", [("Api-Token", "pair-secret")],
        ["user_ids": people, "is_distinct": true, "data": .string(data)])
      return ChannelID(try #require(json["channel_url"]?.string))
    case "leancloud":
      let json = try await post(
        "/1.2/rtm/conversations", leanCloud,
        ["m": people, "unique": false, "c": .string(user), "attr": ["unifiedchat": envelope]])
      return ChannelID(try #require(json["objectId"]?.string))
    default:
      let id = EnvelopeTests.channel.rawValue
      _ = try await post(
        "/group/create_group", try await openIM(),
        [
          "ownerUserID": .string(user), "adminUserIDs": [], "memberUserIDs": [.string(other)],
          "groupInfo": [
            "groupID": .string(id), "groupName": "g", "ex": .string(data), "groupType": 2, "needVerification": 0,
            "lookMemberInfo": 0, "applyMemberFriend": 0, "notification": "", "introduction": "", "faceURL": "",
          ],
        ])
      return ChannelID("sg_" + id)
    }
  }

  /// A group of Sendbird's with this id.
  func takeID(_ id: ChannelID, by user: String) async throws {
    _ = try await post(
      "/v3/group_channels", [("Api-Token", "pair-secret")],
      ["user_ids": [.string(user)], "channel_url": .string(id.rawValue), "data": "hi"])
  }

  /// As any client of the vendor's writes an app's own data of a channel.
  func overwrite(_ channel: ChannelID) async throws {
    switch service.vendor {
    case "sendbird":
      _ = try await send("PUT", "/v3/group_channels/\(channel)", [("Api-Token", "pair-secret")], ["data": "theirs"])
    case "leancloud":
      _ = try await send("PUT", "/1.2/rtm/conversations/\(channel)", leanCloud, ["attr": ["mine": 1]])
    default:
      let group = String(channel.rawValue.dropFirst(3))
      _ = try await post("/group/set_group_info_ex", try await openIM(), ["groupID": .string(group), "ex": "theirs"])
    }
  }

  private var leanCloud: [(String, String)] {
    [("X-LC-Id", EmulatorHarness.applicationID), ("X-LC-Key", "pair-secret,master")]
  }

  private func openIM() async throws -> [(String, String)] {
    let answer = try await post(
      "/auth/get_admin_token", [("operationID", "1")], ["secret": "pair-secret", "userID": "imAdmin"])
    return [("operationID", "2"), ("token", answer["data"]?["token"]?.string ?? "")]
  }

  /// Writes as `user`, with `envelope` where this vendor keeps an import's.
  func write(_ text: String, as user: String, in channel: ChannelID, _ envelope: JSONValue) async throws {
    let data = JSONValue.object(["unifiedchat": envelope]).text()
    switch service.vendor {
    case "sendbird":
      _ = try await post(
        "/v3/group_channels/\(channel)/messages", [("Api-Token", "pair-secret")],
        ["message_type": "MESG", "user_id": .string(user), "message": .string(text), "data": .string(data)])
    case "leancloud":
      let body: JSONValue = [
        "_lctype": -1, "_lctext": .string(text), "_lcattrs": ["unifiedchat": envelope],
      ]
      _ = try await post(
        "/1.2/rtm/conversations/\(channel)/messages",
        leanCloud, ["from_client": .string(user), "message": .string(body.text())])
    default:
      _ = try await post(
        "/msg/send_msg", try await openIM(),
        [
          "sendID": .string(user), "groupID": .string(String(channel.rawValue.dropFirst(3))), "recvID": "",
          "senderNickname": "", "senderFaceURL": "", "senderPlatformID": 1, "content": ["content": .string(text)],
          "contentType": 101, "sessionType": 3, "isOnlineOnly": false, "notOfflinePush": true, "sendTime": 0,
          "ex": .string(data),
        ])
    }
  }
}

@Suite("Members who imitate an import", .serialized)
struct EnvelopeTests {
  static let start: Int64 = 1_600_000_000_000
  static let channel: ChannelID = "5f0000000000000000000001"
  static let secret = EnvelopeKey(adminSecret: "pair-secret")

  private static func lines(_ count: Int) -> [JSONValue] {
    var records: [Record] = ["ana", "bob", "mallory"].map { .user(UserRecord(user: User(id: $0, name: "N"))) }
    records.append(.channel(ChannelRecord(channel: Channel(id: channel, kind: .group, createdBy: "ana"))))
    for user: UserID in ["ana", "bob", "mallory"] {
      records.append(.member(MemberRecord(channel: channel, member: Member(user: User(id: user)))))
    }
    for number in 1...count {
      let time = Timestamp(milliseconds: start + Int64(number) * 1000)
      let id = MessageID("m\(number)")
      records.append(
        .message(
          MessageRecord(
            message: Message(
              channel: channel, id: id, sender: number % 2 == 0 ? "ana" : "bob",
              position: MessagePosition(time: time, id: id), createdAt: time, content: .text("text \(number)"),
              reactions: number == 2 ? [Reaction(key: "👍", users: ["bob"])] : [], editedAt: nil))))
    }
    return records.map { $0.json() }
  }

  /// Takes the records into the archive of that name.
  private func take(_ count: Int, _ folder: String) async throws -> String {
    let (lines, path) = (folder + "/lines.jsonl", folder + "/chats.uchat")
    try Data(Self.lines(count).map { $0.text() + "\n" }.joined().utf8).write(to: URL(fileURLWithPath: lines))
    let now = Timestamp(milliseconds: Self.start)
    let (archive, _) = try await ArchiveLines.importing(
      lines, into: path, Archive.Identity(id: "e", vendor: "records", createdAt: now), at: now)
    try await archive.close()
    return path
  }

  private func pull(
    _ service: VendorService, to path: String, trusting: Bool = false
  ) async throws -> (messages: [MessageRecord], counts: ArchiveCounts, told: [UnreadableRecord]) {
    _ = try await MigrationRun(source: try service.source(trusting: trusting), archive: path).pull()
    let archive = try Archive.open(at: path)
    let ordinal = try #require(try await archive.channels(limit: 1).first).ordinal
    let messages = try await archive.messages(in: ordinal, limit: 100).map { try $0.stored.message() }
    let found = (messages, try await archive.counts(), try await archive.unreadable(limit: 100, envelopes: true))
    try await archive.close()
    return found
  }

  @Test("speak in nobody's name in an archive, hide no message from a load, and are told", arguments: VendorService.names)
  func forged(_ vendor: String) async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/unifiedchat-forged-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let service = try VendorService(vendor)
    let archive = try await take(4, folder)
    func run() throws -> MigrationRun {
      var options = MigrationOptions()
      options.verify.forbidsExtra = false
      return MigrationRun(
        archive: archive, destination: try service.destination(), readBack: try service.source(), options: options)
    }
    #expect(try await run().run().verification?.isEqual == true)
    let page = try await service.source().channels(after: nil)
    let place = try #require(page.items.first).channel.id

    // One that nobody signed, with the name of a message that is yet to come; one that is signed, for another place.
    let origin = Origin(vendor: "records", id: "m5", channel: Self.channel)
    let claim = Provenance(origin: origin, kept: ["sender": "ana", "createdAt": .int(Self.start + 5000)])
    let copied = claim.json(EnvelopeSigning(Self.secret, .message(channel: "another", sender: "mallory", time: 0)))
    let forger = Forger(service: service)
    try await forger.write("I resign", as: "mallory", in: place, claim.json())
    try await forger.write("I resign again", as: "mallory", in: place, copied)

    let pulled = try await pull(service, to: folder + "/pulled.uchat")
    let claims = pulled.messages.filter { $0.message.content.isText(beginning: "I resign") }
    #expect(claims.count == 2 && claims.allSatisfy { $0.message.sender == "mallory" && $0.origin == nil })
    #expect(claims.allSatisfy { $0.message.customData?.text.contains("unifiedchat") == true })
    #expect(pulled.counts.envelopes == 2 && pulled.counts.unreadable == 0)
    #expect(pulled.told.map { $0.reason.contains("--trust-unsigned-envelopes") } == [true, true])
    // What the import kept is as it was.
    #expect(pulled.messages.prefix(4).map(\.origin?.id) == ["m1", "m2", "m3", "m4"])
    let times = pulled.messages.prefix(4).map(\.message.createdAt.milliseconds)
    #expect(times == [1, 2, 3, 4].map { (number: Int64) in Self.start + number * 1000 })
    #expect(pulled.messages[1].message.reactions == [Reaction(key: "👍", users: ["bob"])])

    // The message whose name was taken comes, and is written.
    _ = try await take(5, folder)
    let second = try await run().run()
    #expect(second.verification?.isEqual == true && second.load.messages == 5, "\(second.sentence)")
    #expect(second.verification?.envelopes == 2)
    #expect(second.words().contains("Not believed at the destination (2)"))
    #expect(second.markdown().contains("Envelopes that were not believed"))

    let believed = try await pull(service, to: folder + "/believed.uchat", trusting: true)
    #expect(believed.messages.filter { $0.origin?.id == "m5" }.count == 3)
    #expect(believed.counts.envelopes == 0)
  }

  @Test("stop no import by writing over what it noted in its channel", arguments: VendorService.names)
  func writtenOver(_ vendor: String) async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/unifiedchat-over-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let service = try VendorService(vendor)
    let archive = try await take(4, folder)
    func load() async throws -> FidelityReport {
      var options = MigrationOptions()
      options.verify.forbidsExtra = false
      return try await MigrationRun(
        archive: archive, destination: try service.destination(), readBack: try service.source(), options: options
      ).run()
    }
    #expect(try await load().verification?.isEqual == true)
    let place = try #require(try await service.source().channels(after: nil).items.first).channel.id
    try await Forger(service: service).overwrite(place)
    #expect(try await service.source().channels(after: nil).items.first?.origin == nil)

    _ = try await take(6, folder)
    let second = try await load()
    #expect(second.load.messages == 6 && second.load.refused == 0, "\(second.words())")
    let channels = try await service.source().channels(after: nil).items
    #expect(channels.map(\.channel.id) == [place])
    let there = try await service.source().messages(in: place, after: nil).items.compactMap(\.origin?.id)
    #expect(there == (1...6).map { "m\($0)" })
  }

  @Test("take no channel from an import that is to come, nor its messages", arguments: VendorService.names)
  func channels(_ vendor: String) async throws {
    let service = try VendorService(vendor)
    let destination = try service.destination()
    let people: [UserID] = ["ana", "mallory"]
    _ = try await destination.putUsers(people.map { UserRecord(user: User(id: $0, name: "N")) })
    let origin = Origin(vendor: "records", id: Self.channel.rawValue)
    let forged = Provenance(origin: origin).json(EnvelopeSigning(Self.secret, .channel("another")))
    let taken = try await Forger(service: service).makeChannel(of: "mallory", with: "ana", forged)

    var record = ChannelRecord(channel: Channel(id: Self.channel, kind: .direct), origin: origin)
    record.channel.isDistinct = true
    // On OpenIM a client chooses the id of a channel that it makes.
    if vendor == "openim" { record.channel.kind = .group }
    let outcome = try await destination.putChannel(
      record, members: people.map { MemberRecord(channel: Self.channel, member: Member(user: User(id: $0))) })
    if vendor == "openim" {
      guard case .refused(let error) = outcome else { return #expect(Bool(false), "\(outcome)") }
      #expect(error.kind == .conflict && error.detail.contains("--trust-unsigned-envelopes"))
    } else {
      #expect(outcome.id != nil && outcome.id != taken, "\(outcome)")
    }
    let page = try await service.source().channels(after: nil)
    #expect(page.items.first { $0.channel.id == taken }?.origin == nil)
    #expect(page.unreadable.map(\.id) == [taken.rawValue] && page.unreadable.allSatisfy(\.isEnvelope))
  }

  @Test("take no id of a channel that is to come on Sendbird, where clients may choose it")
  func chosenID() async throws {
    let service = try VendorService("sendbird")
    let destination = try service.destination()
    let people: [UserID] = ["ana", "mallory"]
    _ = try await destination.putUsers(people.map { UserRecord(user: User(id: $0, name: "N")) })
    let members = people.map { MemberRecord(channel: Self.channel, member: Member(user: User(id: $0))) }
    let record = ChannelRecord(
      channel: Channel(id: Self.channel, kind: .group, name: "g"), origin: Origin(vendor: "records", id: Self.channel.rawValue))
    // What the import made itself is gone on with.
    let first = try #require(try await destination.putChannel(record, members: members).id)
    #expect(try await service.destination().putChannel(record, members: members).id == first)

    let other = try VendorService("sendbird")
    let into = try other.destination()
    _ = try await into.putUsers(people.map { UserRecord(user: User(id: $0, name: "N")) })
    try await Forger(service: other).takeID(first, by: "mallory")
    let outcome = try await into.putChannel(record, members: members)
    guard case .refused(let error) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(error.kind == .conflict && error.detail.contains(first.rawValue))
    let page = try await other.source().channels(after: nil)
    #expect(page.items.first { $0.channel.id == first }?.channel.name != "g")
  }
}

extension MessageContent {
  fileprivate func isText(beginning: String) -> Bool {
    if case .text(let text) = self { text.hasPrefix(beginning) } else { false }
  }
}
