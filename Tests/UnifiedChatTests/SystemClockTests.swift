import Synchronization
import Testing

@testable import UnifiedChat

@Suite("Sleeping on the system's clock", .timeLimit(.minutes(1)))
struct SystemClockTests {
  @Test("nobody wakes before the time, whoever sleeps beside")
  func noneEarly() async throws {
    let clock = ContinuousClock()
    try await withThrowingTaskGroup(of: Void.self) { group in
      // Later ones first, so that each new one is due before all others, and the reverse.
      for milliseconds in [40, 30, 20, 10, 5, 1, 15, 25, 35, 40] {
        group.addTask {
          let start = clock.now
          try await SystemClock().sleep(for: .milliseconds(milliseconds))
          #expect(clock.now - start >= .milliseconds(milliseconds))
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("a cancelled one ends at once, before or while it sleeps, and the others sleep on")
  func cancelled() async throws {
    let other = Task { try await SystemClock().sleep(for: .milliseconds(50)) }
    for turns in 0..<200 {
      let task = Task { try await SystemClock().sleep(for: .seconds(3600)) }
      for _ in 0..<turns % 5 { await Task.yield() }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    try await other.value
  }

  @Test("an alarm calls once, not before its time; a cancelled one never", arguments: [true, false])
  func alarm(isSystem: Bool) async throws {
    let manual = ManualClock()
    let clock: any ChatClock = isSystem ? SystemClock() : manual
    let (calls, feed) = AsyncStream.makeStream(of: String.self)
    let start = ContinuousClock.now
    let cancelled = clock.alarm(after: .milliseconds(10)) { feed.yield("cancelled") }
    let first = clock.alarm(after: .milliseconds(20)) { feed.yield("first") }
    cancelled.cancel()
    let time = Task {
      while !isSystem, !Task.isCancelled {
        manual.advance(by: .milliseconds(20))
        await Task.yield()
      }
    }
    defer { time.cancel() }
    var iterator = calls.makeAsyncIterator()
    #expect(await iterator.next() == "first")
    if isSystem { #expect(ContinuousClock.now - start >= .milliseconds(20)) }
    first.cancel()
    feed.finish()
    #expect(await iterator.next() == nil)
  }

  @Test("a timer of the system that rings early leaves nobody asleep")
  func early() async throws {
    let alarms = SystemAlarms(wait: { _ in await Task.yield() })
    let start = ContinuousClock.now
    for milliseconds in [5, 1, 3] { try await alarms.sleep(for: .milliseconds(milliseconds)) }
    #expect(ContinuousClock.now - start >= .milliseconds(9))
  }

  @Test("one who sleeps for long costs one timer of the system, however many wake before")
  func oneFarTimer() async throws {
    let far = Mutex(0)
    let alarms = SystemAlarms(wait: { time in
      if time - .now > .seconds(60) { far.withLock { $0 += 1 } }
      // The timers of the system are what is counted here.
      try? await Task.sleep(until: time, clock: .continuous)
    })
    let sleeper = Task { try await alarms.sleep(for: .seconds(3600)) }
    for _ in 1...20 { try await alarms.sleep(for: .milliseconds(1)) }
    while far.withLock({ $0 }) == 0 { await Task.yield() }
    sleeper.cancel()
    #expect(far.withLock { $0 } == 1)
  }

  @Test("no time is no sleep, but a cancelled task is told so")
  func nothing() async throws {
    try await SystemClock().sleep(for: .zero)
    try await SystemClock().sleep(for: .seconds(-5))
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try await SystemClock().sleep(for: .zero)
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
