import Testing
import UnifiedChat

@Suite("A stream of events")
struct EventHubTests {
  private func event(_ number: Int) -> ChatEvent { ChatEvent(.totalUnreadChanged(.exact(number)), source: .live) }

  private func number(_ event: ChatEvent?) -> Int? {
    if case .totalUnreadChanged(.exact(let number))? = event?.kind { number } else { nil }
  }

  /// Longer than what is moved together, so that taking and adding meet at every place.
  @Test("a reader that falls behind and catches up gets each event once, in order", arguments: [1, 2, 3, 255, 257, 1000])
  func order(_ burst: Int) async {
    let hub = EventHub()
    var events = hub.events().makeAsyncIterator()
    var (published, read) = (0, 0)
    while read < 5000 {
      for _ in 0..<burst where published < 5000 {
        hub.publish(event(published))
        published += 1
      }
      for _ in 0..<max(1, burst * 2 / 3) where read < published {
        #expect(number(await events.next()) == read)
        read += 1
      }
      // The rest, once nothing new comes.
      while published == 5000, read < published {
        #expect(number(await events.next()) == read)
        read += 1
      }
    }
  }

  @Test("a reader that is too far behind is told how many it lost, and then hears what is new")
  func overflow() async {
    let hub = EventHub(capacity: 300)
    var events = hub.events().makeAsyncIterator()
    for number in 0..<310 { hub.publish(event(number)) }
    for expected in 0..<300 { #expect(number(await events.next()) == expected) }
    guard case .overflow(let dropped)? = await events.next()?.kind else {
      Issue.record("the loss was not told")
      return
    }
    #expect(dropped == 10)
    hub.publish(event(7))
    #expect(number(await events.next()) == 7)
  }
}
