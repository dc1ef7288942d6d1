import ChatJSON
import Foundation
import Synchronization
import UnifiedChat

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Prints what happens: for a person on a terminal with colours and one line at the bottom for what passes, for a
/// pipe as plain lines, for a program as JSON lines.
final class ChatScreen: Sendable {
  private let user: UserID
  let json: Bool
  private let isTerminal: Bool
  /// What stands in the last line and is to be wiped before the next one.
  private let status = Mutex("")
  /// Of the message that was printed last.
  private let lastDay = Mutex("")

  init(user: UserID, json: Bool) {
    self.user = user
    self.json = json
    isTerminal = !json && isatty(1) == 1
  }

  /// Somebody types here: they are greeted, and what they see counts as read.
  var isInteractive: Bool { isTerminal && isatty(0) == 1 }

  // MARK: Messages

  /// `event`: the word of the JSON line.
  func message(_ event: String, _ message: Message, mark: String = "") {
    if json { return line(object(event, message)) }
    var text = MessageText.line(message)
    if isTerminal {
      let (day, time) = Self.local(message.createdAt)
      let isNewDay = lastDay.withLock { last in
        defer { last = day }
        return last != day
      }
      if isNewDay { print(dim("— \(day) —")) }
      let name = MessageText.safe(message.senderName ?? message.sender?.rawValue ?? "–")
      let isOwn = message.sender == user
      text = dim(time) + "  " + (isOwn ? bold(name) : colour(name)) + "  " + MessageText.words(message.content)
        + (message.editedAt == nil ? "" : dim(" (edited)"))
    }
    print(text + (mark.isEmpty ? "" : dim(" " + mark)))
  }

  /// Day and time where the user is.
  private static func local(_ time: Timestamp) -> (day: String, time: String) {
    var seconds = time_t(time.milliseconds / 1000)
    var parts = tm()
    localtime_r(&seconds, &parts)
    func digits(_ number: Int32, _ count: Int = 2) -> String {
      let text = "\(number)"
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    let day = "\(digits(parts.tm_year &+ 1900, 4))-\(digits(parts.tm_mon &+ 1))-\(digits(parts.tm_mday))"
    return (day, "\(digits(parts.tm_hour)):\(digits(parts.tm_min))")
  }

  /// Takes the line that the terminal has echoed off the screen, if it is surely one line there.
  func eraseTyped(_ line: String) {
    guard isInteractive else { return }
    var size = winsize()
    guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0 else { return }
    // No character is wider than two columns.
    let columns = line.unicodeScalars.reduce(0) { $0 + ($1.value < 0x300 ? 1 : 2) }
    if columns < Int(size.ws_col) { status.withLock { _ in write("\u{1B}[1A\r\u{1B}[K") } }
  }

  private func object(_ event: String, _ message: Message) -> JSONObject {
    var object = JSONObject()
    object["event"] = .string(event)
    object["channel"] = .string(message.channel.rawValue)
    object["id"] = message.id.map { .string($0.rawValue) }
    object["localID"] = message.localID.map { .string($0.rawValue) }
    object["sender"] = message.sender.map { .string($0.rawValue) }
    object["createdAt"] = .int(message.createdAt.milliseconds)
    object["kind"] = .string(message.content.kindName)
    object["text"] = message.content.searchableText.map { .string($0) }
    if case .failed(let error) = message.state { object["error"] = .string("\(error)") }
    return object
  }

  /// A message of another channel.
  func elsewhere(_ name: String, _ message: Message) {
    if json { return self.message("received", message) }
    guard isTerminal else { return }
    let sender = MessageText.safe(message.senderName ?? message.sender?.rawValue ?? "–")
    print(dim("[\(MessageText.safe(name))] \(sender): \(MessageText.words(message.content))"))
  }

  /// A found message, what was searched for set off.
  func hit(_ message: Message, place: String, ranges: [Range<String.Index>]) {
    if json { return self.message("hit", message) }
    let text = message.content.searchableText ?? ""
    var shown = ""
    var last = text.startIndex
    for range in ranges {
      shown += MessageText.safe(String(text[last..<range.lowerBound]))
      let word = MessageText.safe(String(text[range]))
      shown += isTerminal ? "\u{1B}[1;33m\(word)\u{1B}[0m" : "«\(word)»"
      last = range.upperBound
    }
    shown += MessageText.safe(String(text[last...]))
    print("\(dim("\(message.createdAt)"))  \(dim("[" + MessageText.safe(place) + "]")) \(MessageText.safe(message.sender?.rawValue ?? "–")): \(shown)")
  }

  // MARK: The rest

  func title(_ text: String) { if !json { print(bold(MessageText.safe(text))) } }

  /// Said to a person alone.
  func hint(_ text: String) { if isInteractive { print(dim(text)) } }

  func note(_ text: String) {
    if json { return line(["event": "note", "text": .string(text)]) }
    print(dim(text))
  }

  func text(_ text: String) { if !json { print(text) } }

  /// What cannot be done, or was not. Goes to standard error, unless a person would lose it there.
  func problem(_ text: String) {
    if json { return line(["event": "problem", "text": .string(text)]) }
    if isTerminal { print("\u{1B}[31m\(text)\u{1B}[0m") } else { Standard.error("unifiedchat: \(text)") }
  }

  func line(_ object: JSONObject) { Standard.line(JSONValue.object(object).text()) }

  /// Shows what passes, in the last line; "" wipes it. Nothing elsewhere than on a terminal.
  func pass(_ text: String) {
    guard isTerminal else { return }
    status.withLock { status in
      guard status != text else { return }
      status = text
      write("\r\u{1B}[K" + (text.isEmpty ? "" : dim(text)))
    }
  }

  private func print(_ text: String) {
    guard isTerminal else { return Standard.line(text) }
    status.withLock { status in write("\r\u{1B}[K" + text + "\n" + (status.isEmpty ? "" : dim(status))) }
  }

  private func write(_ text: String) { Standard.write(text, to: .output) }
  private func dim(_ text: String) -> String { isTerminal ? "\u{1B}[2m\(text)\u{1B}[0m" : text }
  private func bold(_ text: String) -> String { isTerminal ? "\u{1B}[1m\(text)\u{1B}[0m" : text }

  /// The same one for the same name.
  private func colour(_ name: String) -> String {
    let place = name.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF }
    return "\u{1B}[\([32, 33, 34, 35, 36][place % 5])m\(name)\u{1B}[0m"
  }
}
