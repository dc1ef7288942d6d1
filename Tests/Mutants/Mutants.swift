import ChatClient
import ChatConformance
import Foundation
import Synchronization
import UnifiedChat

/// A client that breaks one rule, and the cases that must notice.
struct Mutant: Sendable {
  /// As the specification numbers them.
  var id: String
  var breaks: String
  /// An adapter's name, or `ideal`.
  var base: String
  var cases: [String]
  var make: @Sendable (any ConformanceHarness) -> MutantHarness
}

extension Mutant {
  static let all: [Mutant] = [
    Mutant(id: "M01", breaks: "no dedupe of push and history", base: "ideal", cases: ["DEDUP-01", "RECV-03"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in ForgetsIdentity(adapter) })
    },
    Mutant(id: "M02", breaks: "new client id on each retry", base: "leancloud", cases: ["SEND-03", "SEND-11"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in NewClientIDs(inner: adapter) })
    },
    Mutant(id: "M03", breaks: "sorts by client time", base: "ideal", cases: ["ORDER-02"]) {
      MutantHarness(base: $0, wrap: { adapter, device in SortsByClientTime(inner: adapter, clock: device.clock) })
    },
    Mutant(id: "M04", breaks: "cursor by time only", base: "sendbird", cases: ["HIST-04", "TIME-06"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in CursorByTime(inner: adapter) })
    },
    Mutant(id: "M05", breaks: "inclusive cursors", base: "ideal", cases: ["HIST-07"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in InclusiveCursors(inner: adapter) })
    },
    Mutant(id: "M06", breaks: "forgets gaps at reconnect", base: "ideal", cases: ["RECON-01", "DEDUP-01"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in ForgetsGaps(adapter) })
    },
    Mutant(id: "M07", breaks: "applies the older edit", base: "leancloud", cases: ["EDIT-03"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in OlderEditWins(adapter) })
    },
    Mutant(id: "M08", breaks: "recall only hides", base: "ideal", cases: ["DEL-01"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in RecallHides(adapter) })
    },
    Mutant(id: "M09", breaks: "read mark may go back", base: "ideal", cases: ["RCPT-02"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in MarkGoesBack(adapter) })
    },
    Mutant(id: "M10", breaks: "counts own messages as unread", base: "ideal", cases: ["UNRD-03"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in CountsOwn(adapter) })
    },
    Mutant(id: "M11", breaks: "reconnects after a kick", base: "openim", cases: ["CONN-09"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in ReturnsAfterKick(adapter) })
    },
    Mutant(id: "M12", breaks: "asks the provider for each request", base: "openim", cases: ["AUTH-06"]) {
      MutantHarness(base: $0, wrap: { adapter, device in AsksAlways(inner: adapter, credentials: device.credentials) })
    },
    Mutant(id: "M14", breaks: "a Double for numbers", base: "leancloud", cases: ["RECV-08"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in RoundsNumbers(adapter) })
    },
    Mutant(id: "M15", breaks: "drops unknown message types", base: "leancloud", cases: ["RECV-06"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in DropsUnknown(adapter) })
    },
    Mutant(id: "M16", breaks: "cache file named by lower-cased user id", base: "ideal", cases: ["CACHE-02"]) {
      MutantHarness(base: $0, name: { $0.lowercased() })
    },
    Mutant(id: "M18", breaks: "unsupported after sending", base: "ideal", cases: ["ERR-10"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in RefusesLate(inner: adapter) })
    },
    Mutant(id: "M19", breaks: "normalises text to NFC", base: "ideal", cases: ["UNICODE-05"]) {
      MutantHarness(
        base: $0, wrap: { adapter, _ in ChangesText(inner: adapter) { $0.precomposedStringWithCanonicalMapping } })
    },
    Mutant(id: "M20", breaks: "cuts at NUL", base: "ideal", cases: ["UNICODE-03"]) {
      MutantHarness(
        base: $0, wrap: { adapter, _ in ChangesText(inner: adapter) { String($0.prefix { $0 != "\u{0}" }) } })
    },
    Mutant(id: "M21", breaks: "second upload on resend", base: "leancloud", cases: ["FILE-03"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in UploadsAgain(inner: adapter) })
    },
    Mutant(id: "M22", breaks: "what was written is not known again", base: "ideal", cases: ["MIGR-03"]) {
      MutantHarness(base: $0, destination: { ForgetsWritten(inner: $0) })
    },
    Mutant(id: "M23", breaks: "report omits a lost field", base: "ideal", cases: ["MIGR-01"]) {
      MutantHarness(base: $0, destination: { LosesSilently(inner: $0) })
    },
    Mutant(id: "M24", breaks: "queue goes on after a retryable failure", base: "sendbird", cases: ["SEND-09"]) {
      MutantHarness(base: $0, wrap: { adapter, device in QueueGoesOn(inner: adapter, clock: device.clock) })
    },
    Mutant(id: "M25", breaks: "emits after disconnect", base: "ideal", cases: ["CONN-06"]) {
      MutantHarness(base: $0, listen: { SpeaksAfterDisconnect($0) })
    },
    Mutant(id: "M26", breaks: "settles pending by client id of any sender", base: "openim", cases: ["SEC-08"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in SettlesByAnybody(adapter) })
    },
  ]
}

