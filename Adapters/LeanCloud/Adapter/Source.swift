import ChatInterchange
import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

/// Reads everything that chat holds of an app, with the master key: users, conversations of every kind with their own
/// columns, members with roles, silences, blocks and read marks, the whole history, files; also histories whose
/// conversation the service has deleted, and those of the 2014 model.
///
/// History lives six months at the vendor unless paid for, so what is not read in time is gone. All rows come with
/// their raw form; of a user that is everything the service tells with the master key, see `LeanCloudSourceOptions`.
public struct LeanCloudSource: ChatSource {
  public let vendor: VendorName = "leancloud"
  public let capabilities: CapabilitySet
  let rest: LeanCloudREST
  let options: LeanCloudSourceOptions
  let model: LeanCloudModel
  let clock: any ChatClock
  let pace: LeanCloudPace
  let known = LeanCloudKnownChannels()
  /// Rows and messages a request; the vendor's maximum.
  static let pageSize = 1000

  public init(profile: Profile, environment: AdapterEnvironment, transports: Transports) throws(ChatError) {
    model = try LeanCloudModel(profile)
    rest = LeanCloudREST(profile: profile, environment: environment, http: transports.http)
    guard !rest.appID.isEmpty else {
      throw ChatError(.invalidArgument(field: "appID"), operation: .readSource, detail: "the profile names no appID")
    }
    options = try LeanCloudSourceOptions(profile)
    clock = environment.clock
    pace = LeanCloudPace(perMinute: options.requestsPerMinute, clock: clock)
    capabilities = model == .session ? LeanCloudCapabilities.session : LeanCloudCapabilities.conversation
  }

  /// Reads back what a destination with the same keys wrote.
  init(rest: LeanCloudREST, clock: any ChatClock) {
    self.rest = rest
    self.clock = clock
    model = .conversation
    options = LeanCloudSourceOptions()
    pace = LeanCloudPace(perMinute: options.requestsPerMinute, clock: clock)
    capabilities = LeanCloudCapabilities.conversation
  }

  // MARK: Check

  /// Counts of rows; the first and the last message of the app, which show what retention has taken.
  public func check() async throws(ChatError) -> SourceCheck {
    let channels = try await channelCount()
    let users = try await count("_User")
    let oldest = try await edge(isOldest: true)
    let newest = try await edge(isOldest: false)
    return SourceCheck(
      users: users, channels: channels, requestsPerSecond: Double(options.requestsPerMinute) / 60,
      notes: LeanCloudRetention.notes(oldest: oldest, newest: newest, now: clock.now) + [options.secretsNote],
      leftOut: options.leftOut)
  }

  func channelCount() async throws(ChatError) -> Int? {
    try await count(model == .session ? "AVOSRealtimeGroups" : "_Conversation")
  }

  private func count(_ name: String) async throws(ChatError) -> Int? {
    let answer: JSONValue
    do {
      answer = try await rest.call(
        "GET", "/1.1/classes/\(name)", query: [("limit", "0"), ("count", "1")], key: .master, operation: .readSource)
    } catch {
      // An app that never used a part of the service has no class for it.
      if error.kind == .notFound { return 0 }
      throw error
    }
    return answer["count"]?.int.flatMap { Int(exactly: $0) }
  }

  /// When the oldest or the newest message of the whole app was sent; nil: there is none.
  func edge(isOldest: Bool) async throws(ChatError) -> Timestamp? {
    let query = [("limit", "1")] + (isOldest ? [("reversed", "true")] : [])
    let rows = try await metered("/1.2/rtm/messages", query: query)
    return rows.first?["timestamp"]?.int.map { Timestamp(milliseconds: $0) }
  }

  /// A request that counts against the vendor's limit of messages a minute; the answer is an array.
  func metered(_ path: String, query: [(String, String)]) async throws(ChatError) -> [JSONValue] {
    try await pace.take()
    let answer = try await rest.call("GET", path, query: query, key: .master, operation: .readSource)
    guard let rows = answer.array else {
      throw ChatError(.protocolViolation, operation: .readSource, detail: "history is not an array")
    }
    return rows
  }

  // MARK: Rows

  /// A page of a class by object id: such a cursor stays good for ever, a scan's dies after ten minutes.
  func rows(
    _ name: String, after cursor: Cursor?, where condition: JSONObject = JSONObject()
  ) async throws(ChatError) -> (rows: [JSONObject], next: Cursor?) {
    var condition = condition
    if let cursor { condition["objectId"] = ["$gt": .string(cursor.rawValue)] }
    var query = [("order", "objectId"), ("limit", String(Self.pageSize))]
    if !condition.isEmpty { query.append(("where", JSONValue.object(condition).text())) }
    let answer = try await rest.call(
      "GET", "/1.1/classes/\(name)", query: query, key: .master, operation: .readSource)
    guard let results = answer["results"]?.array else {
      throw ChatError(.protocolViolation, operation: .readSource, detail: "\(name) came without results")
    }
    let rows = results.compactMap(\.object)
    return (rows, rows.last?["objectId"]?.string.map { Cursor($0) })
  }

  /// The first page of a class that an app may not have at all.
  func optionalRows(
    _ name: String, after cursor: Cursor?, where condition: JSONObject = JSONObject()
  ) async throws(ChatError) -> (rows: [JSONObject], next: Cursor?) {
    do { return try await rows(name, after: cursor, where: condition) } catch {
      if error.kind == .notFound { return ([], nil) }
      throw error
    }
  }

  public func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    let page = try await optionalRows("_User", after: cursor)
    var found = SourcePage<UserRecord>(items: [], next: page.next)
    for row in page.rows { found.add(LeanCloudRows.user(row, options, rest.envelopes)) }
    return found
  }

  /// The rows of the class first, then what only the history of the whole app still knows.
  public func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    if let cursor, let place = LeanCloudSweepCursor(cursor) { return try await sweep(after: place) }
    let name = model == .session ? "AVOSRealtimeGroups" : "_Conversation"
    let page = try await optionalRows(name, after: cursor)
    var items: [ChannelRecord] = []
    var unreadable: [UnreadableRecord] = []
    for row in page.rows {
      switch LeanCloudRows.channel(row, rest.envelopes) {
      case .success(let record, let envelope):
        known.insert(record.channel.id)
        guard options.includes(record.channel.id) else { continue }
        items.append(record)
        if let envelope { unreadable.append(envelope) }
      case .failure(let record): unreadable.append(record)
      }
    }
    let end = options.sweeps ? LeanCloudSweepCursor.start.cursor : nil
    return SourcePage(items: items, unreadable: unreadable, next: page.next ?? end)
  }

  /// nil where the service has no row: it was deleted, or it is of the 2014 model.
  func object(_ channel: ChannelID) async throws(ChatError) -> JSONObject? {
    let names = model == .session ? ["AVOSRealtimeGroups"] : ["_Conversation", "AVOSRealtimeGroups"]
    for name in names {
      do {
        let answer = try await rest.call(
          "GET", "/1.1/classes/\(name)/\(LeanCloudREST.percent(channel.rawValue))", key: .master, operation: .readSource
        )
        // An object that is not there comes as an empty one from some versions.
        if let object = answer.object, object["objectId"] != nil { return object }
      } catch  where error.kind == .notFound {
        continue
      }
    }
    return nil
  }
}
