import Synchronization

/// A value that changes, with subscribers that pull: one that is slow sees the latest value and skips what lay between.
final class LiveState<Value: Sendable>: Sendable {
  private struct State {
    var value: Value
    var version = 0
    var isFinished = false
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<(version: Int, value: Value)?, Never>] = [:]
  }

  private let state: Mutex<State>

  init(_ value: Value) { state = Mutex(State(value: value)) }

  var value: Value { state.withLock { $0.value } }

  func set(_ value: Value) {
    let woken = state.withLock { state in
      state.value = value
      state.version += 1
      let woken = (Array(state.waiters.values), state.version)
      state.waiters = [:]
      return woken
    }
    for waiter in woken.0 { waiter.resume(returning: (woken.1, value)) }
  }

  func finish() {
    let waiters = state.withLock { state in
      state.isFinished = true
      let waiters = Array(state.waiters.values)
      state.waiters = [:]
      return waiters
    }
    for waiter in waiters { waiter.resume(returning: nil) }
  }

  /// The value as soon as it is newer than `version`; nil when there will be none, or the task is cancelled.
  func next(after version: Int) async -> (version: Int, value: Value)? {
    let number = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready: (version: Int, value: Value)?? = state.withLock { state in
          if Task.isCancelled { return .some(nil) }
          if state.version > version { return .some((state.version, state.value)) }
          if state.isFinished { return .some(nil) }
          state.waiters[number] = continuation
          return .none
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      // Before the waiter is stored, `isCancelled` is seen under the same lock.
      state.withLock { $0.waiters.removeValue(forKey: number) }?.resume(returning: nil)
    }
  }
}

/// One look at a live list, and what changed since the look before.
public struct ListUpdate<Snapshot: LiveSnapshot>: Sendable {
  public var snapshot: Snapshot
  /// Against the snapshot that this subscriber got before; at first, against an empty list.
  public var diff: ListDiff

  public var items: [Snapshot.Item] { snapshot.items }
}

public protocol LiveSnapshot: Sendable, Equatable {
  associatedtype Item: Identifiable & Equatable & Sendable
  var items: [Item] { get }
}

/// The updates of a live list, the present one first. Each iterator has its own pace: what happens while it is busy
/// comes as one batch.
public struct ListUpdates<Snapshot: LiveSnapshot>: AsyncSequence, Sendable {
  public typealias Element = ListUpdate<Snapshot>

  let state: LiveState<Snapshot>
  /// The list lives as long as somebody listens to it.
  let list: any Actor

  public struct AsyncIterator: AsyncIteratorProtocol {
    let state: LiveState<Snapshot>
    let list: any Actor
    var version = -1
    var last: Snapshot?

    public mutating func next() async -> ListUpdate<Snapshot>? {
      while let next = await state.next(after: version) {
        version = next.version
        if next.value == last { continue }
        let diff = ListDiff(from: last?.items ?? [], to: next.value.items)
        last = next.value
        return ListUpdate(snapshot: next.value, diff: diff)
      }
      return nil
    }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(state: state, list: list) }
}
