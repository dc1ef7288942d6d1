import ChatJSON
import LeanCloudWire
import UnifiedChat

/// How many messages an app has: the service counts none, so the history of the whole app is looked at in some places.
struct LeanCloudMessageEstimate: Sendable, Hashable {
  var messages: Int
  /// Whether each of them was seen.
  var isExact: Bool

  /// Parts of the time between the oldest and the newest message, each looked at from its middle.
  static let places = 8
  static let pageSize = 500

  /// What one look says of its part of the time: the pace of the messages that follow the middle of it.
  /// - Parameter times: of the first messages from `middle` on, ascending.
  static func messages(in length: Int64, from middle: Int64, _ times: [Int64], isWhole: Bool) -> Double {
    guard let last = times.last else { return 0 }
    // The page may end at the last message of all, after which nothing comes.
    let span = isWhole ? max(length / 2, last &- middle) : last &- middle
    return Double(times.count) * Double(length) / Double(max(1, span))
  }
}

extension LeanCloudSource {
  /// How many messages and requests a pull with these options takes, from up to ten looks at the history and the
  /// subscribers of up to a hundred service conversations; and whether the time that is left is enough.
  public func estimate() async throws(ChatError) -> SourceEstimate? {
    let found = try await messageEstimate()
    let service = try await serviceCounts()
    let requests = requests(
      messages: found.messages, channels: try await channelCount() ?? 0, services: service.conversations,
      subscribers: service.subscribers)
    return SourceEstimate(
      messages: found.messages, isExact: found.isExact, requests: requests, notes: notes(requests: requests))
  }

  /// Of the time that the options let through.
  private func messageEstimate() async throws(ChatError) -> LeanCloudMessageEstimate {
    let size = LeanCloudMessageEstimate.pageSize
    // What comes behind a time does not hold the time itself.
    let first = try await times(after: options.from.map { $0.milliseconds &- 1 })
    guard first.count >= size, let start = first.first else {
      return LeanCloudMessageEstimate(messages: first.count, isExact: true)
    }
    var end = try await edge(isOldest: false)?.milliseconds ?? start
    if let until = options.until { end = min(end, until.milliseconds) }
    let (whole, isTooLong) = end.subtractingReportingOverflow(start)
    let parts = Int64(LeanCloudMessageEstimate.places)
    guard !isTooLong, whole >= parts else { return LeanCloudMessageEstimate(messages: first.count, isExact: false) }
    let length = whole / parts
    var sum = 0.0
    for part in 0..<parts {
      let middle = start &+ part &* length &+ length / 2
      let seen = try await times(after: middle)
      sum += LeanCloudMessageEstimate.messages(in: length, from: middle, seen, isWhole: seen.count < size)
    }
    return LeanCloudMessageEstimate(messages: max(first.count, Int(clamping: Int64(min(sum, 1e15)))), isExact: false)
  }

  private func times(after time: Int64?) async throws(ChatError) -> [Int64] {
    var query = [("reversed", "true"), ("limit", String(LeanCloudMessageEstimate.pageSize))]
    if let time { query.append(("timestamp", String(time))) }
    if let until = options.until { query.append(("till_timestamp", String(until.milliseconds))) }
    return try await metered("/1.2/rtm/messages", query: query).compactMap { $0["timestamp"]?.int }
  }

  /// Requests that count against the plan's limit: two readings of the messages, and for each channel a first page, an
  /// empty last one and one for read marks where any are asked for; for each service conversation a page of broadcasts
  /// and an empty one, and as many for each of its subscribers.
  private func requests(messages: Int, channels: Int, services: Int, subscribers: Int) -> Int {
    let share = Double(options.count)
    let pages = Double(messages) / Double(Self.pageSize)
    let ofChannel: Double = model == .conversation && options.readMarks != .none ? 3 : 2
    let ofChannels = (pages + ofChannel * Double(channels) + 2 * (Double(services) + Double(subscribers))) / share
    // Every worker looks through the history of the whole app.
    let sum = (ofChannels + (options.sweeps ? pages + 1 : 0)).rounded(.up)
    return Int(clamping: Int64(min(sum, 1e15)))
  }

  /// The service conversations of a first page, and the subscribers of the first hundred of them together.
  private func serviceCounts() async throws(ChatError) -> (conversations: Int, subscribers: Int) {
    guard model == .conversation else { return (0, 0) }
    let rows = try await optionalRows("_Conversation", after: nil, where: ["sys": true]).rows
    guard options.serviceHistories else { return (rows.count, 0) }
    var sum = 0
    for row in rows.prefix(100) {
      guard let id = row["objectId"]?.string else { continue }
      let answer: JSONValue
      do {
        answer = try await rest.call(
          "GET", "/1.2/rtm/service-conversations/\(LeanCloudREST.percent(id))/subscribers/count", key: .master,
          operation: .readSource)
      } catch {
        guard error.kind == .notFound else { throw error }
        continue
      }
      // A count is a wire's word: no sum of them may trap.
      sum = min(sum &+ max(0, min(answer["count"]?.int.flatMap { Int(exactly: $0) } ?? 0, 1 << 50)), 1 << 50)
    }
    return (rows.count, sum)
  }

  /// What to do where the time that is left may not be enough.
  private func notes(requests: Int) -> [String] {
    let minutes = Int64(requests) / Int64(options.requestsPerMinute) + 1
    let left = (LeanCloudRetention.end - clock.now).wholeMilliseconds / 60_000
    guard left >= 0, minutes > left / 2 else { return [] }
    return [
      "a pull takes more than half of the time that is left: ask for a higher limit, and share the work (options.share)"
    ]
  }
}
