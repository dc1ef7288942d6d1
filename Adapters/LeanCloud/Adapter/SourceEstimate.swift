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
  /// - Parameters: the times of the oldest and the newest message; nil: there is none.
  func estimate(from oldest: Timestamp?, to newest: Timestamp?) async throws(ChatError) -> LeanCloudMessageEstimate {
    guard let oldest, let newest else { return LeanCloudMessageEstimate(messages: 0, isExact: true) }
    let size = LeanCloudMessageEstimate.pageSize
    let first = try await times(from: nil)
    if first.count < size { return LeanCloudMessageEstimate(messages: first.count, isExact: true) }
    let start = oldest.milliseconds
    let (whole, isTooLong) = newest.milliseconds.subtractingReportingOverflow(start)
    let parts = Int64(LeanCloudMessageEstimate.places)
    guard !isTooLong, whole >= parts else { return LeanCloudMessageEstimate(messages: first.count, isExact: false) }
    let length = whole / parts
    var sum = 0.0
    for part in 0..<parts {
      let middle = start &+ part &* length &+ length / 2
      let seen = try await times(from: middle)
      sum += LeanCloudMessageEstimate.messages(in: length, from: middle, seen, isWhole: seen.count < size)
    }
    return LeanCloudMessageEstimate(messages: max(first.count, Int(clamping: Int64(min(sum, 1e15)))), isExact: false)
  }

  private func times(from time: Int64?) async throws(ChatError) -> [Int64] {
    var query = [("reversed", "true"), ("limit", String(LeanCloudMessageEstimate.pageSize))]
    if let time { query.append(("timestamp", String(time))) }
    return try await metered("/1.2/rtm/messages", query: query).compactMap { $0["timestamp"]?.int }
  }

  /// Requests that count against the plan's limit: two readings of the messages, and for each channel a first page, an
  /// empty last one and one for read marks; for each subscriber of a service conversation a page and an empty one.
  func requests(messages: Int, channels: Int, subscribers: Int) -> Int {
    let share = Double(options.count)
    let pages = Double(messages) / Double(Self.pageSize)
    let ofChannels = (pages + 3 * Double(channels) + 2 * Double(subscribers)) / share
    // Every worker looks through the history of the whole app.
    let sum = (ofChannels + (options.sweeps ? pages + 1 : 0)).rounded(.up)
    return Int(clamping: Int64(min(sum, 1e15)))
  }

  /// Of all service conversations together, the first hundred of them counted.
  func subscriberCount() async throws(ChatError) -> Int {
    guard model == .conversation, options.serviceHistories else { return 0 }
    var sum = 0
    for row in try await optionalRows("_Conversation", after: nil, where: ["sys": true]).rows.prefix(100) {
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
      sum += answer["count"]?.int.flatMap { Int(exactly: $0) } ?? 0
    }
    return sum
  }

  /// What a pull takes, and whether the time that is left is enough.
  func notes(on estimate: LeanCloudMessageEstimate, requests: Int) -> [String] {
    var notes: [String] = []
    if !estimate.isExact {
      notes.append(
        "about \(estimate.messages) messages, from the pace at \(LeanCloudMessageEstimate.places) times; the service counts none")
    }
    let minutes = Int64(requests) / Int64(options.requestsPerMinute) + 1
    notes.append(
      "a pull takes about \(requests) requests that the plan limits to \(options.requestsPerMinute) a minute: "
        + (minutes < 120 ? "\(minutes) minutes" : "\(minutes / 60) hours") + ", attachments not counted")
    let left = (LeanCloudRetention.end - clock.now).wholeMilliseconds / 60_000
    if left >= 0, minutes > left / 2 {
      notes.append("that is more than half of the time that is left: ask for a higher limit, and share the work (options.share)")
    }
    return notes
  }
}
