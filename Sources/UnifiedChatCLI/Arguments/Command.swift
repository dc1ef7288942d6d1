/// One option of a command.
struct OptionSpec: Sendable {
  /// Without dashes.
  var name: String
  /// What stands for its value in the help; nil for a flag.
  var value: String?
  var help: String
  var isRepeatable = false
  var isRequired = false
  /// Allowed values; empty allows any.
  var choices: [String] = []

  static func flag(_ name: String, _ help: String) -> OptionSpec { OptionSpec(name: name, value: nil, help: help) }

  static func value(
    _ name: String, _ value: String, _ help: String, repeatable: Bool = false, required: Bool = false,
    choices: [String] = []
  ) -> OptionSpec {
    OptionSpec(
      name: name, value: value, help: help, isRepeatable: repeatable, isRequired: required, choices: choices)
  }
}

/// A command, or a group of commands.
struct Command: Sendable {
  var name: String
  var summary: String
  var options: [OptionSpec] = []
  /// Names of the words that follow; all are required.
  var operands: [String] = []
  var examples: [String] = []
  var details = ""
  var children: [Command] = []
  var run: (@Sendable (Invocation) async throws -> ExitCode)?

  static let help = OptionSpec.flag("help", "show this text")
  static let json = OptionSpec.flag("json", "print JSON instead of text")

  var allOptions: [OptionSpec] { options + [Self.help] }
}

/// What a user asked for.
struct Invocation: Sendable {
  var command: Command
  /// The words that led to the command.
  var path: [String]
  var values: [String: [String]] = [:]
  var operands: [String] = []

  var wantsHelp: Bool { values["help"] != nil }
  var json: Bool { values["json"] != nil }

  func has(_ name: String) -> Bool { values[name] != nil }
  func value(_ name: String) -> String? { values[name]?.last }
  func all(_ name: String) -> [String] { values[name] ?? [] }

  /// - Throws: a usage failure when the value is no number within `range`.
  func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
    guard let text = value(name) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw Failure(
        .usage, "--\(name) takes a whole number from \(range.lowerBound) to \(range.upperBound), not \"\(text)\"")
    }
    return number
  }
}
