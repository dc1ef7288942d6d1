import Synchronization

/// Gives every subscriber its own copy of one ordered stream. A subscriber that falls behind gets one `.overflow`
/// in place of what it lost, and blocks nobody.
public final class EventHub: Sendable {
  private struct Subscriber {
    private var buffer: [ChatEvent?] = []
    /// Taking one must not move the rest: publishers wait meanwhile.
    private var first = 0
    var dropped = 0
    var waiter: CheckedContinuation<ChatEvent?, Never>?

    var count: Int { buffer.count - first }

    mutating func append(_ event: ChatEvent) { buffer.append(event) }

    mutating func next() -> ChatEvent? {
      guard first < buffer.count else { return nil }
      let event = buffer[first]
      buffer[first] = nil
      first += 1
      if first == buffer.count || (first > 256 && first > buffer.count / 2) {
        buffer.removeFirst(first)
        first = 0
      }
      return event
    }
  }

  private struct State {
    var subscribers: [UInt64: Subscriber] = [:]
    var nextID: UInt64 = 0
    var isFinished = false
  }

  private let state = Mutex(State())
  /// Events kept for a slow subscriber.
  public let capacity: Int

  public init(capacity: Int = 4096) { self.capacity = max(1, capacity) }

  /// Hands `event` to every present subscriber and returns at once.
  public func publish(_ event: ChatEvent) {
    let waiting: [CheckedContinuation<ChatEvent?, Never>] = state.withLock { state in
      guard !state.isFinished else { return [] }
      var waiting: [CheckedContinuation<ChatEvent?, Never>] = []
      for id in state.subscribers.keys {
        if let waiter = state.subscribers[id]?.waiter {
          state.subscribers[id]?.waiter = nil
          waiting.append(waiter)
        } else if (state.subscribers[id]?.count ?? 0) < capacity, state.subscribers[id]?.dropped == 0 {
          state.subscribers[id]?.append(event)
        } else {
          // Everything after the first loss is dropped too, until the subscriber has been told.
          state.subscribers[id]?.dropped += 1
        }
      }
      return waiting
    }
    for waiter in waiting { waiter.resume(returning: event) }
  }

  /// Ends every stream after what it has buffered.
  public func finish() {
    let waiting = state.withLock { state in
      state.isFinished = true
      let waiting = state.subscribers.values.compactMap(\.waiter)
      for id in state.subscribers.keys { state.subscribers[id]?.waiter = nil }
      return waiting
    }
    for waiter in waiting { waiter.resume(returning: nil) }
  }

  /// A new stream of what is published from now on.
  public func events() -> ChatEventStream {
    let id = state.withLock { state in
      state.nextID += 1
      state.subscribers[state.nextID] = Subscriber()
      return state.nextID
    }
    return ChatEventStream(subscription: EventSubscription(hub: self, id: id))
  }

  fileprivate func next(_ id: UInt64) async -> ChatEvent? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready: ChatEvent?? = state.withLock { state in
          guard state.subscribers[id] != nil, !Task.isCancelled else { return .some(nil) }
          if let event = state.subscribers[id]?.next() { return event }
          if let dropped = state.subscribers[id]?.dropped, dropped > 0 {
            state.subscribers[id]?.dropped = 0
            return ChatEvent(.overflow(dropped: dropped), source: .local)
          }
          // A second reader beside one that waits gets nothing: the first would wait for ever.
          if state.isFinished || state.subscribers[id]?.waiter != nil { return .some(nil) }
          state.subscribers[id]?.waiter = continuation
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      remove(id)
    }
  }

  fileprivate func remove(_ id: UInt64) {
    let waiter = state.withLock { $0.subscribers.removeValue(forKey: id)?.waiter }
    waiter?.resume(returning: nil)
  }
}

/// Ends the subscription when nobody holds it any more.
private final class EventSubscription: Sendable {
  let hub: EventHub
  let id: UInt64

  init(hub: EventHub, id: UInt64) {
    self.hub = hub
    self.id = id
  }

  deinit { hub.remove(id) }
}

/// One subscriber's events, in order, for one reader.
public struct ChatEventStream: AsyncSequence, Sendable {
  public typealias Element = ChatEvent

  fileprivate let subscription: EventSubscription

  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let subscription: EventSubscription
    public mutating func next() async -> ChatEvent? { await subscription.hub.next(subscription.id) }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: subscription) }
}
