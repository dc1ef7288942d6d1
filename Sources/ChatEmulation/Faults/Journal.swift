import ChatTransport

/// The newest frames that passed, and who waits for more.
struct Journal {
  struct Waiter {
    var id: UInt64
    var match: FaultRule.Match
    var missing: Int
    var done: OneShot<Bool>
  }

  var settings: JournalSettings
  private(set) var entries: [JournalEntry] = []
  private(set) var waiters: [Waiter] = []
  private var lastIndex: UInt64 = 0

  init(_ settings: JournalSettings) { self.settings = settings }

  var isActive: Bool { settings.limit > 0 || !waiters.isEmpty }

  mutating func append(_ entry: JournalEntry, content: @autoclosure () -> [UInt8]) {
    var entry = entry
    lastIndex += 1
    entry.index = lastIndex
    if settings.keepsBytes { entry.bytes = content() }
    if settings.limit > 0 {
      entries.append(entry)
      // Twice the limit, so that dropping the oldest costs little for each entry.
      if entries.count >= 2 * settings.limit { entries.removeFirst(entries.count - settings.limit) }
    }
    for index in waiters.indices where waiters[index].match.matchesEntry(entry) {
      waiters[index].missing -= 1
      if waiters[index].missing <= 0 { waiters[index].done.fulfil(true) }
    }
    waiters.removeAll { $0.missing <= 0 }
  }

  /// Entries after `index`, oldest first, at most the limit.
  func entries(since index: UInt64) -> [JournalEntry] {
    Array(entries.suffix(settings.limit).drop { $0.index <= index })
  }

  mutating func add(_ waiter: Waiter) { waiters.append(waiter) }

  mutating func removeWaiter(_ id: UInt64) { waiters.removeAll { $0.id == id } }

  mutating func clear() { entries = [] }
}

extension FaultRule.Match {
  /// As for a rule; a match without a direction takes both.
  func matchesEntry(_ entry: JournalEntry) -> Bool {
    (direction == nil || direction == entry.direction) && matches(entry.operation) {
      entry.bytes.flatMap { FramedJSON($0)?.value }
    }
  }
}
