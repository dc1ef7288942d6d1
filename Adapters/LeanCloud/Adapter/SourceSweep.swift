import ChatInterchange
import ChatJSON
import LeanCloudWire
import UnifiedChat

/// The history of the whole app, searched for conversations that no row names: the service deletes the rows of idle
/// ones while their messages are still there, and pairs of the 2014 model never had any.
struct LeanCloudSweepCursor: Sendable, Hashable {
  var timestamp: Int64
  var id: String

  static let start = LeanCloudSweepCursor(timestamp: 0, id: "")
  private static let kind = "app"

  init(timestamp: Int64, id: String) {
    self.timestamp = timestamp
    self.id = id
  }

  /// nil: a cursor of the rows, which is an object id.
  init?(_ cursor: Cursor) {
    let parts = cursor.rawValue.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0] == Self.kind, let time = Int64(parts[1]) else { return nil }
    self.init(timestamp: time, id: String(parts[2]))
  }

  var cursor: Cursor { Cursor("\(Self.kind)/\(timestamp)/\(id)") }
}

extension LeanCloudSource {
  func sweep(after place: LeanCloudSweepCursor) async throws(ChatError) -> SourcePage<ChannelRecord> {
    var query = [("reversed", "true"), ("limit", String(Self.pageSize))]
    if !place.id.isEmpty {
      query += [("timestamp", String(place.timestamp)), ("msgid", place.id)]
    } else if let from = options.from {
      query.append(("timestamp", String(from.milliseconds &- 1)))
    }
    if let until = options.until { query.append(("till_timestamp", String(until.milliseconds))) }
    let items = try await metered("/1.2/rtm/messages", query: query)
    var page = SourcePage<ChannelRecord>(items: [], next: nil)
    if let last = items.last, let time = last["timestamp"]?.int, let id = last["msg-id"]?.string {
      page.next = LeanCloudSweepCursor(timestamp: time, id: id).cursor
    }
    let (found, unreadable) = try await unnamed(LeanCloudTraces(items))
    page.items = found.filter { options.includes($0.channel.id) }
    page.unreadable = unreadable.filter { $0.id.map { options.includes(ChannelID($0)) } ?? true }
    return page
  }

  /// Records for those of the histories that no row has named so far.
  private func unnamed(
    _ traces: LeanCloudTraces
  ) async throws(ChatError) -> (records: [ChannelRecord], unreadable: [UnreadableRecord]) {
    var records: [ChannelRecord] = []
    var unreadable: [UnreadableRecord] = []
    let unknown = traces.list.filter { !known.contains(ChannelID($0.id)) }
    let asked = unknown.filter { $0.isConversation != (model == .session) }
    var rows: [String: ChannelRecord] = [:]
    let name = model == .session ? "AVOSRealtimeGroups" : "_Conversation"
    // An address holds only so many ids.
    for start in stride(from: 0, to: asked.count, by: 100) {
      let ids = JSONValue.strings(asked[start..<min(start + 100, asked.count)].map(\.id))
      for row in try await optionalRows(name, after: nil, where: ["objectId": ["$in": ids]]).rows {
        switch LeanCloudRows.channel(row, rest.envelopes) {
        case .success(let record, let envelope):
          rows[record.channel.id.rawValue] = record
          if let envelope { unreadable.append(envelope) }
        case .failure(let problem): unreadable.append(problem)
        }
      }
    }
    for trace in unknown where known.insert(ChannelID(trace.id)) {
      if let row = rows[trace.id] {
        records.append(row)
      } else if model == .conversation || !trace.isConversation {
        records.append(trace.record)
      }
    }
    return (records, unreadable)
  }
}

/// What items of a history of the whole app say about the conversations that they belong to.
struct LeanCloudTraces {
  struct Trace {
    var id: String
    var isConversation: Bool
    var isRoom: Bool
    /// Who wrote, and to whom.
    var people: [String] = []

    /// A pair of the 2014 model is recognised by its id, which is the digest of the two peers.
    private var pair: (String, String)? {
      guard !isConversation, !isRoom else { return nil }
      for (index, one) in people.enumerated() {
        for other in people[index...] where LeanCloudID.pair(one, other) == id { return (one, other) }
      }
      return nil
    }

    var channel: Channel {
      if let (one, other) = pair {
        return Channel(
          id: LeanCloudPair.channel(UserID(one), UserID(other)), kind: .direct, isDistinct: true, memberCount: 2)
      }
      return Channel(id: ChannelID(id), kind: .group)
    }

    /// Whoever still knows the conversation's row, a device for one, knows more.
    var record: ChannelRecord {
      let row = SecondHand.mark(["objectId": .string(id)], at: 0, ["of": "history"])
      return ChannelRecord(channel: channel, raw: JSONText(unchecked: JSONValue.object(row).text()))
    }
  }

  private(set) var list: [Trace] = []
  private var places: [ChannelID: Int] = [:]

  init(_ items: [JSONValue]) { for item in items { add(item) } }

  mutating func add(_ item: JSONValue) {
    guard let id = item["conv-id"]?.string, !id.isEmpty else { return }
    let place = places[ChannelID(id)] ?? list.count
    if place == list.count {
      places[ChannelID(id)] = place
      list.append(
        Trace(id: id, isConversation: item["is-conv"]?.bool ?? true, isRoom: item["is-room"]?.bool ?? false))
    }
    for person in [item["from"]?.string, item["to"]?.string].compactMap(\.self) {
      // Two peers make a pair; a longer list of people proves nothing.
      if list[place].people.count < 8, !list[place].people.contains(where: { UserID($0) == UserID(person) }) {
        list[place].people.append(person)
      }
    }
  }
}
