import ChatEmulation
import ChatJSON
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

@Suite("The list of channels")
struct ChannelListTests {
  /// Channels with and without messages, some of the same time, some without a name.
  func bench(_ count: Int = 130) async throws -> Bench {
    let bench = try Bench()
    var records: [JSONValue] = []
    for number in 0..<count {
      let id = JSONValue.string("c\(number)")
      var channel: JSONObject = [
        "type": "channel", "id": id, "kind": "group", "createdAt": .int(1_600_000_000_000 + Int64(number / 4) * 1000),
      ]
      if number % 5 != 0 { channel["name"] = .string("name \(number % 40)") }
      records.append(.object(channel))
      records.append(["type": "member", "channel": id, "user": "alice"])
      guard number % 3 != 0 else { continue }
      records.append([
        "type": "message", "channel": id, "id": .string("m\(number)"), "sender": "bob",
        "createdAt": .int(1_600_000_005_000 + Int64(number / 2) * 700), "content": ["kind": "text", "text": "x"],
      ])
    }
    records.append(["type": "channel", "id": "other", "kind": "group"])
    try await bench.load(records)
    return bench
  }

  func all(_ alice: Client, _ query: ChannelQuery) async throws -> [Channel] {
    var all: [Channel] = []
    var page: PageToken?
    repeat {
      let answer = try await alice.adapter.channels(query, page: page)
      #expect(answer.items.count <= query.limit)
      all += answer.items
      page = answer.next
    } while page != nil
    return all
  }

  @Test("pages of any size meet without a gap, in every order", arguments: [(1, 20), (7, 40), (100, 130), (1000, 130)])
  func pages(_ limit: Int, _ count: Int) async throws {
    let alice = try await bench(count).connect("alice")
    for order in [ChannelQuery.Order.lastMessage, .created, .name] {
      let found = try await all(alice, ChannelQuery(order: order, limit: limit))
      #expect(found.count == count)
      #expect(Set(found.map(\.id)).count == count)
      func time(_ channel: Channel) -> Int64 {
        let created = channel.createdAt?.milliseconds ?? 0
        return order == .lastMessage ? channel.lastMessage?.position?.major ?? created : created
      }
      for (one, next) in zip(found, found.dropFirst()) {
        if order == .name {
          let (left, right) = (one.name ?? "", next.name ?? "")
          #expect(left < right || (left == right && one.id < next.id))
        } else {
          #expect(time(one) > time(next) || (time(one) == time(next) && one.id < next.id))
        }
      }
    }
  }

  @Test("a page costs two small queries, however long the list is")
  func cost() async throws {
    let bench = try await bench()
    let alice = try await bench.connect("alice")
    func queries() async -> Int { await bench.host.coverage.first { $0.endpoint == "conv/query" }?.calls ?? 0 }
    let before = await queries()
    let page = try await alice.adapter.channels(ChannelQuery(limit: 20), page: nil)
    #expect(page.items.count == 20)
    #expect(await queries() == before + 2)
  }

  @Test("a channel that moves up between two pages hides no other one")
  func moving() async throws {
    let bench = try await bench()
    let alice = try await bench.connect("alice")
    let first = try await alice.adapter.channels(ChannelQuery(limit: 20), page: nil)
    let everything = try await all(alice, ChannelQuery(limit: 200))
    let moved = try #require(everything.last)
    _ = try await alice.adapter.send(alice.text("up", to: moved.id))
    var rest: [Channel] = []
    var page = first.next
    while let token = page {
      let answer = try await alice.adapter.channels(ChannelQuery(limit: 20), page: token)
      rest += answer.items
      page = answer.next
    }
    #expect((first.items + rest).map(\.id) == everything.map(\.id).filter { $0 != moved.id })
  }

  @Test("kinds and names filter, and only what has unread messages comes when that is asked for")
  func filters() async throws {
    let bench = try await bench()
    let alice = try await bench.connect("alice")
    let direct = try await alice.adapter.createChannel(.direct(with: "bob"))
    #expect(try await all(alice, ChannelQuery(kinds: [.direct], limit: 3)).map(\.id) == [direct.id])
    let named = try await all(alice, ChannelQuery(nameContains: "name 3", limit: 4))
    #expect(!named.isEmpty)
    #expect(named.allSatisfy { $0.name?.contains("name 3") == true })
    #expect(try await all(alice, ChannelQuery(unreadOnly: true, limit: 4)).isEmpty)
    #expect(try await all(alice, ChannelQuery(members: ["bob"], limit: 4)).map(\.id) == [direct.id])
  }
}
