import AllAdapters
import ChatHarness
import Foundation
import UnifiedChat

/// What 10,000 connections, one after the other, leave behind: the process's peak memory after them beside its peak
/// after the first 1,000. Over loopback sockets, so that both ends are counted, the emulator's too.
let connectBenchmarks: [Benchmark] = AllAdapters.emulators.map { factory in
  Benchmark(name: "connect.leak.\(factory.vendor)") { [try await grow(factory.vendor)] }
}

private let (warmUp, connects) = (1000, 10_000)

private func grow(_ vendor: String) async throws -> Comparison {
  let harness = try await EmulatorHarness(
    vendor: vendor, model: nil, target: .loopback, seed: 1, limits: .off, clock: SystemClock(), journal: .off)
  let user = try await harness.makeUser("alice")
  var early = 0.0
  for number in 0..<warmUp + connects {
    let adapter = try await harness.makeAdapter(device: "a")
    _ = try await adapter.connect(as: user.id, credential: user.credential)
    await adapter.disconnect()
    if number == warmUp - 1 { early = peakMegabytes() }
  }
  let late = peakMegabytes()
  await harness.cleanUp()
  return Comparison(
    what: "memory after 10,000 connects to \(vendor)", peer: "after the first 1,000", ours: late, theirs: early,
    unit: "MB", higherIsBetter: false, goal: 0.9)
}

/// The most that this process has had in memory.
func peakMegabytes() -> Double {
  var usage = rusage()
  #if canImport(Darwin)
    getrusage(RUSAGE_SELF, &usage)
    // In bytes there.
    return Double(usage.ru_maxrss) / 1e6
  #else
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return Double(usage.ru_maxrss) * 1024 / 1e6
  #endif
}
