import ChatClient
import Synchronization
import UnifiedChat

extension CaseContext {
  // MARK: Time

  /// Waits until `condition` holds, lets work go on and then time pass.
  /// - Throws: `CaseFailure` when it never does.
  func eventually(
    _ expected: String, within limit: Duration = .seconds(60), step: Duration = .milliseconds(250),
    _ condition: @Sendable () async throws -> Bool
  ) async throws {
    var passed = Duration.zero
    while true {
      for turn in 0..<40 {
        if try await condition() { return }
        await harness.settle()
        // Tasks run on other threads too: a virtual second must not pass before they had a real moment.
        if turn >= 10 { try await Task.sleep(for: .milliseconds(1)) }
      }
      guard passed < limit else { throw failure(expected, "not so after \(limit)") }
      // What does not come soon comes by a timer.
      let next = passed < .seconds(2) ? step : max(step, .seconds(1))
      await harness.pass(next)
      passed += next
    }
  }

  /// Lets everything go on that needs no time.
  func quiet(_ turns: Int = 30) async throws {
    for turn in 0..<turns {
      await harness.settle()
      // Work on other threads needs a real moment.
      if turn % 6 == 5 { try await Task.sleep(for: .milliseconds(1)) }
    }
  }

  /// Waits until nothing passes any more that needs no time.
  func idle() async throws {
    for _ in 0..<60 {
      let before = await mark()
      try await quiet()
      if await mark() == before { return }
    }
  }

  /// Lets time pass in steps, so that what wakes can act.
  func pass(_ duration: Duration, step: Duration = .seconds(1)) async throws {
    var passed = Duration.zero
    while passed < duration {
      let next = min(step, duration - passed)
      await harness.pass(next)
      await harness.settle()
      passed += next
    }
  }

  /// Runs `body`, letting time pass while it waits for a back-off or an answer.
  func whileTimePasses<Value: Sendable>(
    within limit: Duration = .seconds(60), step: Duration = .milliseconds(250),
    _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let outcome = Mutex<Result<Value, any Error>?>(nil)
    let task = Task {
      do {
        let value = try await body()
        outcome.withLock { $0 = .success(value) }
      } catch {
        outcome.withLock { $0 = .failure(error) }
      }
    }
    defer { task.cancel() }
    try await eventually("the call ends", within: limit, step: step) { outcome.withLock { $0 != nil } }
    guard let result = outcome.withLock({ $0 }) else { throw failure("the call ends", "it did not") }
    return try result.get()
  }

  // MARK: Faults

  private func control(_ hook: String) throws -> any FaultControl {
    guard let faults = harness.faults, faults.hooks.contains(hook) else { throw CaseSkip(reason: .noHook(hook)) }
    return faults
  }

  /// Adds a lie. Skips the case where the target cannot tell it.
  func inject(_ rule: FaultRule) async throws {
    for hook in rule.hooks { _ = try control(hook) }
    do { try await control(rule.hooks[0]).inject(rule) } catch let missing as NoHook {
      throw CaseSkip(reason: .noHook(missing.name))
    }
  }

  /// Acts on the service. Skips the case where the target cannot.
  func perform(_ action: ServiceAction) async throws {
    do { try await control(action.hook).perform(action) } catch let missing as NoHook {
      throw CaseSkip(reason: .noHook(missing.name))
    }
  }

  /// As `perform`; false where this vendor has no such thing.
  func canPerform(_ action: ServiceAction) async throws -> Bool {
    do {
      try await control(action.hook).perform(action)
      return true
    } catch is NoHook { return false }
  }

  /// Whether the target can do what is named.
  func offers(_ hook: String) -> Bool { harness.faults?.hooks.contains(hook) == true }

  /// Takes the rules away again; each must have fired.
  func removeRules() async throws {
    if let rule = await harness.faults?.removeRules().first { throw failure("every fault fires", "never: \(rule)") }
  }

  // MARK: The wire

  /// The number of the newest frame.
  func mark() async -> UInt64 { await harness.faults?.wire(since: 0).last?.index ?? 0 }