// MARK: Identity

private struct ForgetsIdentity: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    let seen = Mutex2<Set<String>>([])
    retelling = Retelling(inner, hub) { event in
      guard case .messageReceived(var message) = event.kind, let id = message.id else { return [event] }
      let isNew = seen.withLock { $0.insert(id.rawValue).inserted }
      if !isNew {
        message.id = MessageID(id.rawValue + "-again")
        message.clientMessageID = nil
      }
      return [ChatEvent(.messageReceived(message), source: event.source)]
    }
  }

  func events() -> ChatEventStream { hub.events() }

  func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    var page = try await inner.history(of: channel, query)
    page.messages = page.messages.map { message in
      var copy = message
      copy.id = message.id.map { MessageID("read-" + $0.rawValue) }
      copy.clientMessageID = nil
      return copy
    }
    return page
  }
}

private struct NewClientIDs: ForwardingAdapter {
  let inner: any ChatAdapter

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    var message = message
    if message.attempt > 1 {
      message.clientMessageID = ClientMessageID("\(message.clientMessageID)-\(message.attempt)")
    }
    return try await inner.send(message)
  }
}

private struct SettlesByAnybody: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let flying = Mutex2<Set<ClientMessageID>>([])
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    let flying = flying
    retelling = Retelling(inner, hub) { event in
      guard case .messageReceived(var message) = event.kind, let id = message.clientMessageID,
        flying.withLock({ $0.contains(id) })
      else { return [event] }
      message.sender = await inner.currentUser?.id
      return [ChatEvent(.messageReceived(message), source: .echo)]
    }
  }

  func events() -> ChatEventStream { hub.events() }

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    flying.withLock { _ = $0.insert(message.clientMessageID) }
    defer { flying.withLock { _ = $0.remove(message.clientMessageID) } }
    return try await inner.send(message)
  }
}

// MARK: Order and history

private struct SortsByClientTime: ForwardingAdapter {
  let inner: any ChatAdapter
  let clock: any ChatClock

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    var sent = try await inner.send(message)
    sent.position = MessagePosition(sequence: clock.now.milliseconds)
    return sent
  }
}

private struct CursorByTime: ForwardingAdapter {
  let inner: any ChatAdapter

  func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    guard case .position(let position) = query.anchor else { return try await inner.history(of: channel, query) }
    var page = try await inner.history(of: channel, query)
    page.messages.removeAll { $0.position?.major == position.major }
    return page
  }
}

private struct InclusiveCursors: ForwardingAdapter {
  let inner: any ChatAdapter

  func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    var query = query
    query.isInclusive = true
    return try await inner.history(of: channel, query)
  }
}

private struct ForgetsGaps: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    let wasConnected = Mutex2(false)
    retelling = Retelling(inner, hub) { event in
      switch event.kind {
      case .missedEvents: return []
      case .connectionChanged(let state):
        let isFirst = wasConnected.withLock { was in
          defer { was = was || state == .connected }
          return !was
        }
        return isFirst ? [event] : []
      default: return [event]
      }
    }
  }

  func events() -> ChatEventStream { hub.events() }
}

