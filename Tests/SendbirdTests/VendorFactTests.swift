import ChatEmulation
import ChatJSON
import ChatTransport
import Foundation
import SendbirdAdapter
import SendbirdWire
import Testing
import UnifiedChat

@Suite("Facts of Sendbird that hurt others")
struct SendbirdFactTests {
  @Test("data that looks like an import's names nobody else as the sender")
  func forged() async throws {
    let lab = try Lab()
    let (ana, mallory) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let events = ana.events()
    let channel = try await mallory.createChannel(.direct(with: "ana"))
    var draft = MessageDraft(.text("hi"))
    draft.customData = JSONText(
      unchecked: #"{"unifiedchat":{"v":1,"vendor":"x","id":"1","kept":{"sender":"boss","createdAt":0}}}"#)
    let sent = try await mallory.send(
      OutgoingMessage(channel: channel.id, localID: "l", clientMessageID: "c", draft: draft))
    let heard = await events.first { if case .messageReceived(let message) = $0.kind { message } else { nil } }
    #expect(heard?.sender == "bob" && heard?.createdAt == sent.createdAt)
    #expect(try await ana.history(of: channel.id, .newest(1)).messages.first?.sender == "bob")
  }

  @Test("every code that the vendor names has a row, and an unknown one is a server's error that keeps it")
  func codes() throws {
    let ranges: [ClosedRange<Int64>] = [
      400100...400114, 400201...400203, 400300...400307, 400309...400310, 400401...400404, 400500...400501,
      400700...400702, 400750...400751, 800100...800102, 800110...800111, 800120...800121, 800220...800221,
      800301...800302, 800500...800502, 900020...900023, 900025...900030, 900040...900041, 900060...900061,
      900065...900066, 900080...900081,
    ]
    let single: [Int64] = [
      400151, 400920, 400930, 403100, 409000, 500601, 500602, 500901, 500910, 503000, 800000, 800130, 800140, 800150,
      800160, 800170, 800180, 800190, 800200, 800210, 800230, 800240, 800250, 800260, 800400, 800600, 800700, 900010,
      900050, 900070, 900090, 900100, 900200, 900300, 900400, 900500,
    ]
    for code in ranges.flatMap({ Array($0) }) + single { #expect(SendbirdErrors.table[code] != nil, "\(code)") }
    let unknown = SendbirdErrors.error(code: 912345, message: "new", operation: .send)
    #expect(unknown.kind == .server && unknown.vendor?.code == "912345" && unknown.retry == .never)
  }

  /// The wire reference, where the data beside the product is there.
  private static let reference = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "shared/protocols/sendbird-v3.md")

  @Test(
    "no code of the wire reference is missing",
    .enabled(if: FileManager.default.fileExists(atPath: SendbirdFactTests.reference.path), "no wire reference here"))
  func referenceCodes() throws {
    let text = try String(contentsOf: Self.reference, encoding: .utf8)
    let numbers = text.split { !$0.isNumber }.compactMap { $0.count == 6 ? Int64($0) : nil }
    let codes = Set(
      numbers.filter { number in
        [400, 403, 409, 500, 503, 800, 900].contains(number / 1000) && number != 400_000
      })
    #expect(codes.count > 90)
    for code in codes.sorted() { #expect(SendbirdErrors.table[code] != nil, "\(code)") }
  }

  @Test(
    "refusals that no renewal can mend are final: not one more attempt is made",
    arguments: [(400300, RefusalReason.userDisabled), (400301, .credentialInvalid), (400310, .kickedByAdmin)])
  func finalAtReconnect(code: Int, reason: RefusalReason) async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let control = EmulatorControl(lab.host)
    var rule = FaultRule(FaultRule.Match("resume"), at: .received)
    rule.actions = [.fail(EmulatorFailure("authentication", code: code))]
    rule.times = nil
    let id = try await control.add(rule)
    let events = ana.events()
    try await control.act(.end(.abrupt), on: "ana")
    let kinds = await events.collect(until: .connectionChanged(.refused(reason)))
    #expect(kinds == [.connectionChanged(.reconnecting(attempt: 1)), .connectionChanged(.refused(reason))])
    #expect(await control.rules().first { $0.id == id }?.hits == 1)
  }

  @Test("a search takes only what was written in a time and has the custom type, where these are given")
  func searchOptions() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob")
    let url = try await lab.rest("POST", "group_channels", ["user_ids": ["ana", "bob"]]).json["channel_url"]?.string
    let channel = try #require(url)
    var times: [Int64] = []
    for (number, type) in ["order", "", "order", "other"].enumerated() {
      await lab.host.advance(by: .seconds(1))
      let json = try await lab.rest(
        "POST", "group_channels/\(channel)/messages",
        [
          "message_type": "MESG", "user_id": "ana", "message": .string("find me \(number)"), "custom_type": .string(type),
        ]
      ).json
      times.append(try #require(json["created_at"]?.int))
    }
    func found(_ more: String) async throws -> [String] {
      let json = try await lab.rest("GET", "search/messages?query=find&user_id=ana&limit=20" + more).json
      return (json["results"]?.array ?? []).compactMap { $0["message"]?.string }.map { String($0.suffix(1)) }
    }
    #expect(try await found("&custom_type=") == ["3", "2", "1", "0"])
    #expect(try await found("&custom_type=order") == ["2", "0"])
    #expect(try await found("&message_ts_from=\(times[1])") == ["3", "2", "1"])
    #expect(try await found("&message_ts_to=\(times[1])") == ["1", "0"])
    #expect(try await found("&message_ts_from=\(times[1])&message_ts_to=\(times[2])&custom_type=order") == ["2"])
  }

  @Test("a pair is the same whoever asks and however often one is named; another pair and an unknown user are not")
  func distinct() async throws {
    let lab = try Lab()
    try await lab.makeUsers("17", "22", "15")
    func create(_ users: [String]) async throws -> (url: String?, code: Int64?) {
      let json = try await lab.rest(
        "POST", "group_channels",
        ["user_ids": .array(users.map { .string($0) }), "is_distinct": true, "strict": true]
      ).json
      return (json["channel_url"]?.string, json["code"]?.int)
    }
    let first = try await create(["17", "22"]).url
    #expect(try await create(["22", "17"]).url == first)
    #expect(try await create(["22", "17", "17"]).url == first)
    let other = try await create(["17", "15"]).url
    #expect(other != nil && other != first)
    #expect(try await create(["17", "nobody"]).code == 400111)
  }

  @Test(
    "odd values in every field are read as something or as nothing, never as a crash",
    arguments: [
      "9223372036854775807", "-9223372036854775808", "-1", "0", "1e308", "1.5", "null", "\"x\"", "[]", "{}", "true",
      "18446744073709551615",
    ])
  func oddValues(value: String) async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let channel = try await ana.createChannel(ChannelDraft())
    let session = try #require(await EmulatorControl(lab.host).sessions(of: "ana").first)
    let url = "\"channel_url\":\"\(channel.id)\""
    let fields = [
      "ts", "created_at", "updated_at", "message", "data", "custom_type", "user", "mentioned_users", "size",
      "thumbnails", "sorted_metaarray", "parent_message_id", "thread_info", "req_id", "unread_cnt", "silent",
    ]
    let all = fields.map { "\"\($0)\":\(value)" }.joined(separator: ",")
    let events = ana.events()
    var frames = ["MESG", "FILE", "ADMM", "MEDI", "XYZW"].enumerated().map {
      "\($1){\"msg_id\":\(70 + $0),\(url),\(all)}"
    }
    frames.append("MESG{\"msg_id\":\(value),\(url),\(all)}")
    frames += ["DELM", "READ", "DLVR", "MRCT", "MTHD", "MCNT"].map {
      "\($0){\(url),\"msg_id\":\(value),\"updated\":\(value),\(all)}"
    }
    frames += [10000, 10001, 10002, 10020, 10022, 10102, 10201, 10601, 10900, 11100, 11300, 13000].map {
      "SYEV{\"cat\":\($0),\(url),\"ts\":\(value),\"data\":{\"users\":\(value),\"user_id\":\"u\",\"end_at\":\(value),"
        + "\"invitees\":\(value),\"operators\":\(value)}}"
    }
    frames += ["SYEV{\"cat\":\(value),\(url),\"data\":\(value)}", "MESG\(value)", "EROR{\"code\":\(value)}", "PONG"]
    for frame in frames { try await EmulatorControl(lab.host).push(.text(frame + "\n"), to: session.connection) }
    // Still there: the last frame is a good one.
    try await EmulatorControl(lab.host).push(
      .text("MESG{\"msg_id\":99,\(url),\"message\":\"good\",\"created_at\":5,\"user\":{\"guest_id\":\"bob\"}}\n"),
      to: session.connection)
    let good = await events.first { event -> Message? in
      if case .messageReceived(let message) = event.kind, message.content == .text("good") { message } else { nil }
    }
    #expect(good?.id == "99")
  }