  /// Frames and requests of clients of one meaning; of one user where given.
  func requests(_ operation: String, by user: UserID? = nil, since mark: UInt64 = 0) async throws -> [WireEntry] {
    try await control("journal").wire(since: mark).filter {
      $0.isFromClient && $0.operation == operation && (user == nil || $0.user == nil || $0.user == user)
    }
  }

  /// Everything that clients sent.
  func requests(since mark: UInt64) async throws -> [WireEntry] {
    try await control("journal").wire(since: mark).filter(\.isFromClient)
  }

  func sockets(of user: TestUser) async throws -> Int { try await control("journal").sockets(of: user.id) }

  // MARK: Expectations

  func expect(_ holds: Bool, _ expected: String, observed: String = "not so") throws {
    step()
    guard holds else { throw failure(expected, observed) }
  }

  func expectEqual<Value: Equatable>(_ observed: Value, _ expected: Value, _ what: String) throws {
    step()
    guard observed == expected else {
      throw failure(
        "\(what) = \(String(describing: expected).prefix(400))", String(String(describing: observed).prefix(400)))
    }
  }

  /// The same bytes; Swift's own comparison folds normal forms.
  func expectBytes(_ observed: String?, _ expected: String, _ what: String) throws {
    try expectEqual(observed.map { Array($0.utf8) }, Array(expected.utf8), what)
  }

  /// The value, which must be there.
  func need<Value>(_ value: Value?, _ what: String) throws -> Value {
    step()
    guard let value else { throw failure(what, "none") }
    return value
  }

  /// Runs `body` and returns the `ChatError` that it must throw.
  @discardableResult
  func expectError(
    _ expected: String, _ body: () async throws -> Void, where matches: (ChatError.Kind) -> Bool
  ) async throws -> ChatError {
    step()
    do { try await body() } catch let error as ChatError {
      guard matches(error.kind) else { throw failure(expected, "\(error)") }
      return error
    }
    throw failure(expected, "no error")
  }

  /// As above, letting time pass.
  @discardableResult
  func expectErrorInTime(
    _ expected: String, within limit: Duration = .seconds(600), step: Duration = .seconds(1), _ body: @escaping @Sendable () async throws -> Void,
    where matches: (ChatError.Kind) -> Bool
  ) async throws -> ChatError {
    try await expectError(expected) { try await whileTimePasses(within: limit, step: step, body) } where: { matches($0) }
  }

  // MARK: Reading

  /// Every message of a channel, read from the service page by page.
  func wholeHistory(
    of channel: ChannelID, by chat: some ChatMessaging, page: Int, direction: HistoryQuery.Direction = .older
  ) async throws -> [Message] {
    var all: [Message] = []
    var query = HistoryQuery(anchor: direction == .older ? .newest : .oldest, direction: direction, limit: page)
    for _ in 0..<10_000 {
      let now = query
      let result = try await whileTimePasses { try await chat.history(of: channel, now) }
      let positions = result.messages.compactMap(\.position)
      try expect(
        zip(positions, positions.dropFirst()).allSatisfy { $0 < $1 }, "G2: positions that grow within a page")
      all = direction == .older ? result.messages + all : all + result.messages
      guard let next = direction == .older ? result.older : result.newer else { return all }
      query.anchor = .cursor(next)
    }
    throw failure("paging ends", "10,000 pages")
  }

  /// The newest messages as this device shows them.
  func newest(_ count: Int, of channel: ChannelID, by chat: Chat) async throws -> [Message] {
    try await whileTimePasses { try await chat.history(of: channel, .newest(count)) }.messages
  }