private struct RoundsNumbers: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    retelling = Retelling(inner, hub) { event in
      guard case .messageReceived(var message) = event.kind,
        let rounded = Int64(exactly: Double(message.createdAt.milliseconds))
      else { return [event] }
      message.createdAt = Timestamp(milliseconds: rounded)
      return [ChatEvent(.messageReceived(message), source: event.source)]
    }
  }

  func events() -> ChatEventStream { hub.events() }
}

private struct DropsUnknown: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    retelling = Retelling(inner, hub) { event in
      if case .messageReceived(let message) = event.kind, case .unknown = message.content { return [] }
      return [event]
    }
  }

  func events() -> ChatEventStream { hub.events() }
}

// MARK: Changes

private struct OlderEditWins: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    let newest = Mutex2<[MessageID: Timestamp]>([:])
    retelling = Retelling(inner, hub) { event in
      guard case .messageUpdated(var message) = event.kind, let id = message.id, let time = message.editedAt else {
        return [event]
      }
      // Whatever comes last looks newest.
      message.editedAt = newest.withLock { newest in
        let later = newest[id].map { max(time, $0 + .milliseconds(1)) } ?? time
        newest[id] = later
        return later
      }
      return [ChatEvent(.messageUpdated(message), source: event.source)]
    }
  }

  func events() -> ChatEventStream { hub.events() }
}

private struct RecallHides: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    retelling = Retelling(inner, hub) { event in
      guard case .messageRecalled(let message) = event.kind, let id = message.id else { return [event] }
      return [ChatEvent(.messageHidden(message.channel, id), source: event.source)]
    }
  }

  func events() -> ChatEventStream { hub.events() }
}

// MARK: Unread

private struct MarkGoesBack: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    retelling = Retelling(inner, hub) { [$0] }
  }

  func events() -> ChatEventStream { hub.events() }

  func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    try await inner.markRead(id, upTo: position)
    guard let position else { return }
    // Counts from this mark, whatever was marked before.
    let query = HistoryQuery(anchor: .position(position), direction: .newer, limit: 50)
    let newer = try await inner.history(of: id, query).messages.count
    if newer > 0 { hub.publish(ChatEvent(.unreadChanged(id, .exact(newer)))) }
  }
}

private struct CountsOwn: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    retelling = Retelling(inner, hub) { [$0] }
  }

  func events() -> ChatEventStream { hub.events() }

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    let sent = try await inner.send(message)
    hub.publish(ChatEvent(.unreadChanged(message.channel, .exact(1))))
    return sent
  }
}

// MARK: Connection

private struct ReturnsAfterKick: RetellingAdapter {
  let inner: any ChatAdapter
  let hub = EventHub()
  private let last = Mutex2<(user: UserID, credential: Credential)?>(nil)
  private let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    let last = last
    retelling = Retelling(inner, hub) { event in
      if case .connectionChanged(.refused) = event.kind, let login = last.withLock({ $0 }) {
        _ = try? await inner.connect(as: login.user, credential: login.credential)
      }
      return [event]
    }
  }

  func events() -> ChatEventStream { hub.events() }

  func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User {
    last.withLock { $0 = (user, credential) }
    return try await inner.connect(as: user, credential: credential)
  }
}

private struct AsksAlways: ForwardingAdapter {
  let inner: any ChatAdapter
  let credentials: (any CredentialProvider)?

  func channel(_ id: ChannelID) async throws(ChatError) -> Channel {
    if let user = await inner.currentUser { _ = try? await credentials?.credential(for: user.id) }
    return try await inner.channel(id)
  }
}

private struct SpeaksAfterDisconnect: ChatListening {
  private let hub = EventHub()

  init(_ chat: Chat) {
    let (events, hub) = (chat.events(), hub)
    // Ends with the events of its client; who listens keeps nothing else.
    Task {
      for await event in events {
        hub.publish(event)
        guard case .connectionChanged(.disconnected(.requested)) = event.kind else { continue }
        for _ in 0..<500 {
          // Moments of real time: whoever disconnected goes on meanwhile.
          try? await Task.sleep(for: .milliseconds(2))
          hub.publish(ChatEvent(.typingEnded("nowhere", "nobody")))
        }
      }
    }
  }

