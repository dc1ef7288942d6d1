import ChatCache
import ChatClient
import Foundation
import UnifiedChat

// What must hold after every case, whatever it was about.
extension CaseContext {
  func checkInvariants() async throws {
    try await removeRules()
    // A live service is read by the cases alone: its own view would be that of the whole app.
    if harness.target != .live { try await checkTruth() }
    for probe in probes { try check(probe) }
    for device in devices { await device.chat.disconnect() }
    for device in devices { try checkCache(device) }
    try await checkNothingLeft()
    try checkSecrets()
    if !isExempt("G9"), let call = await harness.unexpectedCalls().first { throw failure("G9: only calls that the service has", call) }
  }

  // MARK: What was told

  private func check(_ probe: EventProbe) throws {
    for (before, after) in zip(probe.connectionStates, probe.connectionStates.dropFirst())
    where !before.canMove(to: after) {
      throw failure("G5: a legal transition", "\(before) to \(after)")
    }
    var seen: Set<String> = []
    for event in probe.events {
      switch event.kind {
      case .messageReceived(let message):
        guard let id = message.id, message.position != nil else { continue }
        guard seen.insert("\(message.channel)/\(id)").inserted else {
          throw failure("G1: one event for a message", "a second one for \(id)")
        }
      case .unreadChanged(_, let count), .totalUnreadChanged(let count):
        guard (count.number ?? 0) >= 0 else { throw failure("G8: no unread number below zero", "\(count)") }
      default: break
      }
    }
    if let missing = probe.notInCache().first, !isExempt("G6") {
      throw failure("G6: the cache shows what an event tells", "not \(missing)")
    }
  }

  // MARK: What is cached

  private func checkCache(_ device: Device) throws {
    guard let cache = try existingCache(device) else { return }
    defer { cache.close() }
    let contents = try cache.read { session throws(ChatError) in
      try session.channels().map { channel throws(ChatError) in
        (channel, try session.ranges(of: channel.id).map { range throws(ChatError) in
          try session.messages(in: channel.id, .newer, of: range.low, inclusive: true, within: range, limit: .max)
        })
      }
    }
    for (channel, ranges) in contents {
      guard (channel.unread.number ?? 0) >= 0 else {
        throw failure("G8: no unread number below zero", "\(channel.unread) in \(channel.id)")
      }
      let messages = ranges.flatMap(\.self)
      let positions = messages.compactMap(\.position)
      guard zip(positions, positions.dropFirst()).allSatisfy({ $0 < $1 }) else {
        throw failure("G2: positions that grow in the cache", "they do not in \(channel.id)")
      }
      try checkIdentities(messages)
    }
  }

  /// nil where a device never had one; one that is there must open.
  private func existingCache(_ device: Device) throws -> LocalCache? {
    guard !isExempt("cache"), LocalCache.exists(device.identity, at: .directory(device.folder)) else { return nil }
    do { return try LocalCache(device.identity, at: .directory(device.folder)) } catch {
      throw failure("the cache of \(device.user.id) opens", "\(error)")
    }
  }

  private func checkIdentities(_ messages: [Message]) throws {
    var ids: Set<MessageID> = []
    var clientIDs: Set<[String]> = []
    for message in messages {
      if let id = message.id, !ids.insert(id).inserted { throw failure("G1: one row for a message", "two of \(id)") }
      guard let clientID = message.clientMessageID, !clientID.rawValue.isEmpty, let sender = message.sender else { continue }
      guard clientIDs.insert([sender.rawValue, clientID.rawValue]).inserted else {
        throw failure("G1: one row for a client id of a sender", "two of \(clientID)")
      }
    }
  }

  /// G3: what a connected device holds as known without holes is what the service holds.
  private func checkTruth() async throws {
    guard !isExempt("G3") else { return }
    var truths: [ChannelID: [Message]?] = [:]
    for device in devices where await device.chat.state == .connected {
      // Two devices of the case may stand for one installation; only the last one runs.
      for channel in try await device.chat.cachedChannels() where channel.kind == .group || channel.kind == .direct {
        guard channel.myState == .joined || channel.myState == nil else { continue }
        if truths[channel.id] == nil { truths[channel.id] = .some(try await truth(of: channel)) }
        guard let truth = truths[channel.id] ?? nil else { continue }
        try await compare(device, channel.id, with: truth)
      }
    }
  }

