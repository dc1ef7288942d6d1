import AllAdapters
import ChatEmulation
import ChatHarness
import ChatTransport
import Synchronization
import Testing
import UnifiedChat

@Suite("Planted secrets are in no line that anything writes")
struct PlantedSecretsTests {
  static let admin = "planted-admin-secret-7f3a"
  static let key = "planted-app-key-91c2"
  static let wrongToken = "planted-wrong-token-44aa"
  static let body = "planted message body 5d0e"

  private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    /// An error in all the ways in which it may be printed.
    func add(_ error: any Error) {
      var dumped = ""
      dump(error, to: &dumped)
      for text in ["\(error)", String(reflecting: error), dumped] { add(text) }
    }
    var all: [String] { lines.withLock { $0 } }
  }

  @Test(
    "log at its most talkative, errors and the control journal, over a life with failures",
    arguments: AllAdapters.emulators.map(\.vendor))
  func life(vendor: String) async throws {
    let lines = Lines()
    let clock = ManualClock()
    let factory = try #require(AllAdapters.emulator(for: vendor))
    let options = EmulatorOptions(
      applicationID: "planted-app", adminSecret: Self.admin, baseURL: "http://\(vendor).test")
    let host = try EmulatorHost(factory, options: options, clock: .shared(clock), journal: .on)
    let log = RedactingLog(detail: .headers) { lines.add($0) }
    let entry = try AllAdapters.registry(transports: host.transports.logged(to: log)).entry(for: VendorName(vendor))
    let profile = EmulatorHarness.profile(
      vendor: vendor, model: nil, baseURL: "http://\(vendor).test", applicationID: "planted-app")
    func environment(admin: String, _ device: String) -> AdapterEnvironment {
      AdapterEnvironment(appKey: Self.key, adminSecret: admin, clock: clock, device: device, seed: 1) { _, text in
        lines.add(text)
      }
    }

    let destination = try entry.makeDestination(profile, environment(admin: Self.admin, "import"))
    let people = ["alice", "bob"].map { UserRecord(user: User(id: UserID($0), name: $0)) }
    _ = try await destination.putUsers(people)
    let credential = try await entry.issueCredential(UserID("alice"), profile, environment(admin: Self.admin, "tokens"))
    let alice = try entry.makeAdapter(profile, environment(admin: Self.admin, "phone"))
    _ = try await alice.connect(as: UserID("alice"), credential: credential)
    let draft = ChannelDraft(kind: .group, members: [UserID("bob")], name: "planted")
    let channel = try await alice.createChannel(draft).id
    let message = OutgoingMessage(
      channel: channel, localID: LocalID("1"), clientMessageID: ClientMessageID("planted-1"), draft: .text(Self.body))
    _ = try await alice.send(message)

    // Failures speak the most.
    do {
      let liar = try entry.makeDestination(profile, environment(admin: Self.admin + "x", "liar"))
      _ = try await liar.putUsers(people)
    } catch { lines.add(error) }
    do {
      let stranger = try entry.makeAdapter(profile, environment(admin: Self.admin, "stranger"))
      _ = try await stranger.connect(as: UserID("alice"), credential: .token(Self.wrongToken))
      await stranger.disconnect()
    } catch { lines.add(error) }
    do {
      let lost = OutgoingMessage(
        channel: ChannelID("no such channel"), localID: LocalID("2"), clientMessageID: ClientMessageID("planted-2"),
        draft: .text(Self.body))
      _ = try await alice.send(lost)
    } catch { lines.add(error) }
    await alice.disconnect()
    for rule in await host.control.rules() { lines.add("\(rule)") }

    var planted = [Self.admin, Self.key, Self.wrongToken, Self.body]
    if case .token(let token) = credential { planted.append(token) }
    #expect(lines.all.count > 20)
    for line in lines.all {
      for secret in planted where line.contains(secret) {
        Issue.record("a line of \(vendor) shows a secret; it begins with \"\(line.prefix(60))\"")
      }
    }
  }
}
