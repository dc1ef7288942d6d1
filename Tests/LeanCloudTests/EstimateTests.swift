import ChatEmulation
import ChatJSON
import ChatTransport
import LeanCloudAdapter
import Synchronization
import Testing
import UnifiedChat

/// How long a pull takes, and that only those who ask for it pay for the looks.
@Suite("The estimate of a pull", .timeLimit(.minutes(1)))
struct LeanCloudEstimateTests {
  /// Paths of all requests.
  final class Listening: HTTPClient {
    let inner: any HTTPClient
    let paths = Mutex<[String]>([])
    init(_ inner: any HTTPClient) { self.inner = inner }

    func send(
      _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws(TransportError) -> HTTPResponse {
      paths.withLock { $0.append(request.url) }
      return try await inner.send(request, progress: progress)
    }
  }

  func source(
    _ bench: Bench, _ options: [String: JSONText] = [:], model: String? = nil, http: (any HTTPClient)? = nil
  ) throws -> LeanCloudSource {
    var transports = bench.host.transports
    if let http { transports.http = http }
    return try LeanCloudSource(
      profile: bench.profile(options, model: model), environment: bench.environment(), transports: transports)
  }

  func estimate(_ bench: Bench, _ options: [String: JSONText] = [:], model: String? = nil) async throws
    -> SourceEstimate
  {
    try #require(try await source(bench, options, model: model).estimate())
  }

  static func time(_ milliseconds: Int64) -> JSONText { JSONText(unchecked: "\"\(Timestamp(milliseconds: milliseconds))\"") }

  @Test("a check is counts and two looks, however large the app is: a pull makes it for every file that fails")
  func cheap() async throws {
    let bench = try Bench()
    try await bench.load(
      [["type": "channel", "id": "c", "kind": "group"]]
        + (0..<600).map { RescueTests().message($0, at: Bench.start - Int64($0) * 1000) })
    for _ in 0..<3 { _ = try await ServiceTests().service(bench, subscribers: ["a"]) }
    let listening = Listening(bench.host.transports.http)
    let source = try source(bench, http: listening)
    _ = try await source.check()
    let asked = listening.paths.withLock { $0 }
    #expect(asked.count == 4)
    #expect(asked.count { $0.contains("rtm/messages") } == 2)
    #expect(!asked.contains { $0.contains("subscribers") })
    _ = try await source.estimate()
    #expect(listening.paths.withLock { $0.count { $0.contains("subscribers/count") } } == 3)
  }

  @Test("a small app is counted whole, and the estimate says how many requests a pull takes")
  func small() async throws {
    let bench = try Bench()
    try await bench.load(
      [["type": "channel", "id": "c", "kind": "group"]]
        + (0..<30).map { RescueTests().message($0, at: Bench.start - Int64($0) * 1000) })
    let estimate = try await estimate(bench)
    #expect(estimate.messages == 30 && estimate.isExact)
    // A page and an empty one, and read marks; the history of the app, and an empty page.
    #expect(estimate.requests == 5)
    #expect(try await source(bench).check().requestsPerSecond == 30)
    #expect(estimate.notes == [])
  }

  @Test(
    "of a large app the number is worked out from the pace at some times, right within a third",
    arguments: [1, 60_000, 3_600_000] as [Int64])
  func large(_ interval: Int64) async throws {
    let bench = try Bench()
    try await load(bench, interval)
    let whole = try await estimate(bench)
    #expect(!whole.isExact)
    #expect((1000...2000).contains(whole.messages))
    #expect((5...20).contains(whole.requests))
  }

  /// 1500 messages, twice as dense from the time of number 500 on.
  static let first: Int64 = 1_600_000_000_000
  func load(_ bench: Bench, _ interval: Int64) async throws {
    try await bench.load([["type": "channel", "id": "c", "kind": "group"]])
    for number in 0..<1500 {
      let place = number < 500 ? Int64(number) * 2 : 1000 + Int64(number - 500)
      try await bench.load([RescueTests().message(number, at: Self.first + place * interval)])
    }
  }