  /// nil where there is none to compare with.
  private func truth(of channel: Channel) async throws -> [Message]? {
    do { return try await serverMessages(channel.id).filter { $0.threadParent == nil } } catch let error as ChatError {
      // A channel of two peers has no object that an administrator could list; what is gone stays in caches.
      if channel.kind == .direct || error.kind == .notFound { return nil }
      throw failure("G3: the service's own view of \(channel.id)", "\(error)")
    }
  }

  private func compare(_ device: Device, _ channel: ChannelID, with truth: [Message]) async throws {
    guard let cache = try existingCache(device) else { return }
    defer { cache.close() }
    do {
      try await eventually("G3", within: .seconds(5)) { try Self.difference(cache, channel, truth) == nil }
    } catch is CaseFailure {
      guard let difference = try Self.difference(cache, channel, truth) else { return }
      throw failure("G3: the cache of \(device.user.id) equals the service where it claims no holes", difference)
    }
  }

  private static func difference(
    _ cache: LocalCache, _ channel: ChannelID, _ truth: [Message]
  ) throws -> String? {
    let (ranges, cached) = try cache.read { session throws(ChatError) in
      let ranges = try session.ranges(of: channel)
      var cached: [Message] = []
      for range in ranges {
        cached += try session.messages(in: channel, .newer, of: range.low, inclusive: true, within: range, limit: .max)
      }
      return (ranges, cached)
    }
    let known = Dictionary(cached.compactMap { message in message.id.map { ($0, message) } }) { first, _ in first }
    for message in truth where !message.isRecalled {
      guard let id = message.id, let position = message.position, ranges.contains(where: { $0.contains(position) }) else {
        continue
      }
      guard let found = known[id] else { return "message \(id) is missing" }
      guard found.content.kindName == message.content.kindName,
        found.content.searchableText == message.content.searchableText, found.sender == message.sender
      else { return "message \(id) is \(found.content.kindName), at the service \(message.content.kindName)" }
    }
    for message in truth where message.isRecalled {
      guard let id = message.id, let found = known[id], !found.isRecalled else { continue }
      return "message \(id) is recalled, and still there as a \(found.content.kindName)"
    }
    let real = Set(truth.compactMap(\.id))
    for message in cached where !message.isRecalled {
      if case .system = message.content { continue }
      guard let id = message.id, !real.contains(id) else { continue }
      return "message \(id) is at the service no more"
    }
    return nil
  }

  // MARK: What is left

  /// What a rule has swallowed stays unanswered for good: a case with such rules is held to the rest.
  private func leftovers() async -> [String] {
    let lines = await harness.leftovers()
    return isExempt("G4") ? lines.filter { !$0.hasSuffix("without an answer") } : lines
  }

  private func checkNothingLeft() async throws {
    let clocks = devices.map(\.clock)
    // Sockets close in real time, which a busy machine may take; timers would fire if time went on meanwhile.
    for _ in 0..<300 where !(await leftovers()).isEmpty { try await quiet(6) }
    do {
      try await eventually("G4", within: .seconds(5)) {
        let open = await leftovers()
        return open.isEmpty && clocks.allSatisfy { $0.sleepers == 0 }
      }
    } catch is CaseFailure {
      let open = await leftovers() + clocks.filter { $0.sleepers > 0 }.map { "\($0.sleepers) timers of a device" }
      throw failure("G4: nothing is left after disconnect", open.joined(separator: "; "))
    }
  }

  private func checkSecrets() throws {
    let lines = log
    for secret in secrets where secret.utf8.count >= 8 {
      if let line = lines.first(where: { $0.contains(secret) }) {
        throw failure("G7: no secret in a log", line.replacingOccurrences(of: secret, with: "(secret)"))
      }
    }
  }
}
