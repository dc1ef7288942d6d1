import Foundation

let allBenchmarks: [Benchmark] = jsonBenchmarks + cacheBenchmarks + roundTripBenchmarks + connectBenchmarks
  + idleBenchmarks + migrationBenchmarks

/// Prints one line per comparison. Exit code 1 if a benchmark failed, 2 if a name fits none; a missed goal is
/// printed as such and is no failure, since the machine may be busy.
let wanted = Array(CommandLine.arguments.dropFirst())
if wanted.contains("--help") || wanted.contains("--list") {
  print("usage: benchmarks [NAME…]   a name, or the beginning of one; none runs all of:")
  for benchmark in allBenchmarks { print("  \(benchmark.name)") }
  exit(0)
}
for name in wanted where !allBenchmarks.contains(where: { $0.name.hasPrefix(name) }) {
  print("benchmarks: no benchmark is named \(name); --list shows them")
  exit(2)
}
let chosen = allBenchmarks.filter { benchmark in
  wanted.isEmpty || wanted.contains { benchmark.name.hasPrefix($0) }
}
var failed = false
print(Report.header)
for benchmark in chosen {
  do {
    for comparison in try await benchmark.run() { print(Report.line(comparison)) }
  } catch {
    print("\(benchmark.name): failed: \(error)")
    failed = true
  }
}
exit(failed ? 1 : 0)
