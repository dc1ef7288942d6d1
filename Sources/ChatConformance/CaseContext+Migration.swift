import ChatMigration
import UnifiedChat

extension CaseContext {
  /// Moves everything of a service in memory to here, and reads it back.
  func movedIn(_ service: IdealService, _ archive: String) async throws -> FidelityReport {
    let run = MigrationRun(
      source: IdealSource(service: service), archive: file(archive), destination: try await harness.makeDestination(),
      readBack: try await harness.makeSource(), clock: harness.clock)
    return try await whileTimePasses(within: .seconds(3600), step: .seconds(1)) { try await run.run() }
  }

  /// Moves everything from here into a service in memory, and reads it back.
  func movedOut(to service: IdealService, _ archive: String) async throws -> FidelityReport {
    let run = MigrationRun(
      source: try await harness.makeSource(), archive: file(archive), destination: IdealDestination(service: service),
      readBack: IdealSource(service: service), clock: harness.clock)
    return try await whileTimePasses(within: .seconds(3600), step: .seconds(1)) { try await run.run() }
  }

  /// The id here of a channel that was migrated.
  func migrated(_ original: ChannelID) async throws -> ChannelID {
    try need(await migratedChannel(original), "channel \(original)").id
  }

  /// The channel here that came from `original`; nil when there is none.
  func migratedChannel(_ original: ChannelID) async throws -> Channel? {
    let source = try await harness.makeSource()
    var cursor: Cursor?
    repeat {
      let after = cursor
      let page = try await whileTimePasses { try await source.channels(after: after) }
      for record in page.items where (record.origin?.id ?? record.channel.id.rawValue) == original.rawValue {
        return record.channel
      }
      cursor = page.next
    } while cursor != nil
    return nil
  }
}

extension IdealDestination {
  /// A channel with these members and messages; the first member is its owner.
  func fill(_ id: ChannelID, _ members: [UserID], _ messages: [Message], kind: ChannelKind = .group) async throws {
    _ = try await putUsers(members.map { UserRecord(user: User(id: $0, name: "Name of \($0)")) })
    var channel = Channel(id: id, kind: kind, createdAt: Timestamp(milliseconds: 1_700_000_000_000))
    if kind != .direct { channel.name = "moved" }
    channel.createdBy = members.first
    channel.isDistinct = kind == .direct
    _ = try await putChannel(
      ChannelRecord(channel: channel),
      members: members.enumerated().map { place, user in
        MemberRecord(channel: id, member: Member(user: User(id: user), role: place == 0 ? .owner : .member))
      })
    _ = try await putMessages(messages.map { MessageRecord(message: $0) }, in: id)
  }

  /// The same with texts, by members and then by users whom nobody knows.
  func fill(
    _ id: ChannelID, _ members: [UserID], _ texts: [(sender: Int, text: String)],
    strangers: [(sender: UserID, text: String)] = []
  ) async throws {
    let all = texts.map { (members[$0.sender], $0.text) } + strangers.map { ($0.sender, $0.text) }
    let messages = all.enumerated().map { number, entry in
      Message(
        channel: id, id: MessageID("\(id)-\(number)"), sender: entry.0,
        createdAt: Timestamp(milliseconds: 1_700_000_000_000 + Int64(number) * 1000), content: .text(entry.1))
    }
    try await fill(id, members, messages)
  }
}
