import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What a run ends with. Scripts may rely on the numbers.
enum ExitCode: Int32 {
  case success = 0
  /// What was checked is not equal, or a case failed.
  case different = 1
  /// The arguments are wrong.
  case usage = 2
  /// The configuration, a secret or an input file is wrong.
  case configuration = 3
  /// The service that is read failed.
  case source = 4
  /// The service that is written failed.
  case destination = 5
  /// The archive, ledger, cache or disk failed.
  case storage = 6
  /// Ended by a signal, with everything confirmed kept.
  case interrupted = 130
}

/// An end of the run that the user is told in one line: what, where, and the mend.
struct Failure: Error, CustomStringConvertible {
  var code: ExitCode
  var description: String

  init(_ code: ExitCode, _ description: String) {
    self.code = code
    self.description = description
  }
}

@main
enum Program {
  /// Of the newest entry in CHANGELOG.md.
  static let version = "0.1.0"

  static func main() async {
    // Output to a closed pipe ends with an error to handle, not with a signal.
    signal(SIGPIPE, SIG_IGN)
    let words = Array(CommandLine.arguments.dropFirst())
    do {
      let invocation = try CommandTree.root.parse(words)
      if invocation.wantsHelp {
        Standard.line(invocation.command.help(path: invocation.path))
        end(.success)
      }
      if invocation.has("version") {
        Standard.line("unifiedchat \(version)")
        end(.success)
      }
      guard let run = invocation.command.run else {
        Standard.line(invocation.command.help(path: invocation.path))
        end(.usage)
      }
      end(try await run(invocation))
    } catch {
      let failure = Failure(reporting: error)
      Standard.error("unifiedchat: \(failure.description)")
      exit(failure.code.rawValue)
    }
  }

  /// A result that nobody got is no success.
  private static func end(_ code: ExitCode) -> Never {
    guard let failure = Standard.failure else { exit(code.rawValue) }
    Standard.error("unifiedchat: standard output: \(failure); the result is not whole, direct it elsewhere")
    exit(ExitCode.storage.rawValue)
  }
}
