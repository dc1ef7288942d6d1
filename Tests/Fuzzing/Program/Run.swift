import ChatFuzzing
import Foundation

/// Runs one target with what the command line says.
/// - Returns: the program's exit code.
func run(_ target: FuzzTarget, _ arguments: [String]) -> Int32 {
  #if FUZZING
    return LibFuzzer.run(target, arguments)
  #else
    if let place = arguments.firstIndex(of: "--runs"), place + 1 < arguments.count {
      let seed = arguments.firstIndex(of: "--seed").flatMap { $0 + 1 < arguments.count ? UInt64(arguments[$0 + 1]) : nil }
      return mutate(target, runs: Int(arguments[place + 1]) ?? 0, seed: seed ?? 1)
    }
    return arguments.allSatisfy { replay(target, $0) } ? 0 : 1
  #endif
}

func report(_ target: FuzzTarget, _ law: BrokenLaw, _ bytes: [UInt8]) {
  let hex = bytes.prefix(512).map { String($0, radix: 16) }.joined(separator: " ")
  FileHandle.standardError.write(Data("\(target.name): \(law)\n  input (\(bytes.count) bytes, hex): \(hex)\n".utf8))
}

private func replay(_ target: FuzzTarget, _ path: String) -> Bool {
  guard let data = FileManager.default.contents(atPath: path) else {
    FileHandle.standardError.write(Data("fuzz: \(path) can't be read\n".utf8))
    return false
  }
  do {
    try target.run(Array(data))
    return true
  } catch {
    report(target, error, Array(data))
    return false
  }
}

private func mutate(_ target: FuzzTarget, runs: Int, seed: UInt64) -> Int32 {
  var mutator = Mutator(seed: seed)
  for _ in 0..<max(0, runs) {
    let bytes = mutator.variant(of: target.seeds)
    do { try target.run(bytes) } catch {
      report(target, error, bytes)
      return 1
    }
  }
  return 0
}