  @Test("of a window only what is in it counts")
  func window() async throws {
    let bench = try Bench()
    try await load(bench, 60_000)
    func at(_ number: Int64) -> JSONText { Self.time(Self.first + number * 60_000) }
    let week = try await estimate(bench, ["from": at(100), "until": at(200)])
    #expect(week.messages == 50 && week.isExact)
    let late = try await estimate(bench, ["from": at(1900)])
    #expect(late.messages == 100 && late.isExact)
    let early = try await estimate(bench, ["until": at(100)])
    #expect(early.messages == 50 && early.isExact)
    let dense = try await estimate(bench, ["from": at(1200), "until": at(1900)])
    #expect(!dense.isExact && (525...875).contains(dense.messages))
    #expect(try await estimate(bench, ["until": Self.time(Self.first - 1)]).messages == 0)
  }

  @Test("read marks count where they are asked for, and not with the model of 2014, which has none")
  func marks() async throws {
    let bench = try Bench()
    try await bench.load((0..<10).map { ["type": "channel", "id": .string("c\($0)"), "kind": "group"] })
    // The history of the whole app is one page more.
    for (marks, requests) in [("none", 21), ("direct", 31), ("all", 31)] {
      #expect(try await estimate(bench, ["readMarks": JSONText(unchecked: "\"\(marks)\"")]).requests == requests)
    }
    #expect(try await estimate(bench, model: "session").requests <= 21)
  }

  @Test("messages of one moment are no endless number of them")
  func burst() async throws {
    let bench = try Bench()
    try await bench.load(
      [["type": "channel", "id": "c", "kind": "group"]] + (0..<900).map { RescueTests().message($0, at: Bench.start) })
    let estimate = try await estimate(bench)
    #expect(estimate.messages == 500 && !estimate.isExact)
  }

  @Test("a pull that takes more than half of the time that is left says what to do; a small window of it does not")
  func late() async throws {
    let end: Int64 = 1_799_712_000_000
    for (left, isTold) in [(5 * 60_000, true), (86_400_000, false)] as [(Int64, Bool)] {
      let bench = try Bench(start: end - left)
      bench.clock.advance(to: Timestamp(milliseconds: end - left))
      try await bench.load((0..<40).map { ["type": "channel", "id": .string("c\($0)"), "kind": "group"] })
      let slow = ["requestsPerMinute": JSONText(unchecked: "30")]
      #expect(try await estimate(bench, slow).notes.contains { $0.contains("options.share") } == isTold)
    }
  }

  @Test("each setting that leaves something out is named, and a part as what one reading took")
  func leftOut() async throws {
    let bench = try Bench()
    func leftOut(_ options: [String: JSONText]) async throws -> [String] {
      try await source(bench, options).check().leftOut
    }
    let whole = try await leftOut([:])
    let settings: [(name: String, text: String)] = [
      ("serviceHistories", "false"), ("deletedConversations", "false"), ("readMarks", "\"none\""),
      ("from", Self.time(1000).text), ("until", Self.time(1000).text), ("share", "\"2/5\""),
    ]
    for setting in settings {
      let options = [setting.name: JSONText(unchecked: setting.text)]
      let things = try await leftOut(options)
      #expect(Set(things).subtracting(whole).count { $0.contains("options.\(setting.name)") } == 1)
      // A check prints both lists.
      let notes = try await source(bench, options).check().notes
      #expect(!notes.contains { $0.contains("options.\(setting.name)") })
    }
    let windows = try await leftOut(["from": Self.time(1000), "until": Self.time(2000)])
    // Still true where an archive of this window was merged with others.
    #expect(windows.contains { $0.contains("by the reading that took it: messages from \(Timestamp(milliseconds: 1000)) on") })
    #expect(!windows.contains { $0.hasPrefix("messages") })
  }
}
