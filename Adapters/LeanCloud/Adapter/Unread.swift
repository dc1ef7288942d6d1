import ChatJSON
import LeanCloudWire
import UnifiedChat

/// Unread numbers as the vendor's clients know them: what the server told last, and what has come since.
struct LeanCloudUnread: Sendable {
  struct Arrival: Sendable {
    var id: MessageID
    var timestamp: Int64
    var isMention: Bool
  }

  /// One channel's.
  struct Count: Sendable {
    /// As the server told it, with the newest message that it counted.
    var told = 0
    var toldUpTo: Int64 = 0
    var toldMention = false
    var arrivals: [Arrival] = []

    private static let keptArrivals = 512

    mutating func add(_ arrival: Arrival) {
      arrivals.append(arrival)
      guard arrivals.count > Self.keptArrivals else { return }
      // Nobody marks some channels for years: the oldest become a number.
      let old = arrivals.prefix(Self.keptArrivals / 2)
      told += old.count
      toldUpTo = max(toldUpTo, old.last?.timestamp ?? 0)
      toldMention = toldMention || old.contains(where: \.isMention)
      arrivals.removeFirst(old.count)
    }

    var number: Int { told + arrivals.count }
    var hasMention: Bool { toldMention || arrivals.contains(where: \.isMention) }
  }

  private(set) var counts: [ChannelID: Count] = [:]
  /// Up to where this device has marked as read. What a mark of another device made the server count may come behind
  /// it, and then counts what is read.
  private var marks: [ChannelID: Int64] = [:]
  /// A notice names so many channels at most: after a full one, nothing is known of those that it does not name.
  var isWhole = true

  func knows(_ channel: ChannelID) -> Bool { isWhole || counts[channel] != nil }

  /// The server tells only of channels in which something is unread: the others have nothing, if it told all.
  subscript(_ channel: ChannelID) -> Count { counts[channel] ?? Count() }

  var unreadChannels: [ChannelID] { counts.filter { $0.value.number > 0 }.keys.sorted() }

  /// The number of all that came before, in place of what was known.
  mutating func tell(_ number: Int, upTo time: Int64, hasMention: Bool, in channel: ChannelID) {
    let number = time <= marks[channel] ?? .min ? 0 : number
    // The number comes from the wire, and is added to.
    counts[channel] = Count(told: min(max(0, number), Int(Int32.max)), toldUpTo: time, toldMention: hasMention && number > 0)
  }

  mutating func arrived(_ arrival: Arrival, in channel: ChannelID) {
    guard knows(channel) else { return }
    counts[channel, default: Count()].add(arrival)
  }

  /// False when the number stays: the message was read, or it is among those of which only the number is known. One that
  /// is recalled after the server told that number stays in it until the next login.
  mutating func recalled(_ id: MessageID, in channel: ChannelID) -> Bool {
    guard let place = counts[channel]?.arrivals.firstIndex(where: { $0.id == id }) else { return false }
    counts[channel]?.arrivals.remove(at: place)
    return true
  }

  /// From now on what comes is counted, in a channel of which nothing was told.
  mutating func begin(in channel: ChannelID) { counts[channel] = counts[channel] ?? Count() }

  mutating func forget(_ channel: ChannelID) { counts[channel] = nil }

  /// What came up to `time` is read; `left` of what the server had told is not.
  mutating func read(upTo time: Int64, id: MessageID?, left: Int, in channel: ChannelID) {
    // Of those of its own millisecond some may be behind it.
    marks[channel] = max(marks[channel] ?? .min, left == 0 ? time : max(time, 1) - 1)
    guard var count = counts[channel] else { return }
    count.told = min(left, count.told)
    count.toldMention = count.toldMention && count.told > 0
    count.arrivals.removeAll { arrival in
      guard arrival.timestamp == time, let id else { return arrival.timestamp <= time }
      return arrival.id <= id
    }
    counts[channel] = count.number > 0 || !isWhole ? count : nil
  }
}

extension LeanCloudAdapter {
  /// With this user's own numbers.
  func count(_ channel: inout Channel) {
    // Rooms and services keep no read marks.
    guard channel.kind != .open, unread.knows(channel.id) else { return }
    channel.unread = .exact(unread[channel.id].number)
    channel.unreadMentions = .exact(unread[channel.id].hasMention ? 1 : 0)
  }

  func publishUnread(_ channel: ChannelID) async {
    guard unread.knows(channel) else { return }
    await publish(.unreadChanged(channel, .exact(unread[channel].number)))
  }

  func unreadTold(_ frame: LeanCloudFrame) async {
    if (frame["convs"]?.array?.count ?? 0) >= LeanCloudLimits.unreadNotice { unread.isWhole = false }
    var told: [ChannelID] = []
    for tuple in frame["convs"]?.array ?? [] {
      guard let name = tuple["cid"]?.string, let number = tuple["unread"]?.int.flatMap({ Int(exactly: $0) }) else {
        continue
      }
      let channel = ChannelID(name)
      unread.tell(
        number, upTo: tuple["timestamp"]?.int ?? .max, hasMention: tuple["mentioned"]?.bool ?? false, in: channel)
      told.append(channel)
    }
    // Behind all of them: who is asked meanwhile knows the whole notice.
    for channel in told { await publishUnread(channel) }
  }

  // MARK: Marking

  public func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    guard position == nil, !unread.knows(id) else { return try await mark(id, upTo: position) }
    // Once all is read the number is known, together with what comes meanwhile.
    unread.begin(in: id)
    do { try await mark(id, upTo: nil) } catch {
      unread.forget(id)
      throw error
    }
  }

  private func mark(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    var tuple: JSONObject = ["cid": .string(id.rawValue)]
    let time: Int64
    if let position {
      time = position.major
      tuple["timestamp"] = .int(time)
      if LeanCloudID.isMessageID(position.tail) { tuple["mid"] = .string(position.tail) }
    } else {
      let object = try await object(of: id, .markRead)
      guard let last = object["msg_timestamp"]?.int else { return }
      time = last
      tuple["timestamp"] = .int(time)
      tuple["mid"] = object["msg_mid"]
    }
    let mark = tuple["mid"]?.string.map { MessageID($0) }
    // Before the mark: what fails then has changed nothing.
    let left = position == nil ? 0 : try await stillUnread(in: id, after: time, mark)
    try await line.tell(frame("read", nil, ["convs": [.object(tuple)]]), .markRead)
    unread.read(upTo: time, id: mark, left: left, in: id)
    await publishUnread(id)
  }

  /// Of the messages that the server counted as unread, those after a place in their middle.
  private func stillUnread(
    in channel: ChannelID, after time: Int64, _ id: MessageID?
  ) async throws(ChatError) -> Int {
    let count = unread[channel]
    guard count.told > 0, time < count.toldUpTo else { return 0 }
    let anchor = LeanCloudAnchor(timestamp: time, id: id?.rawValue ?? "", isInclusive: false)
    let later = try await read(channel, anchor, older: false, count: count.told + LeanCloudLimits.historyPage)
    return later.count {
      UserID($0.from) != me && $0.timestamp <= count.toldUpTo && !LeanCloudMapping.message($0).isRecalled
    }
  }
}
