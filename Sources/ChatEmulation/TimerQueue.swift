/// A string compared by its bytes: `String ==` would take two Unicode forms of one id for the same.
struct ExactKey: Hashable, Sendable {
  let bytes: [UInt8]
  init(_ text: String) { bytes = Array(text.utf8) }
}

/// What is due when: the machine's named timers and the host's own actions, in one order (time, then order of setting).
struct TimerQueue {
  enum Event {
    case machine(String)
    case host(@Sendable (isolated EmulatorHost) -> Void)
  }

  /// Names one host action for `cancel`.
  typealias Token = UInt64

  private struct Entry {
    let due: Int64
    let token: Token
    let event: Event

    static func isBefore(_ left: Entry, _ right: Entry) -> Bool {
      (left.due, left.token) < (right.due, right.token)
    }
  }

  private var heap: [Entry] = []
  private var live: Set<Token> = []
  private var named: [ExactKey: Token] = [:]
  private var lastToken: Token = 0

  /// When the earliest timer is due.
  var nextDue: Int64? {
    mutating get {
      discardDead()
      return heap.first?.due
    }
  }

  /// Sets the machine's timer `name`, or moves it.
  mutating func set(_ name: String, due: Int64) {
    cancel(named: name)
    named[ExactKey(name)] = push(due: due, event: .machine(name))
  }

  mutating func cancel(named name: String) {
    if let token = named.removeValue(forKey: ExactKey(name)) { live.remove(token) }
  }

  mutating func schedule(
    due: Int64, _ action: @escaping @Sendable (isolated EmulatorHost) -> Void
  ) -> Token {
    push(due: due, event: .host(action))
  }

  mutating func cancel(_ token: Token) { live.remove(token) }

  /// Forgets the machine's timers and keeps the host's.
  mutating func removeNamed() {
    for token in named.values { live.remove(token) }
    named = [:]
  }

  /// Takes out the earliest event that is due at `time`.
  mutating func popDue(at time: Int64) -> (due: Int64, event: Event)? {
    discardDead()
    guard let first = heap.first, first.due <= time else { return nil }
    removeFirst()
    live.remove(first.token)
    if case .machine(let name) = first.event { named[ExactKey(name)] = nil }
    return (first.due, first.event)
  }

  private mutating func push(due: Int64, event: Event) -> Token {
    lastToken &+= 1
    live.insert(lastToken)
    heap.append(Entry(due: due, token: lastToken, event: event))
    siftUp(heap.count - 1)
    return lastToken
  }

  /// Cancelled entries stay in the heap until they reach its top.
  private mutating func discardDead() {
    while let first = heap.first, !live.contains(first.token) { removeFirst() }
  }

  private mutating func removeFirst() {
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    siftDown()
  }

  private mutating func siftUp(_ start: Int) {
    var child = start
    while child > 0 {
      let parent = (child - 1) / 2
      guard Entry.isBefore(heap[child], heap[parent]) else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  private mutating func siftDown() {
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
        if Entry.isBefore(heap[child], heap[least]) { least = child }
      }
      if least == parent { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
