import ChatClient
import Foundation
import UnifiedChat

/// Runs random scripts against an adapter and compares with the simplest model of the contract: every message that was
/// accepted is at the service exactly once, in the order in which its client wrote it, says what it was last changed
/// to, and is seen by everyone in one order.
public struct ModelRun: Sendable {
  private let makeHarness: @Sendable (UInt64) async throws -> any ConformanceHarness
  private let seed: UInt64

  public init(seed: UInt64, makeHarness: @escaping @Sendable (UInt64) async throws -> any ConformanceHarness) {
    self.seed = seed
    self.makeHarness = makeHarness
  }

  /// - Returns: what was not as the model says, with the shortest script that shows it; nil when all was well.
  public func check(_ script: ModelScript, shrinks: Bool = true) async throws -> ModelDivergence? {
    guard let what = try await run(script) else { return nil }
    guard shrinks else { return ModelDivergence(script: script, what: what) }
    return try await shrunk(ModelDivergence(script: script, what: what))
  }

  /// Leaves out ever smaller parts as long as something is still wrong.
  private func shrunk(_ first: ModelDivergence) async throws -> ModelDivergence {
    var best = first
    var part = max(1, best.script.steps.count / 2)
    // Every try runs the whole script: a bound keeps a long one from taking hours.
    var tries = 200
    while tries > 0 {
      var start = 0
      var isShorter = false
      while start < best.script.steps.count, tries > 0 {
        var candidate = best.script
        candidate.steps.removeSubrange(start..<min(start + part, candidate.steps.count))
        tries -= 1
        if let what = try await run(candidate) {
          best = ModelDivergence(script: candidate, what: what)
          isShorter = true
        } else {
          start += part
        }
      }
      if part == 1, !isShorter { break }
      part = max(1, part / 2)
    }
    return best
  }

  private func run(_ script: ModelScript) async throws -> String? {
    let harness = try await makeHarness(seed)
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("model-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let context = CaseContext(id: "MODEL-01", harness: harness, directory: directory)
    var observed: String?
    do {
      let world = try await ModelWorld(context, script)
      for step in script.steps { try await world.perform(step) }
      try await world.compare()
      try await context.checkInvariants()
    } catch let failure as CaseFailure {
      observed = "\(failure)"
    } catch let error as ChatError {
      observed = "\(error)"
    } catch {
      await context.end()
      throw error
    }
    await context.end()
    return observed
  }
}

/// The clients of one run and what the model expects of them.
private final class ModelWorld {
  private struct Sent {
    var client: Int
    var channel: Int
    var localID: LocalID?
    var text: String
    var isRecalled = false
  }

  private let context: CaseContext
  private var users: [TestUser] = []
  private var chats: [Chat] = []
  private var channels: [ChannelID] = []
  private var isSuspended: [Bool] = []
  /// In the order in which they were accepted.
  private var order: [Int] = []
  private var sent: [Int: Sent] = [:]

  init(_ context: CaseContext, _ script: ModelScript) async throws {
    self.context = context
    for number in 0..<script.clients {
      users.append(try await context.user("c\(number)"))
      chats.append(try await context.online(users[number]))
      isSuspended.append(false)
    }
    for number in 0..<script.channels {
      let made = try await chats[0].createChannel(
        ChannelDraft(kind: .group, members: users.dropFirst().map(\.id), name: "model \(number)"))
      channels.append(made.id)
      for chat in chats.dropFirst() { try await context.sees(chat, made.id) }
    }
  }

  func perform(_ step: ModelScript.Step) async throws {
    context.step()
    switch step {
    case .send(let client, let channel, let number):
      let pending = try await chats[client].enqueue(.text("m\(number)"), to: channels[channel])
      sent[number] = Sent(client: client, channel: channel, localID: pending.localID, text: "m\(number)")
      order.append(number)
    case .edit(let client, let number, let text): try await edit(client, number, "e\(text)")
    case .recall(let client, let number): try await recall(client, number)
    case .read(let client, let channel):
      if context.has(.unreadChannel) { try? await chats[client].markRead(channels[channel], upTo: nil) }
    case .suspend(let client):
      await chats[client].suspend()
      isSuspended[client] = true
    case .resume(let client): try await resume(client)
    case .cut(let client):
      // Without a link there is nothing to cut.
      if !isSuspended[client] { try? await context.perform(.cut(users[client].id)) }
    case .kill(let client): try await kill(client)
    case .loseAnswer(let client):
      guard context.has(.messageIdempotentSend) else { return }
      try await context.inject(
        FaultRule(
          "send", user: users[client].id, phase: .afterCommit, action: .closeSocket, mustFire: false))
    case .pass(let milliseconds): await context.harness.pass(.milliseconds(milliseconds))
    }
  }

