import ChatJSON
import Foundation
import Synchronization
import UnifiedChat

/// A destination that tells a log of each write: what, from which item, to which, and how it ended. Never contents.
struct AuditedDestination: ForwardingDestination {
  let inner: any ChatDestination
  let log: AuditLog

  func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    let outcomes = try await log.watching("putUsers", count: users.count) { () throws(ChatError) in
      try await inner.putUsers(users)
    }
    for (user, outcome) in zip(users, outcomes) {
      log.write("putUser", outcome, from: user.origin?.id ?? user.user.id.rawValue)
    }
    return outcomes
  }

  func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    let outcome = try await log.watching("putChannel", count: 1) { () throws(ChatError) in
      try await inner.putChannel(channel, members: members)
    }
    log.write("putChannel", outcome, from: channel.origin?.id ?? channel.channel.id.rawValue)
    return outcome
  }

  func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment {
    let stored = try await log.watching("putAttachment", count: 1, in: channel) { () throws(ChatError) in
      try await inner.putAttachment(attachment, bytes: bytes, in: channel)
    }
    log.write("putAttachment", from: attachment.sha256, to: stored.url, in: channel, "written")
    return stored
  }

  func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    let outcomes = try await log.watching("putMessages", count: messages.count, in: channel) { () throws(ChatError) in
      try await inner.putMessages(messages, in: channel)
    }
    for (message, outcome) in zip(messages, outcomes) {
      log.write("putMessage", outcome, from: message.message.id?.rawValue ?? "", in: channel)
    }
    return outcomes
  }

  func finishChannel(
    _ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) {
    try await log.watching("finishChannel", count: 1, in: channel) { () throws(ChatError) in
      try await inner.finishChannel(channel, original: original, members: members)
    }
    log.write("finishChannel", from: original.origin?.id, to: channel.rawValue, in: channel, "written")
  }

  func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID> {
    let outcome = try await log.watching("changeMessage", count: 1, in: channel) { () throws(ChatError) in
      try await inner.changeMessage(message, id: id, in: channel)
    }
    log.write("changeMessage", outcome, from: message.message.id?.rawValue ?? "", in: channel)
    return outcome
  }

  func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError) {
    try await log.watching("removeMessages", count: ids.count, in: channel) { () throws(ChatError) in
      try await inner.removeMessages(ids, in: channel)
    }
    for id in ids { log.write("removeMessage", from: nil, to: id.rawValue, in: channel, "removed") }
  }

  func removeMembers(_ users: [UserID], from channel: ChannelID) async throws(ChatError) {
    try await log.watching("removeMembers", count: users.count, in: channel) { () throws(ChatError) in
      try await inner.removeMembers(users, from: channel)
    }
    for user in users { log.write("removeMember", from: nil, to: user.rawValue, in: channel, "removed") }
  }

  func removeChannel(_ channel: ChannelID) async throws(ChatError) {
    try await log.watching("removeChannel", count: 1, in: channel) { () throws(ChatError) in
      try await inner.removeChannel(channel)
    }
    log.write("removeChannel", from: nil, to: channel.rawValue, in: channel, "removed")
  }

  func removeUsers(_ users: [UserID]) async throws(ChatError) {
    try await log.watching("removeUsers", count: users.count) { () throws(ChatError) in
      try await inner.removeUsers(users)
    }
    for user in users { log.write("removeUser", from: nil, to: user.rawValue, "removed") }
  }
}

/// One JSON line a write, appended to a file that only its owner may read. A log that cannot be written stops the run.
final class AuditLog: Sendable {
  private struct State {
    var descriptor: Int32
    var failure: Int32 = 0
  }

  private let path: String
  private let clock: any ChatClock
  private let state: Mutex<State>

  init(appendingTo path: String, clock: any ChatClock) throws(ChatError) {
    self.path = path
    self.clock = clock
    try PrivateFile.refuseDatabase(path, operation: .writeDestination)
    let descriptor = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw PrivateFile.failure(errno, path, .writeDestination) }
    state = Mutex(State(descriptor: descriptor))
  }

  deinit { state.withLock { _ = close($0.descriptor) } }

  func write<ID>(_ call: String, _ outcome: PutOutcome<ID>, from: String, in channel: ChannelID? = nil)
  where ID: CustomStringConvertible {
    switch outcome {
    case .written(let id): write(call, from: from, to: "\(id)", in: channel, "written")
    case .existed(let id): write(call, from: from, to: "\(id)", in: channel, "existed")
    case .refused(let error): write(call, from: from, to: nil, in: channel, "refused: \(error)")
    case .skipped(let loss): write(call, from: from, to: nil, in: channel, "skipped: \(loss.explanation)")
    }
  }

  func write(_ call: String, from: String?, to: String?, in channel: ChannelID? = nil, _ outcome: String) {
    var line = JSONObject()
    line["at"] = .int(clock.now.milliseconds)
    line["call"] = .string(call)
    line["from"] = from.map { .string($0) }
    line["to"] = to.map { .string($0) }
    line["channel"] = channel.map { .string($0.rawValue) }
    line["outcome"] = .string(outcome)
    append(JSONValue.object(line).bytes() + [UInt8(ascii: "\n")])
  }

  /// Does `body`, and tells its failure, after which nobody knows what of it was done.
  func watching<Value: Sendable>(
    _ call: String, count: Int, in channel: ChannelID? = nil, _ body: () async throws(ChatError) -> Value
  ) async throws(ChatError) -> Value {
    let failure = state.withLock { $0.failure }
    guard failure == 0 else { throw PrivateFile.failure(failure, path, .writeDestination) }
    do throws(ChatError) { return try await body() } catch {
      write(call, from: nil, to: nil, in: channel, "failed, \(count) items: \(error)")
      throw error
    }
  }

  private func append(_ bytes: [UInt8]) {
    state.withLock { state in
      // One write a line, so that lines of several processes do not mix.
      let count = bytes.withUnsafeBytes { Foundation.write(state.descriptor, $0.baseAddress, $0.count) }
      if count != bytes.count { state.failure = count < 0 ? errno : ENOSPC }
    }
  }
}
