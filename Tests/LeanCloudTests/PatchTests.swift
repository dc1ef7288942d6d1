import ChatEmulation
import ChatJSON
import Testing
import UnifiedChat

@testable import LeanCloudAdapter

@Suite("Edits and recalls around a lost link", .timeLimit(.minutes(1)))
struct PatchTests {
  /// What the device's clock says beside the server's.
  static let offsets: [Duration] = [.zero, .seconds(86_400), .seconds(-86_400), .seconds(40), .seconds(-40)]

  func connect(_ bench: Bench, _ user: UserID, clockAhead offset: Duration) async throws -> Client {
    var environment = bench.environment()
    environment.clock = ManualClock(start: bench.clock.now + offset)
    let adapter = try LeanCloudAdapter(
      profile: bench.profile(), environment: environment, transports: bench.host.transports)
    let client = Client(adapter: adapter)
    _ = try await adapter.connect(as: user, credential: .none)
    return client
  }

  @Test("what was edited and recalled while the link was lost is told, whatever the device's clock says", arguments: offsets)
  func missed(_ offset: Duration) async throws {
    let bench = try Bench()
    let alice = try await connect(bench, "alice", clockAhead: offset)
    let bob = try await bench.connect("bob")
    let channel = try await bob.adapter.createChannel(.direct(with: "alice"))
    for round in 0..<3 {
      let sent = try await bob.adapter.send(bob.text("one", to: channel.id, id: "e-\(round)"))
      let other = try await bob.adapter.send(bob.text("two", to: channel.id, id: "r-\(round)"))
      for id in [sent.id, other.id] { #expect(await alice.nextMessage()?.id == id) }
      await alice.adapter.suspend()
      // Longer than what is asked for again anyhow, and shorter than what ends an idle link.
      await bench.host.advance(by: .seconds(300))
      _ = try await bob.adapter.edit(sent, to: .text("edited \(round)"))
      _ = try await bob.adapter.recall(other)
      await alice.adapter.resume()
      // In whatever order: both were done within a millisecond.
      var (edited, recalled): (Message?, Message?)
      while edited == nil || recalled == nil {
        let change = await alice.next { event -> ChatEvent.Kind? in
          switch event.kind {
          case .messageUpdated(let message) where message.id == sent.id: event.kind
          case .messageRecalled(let message) where message.id == other.id: event.kind
          default: nil
          }
        }
        guard let change else { break }
        if case .messageUpdated(let message) = change { edited = message }
        if case .messageRecalled(let message) = change { recalled = message }
      }
      #expect(text(edited) == "edited \(round)")
      #expect(recalled?.isRecalled == true)
    }
  }

  @Test("an own edit, whose time the server tells, hides no earlier one of somebody else", arguments: offsets)
  func own(_ offset: Duration) async throws {
    let bench = try Bench()
    let alice = try await connect(bench, "alice", clockAhead: offset)
    let bob = try await bench.connect("bob")
    let channel = try await bob.adapter.createChannel(.direct(with: "alice"))
    let his = try await bob.adapter.send(bob.text("his", to: channel.id))
    #expect(await alice.nextMessage()?.id == his.id)
    let mine = try await alice.adapter.send(alice.text("mine", to: channel.id, id: "a-1"))
    // The push of the other one's edit gets lost; the answer to the own one, a moment later, does not.
    try await bench.host.control.add(FaultRule(.init("edit", direction: .outbound, user: "alice"), at: .beforePush, do: .drop))
    _ = try await bob.adapter.edit(his, to: .text("his edit"))
    await bench.host.advance(by: .milliseconds(5))
    _ = try await alice.adapter.edit(mine, to: .text("my edit"))
    await alice.adapter.suspend()
    await alice.adapter.resume()
    let edited = await alice.next { event -> Message? in
      if case .messageUpdated(let message) = event.kind, message.id == his.id { message } else { nil }
    }
    #expect(text(edited) == "his edit")
  }

  @Test("the server's clock alone counts, its first answer begins, and a minute is asked for again")
  func clock() {
    var patches = LeanCloudPatchClock()
    #expect(patches.since == nil)
    patches.begin(at: 1_000_000)
    #expect(patches.since == 999_999)
    patches.saw(1_030_000)
    #expect(patches.since == 999_999)
    patches.saw(2_000_000)
    #expect(patches.since == 1_940_000)
    patches.saw(1_500_000)
    #expect(patches.since == 1_940_000 && patches.last == 2_000_000)
    // A login again is no new beginning.
    patches.begin(at: 9_000_000)
    #expect(patches.since == 1_940_000)
    patches.saw(.max)
    #expect(patches.since == Int64.max - 60_000)
    var odd = LeanCloudPatchClock()
    odd.begin(at: .min)
    #expect(odd.since == -1)
  }
}