  private func resume(_ client: Int) async throws {
    guard isSuspended[client] else { return }
    await chats[client].resume()
    isSuspended[client] = false
  }

  private func kill(_ client: Int) async throws {
    // A send in flight at a vendor that cannot be asked stays unknown for ever, as it should.
    guard context.has(.messageIdempotentSend) else { return }
    // A killed process sends nothing after the moment of which the copy is, so its link ends before, for good.
    try? await context.perform(.refuseConnections(true))
    if !isSuspended[client] { try? await context.perform(.cut(users[client].id)) }
    let next = try await context.killed(chats[client], "phone")
    await chats[client].disconnect()
    try? await context.perform(.refuseConnections(false))
    let user = users[client]
    _ = try await context.whileTimePasses { try await next.connect(as: user.id, credential: user.credential) }
    chats[client] = next
    isSuspended[client] = false
  }

  /// The message as its client knows it now; nil while its fate is open.
  private func known(_ number: Int) async throws -> Message? {
    guard let entry = sent[number], !entry.isRecalled else { return nil }
    let (chat, channel) = (chats[entry.client], channels[entry.channel])
    try await settled(entry.client)
    return try await context.newest(1000, of: channel, by: chat).first { $0.localID == entry.localID }
  }

  private func edit(_ client: Int, _ number: Int, _ text: String) async throws {
    guard context.has(.messageEdit), !isSuspended[client], let message = try await known(number) else { return }
    let chat = chats[client]
    _ = try await context.whileTimePasses { try await chat.edit(message, to: .text(text)) }
    sent[number]?.text = text
  }

  private func recall(_ client: Int, _ number: Int) async throws {
    guard context.has(.messageRecall), !isSuspended[client], let message = try await known(number) else { return }
    let chat = chats[client]
    _ = try await context.whileTimePasses { try await chat.recall(message) }
    sent[number]?.isRecalled = true
  }

  /// Waits until a client is connected and has sent everything.
  private func settled(_ client: Int) async throws {
    let (chat, places) = (chats[client], channels)
    // Where nothing can be looked up, an unknown outcome stays one.
    let staysUnknown = !context.has(.messageIdempotentSend)
    try await context.eventually("client \(client) has sent everything", within: .seconds(300), step: .seconds(1)) {
      guard await chat.state == .connected else { return false }
      for channel in places {
        let waiting = try await chat.waitingMessages(in: channel)
        guard waiting.allSatisfy({ staysUnknown && $0.state == .unknown }) else { return false }
      }
      return true
    }
  }

  // MARK: The comparison

  func compare() async throws {
    for client in chats.indices { try await resume(client) }
    for client in chats.indices { try await settled(client) }
    for (place, channel) in channels.enumerated() {
      let stored = try await context.serverMessages(channel)
      try compareContents(stored, place)
      for (client, chat) in chats.enumerated() { try await compareView(of: chat, client, channel, stored) }
    }
  }

  private func compareContents(_ stored: [Message], _ channel: Int) throws {
    let alive = stored.filter { !$0.isRecalled }.compactMap { $0.content.searchableText }
    let wanted = order.compactMap { sent[$0] }.filter { $0.channel == channel && !$0.isRecalled }
    if context.has(.messageIdempotentSend) {
      try context.expectEqual(alive.sorted(), wanted.map(\.text).sorted(), "messages of channel \(channel) at the service")
    } else {
      try context.expectEqual(Set(alive).count, alive.count, "messages of channel \(channel), each once")
      try context.expect(Set(alive).isSubset(of: Set(wanted.map(\.text))), "nothing that nobody wrote", observed: "\(alive)")
    }
    for client in chats.indices {
      let mine = wanted.filter { $0.client == client }.map(\.text)
      let there = alive.filter { mine.contains($0) }
      try context.expectEqual(there, mine.filter { there.contains($0) }, "the order of client \(client)")
    }
  }

  private func compareView(of chat: Chat, _ client: Int, _ channel: ChannelID, _ stored: [Message]) async throws {
    let truth = stored.filter { !$0.isRecalled }.map { "\($0.id as Any) \($0.content.searchableText ?? "")" }
    for _ in 0..<40 {
      if try await context.whileTimePasses({ try await view(of: chat, channel) }) == truth { return }
      await context.harness.pass(.milliseconds(500))
      try await context.quiet(12)
    }
    try context.expectEqual(try await view(of: chat, channel), truth, "what client \(client) sees")
  }
}

/// What a client shows of a channel.
private func view(of chat: Chat, _ channel: ChannelID) async throws -> [String] {
  try await chat.history(of: channel, .newest(1000)).messages.filter { message in
    if case .system = message.content { return false }
    return !message.isRecalled
  }.map { "\($0.id as Any) \($0.content.searchableText ?? "")" }
}
