extension Command {
  /// Follows the words through the tree, then reads options and operands.
  func parse(_ words: [String]) throws -> Invocation {
    var command = self
    var path = [name]
    var rest = words[...]
    while let word = rest.first, !word.hasPrefix("-"), !command.children.isEmpty {
      guard let child = command.children.first(where: { $0.name == word }) else {
        throw Failure(.usage, command.unknown(word, path))
      }
      command = child
      path.append(word)
      rest.removeFirst()
    }
    var invocation = Invocation(command: command, path: path)
    try command.read(rest, into: &invocation)
    if !invocation.wantsHelp { try command.check(invocation) }
    return invocation
  }

  private func unknown(_ word: String, _ path: [String]) -> String {
    let names = children.map(\.name)
    let near = Nearest.name(to: word, among: names).map { "; did you mean \"\($0)\"?" } ?? "."
    return "\"\(path.joined(separator: " "))\" has no command \"\(word)\"\(near) It has: \(names.joined(separator: ", "))"
  }

  private func read(_ words: ArraySlice<String>, into invocation: inout Invocation) throws {
    var rest = words
    var onlyOperands = false
    while let word = rest.popFirst() {
      if onlyOperands || !word.hasPrefix("-") || word == "-" {
        invocation.operands.append(word)
      } else if word == "--" {
        onlyOperands = true
      } else {
        try readOption(word, &rest, &invocation)
      }
    }
  }

  private func readOption(_ word: String, _ rest: inout ArraySlice<String>, _ invocation: inout Invocation) throws {
    if word == "-h" {
      invocation.values["help"] = [""]
      return
    }
    let bare = word.drop { $0 == "-" }
    let parts = bare.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts.first ?? "")
    guard word.hasPrefix("--"), let option = allOptions.first(where: { $0.name == name }) else {
      let near = Nearest.name(to: name, among: allOptions.map(\.name)).map { "; did you mean --\($0)?" } ?? "."
      // What stands behind the = may be a secret.
      let said = word.split(separator: "=", maxSplits: 1).first.map(String.init) ?? word
      throw Failure(.usage, "unknown option \(said)\(near) See \(invocation.path.joined(separator: " ")) --help")
    }
    guard option.value != nil else {
      guard parts.count == 1 else { throw Failure(.usage, "--\(name) takes no value") }
      invocation.values[name] = [""]
      return
    }
    // What looks like the next option was not meant as a value; `--name=--value` can still say it.
    if parts.count == 1, rest.first?.hasPrefix("--") == true { rest = [] }
    guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
      throw Failure(.usage, "--\(name) needs a value: --\(name) \(option.value ?? "")")
    }
    guard option.choices.isEmpty || option.choices.contains(value) else {
      throw Failure(.usage, "--\(name) takes one of \(option.choices.joined(separator: ", ")), not \"\(value)\"")
    }
    guard option.isRepeatable || invocation.values[name] == nil else {
      throw Failure(.usage, "--\(name) is given twice")
    }
    invocation.values[name, default: []].append(value)
  }

  private func check(_ invocation: Invocation) throws {
    guard children.isEmpty || run != nil else { return }
    let path = invocation.path.joined(separator: " ")
    for option in options where option.isRequired && !invocation.has(option.name) {
      throw Failure(.usage, "\(path) needs --\(option.name) \(option.value ?? ""): \(option.help)")
    }
    if invocation.operands.count < operands.count {
      throw Failure(.usage, "\(path) needs \(operands[invocation.operands.count])")
    }
    if invocation.operands.count > operands.count {
      throw Failure(.usage, "\(path) does not know what to do with \"\(invocation.operands[operands.count])\"")
    }
  }

  /// The text of `--help`.
  func help(path: [String]) -> String {
    var lines = ["\(path.joined(separator: " ")): \(summary)", ""]
    let words = operands.map { "<\($0)>" } + (children.isEmpty ? [] : ["<command>"])
    lines.append("Usage: \((path + words).joined(separator: " "))\(options.isEmpty ? "" : " [options]")")
    if !details.isEmpty { lines += ["", details] }
    if !children.isEmpty {
      lines += ["", "Commands:"] + Self.columns(children.map { ($0.name, $0.summary) })
    }
    lines += ["", "Options:"]
    lines += Self.columns(
      allOptions.map { option in
        let choices = option.choices.isEmpty ? "" : " (\(option.choices.joined(separator: ", ")))"
        return ("--\(option.name)" + (option.value.map { " \($0)" } ?? ""), option.help + choices)
      })
    if !examples.isEmpty { lines += ["", "Examples:"] + examples.map { "  \($0)" } }
    return lines.joined(separator: "\n")
  }

  private static func columns(_ rows: [(String, String)]) -> [String] {
    let width = min(30, rows.map(\.0.count).max() ?? 0)
    return rows.map { "  " + $0.0 + String(repeating: " ", count: max(1, width - $0.0.count + 2)) + $0.1 }
  }
}

/// Finds what a user probably meant.
enum Nearest {
  /// The name with the fewest edits, if those are few for its length.
  static func name(to word: String, among names: [String]) -> String? {
    let best = names.map { ($0, distance(word, $0)) }.min { $0.1 < $1.1 }
    guard let best, best.1 <= max(1, min(3, word.count / 2)) else {
      return names.first { !word.isEmpty && $0.hasPrefix(word) }
    }
    return best.0
  }

  /// Levenshtein's.
  static func distance(_ left: String, _ right: String) -> Int {
    let (a, b) = (Array(left), Array(right))
    var row = Array(0...b.count)
    for i in 0..<a.count {
      var previous = row[0]
      row[0] = i + 1
      for j in 0..<b.count {
        let replaced = previous + (a[i] == b[j] ? 0 : 1)
        previous = row[j + 1]
        row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
      }
    }
    return row[b.count]
  }
}
