import ChatMigration
import UnifiedChat

// What needs size.
extension ConformanceSuite {
  static let migrationSize: [ConformanceCase] = [
    ConformanceCase("MIGR-22", "Memory is constant.", .s2, needs: [.destinationSender], tags: [.stress]) { context in
      // Archive, ledger and verification are the same for every vendor.
      guard context.harness.target == .ideal else { throw CaseSkip(reason: .rule("measured on the model")) }
      guard ResidentMemory.now() != nil else { throw CaseSkip(reason: .noHook("memory")) }
      func moved(_ total: Int, _ name: String) async throws -> Int {
        let memory = ResidentMemory()
        // Half of all in one channel.
        let sizes = [total / 2] + Array(repeating: total / 100, count: 50)
        let source = GeneratedChats(sizes: sizes, isCopy: false, memory: memory)
        let run = MigrationRun(
          source: source, archive: context.file(name), destination: ForgetfulDestination(memory: memory),
          readBack: GeneratedChats(sizes: sizes, isCopy: true, memory: memory), clock: context.harness.clock)
        let report = try await context.whileTimePasses(within: .seconds(360_000), step: .seconds(1)) { try await run.run() }
        try expectEqual(context, report)
        try context.expectEqual(report.load.messages, sizes.reduce(0, +), "messages")
        return memory.peak
      }
      _ = try await moved(1000, "warm")
      let small = try await moved(5000, "small")
      let large = try await moved(50_000 * context.scale, "large")
      // A page of the allocator's more or less says nothing.
      let limit = small + small / 10 * 3
      try context.expect(large <= limit, "at most \(limit >> 20) MiB", observed: "\(large >> 20) MiB after \(small >> 20) MiB")
    },
  ]
}

/// Chats that are made while they are read, so that they take no memory.
private struct GeneratedChats: ChatSource {
  let vendor: VendorName = "ideal"
  let capabilities = IdealAdapter.capabilities
  /// Messages of each channel.
  let sizes: [Int]
  /// As they are at the destination, with where they came from.
  let isCopy: Bool
  let memory: ResidentMemory

  private static let people = (0..<10).map { UserID("person\($0)") }
  private static let page = 500

  func check() async throws(ChatError) -> SourceCheck {
    SourceCheck(users: Self.people.count, channels: sizes.count, messages: sizes.reduce(0, +))
  }

  func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    SourcePage(items: Self.people.map { UserRecord(user: User(id: $0, name: "Name of \($0)")) }, next: nil)
  }

  func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    SourcePage(
      items: sizes.indices.map { number in
        var channel = Channel(id: ChannelID("c\(number)"), kind: .group, name: "channel \(number)")
        channel.createdAt = Timestamp(milliseconds: 1_600_000_000_000)
        channel.createdBy = Self.people[0]
        let origin = isCopy ? Origin(vendor: "ideal", id: channel.id.rawValue, channel: channel.id) : nil
        return ChannelRecord(channel: channel, origin: origin)
      }, next: nil)
  }

  func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord> {
    SourcePage(
      items: Self.people.map { MemberRecord(channel: channel, member: Member(user: User(id: $0), role: .member)) }, next: nil)
  }

  func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MessageRecord> {
    memory.look()
    let start = cursor.flatMap { Int($0.rawValue) } ?? 0
    guard let number = Int(channel.rawValue.dropFirst()), sizes.indices.contains(number) else {
      throw ChatError(.notFound, operation: .readSource)
    }
    let end = min(start + Self.page, sizes[number])
    let items = (start..<end).map { place in
      let id = MessageID("\(channel)-\(place)")
      let time = Timestamp(milliseconds: 1_600_000_000_000 + Int64(place) * 1000)
      return MessageRecord(
        message: Message(
          channel: channel, id: id, sender: Self.people[place % 10],
          position: MessagePosition(sequence: Int64(place + 1)), createdAt: time,
          content: .text("message \(place) of \(channel), as long as people write: 你好，我们明天见，几点都可以")),
        origin: isCopy ? Origin(vendor: "ideal", id: id.rawValue, channel: channel) : nil)
    }
    return SourcePage(items: items, next: end < sizes[number] ? Cursor(String(end)) : nil)
  }

  func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) {}
}

/// Takes everything and keeps nothing.
private struct ForgetfulDestination: ChatDestination {
  let vendor: VendorName = "ideal"
  let capabilities = IdealAdapter.capabilities
  let limits = DestinationLimits(batch: 100, parallelChannels: 4)
  let memory: ResidentMemory

  func losses(of record: Record) -> [Loss] { [] }

  func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    users.map { .written($0.user.id) }
  }

  func putChannel(_ channel: ChannelRecord, members: [MemberRecord]) async throws(ChatError) -> PutOutcome<ChannelID> {
    .written(channel.channel.id)
  }

  func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment { attachment }

  func putMessages(_ messages: [MessageRecord], in channel: ChannelID) async throws(ChatError) -> [PutOutcome<MessageID>] {
    memory.look()
    return messages.map { .written($0.message.id ?? "") }
  }

  func finishChannel(_ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]) async throws(ChatError) {}

  func existing(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<ExistingMessage> {
    SourcePage(items: [], next: nil)
  }
}
