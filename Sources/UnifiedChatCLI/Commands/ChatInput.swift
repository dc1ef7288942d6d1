import Foundation

/// What a user typed.
enum ChatInput: Equatable {
  case say(String)
  case nothing
  case help, channels, older, read, typing, resend, cancel, recall, members, quit
  case open(String)
  case with(String)
  case search(String)
  case file(String)
  case edit(String)
  case unknown(String)

  static let guide = """
    In the chat:
      /channels        the channels, the newest message first
      /open N|ID       go to another channel, by its number in that list
      /with USER       go to the direct channel with a user
      /older           show older messages
      /search WORDS    search everything that this device has
      /file PATH       send a file
      /edit TEXT       replace your last message
      /recall          take your last message back
      /resend /cancel  try again, or drop, what was not sent
      /members         who is here, and up to where they have read
      /read /typing    tell the others: all is read, or you are typing; for scripts, a terminal reads by itself
      /quit            leave; // at the beginning sends a line that begins with /
    """

  init(_ line: String) {
    let text = line.trimmingCharacters(in: .whitespacesAndNewlines)
    guard text.hasPrefix("/") else {
      self = text.isEmpty ? .nothing : .say(line)
      return
    }
    if text.hasPrefix("//") {
      self = .say(String(text.dropFirst()))
      return
    }
    let parts = text.dropFirst().split(separator: " ", maxSplits: 1)
    let rest = parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
    self = Self.command(parts.first.map(String.init) ?? "", rest) ?? .unknown(text)
  }

  /// nil: no such command, or it lacks its word.
  private static func command(_ name: String, _ rest: String) -> ChatInput? {
    switch name {
    case "help": .help
    case "channels": .channels
    case "older": .older
    case "read": .read
    case "typing": .typing
    case "resend": .resend
    case "cancel": .cancel
    case "recall": .recall
    case "members": .members
    case "quit": .quit
    case "open" where !rest.isEmpty: .open(rest)
    case "with" where !rest.isEmpty: .with(rest)
    case "search" where !rest.isEmpty: .search(rest)
    case "file" where !rest.isEmpty: .file(rest)
    case "edit" where !rest.isEmpty: .edit(rest)
    default: nil
    }
  }

  /// Lines of standard input, read on a thread of their own: the read blocks until somebody types.
  static func lines() -> AsyncStream<String> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
      }
    }
  }
}
