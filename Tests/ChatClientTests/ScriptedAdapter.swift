import UnifiedChat

/// A service of one user that does what a test tells it, step by step, and writes down what it was asked.
actor ScriptedAdapter: ChatAdapter {
  static let capabilities = CapabilitySet(
    Dictionary(uniqueKeysWithValues: Capability.allCases.map { ($0, CapabilityLevel.native) }))

  /// What becomes of the next send.
  enum SendStep: Sendable {
    case commit
    /// Stored, but the answer is lost.
    case loseAnswer
    /// Lost before it was stored.
    case loseRequest
    case refuse(ChatError)
    /// Stored; the push of it comes before the answer.
    case echoFirst
    /// Stored; the push of it comes, the answer does not.
    case echoOnly
    /// Waits for `release()`.
    case hold
  }

  enum List: Sendable, CaseIterable { case channels, history, changes }

  nonisolated let vendor: VendorName = "scripted"
  nonisolated let hub = EventHub()
  nonisolated func events() -> ChatEventStream { hub.events() }

  private(set) var capabilities: CapabilitySet
  private(set) var state = ConnectionState.disconnected(.initial)
  private(set) var currentUser: User?
  /// `send …`, `history …`, in order.
  private(set) var journal: [String] = []
  /// What each connect was told to go on from.
  private(set) var continued: [Cursor] = []
  private(set) var messages: [ChannelID: [Message]] = [:]
  private var channels: [ChannelID: Channel] = [:]
  private var gone: Set<ChannelID> = []
  private var steps: [ChannelID: [SendStep]] = [:]
  private var historyErrors: [ChatError?] = []
  private var historyHeld = false
  private var channelsHeld = false
  private var descriptionsHeld = false
  private var changesHeld = false
  private var editBeforeLog: Message?
  private var logRefusal: ChatError?
  private var holders: [CheckedContinuation<Void, Never>] = []
  private var pageLimit = 100
  /// The lists in which each page leads to the other one of two, without end.
  private var circles: Set<List> = []
  /// Pages of such lists that were asked for.
  private var turns = 0
  private var mostTurns: Int { 200 }
  private var isWalkCircular = false
  /// Whether somebody would have asked for ever.
  var isAskedForEver: Bool { turns >= mostTurns }
  private var number: Int64 = 0
  private(set) var changeTokens = 0
  private var changed: [ChannelID: [Message]] = [:]
  private var memberships: [ChannelID: [Member]] = [:]
  private var uploadsHeld = false
  private var uploadSteps: [[Int64]] = []
  private var failingUploads = 0
  /// Names and bytes of all uploads that were begun.
  private(set) var uploaded: [String] = []
  private(set) var uploadedBytes: [[UInt8]] = []
  private var membersRefusal: ChatError?
  private var channelRefusal: ChatError?
  private var connectErrors: [ChatError?] = []
  private var connectsHeld = false
  private var disconnectsHeld = false
  private var uploadsAreStubborn = false
  private var uploadsHaveURL = true

  /// - Parameter hasLog: whether there is a log of edits. With one, a client that loses its link before it has a token
  ///   reads again what it has, which few tests are about.
  init(without absent: [Capability] = [], emulated: [Capability] = [], hasLog: Bool = false) {
    var levels = Dictionary(uniqueKeysWithValues: Capability.allCases.map { ($0, CapabilityLevel.native) })
    for capability in absent { levels[capability] = .absent }
    if !hasLog { levels[.historyChangelog] = .absent }
    for capability in emulated { levels[capability] = .emulated("by the client") }
    capabilities = CapabilitySet(levels)
  }

  // MARK: What a test does

  func script(_ steps: [SendStep], in channel: ChannelID = "c") { self.steps[channel] = steps }
  /// So many requests succeed, then one fails.
  func failHistoryAfter(_ count: Int, _ error: ChatError) {
    historyErrors = Array(repeating: nil, count: count) + [error]
  }
  func limitPages(to limit: Int) { pageLimit = limit }
  func leadInCircles(_ lists: Set<List>) { (circles, turns) = (lists, 0) }

  /// Whether the list is a circle.
  /// - Throws: when whoever asks would ask for ever: this way the test comes to its end, and fails.
  private func leadsInCircles(_ list: List, _ operation: ChatError.Operation) throws(ChatError) -> Bool {
    guard circles.contains(list) else { return false }
    turns += 1
    guard turns < mostTurns else { throw ChatError(.network(.closed), operation: operation) }
    return true
  }
  func setTyping(_ isTyping: Bool, in channel: ChannelID) async throws(ChatError) {
    journal.append("typing \(isTyping) \(channel)")
  }

  func clearJournal() { journal = [] }
  func holdHistory(_ isHeld: Bool) {
    historyHeld = isHeld
    if !isHeld { release() }
  }

  func holdChanges(_ isHeld: Bool) {
    changesHeld = isHeld
    if !isHeld { release() }
  }

  /// Edits a message as soon as a log that begins anew is asked for, before it is answered.
  func editBeforeNextLog(_ message: Message) { editBeforeLog = message }

  func refuseNextLog(_ error: ChatError) { logRefusal = error }
  var willRefuseLog: Bool { logRefusal != nil }

  func holdChannels(_ isHeld: Bool) {
    channelsHeld = isHeld
    if !isHeld { release() }
  }

  /// What is asked of a single channel waits.
  func holdDescriptions(_ isHeld: Bool) {
    descriptionsHeld = isHeld
    if !isHeld { release() }
  }

  func setMembers(_ members: [Member], of channel: ChannelID = "c") { memberships[channel] = members }
  func refuseMembers(_ error: ChatError?) { membersRefusal = error }
  func refuseChannel(_ error: ChatError?) { channelRefusal = error }

  func holdUploads(_ isHeld: Bool) {
    uploadsHeld = isHeld
    if !isHeld { release() }
  }

  /// Uploads that do not notice that nobody waits for them any more.
  func makeUploadsStubborn() { uploadsAreStubborn = true }
  func answerUploadsWithoutURL() { uploadsHaveURL = false }
  /// What becomes of the next connects, one after the other.
  func scriptConnects(_ errors: [ChatError?]) { connectErrors = errors }

  func holdConnects(_ isHeld: Bool) {
    connectsHeld = isHeld
    if !isHeld { release() }
  }

  func holdDisconnects(_ isHeld: Bool) {
    disconnectsHeld = isHeld
    if !isHeld { release() }
  }

  /// What each upload tells of itself, of 100; the first ones fail after it.
  func scriptUploads(_ steps: [[Int64]], failing: Int) { (uploadSteps, failingUploads) = (steps, failing) }

  /// Whether a call waits to be let go.
  var isHolding: Bool { !holders.isEmpty }

  func addChannel(_ id: ChannelID, kind: ChannelKind = .group) {
    gone.remove(id)
    channels[id] = Channel(id: id, kind: kind, name: id.rawValue, myRole: .member, myState: .joined)
  }

  func removeChannel(_ id: ChannelID) {
    channels[id] = nil
    gone.insert(id)
  }

  private func permitted(_ id: ChannelID, _ operation: ChatError.Operation) throws(ChatError) {
    try live(operation)
    if gone.contains(id) { throw ChatError(.permission(), operation: operation) }
  }

  func release() {
    let waiting = holders
    holders = []
    for holder in waiting { holder.resume() }
  }

  private func hold() async {
    if Task.isCancelled { return }
    await withTaskCancellationHandler {
      await withCheckedContinuation { holders.append($0) }
    } onCancel: {
      Task { await self.release() }
    }
  }

  /// Stores a message of somebody else, and pushes it if asked.
  @discardableResult
  func write(_ text: String, by sender: UserID = "bob", in channel: ChannelID = "c", push: Bool = false) -> Message {
    number += 1
    let message = Message(
      channel: channel, id: MessageID("m\(number)"), sender: sender,
      position: MessagePosition(sequence: Int64(messages[channel]?.count ?? 0) + 1),
      createdAt: Timestamp(milliseconds: 1_767_225_600_000 + number), content: .text(text))
    messages[channel, default: []].append(message)
    if push { hub.publish(ChatEvent(.messageReceived(message))) }
    return message
  }

  func replace(_ message: Message) {
    guard let place = messages[message.channel]?.firstIndex(where: { $0.id == message.id }) else { return }
    messages[message.channel]?[place] = message
    changed[message.channel, default: []].append(message)
  }

  func remove(_ id: MessageID, in channel: ChannelID = "c") { messages[channel]?.removeAll { $0.id == id } }

  func publish(_ kind: ChatEvent.Kind, _ source: ChatEvent.Source = .live) {
    hub.publish(ChatEvent(kind, source: source))
  }

  func cutLink() { move(to: .reconnecting(attempt: 1)) }

  func restoreLink() {
    move(to: .connected)
    hub.publish(ChatEvent(.missedEvents(in: nil), source: .local))
  }

  private func move(to next: ConnectionState) {
    state = next
    hub.publish(ChatEvent(.connectionChanged(next), source: .local))
  }

  // MARK: The faces

  func continueChanges(from cursor: Cursor) { continued.append(cursor) }

  func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User {
    move(to: .connecting)
    let error = connectErrors.isEmpty ? nil : connectErrors.removeFirst()
    if connectsHeld { await hold() }
    if let error {
      move(to: .disconnected(.gaveUp))
      throw error
    }
    currentUser = User(id: user)
    move(to: .connected)
    return User(id: user)
  }

  func disconnect() async {
    if disconnectsHeld { await hold() }
    currentUser = nil
    release()
    move(to: .disconnected(.requested))
  }

  func suspend() async { move(to: .suspended) }
  func resume() async {
    move(to: .reconnecting(attempt: 1))
    restoreLink()
  }

  private func live(_ operation: ChatError.Operation) throws(ChatError) {
    guard state == .connected else { throw ChatError(.network(.offline), operation: operation) }
  }

  func users(_ ids: [UserID]) async throws(ChatError) -> [User] { ids.map { User(id: $0) } }
  func updateProfile(name: String?, avatarURL: String?, customData: JSONText?) async throws(ChatError) -> User {
    User(id: currentUser?.id ?? "nobody", name: name)
  }

  func createChannel(_ draft: ChannelDraft) async throws(ChatError) -> Channel {
    addChannel("c")
    return try await channel("c")
  }

  func channel(_ id: ChannelID) async throws(ChatError) -> Channel {
    journal.append("channel \(id)")
    if descriptionsHeld { await hold() }
    if let channelRefusal { throw channelRefusal }
    guard var channel = channels[id] else { throw ChatError(.notFound, operation: .fetchChannel) }
    channel.lastMessage = messages[id]?.last
    return channel
  }

  func channels(_ query: ChannelQuery, page: PageToken?) async throws(ChatError) -> Page<Channel> {
    try live(.listChannels)
    if channelsHeld { await hold() }
    journal.append("channels")
    let isCircle = try leadsInCircles(.channels, .listChannels)
    return Page(
      items: channels.values.sorted { $0.id < $1.id }.map { channel in
        var channel = channel
        channel.lastMessage = messages[channel.id]?.last
        return channel
      }, next: isCircle ? PageToken(page == "1" ? "2" : "1") : nil)
  }

  func updateChannel(_ id: ChannelID, _ changes: ChannelChanges) async throws(ChatError) -> Channel {
    channels[id]?.name = changes.name
    return try await channel(id)
  }

  func join(_ id: ChannelID) async throws(ChatError) -> Channel { try await channel(id) }
  func leave(_ id: ChannelID) async throws(ChatError) { channels[id] = nil }
  func invite(_ users: [UserID], to id: ChannelID) async throws(ChatError) {}

  func members(of id: ChannelID, limit: Int, page: PageToken?) async throws(ChatError) -> Page<Member> {
    try permitted(id, .listMembers)
    journal.append("members \(id)")
    if let membersRefusal { throw membersRefusal }
    let all = memberships[id] ?? []
    let start = page.flatMap { Int($0.rawValue) } ?? 0
    let items = Array(all.dropFirst(start).prefix(limit))
    return Page(items: items, next: start + items.count < all.count ? PageToken("\(start + items.count)") : nil)
  }

  func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    try live(.markRead)
    journal.append("markRead \(position.map { "\($0.major)" } ?? "now")")
  }

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    let words = message.draft.content.searchableText ?? message.draft.content.kindName
    try permitted(message.channel, .send)
    journal.append("send \(words)")
    let step = steps[message.channel]?.isEmpty == false ? steps[message.channel]?.removeFirst() : nil
    switch step ?? .commit {
    case .commit: return commit(message)
    case .loseAnswer:
      _ = commit(message)
      throw ChatError(.timeout, operation: .send)
    case .loseRequest: throw ChatError(.timeout, operation: .send)
    case .refuse(let error): throw error
    case .echoFirst:
      let committed = commit(message)
      hub.publish(ChatEvent(.messageReceived(committed), source: .echo))
      hub.publish(ChatEvent(.messageReceived(committed), source: .echo))
      await hold()
      return committed
    case .echoOnly:
      hub.publish(ChatEvent(.messageReceived(commit(message)), source: .echo))
      throw ChatError(.timeout, operation: .send)
    case .hold:
      await hold()
      try permitted(message.channel, .send)
      return commit(message)
    }
  }

  private func commit(_ outgoing: OutgoingMessage) -> Message {
    if capabilities[.messageIdempotentSend] == .native,
      let known = messages[outgoing.channel]?.first(where: { $0.clientMessageID == outgoing.clientMessageID })
    {
      return known
    }
    number += 1
    var message = Message(
      channel: outgoing.channel, id: MessageID("m\(number)"), clientMessageID: outgoing.clientMessageID,
      sender: currentUser?.id,
      position: MessagePosition(sequence: Int64(messages[outgoing.channel]?.count ?? 0) + 1),
      createdAt: Timestamp(milliseconds: 1_767_225_600_000 + number), content: outgoing.draft.content)
    message.threadParent = outgoing.draft.threadParent
    message.customData = outgoing.draft.customData
    messages[outgoing.channel, default: []].append(message)
    return message
  }

  func upload(
    _ attachment: Attachment, for channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)?
  ) async throws(ChatError) -> Attachment {
    try live(.upload)
    journal.append("upload \(attachment.name ?? "")")
    uploaded.append(attachment.name ?? "")
    if case .bytes(let bytes) = attachment.source { uploadedBytes.append(bytes) }
    if uploadsHeld {
      await hold()
      if !uploadsAreStubborn {
        guard !Task.isCancelled else { throw ChatError.cancelled(.upload) }
        try live(.upload)
      }
    }
    if !uploadSteps.isEmpty {
      for sent in uploadSteps.removeFirst() { progress?(sent, 100) }
      if failingUploads > 0 {
        failingUploads -= 1
        throw ChatError(.network(.closed), operation: .upload)
      }
    }
    var done = attachment
    done.source = nil
    if uploadsHaveURL { done.url = "https://files/\(attachment.name ?? "")" }
    return done
  }

  func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    try permitted(channel, .history)
    if historyHeld { await hold() }
    let anchor: MessagePosition
    switch query.anchor {
    case .newest: anchor = MessagePosition(sequence: .max)
    case .oldest: anchor = MessagePosition(sequence: 0)
    case .position(let position): anchor = position
    case .cursor(let cursor): anchor = MessagePosition(cursor.rawValue) ?? MessagePosition(sequence: 0)
    }
    let name = query.anchor == .newest ? "newest" : "\(anchor.major)"
    journal.append("history \(query.direction) \(name) \(query.limit)")
    if !historyErrors.isEmpty, let error = historyErrors.removeFirst() { throw error }
    // A walk that began in a circle stays in it: a server that answers right from its middle on would be a worse liar.
    if circles.contains(.history) { isWalkCircular = true } else if case .cursor = query.anchor {} else { isWalkCircular = false }
    if isWalkCircular {
      turns += 1
      guard turns < mostTurns else { throw ChatError(.network(.closed), operation: .history) }
      let next = Cursor(MessagePosition(sequence: anchor.major == 1 ? 2 : 1).description)
      return MessagePage(messages: [], older: next, newer: next)
    }
    let all = messages[channel] ?? []
    func position(_ message: Message) -> MessagePosition { message.position ?? anchor }
    let wanted =
      query.direction == .older
      ? all.filter { position($0) < anchor || query.isInclusive && position($0) == anchor }
      : all.filter { position($0) > anchor || query.isInclusive && position($0) == anchor }
    let limit = min(query.limit, pageLimit)
    let page = query.direction == .older ? Array(wanted.suffix(limit)) : Array(wanted.prefix(limit))
    let first = page.first.map(position) ?? anchor
    let last = page.last.map(position) ?? anchor
    return MessagePage(
      messages: page,
      older: all.contains { position($0) < first } ? Cursor(first.description) : nil,
      newer: all.contains { position($0) > last } ? Cursor(last.description) : nil)
  }

  func message(_ id: MessageID, in channel: ChannelID) async throws(ChatError) -> Message {
    try permitted(channel, .fetchMessage)
    guard let found = messages[channel]?.first(where: { $0.id == id }) else {
      throw ChatError(.notFound, operation: .fetchMessage)
    }
    return found
  }

  func changes(in channel: ChannelID, since: Cursor?) async throws(ChatError) -> ChangePage {
    if changesHeld { await hold() }
    if since == nil, let error = logRefusal {
      logRefusal = nil
      throw error
    }
    if since == nil, let message = editBeforeLog {
      editBeforeLog = nil
      replace(message)
    }
    let all = changed[channel] ?? []
    changeTokens += 1
    journal.append("changes \(channel) \(since?.rawValue ?? "anew")")
    if try leadsInCircles(.changes, .changelog) { return ChangePage(updated: [], removed: [], next: since == "1" ? "2" : "1", hasMore: true) }
    guard let since else { return ChangePage(updated: [], removed: [], next: Cursor("\(all.count)"), hasMore: false) }
    guard let start = Int(since.rawValue) else {
      throw ChatError(.invalidArgument(field: "since"), operation: .changelog)
    }
    return ChangePage(updated: Array(all.dropFirst(start)), removed: [], next: Cursor("\(all.count)"), hasMore: false)
  }

  func edit(_ original: Message, to draft: MessageDraft) async throws(ChatError) -> Message {
    var edited = original
    edited.content = draft.content
    edited.editedAt = Timestamp(milliseconds: 1_767_225_700_000)
    replace(edited)
    return edited
  }

  func recall(_ message: Message) async throws(ChatError) -> Message {
    var gone = message
    gone.content = .recalled(by: currentUser?.id, at: nil)
    replace(gone)
    return gone
  }

  func deleteForMe(_ messages: [Message]) async throws(ChatError) { journal.append("deleteForMe") }

  func clearHistory(of channel: ChannelID) async throws(ChatError) { messages[channel] = [] }
}