  @Test("a changelog whose token does not move is left, not asked for without end")
  func standingToken() async throws {
    final class Standing: HTTPClient {
      let base: any HTTPClient
      let calls = Counter()
      init(_ base: any HTTPClient) { self.base = base }
      func send(
        _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
      ) async throws(TransportError) -> HTTPResponse {
        guard request.url.contains("/changelogs") else { return try await base.send(request, progress: progress) }
        await calls.add()
        return HTTPResponse(
          status: 200, body: Array(#"{"updated":[],"deleted":[],"has_more":true,"next":"same"}"#.utf8))
      }
    }
    let lab = try Lab()
    let http = Standing(lab.host.transports.http)
    let ana = SendbirdAdapter(
      profile: lab.profile(), environment: AdapterEnvironment(clock: ManualClock()),
      transports: Transports(http: http, webSocket: lab.host.transports.webSocket))
    _ = try await ana.connect(as: "ana", credential: .none)
    let channel = try await ana.createChannel(ChannelDraft())
    #expect(try await ana.changes(in: channel.id, since: nil).next == "same")
    #expect(await http.calls.count <= 3)
  }

  @Test("lists of channels stand in the order of what they show: newest message, then creation, equal ones by id")
  func ties() async throws {
    let lab = try Lab(limits: .off)
    try await lab.makeUsers("ana")
    for number in 0..<60 {
      try await lab.rest(
        "POST", "group_channels",
        ["user_ids": ["ana"], "channel_url": .string("room-\((number * 37) % 60 + 100)"), "name": "same"])
      if number % 20 == 0 { await lab.host.advance(by: .seconds(1)) }
    }
    let ana = try await lab.connected("ana")
    for number in stride(from: 100, to: 160, by: 3) {
      _ = try await ana.say("x", in: ChannelID("room-\(number)"), id: ClientMessageID("c\(number)"))
    }
    for order in [ChannelQuery.Order.lastMessage, .created, .name] {
      var (found, token): ([Channel], PageToken?) = ([], nil)
      repeat {
        let page = try await ana.channels(ChannelQuery(order: order, limit: 7), page: token)
        found += page.items
        token = page.next
      } while token != nil
      #expect(Set(found.map(\.id)).count == 60)
      let expected = found.sorted { left, right in
        let (l, r) = (Self.time(left, order), Self.time(right, order))
        return l == r ? left.id < right.id : l > r
      }
      #expect(found.map(\.id) == expected.map(\.id), "\(order)")
    }
  }

  private static func time(_ channel: Channel, _ order: ChannelQuery.Order) -> Int64 {
    switch order {
    case .name: 0
    case .created: channel.createdAt?.milliseconds ?? 0
    case .lastMessage: channel.lastMessage?.createdAt.milliseconds ?? channel.createdAt?.milliseconds ?? 0
    }
  }

  @Test("no token, key or text of a message stands in the most talkative log")
  func secrets() async throws {
    let lab = try Lab(users: [("ana", "secret-token-1")])
    let lines = AsyncStream<String>.makeStream()
    let environment = AdapterEnvironment(clock: ManualClock(), log: { _, line in lines.continuation.yield(line) })
    let ana = SendbirdAdapter(profile: lab.profile(), environment: environment, transports: lab.host.transports)
    _ = try await ana.connect(as: "ana", credential: .token("secret-token-1"))
    let channel = try await ana.createChannel(ChannelDraft(name: "private name"))
    _ = try await ana.say("private words", in: channel.id, id: "c1")
    let session = try #require(await EmulatorControl(lab.host).sessions(of: "ana").first)
    try await EmulatorControl(lab.host).push(.text("not a frame private words\n"), to: session.connection)
    _ = try await ana.history(of: channel.id, .newest(3))
    try await EmulatorControl(lab.host).act(.end(.abrupt), on: "ana")
    await ana.disconnect()
    lines.continuation.finish()
    var log = ""
    for await line in lines.stream { log += line + "\n" }
    #expect(!log.isEmpty)
    for secret in ["secret-token-1", "private words", "private name"] { #expect(!log.contains(secret)) }
  }
}

actor Counter {
  private(set) var count = 0
  func add() { count += 1 }
}
