import Foundation
import UnifiedChat

/// Days of a public IRC channel: `[HH:MM] <nick> text`, `[HH:MM]  * nick does`, `=== notice`, and annotation lines
/// `A B -` (line B answers line A, counted from 0).
///
/// The source has minutes only: within a minute each line gets the next millisecond, so that order is kept and equal
/// lines stay two messages. A notice has no time and takes that of the line before.
enum UbuntuIRC {
  static func convert(_ folder: String, to sink: RecordSink) throws -> [String: Int] {
    let names = try SeedConverter.entries(of: folder)
    let days = names.filter { $0.hasSuffix(".raw.txt") }.sorted()
    var known: Set<UserID> = []
    for name in days {
      let day = String(name.dropLast(".raw.txt".count))
      let lines = try read(folder + "/" + name, day: day)
      for nick in lines.compactMap(\.author) where known.insert(nick).inserted {
        try sink(.user(UserRecord(user: User(id: nick, name: nick.rawValue))))
      }
      let answers = try replies(folder + "/" + day + ".annotation.txt", count: lines.count)
      try write(lines, answers, day: day, to: sink)
    }
    return [:]
  }

  struct Line {
    var author: UserID?
    var content: MessageContent
    var createdAt: Timestamp
    var isMessage: Bool
  }

  private static func write(_ lines: [Line], _ answers: [Int: Int], day: String, to sink: RecordSink) throws {
    let channel = SeedID.channel("ubuntu-irc/\(day)")
    var record = Channel(id: channel, kind: .group, name: "#ubuntu \(day)")
    record.createdAt = lines.first?.createdAt
    record.customData = JSONText(unchecked: #"{"log":"ubuntu-irc","day":"\#(day)"}"#)
    try sink(.channel(ChannelRecord(channel: record)))
    var members: [UserID] = []
    var seen: Set<UserID> = []
    for author in lines.compactMap(\.author) where seen.insert(author).inserted { members.append(author) }
    for (index, user) in members.enumerated() {
      let role: MemberRole = index == 0 ? .owner : .member
      try sink(.member(MemberRecord(channel: channel, member: Member(user: User(id: user), role: role))))
    }
    for (index, line) in lines.enumerated() {
      var message = Message(
        channel: channel, id: SeedID.message("ubuntu-irc/\(day)/\(index)"),
        sender: line.isMessage ? line.author : nil, createdAt: line.createdAt, content: line.content)
      if line.isMessage { message.mentions = mentions(line.content, among: seen, by: line.author) }
      if let target = answers[index] {
        message.replyTo = Reply(id: SeedID.message("ubuntu-irc/\(day)/\(target)"))
      }
      try sink(.message(MessageRecord(message: message)))
    }
  }

  /// `nick: text` and `nick, text` speak to a nick that is there.
  private static func mentions(_ content: MessageContent, among nicks: Set<UserID>, by author: UserID?) -> Mentions {
    guard case .text(let text) = content, let end = text.firstIndex(where: { $0 == ":" || $0 == "," }) else {
      return Mentions()
    }
    let nick = UserID(String(text[..<end]))
    return nicks.contains(nick) && nick != author ? Mentions(users: [nick]) : Mentions()
  }

  private static func read(_ file: String, day: String) throws -> [Line] {
    var clock = try DayClock(day: day, file: file)
    var lines: [Line] = []
    var texts = try SeedConverter.text(of: file).split(separator: "\n", omittingEmptySubsequences: false)
    if texts.last?.isEmpty == true { texts.removeLast() }
    for (index, text) in texts.enumerated() {
      lines.append(try line(String(text), clock: &clock, place: (file, index + 1)))
    }
    return lines
  }

  private static func line(_ text: String, clock: inout DayClock, place: (file: String, line: Int)) throws -> Line {
    guard text.hasPrefix("["), let end = text.firstIndex(of: "]"), text.hasPrefix("===") == false else {
      guard text.hasPrefix("===") else {
        throw SeedError(file: place.file, line: place.line, reason: "neither [HH:MM] nor ===")
      }
      return notice(text, at: clock.tick())
    }
    let time = try clock.tick(minute: text[text.index(after: text.startIndex)..<end], place)
    var rest = text[text.index(after: end)...]
    if rest.hasPrefix(" ") { rest.removeFirst() }
    if rest.hasPrefix("<"), let close = rest.firstIndex(of: ">") {
      let nick = String(rest[rest.index(after: rest.startIndex)..<close])
      var words = rest[rest.index(after: close)...]
      if words.hasPrefix(" ") { words.removeFirst() }
      // A vendor may refuse an empty text; the log has a few lines that say nothing.
      let content = MessageContent.text(words.isEmpty ? " " : String(words))
      return Line(author: UserID(nick), content: content, createdAt: time, isMessage: true)
    }
    let words = rest.drop { $0 == " " || $0 == "*" }
    let nick = UserID(String(words.prefix { $0 != " " }))
    let action = words.dropFirst(nick.rawValue.count).drop { $0 == " " }
    return Line(author: nick, content: .text("/me \(action)"), createdAt: time, isMessage: true)
  }

  private static func notice(_ text: String, at time: Timestamp) -> Line {
    let words = text.split(separator: " ")
    let nick = words.count > 1 ? UserID(String(words[1])) : nil
    let kind = text.contains(" has joined ") ? "memberJoined" : text.contains(" has left ") ? "memberLeft" : "other"
    let isMember = kind != "other"
    return Line(
      author: isMember ? nick : nil,
      content: .system(
        SystemNotice(kind: kind, actor: isMember ? nick : nil, text: text)), createdAt: time, isMessage: false)
  }

  private static func replies(_ file: String, count: Int) throws -> [Int: Int] {
    guard FileManager.default.fileExists(atPath: file) else { return [:] }
    var answers: [Int: Int] = [:]
    for (index, line) in try SeedConverter.text(of: file).split(separator: "\n").enumerated() {
      let parts = line.split(separator: " ")
      guard parts.count >= 2, let target = Int(parts[0]), let answer = Int(parts[1]),
        (0..<count).contains(target), (0..<count).contains(answer)
      else { throw SeedError(file: file, line: index + 1, reason: "not two line numbers of the log") }
      // A line may answer several; the first link is its reply, as a message has one target.
      if target < answer, answers[answer] == nil { answers[answer] = target }
    }
    return answers
  }
}

/// Turns minutes of one log into times that never stand still.
private struct DayClock {
  private var midnight: Int64
  private var minute: Int64 = 0
  private var last: Int64

