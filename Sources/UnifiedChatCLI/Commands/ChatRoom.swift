import ChatCache
import ChatClient
import Foundation
import UnifiedChat

/// One user at a terminal: in one channel, told of the others.
actor ChatRoom {
  private let chat: Chat
  private let screen: ChatScreen
  private let user: UserID
  private var channel: Channel?
  /// The last list that was shown, for `/open N`.
  private var listed: [Channel] = []
  private var newest: MessagePosition?
  private var oldest: Cursor?
  private var typing: Set<UserID> = []
  private var lastRead: [UserID: MessagePosition] = [:]
  private var isLost = false
  private var events: Task<Void, Never>?
  /// Lines of this run that were not done, and messages that were refused for good.
  private(set) var failures = 0

  init(chat: Chat, screen: ChatScreen, user: UserID) {
    self.chat = chat
    self.screen = screen
    self.user = user
  }

  func listen() {
    let stream = chat.events()
    events = Task { [weak self] in
      for await event in stream {
        await self?.show(event)
        // Nothing comes after it.
        if case .connectionChanged(.disconnected) = event.kind { return }
      }
    }
  }

  func enter(_ channel: Channel, history limit: Int) async throws {
    self.channel = channel
    typing = []
    newest = nil
    oldest = nil
    screen.pass("")
    if screen.isInteractive { screen.title("— \(Self.name(channel)) —") }
    guard limit > 0 else { return }
    let page = try await chat.history(of: channel.id, .newest(limit))
    oldest = page.older
    for message in page.messages { screen.message("history", message) }
    newest = page.messages.last?.position
    for message in try await chat.waitingMessages(in: channel.id) { screen.message("waiting", message, mark: "not sent yet") }
    await markRead()
  }

  /// - Returns: false when the user leaves.
  func take(_ line: String) async throws -> Bool {
    let input = ChatInput(line)
    do {
      switch input {
      case .quit: return false
      case .nothing: break
      case .say(let text):
        // It comes again with its time, as a message.
        screen.eraseTyped(line)
        try await say(MessageDraft.text(text))
      default: try await command(input)
      }
    } catch let error as ChatError {
      // A full disk: what is typed would be lost.
      if case .storage = error.kind { throw error }
      failures += 1
      screen.problem("\(error)")
    }
    return true
  }

  /// Waits until everything is sent or refused, then leaves.
  func finish() async {
    if !screen.isInteractive {
      // By the clock, not by events: another process on the same file may send what waits, and tells nobody here.
      while await unsent() > 0, await !isRefused() { try? await Task.sleep(for: .milliseconds(50)) }
    }
    await chat.disconnect()
    await events?.value
    screen.pass("")
    let left = await unsent()
    if left > 0 { screen.hint("not sent yet: \(left); kept, and sent when you come back") }
  }

  private func isRefused() async -> Bool { if case .refused = await chat.state { true } else { false } }

  private func unsent() async -> Int { (try? await chat.unsentCount()) ?? 0 }

  // MARK: Commands

  private func command(_ input: ChatInput) async throws {
    switch input {
    case .help: screen.text(ChatInput.guide)
    case .channels: try await showChannels()
    case .open(let word): try await enter(try await find(word), history: 20)
    case .with(let user): try await enter(try await chat.createChannel(.direct(with: UserID(user))), history: 20)
    case .older: try await showOlder()
    case .search(let words): try await search(words)
    case .file(let path): try await sendFile(path)
    case .edit(let text):
      screen.message("updated", try await changeLastOwn { [chat] in try await chat.edit($0, to: .text(text)) })
    case .recall:
      _ = try await changeLastOwn { [chat] in try await chat.recall($0) }
      screen.note("taken back")
    case .resend: try await eachWaiting { chat, id in _ = try await chat.resend(id) }
    case .cancel: try await eachWaiting { chat, id in _ = try await chat.cancel(id) }
    case .read: if let channel { try await chat.markRead(channel.id, upTo: nil) }
    case .typing: if let channel { try await chat.setTyping(true, in: channel.id) }
    case .members: try await showMembers()
    case .unknown(let word): screen.problem("\(word): no such command, or a word is missing; /help shows all")
    case .say, .nothing, .quit: break
    }
  }

  private func say(_ draft: MessageDraft) async throws {
    guard let channel else { return }
    // Told by its event, once it is stored.
    try await chat.enqueue(draft, to: channel.id)
  }

  private func sendFile(_ path: String) async throws {
    guard let channel else { return }
    let full = (path as NSString).expandingTildeInPath
    guard let size = (try? FileManager.default.attributesOfItem(atPath: full))?[.size] as? NSNumber else {
      throw ChatError(.invalidArgument(field: "path"), operation: .send, detail: "\(path) cannot be read")
    }
    let name = (full as NSString).lastPathComponent
    let attachment = Attachment(name: name, size: size.int64Value, source: .path(full))
    let isImage = ["png", "jpg", "jpeg", "gif", "webp"].contains((name as NSString).pathExtension.lowercased())
    let screen = screen
    try await chat.enqueue(MessageDraft(isImage ? .image(attachment) : .file(attachment)), to: channel.id) { sent, total in
      if screen.json {
        screen.line(["event": "progress", "name": .string(name), "sent": .int(sent), "total": .int(total)])
      }
      screen.pass(sent < total ? "sending \(name): \(total > 0 ? sent * 100 / total : 0) %" : "")
    }
  }

  private func showChannels() async throws {
    listed = try await chat.cachedChannels()
    for (number, channel) in listed.enumerated() {
      let unread = channel.unread.number ?? 0
      let last = channel.lastMessage.map { MessageText.words($0.content) } ?? ""
      screen.text(
        "\(String(repeating: " ", count: number < 9 ? 1 : 0))\(number + 1)  \(channel.isPinned ? "* " : "")"
          + MessageText.safe(Self.name(channel)) + (unread > 0 ? " (\(unread) new)" : "") + "  \(last.prefix(60))")
      if screen.json {
        screen.line(["event": "channel", "channel": .string(channel.id.rawValue), "unread": .int(Int64(unread))])
      }
    }
    if listed.isEmpty { screen.note("no channels yet") }
  }

  private func find(_ word: String) async throws -> Channel {
    if let number = Int(word), number >= 1, number <= listed.count { return listed[number - 1] }
    return try await chat.channel(ChannelID(word))
  }

  private func showOlder() async throws {
    guard let channel, let cursor = oldest else { return screen.note("this is the beginning") }
    let page = try await chat.history(
      of: channel.id, HistoryQuery(anchor: .cursor(cursor), direction: .older, limit: 20))
    oldest = page.older
    screen.note("— older —")
    for message in page.messages { screen.message("history", message) }
    screen.note("— now —")
  }

  private func search(_ words: String) async throws {
    let query = CacheSearch(words, limit: 20)
    let found = try await chat.searchCache(query)
    for message in found.items.reversed() {
      let place = try await chat.cachedChannels().first { $0.id == message.channel }.map(Self.name)
      let text = message.content.searchableText ?? ""
      screen.hit(message, place: place ?? message.channel.rawValue, ranges: query.highlights(in: text))
    }
    screen.note(
      found.items.isEmpty ? "nothing found" : "\(found.items.count)\(found.next == nil ? "" : " newest") found")
  }

  private func showMembers() async throws {
    guard let channel else { return }
    for member in try await chat.members(of: channel.id, limit: 100, page: nil).items {
      let name = member.user.name ?? member.user.id.rawValue
      screen.text("  \(MessageText.safe(name))  \(member.role)\(member.user.id == user ? "" : reach(of: member))")
    }
  }

  /// Up to where somebody has read, as far as that is told.
  private func reach(of member: Member) -> String {
    guard let read = lastRead[member.user.id] ?? member.readPosition, let newest else { return "" }
    return read >= newest ? "  has read everything" : "  has not read everything"
  }

  private func changeLastOwn(_ change: @Sendable (Message) async throws -> Message) async throws -> Message {
    let start = ContinuousClock.now
    while true {
      let message = try await lastOwn()
      do { return try await change(message) } catch let error as ChatError {
        // One whose fate stays unknown is for /resend and /cancel.
        guard error.kind == .invalidArgument(field: "state"), message.id == nil, message.state == .pending,
          await chat.state == .connected, start.duration(to: .now) < .seconds(30)
        else { throw error }
        // Typed before the answer to the message was here; nobody should have to type it again. By the clock, because
        // another process on the same file may be the one that sends it.
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }

  private func lastOwn() async throws -> Message {
    guard let channel else { throw ChatError(.notFound, operation: .edit) }
    if let waiting = try await chat.waitingMessages(in: channel.id).last { return waiting }
    let page = try await chat.history(of: channel.id, .newest(50))
    guard let own = page.messages.last(where: { $0.sender == user && !$0.isRecalled }) else {
      throw ChatError(.notFound, operation: .edit, detail: "none of your messages is among the last 50")
    }
    return own
  }

  private func eachWaiting(_ body: (Chat, LocalID) async throws -> Void) async throws {
    guard let channel else { return }
    let waiting = try await chat.waitingMessages(in: channel.id)
    for message in waiting { if let id = message.localID { try await body(chat, id) } }
    if waiting.isEmpty { screen.note("everything is sent") }
  }

  // MARK: Events

  private func show(_ event: ChatEvent) async {
    switch event.kind {
    case .connectionChanged(let state): showConnection(state)
    case .messageReceived(let message): await received(message)
    case .messagePending(let message):
      if screen.json { screen.message("pending", message) } else { screen.pass("sending…") }
    case .messageSent(let message):
      screen.pass("")
      reach(message)
      screen.message("sent", message, mark: "✓")
    case .messageFailed(let message):
      screen.pass("")
      failures += 1
      screen.message("failed", message, mark: "✗")
      if case .failed(let error) = message.state { screen.problem("not sent: \(error); /resend or /cancel") }
    case .messageUpdated(let message) where isHere(message) && message.editedAt != nil && message.sender != user:
      screen.message("updated", message)
    case .messageRecalled(let message) where isHere(message): screen.message("recalled", message)
    case .messagesBackfilled(let id, _) where id == channel?.id: await showMissed()
    case .typingStarted(let id, let who) where id == channel?.id: showTyping(who, true)
    case .typingEnded(let id, let who) where id == channel?.id: showTyping(who, false)
    case .readChanged(let id, let who, let position) where id == channel?.id && who != user: showRead(who, position)
    default: break
    }
  }

  private func isHere(_ message: Message) -> Bool { message.channel == channel?.id }

  private func reach(_ message: Message) {
    guard isHere(message), let position = message.position else { return }
    newest = max(newest ?? position, position)
  }

  private func received(_ message: Message) async {
    guard isHere(message) else {
      let known = try? await chat.cachedChannels().first { $0.id == message.channel }
      return screen.elsewhere(known.map(Self.name) ?? message.channel.rawValue, message)
    }
    reach(message)
    screen.message("received", message)
    await markRead()
  }

  /// What came while the link was lost.
  private func showMissed() async {
    guard let channel, let from = newest else { return }
    guard let page = try? await chat.history(of: channel.id, .after(from, limit: 200)) else { return }
    for message in page.messages where message.sender != user { screen.message("missed", message) }
    newest = page.messages.last { $0.position != nil }?.position ?? from
    await markRead()
  }

  private func showTyping(_ who: UserID, _ isTyping: Bool) {
    if isTyping { typing.insert(who) } else { typing.remove(who) }
    if screen.json {
      screen.line(["event": "typing", "user": .string(who.rawValue), "isTyping": .bool(isTyping)])
    }
    let names = typing.map { MessageText.safe($0.rawValue) }.sorted().joined(separator: ", ")
    screen.pass(names.isEmpty ? "" : "\(names) \(typing.count == 1 ? "is" : "are") typing…")
  }

  private func showRead(_ who: UserID, _ position: MessagePosition) {
    if let known = lastRead[who], known >= position { return }
    lastRead[who] = position
    if screen.json {
      screen.line(["event": "read", "user": .string(who.rawValue), "upTo": .string(position.description)])
    }
    // Only news when what they have read is all that is here.
    guard newest.map({ position >= $0 }) ?? false else { return }
    screen.hint("✓✓ read by \(MessageText.safe(who.rawValue))")
  }

  private func showConnection(_ state: ConnectionState) {
    switch state {
    case .reconnecting(let attempt) where isLost && screen.isInteractive: screen.pass("trying again (\(attempt))…")
    case .reconnecting(let attempt):
      isLost = true
      screen.problem("link lost, trying again (\(attempt)); what you write is kept")
    case .refused(let reason):
      failures += 1
      screen.problem("the service ended the session: \(reason)")
    case .connected:
      screen.pass("")
      if screen.json { screen.note("connected") } else if isLost { screen.hint("connected again") }
      isLost = false
    case .connecting, .suspended, .disconnected: break
    }
  }

  /// What a person sees counts as read; what a pipe takes does not.
  private func markRead() async {
    guard screen.isInteractive, let channel else { return }
    do throws(ChatError) { try await chat.markRead(channel.id, upTo: nil) } catch {
      // Not every vendor has marks in every channel; nothing is lost.
      return
    }
  }

  private static func name(_ channel: Channel) -> String {
    channel.name ?? channel.peer?.rawValue ?? channel.id.rawValue
  }
}
