import ChatCrypto
import UnifiedChat

/// Reads everything that the ideal service holds.
public struct IdealSource: ChatSource {
  public let vendor: VendorName = "ideal"
  public let capabilities = IdealAdapter.capabilities
  private let service: IdealService
  private let pageSize: Int

  public init(service: IdealService, pageSize: Int = 100) {
    self.service = service
    self.pageSize = max(1, pageSize)
  }

  public func check() async throws(ChatError) -> SourceCheck {
    let all = await service.everything()
    return SourceCheck(
      users: all.users.count, channels: all.channels.count,
      messages: all.channels.reduce(0) { $0 + $1.messages.count })
  }

  public func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    let users = await service.everything().users.sorted { $0.id < $1.id }
    return try page(users.map { UserRecord(user: $0) }, after: cursor)
  }

  public func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    let channels = await service.everything().channels.sorted { $0.channel.id < $1.channel.id }
    return try page(channels.map { ChannelRecord(channel: $0.channel) }, after: cursor)
  }

  public func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord> {
    guard let channel = await service.everything().channels.first(where: { $0.channel.id == channel }) else {
      throw ChatError(.notFound, operation: .readSource, detail: "no channel \(channel)")
    }
    let members = channel.members.compactMap { channel.memberships[$0] }
    return try page(members.map { MemberRecord(channel: channel.channel.id, member: $0) }, after: cursor)
  }

  public func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MessageRecord> {
    let messages = await service.messages(in: channel)
    return try page(messages.map { MessageRecord(message: $0.message, origin: $0.origin) }, after: cursor)
  }

  public func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    guard let url = attachment.url, let bytes = await service.stored(url) else {
      throw ChatError(.notFound, operation: .download, detail: "no file at this URL")
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      try await sink(Array(rest.prefix(1 << 20)))
      rest = rest.dropFirst(1 << 20)
    }
  }

  private func page<Item>(_ items: [Item], after cursor: Cursor?) throws(ChatError) -> SourcePage<Item> {
    let start = try cursor.map { (cursor) throws(ChatError) in
      guard let start = Int(cursor.rawValue), start >= 0 else {
        throw ChatError(.invalidArgument(field: "cursor"), operation: .readSource)
      }
      return min(start, items.count)
    } ?? 0
    let end = min(items.count, start + pageSize)
    return SourcePage(items: Array(items[start..<end]), next: end < items.count ? Cursor(String(end)) : nil)
  }
}

/// Writes what a source read into the ideal service, and keeps where each item came from.
public struct IdealDestination: ChatDestination {
  public let vendor: VendorName = "ideal"
  public let capabilities = IdealAdapter.capabilities
  public let limits: DestinationLimits
  private let service: IdealService

  public init(service: IdealService, batch: Int = 50) {
    self.service = service
    limits = DestinationLimits(batch: batch, parallelChannels: 4)
  }

  public func losses(of record: Record) -> [Loss] { [] }

  public func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    var outcomes: [PutOutcome<UserID>] = []
    for record in users { outcomes.append(await service.put(record)) }
    return outcomes
  }

  public func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    await service.put(channel, members)
  }

  public func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment {
    var stored = attachment
    stored.url = await service.store(bytes)
    stored.size = Int64(bytes.count)
    stored.sha256 = Hex.encode(Digest.sha256(bytes))
    return stored
  }

  public func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try await service.put(messages, in: channel)
  }

  public func finishChannel(
    _ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) {
    await service.finish(channel, members)
  }

  public func existing(
    in channel: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<ExistingMessage> {
    let messages = await service.messages(in: channel)
    return SourcePage(
      items: messages.compactMap { record in
        guard let origin = record.origin, let id = record.message.id else { return nil }
        return ExistingMessage(origin: origin, id: id)
      }, next: nil)
  }
}

extension IdealService {
  func everything() -> (users: [User], channels: [IdealChannel]) { (Array(users.values), Array(channels.values)) }

  /// All messages of a channel with where they came from.
  public func messages(in channel: ChannelID) -> [MessageRecord] {
    (channels[channel]?.messages ?? []).map { message in
      MessageRecord(message: message, origin: message.id.flatMap { origins[channel]?[$0] })
    }
  }

  func put(_ record: UserRecord) -> PutOutcome<UserID> {
    let existed = users[record.user.id] != nil
    users[record.user.id] = record.user
    return existed ? .existed(record.user.id) : .written(record.user.id)
  }

  func put(_ record: ChannelRecord, _ members: [MemberRecord]) -> PutOutcome<ChannelID> {
    let id = record.channel.id
    let existed = channels[id] != nil
    if !existed { channels[id] = IdealChannel(channel: record.channel) }
    for record in members {
      let user = record.member.user.id
      if record.member.state == .joined, channels[id]?.memberships[user]?.state != .joined {
        channels[id]?.members.append(user)
        channels[id]?.joinNumbers[user] = nextNumber()
      }
      var member = record.member
      member.user = users[user] ?? member.user
      // Read marks are in the source's positions; `finish` sets them.
      member.readPosition = nil
      channels[id]?.memberships[user] = member
    }
    return existed ? .existed(id) : .written(id)
  }

  func put(_ records: [MessageRecord], in id: ChannelID) throws(ChatError) -> [PutOutcome<MessageID>] {
    guard channels[id] != nil else { throw ChatError(.notFound, operation: .writeDestination, detail: "no channel \(id)") }
    var outcomes: [PutOutcome<MessageID>] = []
    for record in records {
      let origin = record.origin ?? Origin(vendor: "ideal", id: record.message.id?.rawValue ?? "", channel: id)
      if let known = originIDs[id]?[origin] {
        outcomes.append(.existed(known))
        continue
      }
      var message = record.message
      message.channel = id
      message.id = MessageID("m\(nextNumber())")
      message.position = nil
      message.state = .sent
      message = commit(message, key: nil)
      if let written = message.id {
        origins[id, default: [:]][written] = origin
        originIDs[id, default: [:]][origin] = written
        outcomes.append(.written(written))
      }
    }
    return outcomes
  }

  func finish(_ id: ChannelID, _ members: [MemberRecord]) {
    for record in members where record.member.readPosition != nil {
      // The destination counts anew: a read mark is kept as the position of the message that it named.
      moveRead(record.member.user.id, in: id, to: record.member.readPosition)
    }
  }
}