  init(day: String, file: String) throws {
    let parts = day.prefix(10).split(separator: "-").compactMap { Int($0) }
    var components = DateComponents()
    components.calendar = Calendar(identifier: .gregorian)
    components.timeZone = .gmt
    guard parts.count == 3 else { throw SeedError(file: file, reason: "the name does not start with YYYY-MM-DD") }
    (components.year, components.month, components.day) = (parts[0], parts[1], parts[2])
    guard components.isValidDate, let date = components.date else {
      throw SeedError(file: file, reason: "the name does not start with a date")
    }
    midnight = Int64(date.timeIntervalSince1970) * 1000
    last = midnight - 1
  }

  mutating func tick(minute text: Substring, _ place: (file: String, line: Int)) throws -> Timestamp {
    let parts = text.split(separator: ":").compactMap { Int64($0) }
    guard parts.count == 2, (0..<24).contains(parts[0]), (0..<60).contains(parts[1]) else {
      throw SeedError(file: place.file, line: place.line, reason: "[\(text)] is no time of day")
    }
    let next = parts[0] * 60 + parts[1]
    // A log that runs over midnight starts its minutes anew; a few minutes back are a disorder of the log.
    if next < minute - 12 * 60 { midnight += 86_400_000 }
    minute = next
    return tick()
  }

  mutating func tick() -> Timestamp {
    last = max(last + 1, midnight + minute * 60_000)
    return Timestamp(milliseconds: last)
  }
}
