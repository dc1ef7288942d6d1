import ChatJSON
import LeanCloudWire
import UnifiedChat

extension LeanCloudAdapter {
  /// Every page is asked for by the place where the one before ended, never by a number of rows to skip: a channel that
  /// moves up meanwhile would push another one out of sight.
  public func channels(_ query: ChannelQuery, page: PageToken?) async throws(ChatError) -> Page<Channel> {
    let user = try requireUser(.listChannels)
    var start: LeanCloudChannelPlace?
    if let page {
      guard let place = LeanCloudChannelPlace(page) else {
        throw ChatError(.invalidArgument(field: "page"), operation: .listChannels, detail: "no token of this list")
      }
      start = place
    }
    let limit = max(1, query.limit)
    var found: [(place: LeanCloudChannelPlace, channel: Channel)] = []
    for part in LeanCloudChannelPart.parts(query.order) {
      // One more than asked for shows whether there is more.
      found += try await read(part, query, user, after: start, count: limit + 1)
    }
    found.sort { $0.place < $1.place }
    let items = found.prefix(limit)
    return Page(
      items: items.map(\.channel), next: found.count > limit ? items.last?.place.token : nil)
  }

  /// The first `count` channels of one part of the list that fit the query.
  private func read(
    _ part: LeanCloudChannelPart, _ query: ChannelQuery, _ user: UserID, after start: LeanCloudChannelPlace?, count: Int
  ) async throws(ChatError) -> [(place: LeanCloudChannelPlace, channel: Channel)] {
    var found: [(place: LeanCloudChannelPlace, channel: Channel)] = []
    var start = start
    var walk = PageWalk()
    while found.count < count {
      try walk.advance(to: start?.token.rawValue ?? "", .listChannels)
      // What is filtered here needs more rows than channels.
      let limit =
        query.kinds == nil && query.nameContains == nil
        ? min(count - found.count, LeanCloudLimits.channelPage) : LeanCloudLimits.channelPage
      let answer = try await ask(
        "conv", "query",
        [
          "where": .object(condition(part, query, user, after: start)), "sort": .string(part.sort),
          "limit": .int(Int64(limit)), "flag": 2,
        ], .listChannels)
      let rows = (answer["results"]?.array ?? []).compactMap(\.object)
      for row in rows {
        guard let read = LeanCloudConversation.channel(row, me: user) else { continue }
        let place = LeanCloudChannelPlace(row, read.channel.id, query.order)
        start = place
        let channel = seen(read.channel, row, user)
        if Self.fits(channel, query) { found.append((place, channel)) }
      }
      if rows.count < limit { break }
    }
    return found.count > count ? Array(found.prefix(count)) : found
  }

  private func condition(
    _ part: LeanCloudChannelPart, _ query: ChannelQuery, _ user: UserID, after start: LeanCloudChannelPlace?
  ) -> JSONObject {
    var condition = part.condition
    let members = (query.members ?? []).sorted().map(\.rawValue).filter { UserID($0) != user }
    condition["m"] = members.isEmpty ? .string(user.rawValue) : ["$all": .strings([user.rawValue] + members)]
    if query.unreadOnly {
      let ids = unread.unreadChannels.map(\.rawValue)
      condition["objectId"] = ["$in": .strings(ids)]
    }
    if let start { condition["$or"] = .array(part.after(start)) }
    return condition
  }

  private static func fits(_ channel: Channel, _ query: ChannelQuery) -> Bool {
    if let kinds = query.kinds, !kinds.contains(channel.kind) { return false }
    if let text = query.nameContains, channel.name?.contains(text) != true { return false }
    return !query.unreadOnly || (channel.unread.number ?? 0) > 0
  }
}

/// A part of the list that the server sorts by one column. A channel without that column is in another part, since a
/// condition on a column never finds a row without it.
struct LeanCloudChannelPart {
  var column: String
  var isDescending: Bool
  var condition: JSONObject

  static func parts(_ order: ChannelQuery.Order) -> [LeanCloudChannelPart] {
    switch order {
    case .lastMessage:
      [
        LeanCloudChannelPart(column: "lm", isDescending: true, condition: ["lm": ["$exists": true]]),
        LeanCloudChannelPart(column: "createdAt", isDescending: true, condition: ["lm": ["$exists": false]]),
      ]
    case .created: [LeanCloudChannelPart(column: "createdAt", isDescending: true, condition: [:])]
    case .name:
      [
        LeanCloudChannelPart(column: "name", isDescending: false, condition: ["name": ["$exists": true]]),
        LeanCloudChannelPart(column: "", isDescending: false, condition: ["name": ["$exists": false]]),
      ]
    }
  }

  var sort: String { column.isEmpty ? "objectId" : (isDescending ? "-" : "") + column + ",objectId" }

  /// Two conditions, one of which holds for what comes after `place`.
  func after(_ place: LeanCloudChannelPlace) -> [JSONValue] {
    let later: JSONValue = ["objectId": ["$gt": .string(place.id.rawValue)]]
    // Rows without a name stand before all with one.
    guard !column.isEmpty else { return place.name.isEmpty ? [later] : [["objectId": ["$in": []]]] }
    let value: JSONValue =
      column == "name" ? .string(place.name) : ["__type": "Date", "iso": .string(LeanCloudID.iso(place.time))]
    var beyond = JSONObject()
    beyond[column] = .object(JSONObject([(isDescending ? "$lt" : "$gt", value)]))
    var level = later.object ?? JSONObject()
    level[column] = value
    return [.object(beyond), .object(level)]
  }
}

/// Where a channel stands in a list: newest first, then by id; or by name.
struct LeanCloudChannelPlace: Comparable, Sendable {
  var time: Int64
  var name: String
  var id: ChannelID

  init(_ row: JSONObject, _ id: ChannelID, _ order: ChannelQuery.Order) {
    self.id = id
    name = order == .name ? row["name"]?.string ?? "" : ""
    let created = LeanCloudConversation.date(row["createdAt"])?.milliseconds ?? 0
    switch order {
    case .lastMessage: time = LeanCloudConversation.date(row["lm"])?.milliseconds ?? created
    case .created: time = created
    case .name: time = 0
    }
  }

  init?(_ token: PageToken) {
    let parts = token.rawValue.split(separator: "|", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let time = Int64(parts[0]) else { return nil }
    self.time = time
    id = ChannelID(String(parts[1]))
    name = String(parts[2])
  }

  var token: PageToken { PageToken("\(time)|\(id.rawValue)|\(name)") }

  static func == (left: Self, right: Self) -> Bool {
    left.time == right.time && left.name.utf8.elementsEqual(right.name.utf8) && left.id == right.id
  }

  static func < (left: Self, right: Self) -> Bool {
    if left.time != right.time { return left.time > right.time }
    if !left.name.utf8.elementsEqual(right.name.utf8) {
      return left.name.utf8.lexicographicallyPrecedes(right.name.utf8)
    }
    return left.id < right.id
  }
}
