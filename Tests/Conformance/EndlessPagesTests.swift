import AllAdapters
import ChatEmulation
import ChatHarness
import ChatJSON
import ChatTransport
import Testing
import UnifiedChat

@Suite("A server whose pages never end is not asked for ever", .timeLimit(.minutes(1)))
struct EndlessPagesTests {
  @Test("a list whose every page leads to the same one ends with an error")
  func channels() async throws {
    let vendor = "sendbird"
    let clock = ManualClock()
    let factory = try #require(AllAdapters.emulator(for: vendor))
    let options = EmulatorOptions(
      applicationID: "app", adminSecret: "secret", baseURL: "http://\(vendor).test")
    let host = try EmulatorHost(factory, options: options, clock: .shared(clock), journal: .on)
    let entry = try AllAdapters.registry(transports: host.transports).entry(for: VendorName(vendor))
    let profile = EmulatorHarness.profile(
      vendor: vendor, model: nil, baseURL: "http://\(vendor).test", applicationID: "app")
    let environment = AdapterEnvironment(appKey: "key", adminSecret: "secret", clock: clock, device: "phone", seed: 1)
    let destination = try entry.makeDestination(profile, environment)
    _ = try await destination.putUsers(["alice", "bob"].map { UserRecord(user: User(id: UserID($0), name: $0)) })
    let credential = try await entry.issueCredential(UserID("alice"), profile, environment)
    let alice = try entry.makeAdapter(profile, environment)
    _ = try await alice.connect(as: UserID("alice"), credential: credential)
    _ = try await alice.createChannel(ChannelDraft(kind: .group, members: [UserID("bob")], name: "one"))

    let rule = #"{"match":{"op":"channelQuery","times":null},"do":[{"http":{"status":200,"body":{"channels":[],"next":"again"}}}]}"#
    try await host.control.add(FaultRule(json: JSONValue(parsing: rule)))
    await host.control.clearJournal()
    let error = await #expect(throws: ChatError.self) {
      try await alice.channels(ChannelQuery(limit: 100_000), page: nil)
    }
    #expect(error?.kind == .protocolViolation)
    #expect(await host.control.journal().count < 40)
    await host.control.removeRules()
    #expect(try await alice.channels(ChannelQuery(limit: 10), page: nil).items.count == 1)
    await alice.disconnect()
  }
}
