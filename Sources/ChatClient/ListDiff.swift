/// What a list has to do to become another one.
///
/// Removed places are of the list before, inserted and updated places of the list after; both ascend. A view removes
/// from the last to the first, then inserts from the first to the last, then reloads what was updated.
public struct ListDiff: Sendable, Hashable {
  public var removed: [Int]
  public var inserted: [Int]
  /// Elements that stayed and say something else now.
  public var updated: [Int]
  /// Elements that are among the removed and the inserted ones: they changed their place.
  public var moved: [Move]

  public struct Move: Sendable, Hashable {
    public var from: Int
    public var to: Int
  }

  public var isEmpty: Bool { removed.isEmpty && inserted.isEmpty && updated.isEmpty }

  /// Compares by identity first: an element is the same one when its id is, whatever it says. Takes time with the
  /// length of the lists alone, not with the number of differences. Ids are to be unique in each list.
  public init<Element: Identifiable & Equatable>(from old: [Element], to new: [Element]) {
    removed = []
    inserted = []
    updated = []
    moved = []
    let newPlaces = Dictionary(new.enumerated().map { ($1.id, $0) }) { first, _ in first }
    var kept: [(from: Int, to: Int)] = []
    for (place, element) in old.enumerated() {
      if let to = newPlaces[element.id] { kept.append((place, to)) } else { removed.append(place) }
    }
    let inOrder = Self.longestRise(kept.map(\.to))
    var survivors = Set<Int>()
    for (index, pair) in kept.enumerated() {
      if inOrder.contains(index) {
        survivors.insert(pair.to)
        if old[pair.from] != new[pair.to] { updated.append(pair.to) }
      } else {
        removed.append(pair.from)
        moved.append(Move(from: pair.from, to: pair.to))
      }
    }
    inserted = new.indices.filter { !survivors.contains($0) }
    removed.sort()
    updated.sort()
  }

  /// The places of one of the longest ascending parts of `values`, which are all different: what need not move.
  private static func longestRise(_ values: [Int]) -> Set<Int> {
    // Nothing moved: the usual case.
    if zip(values, values.dropFirst()).allSatisfy(<) { return Set(values.indices) }
    var tails: [Int] = []
    var before = [Int?](repeating: nil, count: values.count)
    for (place, value) in values.enumerated() {
      var (low, high) = (0, tails.count)
      while low < high {
        let middle = (low + high) / 2
        if values[tails[middle]] < value { low = middle + 1 } else { high = middle }
      }
      before[place] = low > 0 ? tails[low - 1] : nil
      if low == tails.count { tails.append(place) } else { tails[low] = place }
    }
    var rise: Set<Int> = []
    var next = tails.last
    while let place = next {
      rise.insert(place)
      next = before[place]
    }
    return rise
  }

  /// Does to `list` what the difference says, with the elements of `new`. For tests and for views without a diffing
  /// data source.
  public func apply<Element>(to list: inout [Element], new: [Element]) {
    for place in removed.reversed() { list.remove(at: place) }
    for place in inserted { list.insert(new[place], at: place) }
    for place in updated { list[place] = new[place] }
  }
}