  func events() -> ChatEventStream { hub.events() }
}

// MARK: Sending

private struct RefusesLate: ForwardingAdapter {
  let inner: any ChatAdapter

  func registerPush(token: String) async throws(ChatError) {
    _ = try await inner.users(["somebody"])
    try await inner.registerPush(token: token)
  }
}

private struct ChangesText: ForwardingAdapter {
  let inner: any ChatAdapter
  let change: @Sendable (String) -> String

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    var message = message
    if case .text(let text) = message.draft.content { message.draft.content = .text(change(text)) }
    return try await inner.send(message)
  }
}

private struct UploadsAgain: ForwardingAdapter {
  let inner: any ChatAdapter

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    if message.attempt > 1, message.draft.content.attachment != nil {
      _ = try await inner.upload(
        Attachment(name: "again", source: .bytes([1, 2, 3])), for: message.channel, progress: nil)
    }
    return try await inner.send(message)
  }
}

private struct QueueGoesOn: ForwardingAdapter {
  let inner: any ChatAdapter
  let clock: any ChatClock

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    do throws(ChatError) { return try await inner.send(message) } catch {
      guard error.isRetryable else { throw error }
      // Says that it has gone, and sends it once the others have.
      Task {
        try await clock.sleep(for: .seconds(2))
        _ = try await inner.send(message)
      }
      return Message(
        channel: message.channel, id: "put-aside", localID: message.localID, clientMessageID: message.clientMessageID,
        sender: await inner.currentUser?.id, position: MessagePosition(sequence: 1), createdAt: clock.now,
        content: message.draft.content)
    }
  }
}

// MARK: Migration

/// A destination that passes everything on.
private protocol ForwardingDestination: ChatDestination {
  var inner: any ChatDestination { get }
}

extension ForwardingDestination {
  var vendor: VendorName { inner.vendor }
  var capabilities: CapabilitySet { inner.capabilities }
  var limits: DestinationLimits { inner.limits }
  func losses(of record: Record) -> [Loss] { inner.losses(of: record) }
  func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    try await inner.putUsers(users)
  }
  func putChannel(_ channel: ChannelRecord, members: [MemberRecord]) async throws(ChatError) -> PutOutcome<ChannelID> {
    try await inner.putChannel(channel, members: members)
  }
  func putAttachment(_ attachment: Attachment, bytes: [UInt8], in channel: ChannelID) async throws(ChatError)
    -> Attachment
  {
    try await inner.putAttachment(attachment, bytes: bytes, in: channel)
  }
  func putMessages(_ messages: [MessageRecord], in channel: ChannelID) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try await inner.putMessages(messages, in: channel)
  }
  func finishChannel(_ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]) async throws(ChatError) {
    try await inner.finishChannel(channel, original: original, members: members)
  }
  func existing(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<ExistingMessage> {
    try await inner.existing(in: channel, after: cursor)
  }
}

private struct ForgetsWritten: ForwardingDestination {
  let inner: any ChatDestination

  func putMessages(_ messages: [MessageRecord], in channel: ChannelID) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try await inner.putMessages(
      messages.map { record in
        var record = record
        record.origin = Origin(vendor: "mutant", id: UUID().uuidString, channel: channel)
        return record
      }, in: channel)
  }

  func existing(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<ExistingMessage> {
    SourcePage(items: [], next: nil)
  }
}

private struct LosesSilently: ForwardingDestination {
  let inner: any ChatDestination

  func putMessages(_ messages: [MessageRecord], in channel: ChannelID) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try await inner.putMessages(
      messages.map { record in
        var record = record
        if case .text(let text) = record.message.content {
          record.message.content = .text(text.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        return record
      }, in: channel)
  }
}

// MARK: Helpers

/// A mutex that can be captured.
private final class Mutex2<Value: Sendable>: Sendable {
  private let mutex: Mutex<Value>
  init(_ value: Value) { mutex = Mutex(value) }
  func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { mutex.withLock { body(&$0) } }
}
