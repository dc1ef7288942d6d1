import ChatFuzzing
import Foundation

/// `fuzz TARGET [libFuzzer's arguments]` where it was built for libFuzzer (`make fuzz`); elsewhere `fuzz --list`,
/// `fuzz TARGET FILE…` to run inputs again, and `fuzz TARGET --runs N --seed S` for blind mutations.
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
