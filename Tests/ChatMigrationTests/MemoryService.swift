import ChatCrypto
import ChatInterchange
import ChatJSON
import Synchronization
import UnifiedChat

/// A chat service in memory that is both source and destination: keeps everything, and fails when told.
final class MemoryService: ChatSource, ChatDestination, Sendable {
  struct StoredChannel {
    var record: ChannelRecord
    var members: [MemberRecord] = []
    var messages: [MessageRecord] = []
  }

  struct State {
    var users: [UserRecord] = []
    var rows: [VendorRow] = []
    var leftOut: [String] = []
    var channels: [StoredChannel] = []
    var files: [String: [UInt8]] = [:]
    var nextID = 1
    var nextChannel = 1
    var calls = 0
    var writes = 0
    /// Asked before each call, and after each commit with `committed == true`.
    var fault: (@Sendable (_ call: String, _ number: Int, _ committed: Bool) -> ChatError?)?
    /// What the destination does to a record it writes, and says so.
    var degrade: (@Sendable (inout MessageRecord) -> [Loss])?
    var refuse: (@Sendable (MessageRecord) -> ChatError?)?
    var lossesOfOthers: (@Sendable (Record) -> [Loss])?
    /// How often what changed: calls that change and remove, messages and profiles that are new or different.
    var log: [String: Int] = [:]
    /// Whether what is written can be changed and removed.
    var isRigid = false
    var signingKey: String?
    /// The list whose pages lead to one another without end.
    var circle: String?
  }

  var signingKey: String? { state.withLock { $0.signingKey } }

  let vendor: VendorName
  let capabilities: CapabilitySet
  let limits: DestinationLimits
  let pageSize: Int
  let state = Mutex(State())

  init(
    vendor: VendorName = "memory", idempotent: Bool = false, batch: Int = 10, pageSize: Int = 7,
    userIDBytes: Int? = nil, takesAnyOrder: Bool = false
  ) {
    self.vendor = vendor
    self.pageSize = pageSize
    capabilities = CapabilitySet([
      .sourceReadAll: .native, .destinationIdempotent: idempotent ? .native : .emulated("read back"),
    ])
    limits = DestinationLimits(
      batch: batch, parallelChannels: 3, userIDBytes: userIDBytes, takesAnyOrder: takesAnyOrder)
  }

  func setFault(_ fault: (@Sendable (String, Int, Bool) -> ChatError?)?) { state.withLock { $0.fault = fault } }
  var calls: Int { state.withLock { $0.calls } }
  var writes: Int { state.withLock { $0.writes } }

  private func enter(_ call: String, writes: Bool = false) throws(ChatError) {
    let error = state.withLock { state -> ChatError? in
      state.calls += 1
      if writes { state.writes += 1 }
      return state.fault?(call, state.calls, false)
    }
    if let error { throw error }
  }

  private func leave(_ call: String) throws(ChatError) {
    if let error = state.withLock({ $0.fault?(call, $0.calls, true) }) { throw error }
  }

  // MARK: Source

  func check() async throws(ChatError) -> SourceCheck {
    try enter("check")
    return state.withLock { state in
      SourceCheck(
        users: state.users.count, channels: state.channels.count,
        messages: state.channels.reduce(0) { $0 + $1.messages.count }, requestsPerSecond: 10,
        leftOut: state.leftOut)
    }
  }

  private func page<Item>(_ items: [Item], _ cursor: Cursor?, of list: String) -> SourcePage<Item> {
    if state.withLock({ $0.circle }) == list {
      return SourcePage(items: Array(items.prefix(pageSize)), next: cursor == "1" ? "2" : "1")
    }
    let start = cursor.flatMap { Int($0.rawValue) } ?? 0
    let end = min(start + pageSize, items.count)
    return SourcePage(
      items: Array(items[min(start, items.count)..<end]), next: end < items.count ? Cursor("\(end)") : nil)
  }

