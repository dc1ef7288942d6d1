import Foundation

/// One claim about speed, measured against a peer in the same run.
///
/// To add one: a file for its area with a `static let` list of benchmarks, and that list in `allBenchmarks`.
struct Benchmark: Sendable {
  /// Lower case with dots (`json.decode.message`): what is named on the command line, whole or by its beginning.
  var name: String
  var run: @Sendable () async throws -> [Comparison]
}

/// Ours against one peer. Both values are medians in the same unit.
struct Comparison: Sendable {
  var what: String
  var peer: String
  var ours: Double
  var theirs: Double
  var unit: String
  /// True for throughput, false for time.
  var higherIsBetter = true
  /// How many times better than the peer we want to be; nil when there is no promise.
  var goal: Double?

  /// How many times better than the peer we are; below 1, worse.
  var ratio: Double { higherIsBetter ? ours / theirs : theirs / ours }
  var reachesGoal: Bool { goal.map { ratio >= $0 } ?? true }
}

enum Measure {
  static let clock = ContinuousClock()

  /// The processor time that this thread has used, in seconds: what other programs do meanwhile does not count.
  static func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// Runs the bodies by turns, so that all of them meet the same weather, and returns each one's median number of
  /// runs per second of processor time. Each turn lasts at least `turn`. For work that waits for nothing and stays on
  /// its thread.
  static func runsPerSecond(
    rounds: Int = 25, turn: Duration = .milliseconds(20), _ bodies: [() throws -> Void]
  ) throws -> [Double] {
    var counts: [Int] = []
    for body in bodies { counts.append(try calibrate(turn, body)) }
    var samples = [[Double]](repeating: [], count: bodies.count)
    for _ in 0..<rounds {
      for (index, body) in bodies.enumerated() {
        let start = processorTime()
        for _ in 0..<counts[index] { try body() }
        samples[index].append(Double(counts[index]) / (processorTime() - start))
      }
    }
    return samples.map(median)
  }

  /// How many runs fill one turn. Warms up on the way.
  private static func calibrate(_ turn: Duration, _ body: () throws -> Void) throws -> Int {
    var count = 1
    while true {
      let elapsed = try clock.measure { for _ in 0..<count { try body() } }
      if elapsed >= turn { return count }
      count *= elapsed < turn / 10 ? 8 : 2
    }
  }

  static func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return .nan }
    let middle = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  }
}

extension Duration {
  var seconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}

/// Keeps the optimiser from dropping a result that nobody reads.
@inline(never) func keep<Value>(_ value: borrowing Value) {}