  /// Waits until a device shows exactly these contents, oldest first.
  func shows(_ chat: Chat, _ channel: ChannelID, _ contents: [MessageContent], _ who: String = "the device") async throws {
    let limit = max(1, contents.count + 5)
    for round in 0..<45 {
      for _ in 0..<(round == 0 ? 40 : 5) {
        // A page that the service holds back needs time to pass.
        if try await newest(limit, of: channel, by: chat).map(\.content) == contents { return }
        try await quiet(2)
      }
      await harness.pass(round < 8 ? .milliseconds(250) : .seconds(1))
    }
    try expectEqual(try await newest(limit, of: channel, by: chat).map(\.content), contents, who)
  }

  /// Everything in a channel as the service itself holds it, without its own notices.
  func serverMessages(_ channel: ChannelID) async throws -> [Message] {
    let source = try await harness.makeSource()
    var messages: [Message] = []
    var cursor: Cursor?
    repeat {
      let after = cursor
      let page = try await whileTimePasses { try await source.messages(in: channel, after: after) }
      messages += page.items.map(\.message)
      cursor = page.next
    } while cursor != nil
    return messages.filter { !$0.isNotice }
  }

  /// The members as the service itself holds them.
  func serverMembers(_ channel: ChannelID) async throws -> [Member] {
    let source = try await harness.makeSource()
    var members: [Member] = []
    var cursor: Cursor?
    repeat {
      let after = cursor
      let page = try await whileTimePasses { try await source.members(of: channel, after: after) }
      members += page.items.map(\.member)
      cursor = page.next
    } while cursor != nil
    return members.filter { $0.state == .joined }
  }

  /// Every channel of a device, page by page.
  func wholeList(of chat: Chat, page limit: Int, _ query: ChannelQuery = ChannelQuery()) async throws -> [Channel] {
    var all: [Channel] = []
    var token: PageToken?
    var query = query
    query.limit = limit
    for _ in 0..<1000 {
      let (now, page) = (query, token)
      let result = try await whileTimePasses { try await chat.channels(now, page: page) }
      all += result.items
      guard let next = result.next else { return all }
      token = next
    }
    throw failure("the list ends", "1,000 pages")
  }

  /// Every member that a device can list.
  func wholeMembers(of channel: ChannelID, by chat: Chat, page limit: Int = 50) async throws -> [Member] {
    var all: [Member] = []
    var token: PageToken?
    for _ in 0..<1000 {
      let page = token
      let result = try await whileTimePasses { try await chat.members(of: channel, limit: limit, page: page) }
      all += result.items
      guard let next = result.next else { return all }
      token = next
    }
    throw failure("the list ends", "1,000 pages")
  }

  /// The channel as the service describes it now.
  func channel(_ id: ChannelID, by chat: Chat) async throws -> Channel {
    try await whileTimePasses { try await chat.channel(id) }
  }

  /// The unread number of a channel on a device comes to this.
  func unreadBecomes(_ number: Int, of channel: ChannelID, on chat: Chat, _ what: String = "unread") async throws {
    do {
      try await eventually("\(what) = \(number)", within: .seconds(20)) {
        try await chat.cachedChannels(ChannelQuery(includesHidden: true, limit: .max)).first { $0.id == channel }?.unread
          == .exact(number)
      }
    } catch is CaseFailure {
      let now = try await chat.cachedChannels(ChannelQuery(includesHidden: true, limit: .max)).first { $0.id == channel }
      throw failure("\(what) = \(number)", "\(now?.unread as Any)")
    }
  }
}

extension CaseContext {
  /// An answer that carries a copy of what it answers.
  func reply(_ text: String, to quoted: Message) throws -> MessageDraft {
    var draft = MessageDraft(.text(text))
    draft.replyTo = Reply(
      id: try need(quoted.id, "an id"),
      quoted: QuotedMessage(
        id: quoted.id, sender: quoted.sender, senderName: quoted.senderName, createdAt: quoted.createdAt,
        content: quoted.content))
    return draft
  }
}

extension Message {
  /// A notice of the service, which is no message of anybody.
  var isNotice: Bool { if case .system = content { true } else { false } }
}

extension Channel {
  /// When something last happened here, for the order of lists.
  var activity: Int64 { (lastMessage?.createdAt ?? createdAt)?.milliseconds ?? 0 }
}
