#if !FUZZING
  import ChatFuzzing
  import Foundation

  /// Runs the targets without libFuzzer: `fuzz --list`, `fuzz TARGET FILE…` for inputs that were kept, and
  /// `fuzz TARGET --runs N --seed S` for blind mutations. `Tests/Fuzzing/fuzz` builds the other form.
  @main
  struct Fuzz {
    static func main() {
      let arguments = Array(CommandLine.arguments.dropFirst())
      if arguments.isEmpty || arguments[0] == "--list" {
        for target in FuzzTarget.all { print(target.name) }
        exit(arguments.isEmpty ? 2 : 0)
      }
      guard let target = FuzzTarget.all.first(where: { $0.name == arguments[0] }) else {
        FileHandle.standardError.write(Data("fuzz: no target is named \(arguments[0]); --list shows them\n".utf8))
        exit(2)
      }
      exit(run(target, Array(arguments.dropFirst())))
    }

    private static func run(_ target: FuzzTarget, _ arguments: [String]) -> Int32 {
      guard let place = arguments.firstIndex(of: "--runs"), place + 1 < arguments.count else {
        return arguments.allSatisfy { replay(target, $0) } ? 0 : 1
      }
      let seed = arguments.firstIndex(of: "--seed").flatMap { $0 + 1 < arguments.count ? UInt64(arguments[$0 + 1]) : nil }
      var mutator = Mutator(seed: seed ?? 1)
      for _ in 0..<max(0, Int(arguments[place + 1]) ?? 0) {
        guard keepsLaws(target, mutator.variant(of: target.seeds)) else { return 1 }
      }
      return 0
    }

    private static func replay(_ target: FuzzTarget, _ path: String) -> Bool {
      guard let data = FileManager.default.contents(atPath: path) else {
        FileHandle.standardError.write(Data("fuzz: \(path) can't be read\n".utf8))
        return false
      }
      return keepsLaws(target, Array(data))
    }
  }
#endif
