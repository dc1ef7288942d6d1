/// A growing stack whose items are moved, never copied. `Array` would copy the run that becomes a container.
struct MoveStack<Item>: ~Copyable {
  private var base: UnsafeMutablePointer<Item>?
  private(set) var count = 0
  private var capacity = 0

  init() {}

  deinit {
    base?.deinitialize(count: count)
    base?.deallocate()
  }

  /// `index` must be below `count`: callers pass places that they pushed themselves.
  subscript(index: Int) -> Item {
    @inline(__always) _read {
      precondition(index >= 0 && index < count)
      yield base.unsafelyUnwrapped[index]
    }
    @inline(__always) _modify {
      precondition(index >= 0 && index < count)
      yield &base.unsafelyUnwrapped[index]
    }
  }

  @inline(__always) mutating func push(_ item: consuming Item) {
    if count == capacity { grow() }
    (base.unsafelyUnwrapped + count).initialize(to: item)
    count &+= 1
  }

  /// Only when `count > 0`.
  @inline(__always) mutating func pop() -> Item {
    precondition(count > 0)
    count &-= 1
    return (base.unsafelyUnwrapped + count).move()
  }

  /// Takes the items from `start` to the top.
  @inline(__always) mutating func popAll(from start: Int) -> [Item] {
    let taken = count &- start
    guard taken > 0, let base else { return [] }
    count = start
    var items: [Item] = []
    items.reserveCapacity(taken)
    for place in 0..<taken { items.append((base + start + place).move()) }
    return items
  }

  @inline(never) private mutating func grow() {
    let larger = max(16, capacity &* 2)
    let fresh = UnsafeMutablePointer<Item>.allocate(capacity: larger)
    if let base {
      fresh.moveInitialize(from: base, count: count)
      base.deallocate()
    }
    base = fresh
    capacity = larger
  }
}