  func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    try enter("users")
    return page(state.withLock { $0.users }, cursor, of: "users")
  }

  func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    try enter("channels")
    return page(state.withLock { $0.channels.map(\.record) }, cursor, of: "channels")
  }

  private func channel(_ id: ChannelID) throws(ChatError) -> StoredChannel {
    guard let channel = state.withLock({ $0.channels.first { $0.record.channel.id == id } }) else {
      throw ChatError(.notFound, operation: .readSource, detail: "no channel \(id)")
    }
    return channel
  }

  func members(of id: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord> {
    try enter("members")
    return page(try channel(id).members, cursor, of: "members")
  }

  func messages(in id: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MessageRecord> {
    try enter("messages")
    return page(try channel(id).messages, cursor, of: "messages")
  }

  func rows(after cursor: Cursor?) async throws(ChatError) -> SourcePage<VendorRow> {
    try enter("rows")
    return page(state.withLock { $0.rows }, cursor, of: "rows")
  }

  func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    try enter("download")
    guard let bytes = state.withLock({ $0.files[attachment.url ?? ""] }) else {
      throw ChatError(.notFound, operation: .download, detail: "no such file")
    }
    for start in stride(from: 0, to: bytes.count, by: 5) {
      try await sink(Array(bytes[start..<min(start + 5, bytes.count)]))
    }
  }

  // MARK: Destination

  func losses(of record: Record) -> [Loss] {
    guard case .message(var message) = record else {
      return state.withLock { $0.lossesOfOthers }?(record) ?? []
    }
    return state.withLock { $0.degrade }?(&message) ?? []
  }

  func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    try enter("putUsers", writes: true)
    let outcomes = state.withLock { state in
      users.map { user -> PutOutcome<UserID> in
        if let index = state.users.firstIndex(where: { $0.user.id == user.user.id }) {
          if state.users[index] != user { state.log["putUser", default: 0] += 1 }
          state.users[index] = user
          return .existed(user.user.id)
        }
        state.users.append(user)
        return .written(user.user.id)
      }
    }
    try leave("putUsers")
    return outcomes
  }

  func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    try enter("putChannel", writes: true)
    let outcome = state.withLock { state -> PutOutcome<ChannelID> in
      let pair = members.map(\.member.user.id).sorted()
      let known = state.channels.firstIndex { stored in
        if channel.channel.kind == .direct {
          return stored.record.channel.kind == .direct && stored.members.map(\.member.user.id).sorted() == pair
        }
        return stored.record.origin?.id == channel.channel.id.rawValue
      }
      let id = known.map { state.channels[$0].record.channel.id } ?? ChannelID("c\(state.nextChannel)")
      var record = channel
      record.channel.id = id
      record.origin = channel.origin ?? Origin(vendor: "?", id: channel.channel.id.rawValue)
      let own = members.map { MemberRecord(channel: id, member: $0.member) }
      if let known {
        state.channels[known].members = own
        state.channels[known].record.channel.name = channel.channel.name
        return .existed(id)
      }
      state.nextChannel += 1
      state.channels.append(StoredChannel(record: record, members: own))
      return .written(id)
    }
    try leave("putChannel")
    return outcome
  }

  func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment {
    try enter("putAttachment", writes: true)
    var copy = attachment
    copy.url = "memory://\(Hex.encode(Digest.sha256(bytes)))"
    state.withLock { [url = copy.url ?? ""] in $0.files[url] = bytes }
    return copy
  }

  func putMessages(
    _ messages: [MessageRecord], in id: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try enter("putMessages", writes: true)
    let outcomes = state.withLock { state -> [PutOutcome<MessageID>] in
      guard let index = state.channels.firstIndex(where: { $0.record.channel.id == id }) else {
        return messages.map { _ in .refused(ChatError(.notFound, operation: .writeDestination)) }
      }
      return messages.map { put($0, at: index, &state) }
    }
    try leave("putMessages")
    return outcomes
  }

  private func put(_ message: MessageRecord, at index: Int, _ state: inout State) -> PutOutcome<MessageID> {
    if let error = state.refuse?(message) { return .refused(error) }
    if capabilities[.destinationIdempotent] == .native, let origin = message.origin,
      let known = state.channels[index].messages.first(where: { $0.origin == origin })?.message.id
    {
      return .existed(known)
    }
    var record = message
    _ = state.degrade?(&record)
    let id = MessageID("m\(state.nextID)")
    state.nextID += 1
    record.message.id = id
    record.message.channel = state.channels[index].record.channel.id
    record.raw = nil
    if limits.takesAnyOrder {
      let time = record.message.createdAt
      record.message.position = MessagePosition(time: time, number: Int64(state.nextID))
      let place = state.channels[index].messages.firstIndex { $0.message.createdAt > time }
      state.channels[index].messages.insert(record, at: place ?? state.channels[index].messages.endIndex)
    } else {
      record.message.position = MessagePosition(sequence: Int64(state.channels[index].messages.count + 1))
      state.channels[index].messages.append(record)
    }
    state.log["put", default: 0] += 1
    return .written(id)
  }

  func finishChannel(
    _ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) {
    try enter("finishChannel", writes: true)
  }

  // MARK: Changing

  private func enterChange(_ call: String) throws(ChatError) {
    try enter(call, writes: true)
    state.withLock { $0.log[call, default: 0] += 1 }
    if state.withLock({ $0.isRigid }) { throw .unsupported(.messageEdit, operation: .writeDestination) }
  }

  func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID> {
    try enterChange("changeMessage")
    let isThere = state.withLock { state in
      guard let place = state.channels.firstIndex(where: { $0.record.channel.id == channel }),
        let index = state.channels[place].messages.firstIndex(where: { $0.message.id == id })
      else { return false }
      var record = message
      let old = state.channels[place].messages[index].message
      record.message.id = id
      record.message.channel = channel
      record.message.position = old.position
      record.raw = nil
      state.channels[place].messages[index] = record
      return true
    }
    try leave("changeMessage")
    return isThere ? .written(id) : .refused(ChatError(.notFound, operation: .writeDestination))
  }

  func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError) {
    try enterChange("removeMessages")
    state.withLock { state in
      guard let place = state.channels.firstIndex(where: { $0.record.channel.id == channel }) else { return }
      state.channels[place].messages.removeAll { $0.message.id.map(ids.contains) ?? false }
    }
    try leave("removeMessages")
  }

  func removeMembers(_ users: [UserID], from channel: ChannelID) async throws(ChatError) {
    try enterChange("removeMembers")
    state.withLock { state in
      guard let place = state.channels.firstIndex(where: { $0.record.channel.id == channel }) else { return }
      state.channels[place].members.removeAll { users.contains($0.member.user.id) }
    }
    try leave("removeMembers")
  }

  func removeChannel(_ channel: ChannelID) async throws(ChatError) {
    try enterChange("removeChannel")
    state.withLock { state in state.channels.removeAll { $0.record.channel.id == channel } }
    try leave("removeChannel")
  }

  func removeUsers(_ users: [UserID]) async throws(ChatError) {
    try enterChange("removeUsers")
    state.withLock { state in state.users.removeAll { users.contains($0.user.id) } }
    try leave("removeUsers")
  }

  func existing(
    in id: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<ExistingMessage> {
    try enter("existing")
    let page = page(try channel(id).messages, cursor, of: "messages")
    let items = page.items.compactMap { record -> ExistingMessage? in
      guard let origin = record.origin, let id = record.message.id else { return nil }
      return ExistingMessage(origin: origin, id: id)
    }
    return SourcePage(items: items, next: page.next)
  }
}

/// A value behind a lock, for closures that only read it.
final class MutexBox<Value>: Sendable {
  private let value: Mutex<Value>

  init(_ value: sending Value) { self.value = Mutex(value) }

  func with<Result>(_ body: (inout sending Value) -> sending Result) -> sending Result { value.withLock(body) }
}
