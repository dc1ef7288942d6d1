import CYAML
import Foundation
import UnifiedChat

/// Short exchanges in many languages: `<language>.<topic>.yml` with `conversations`, a list of lists of texts.
///
/// One direct channel a conversation, between a new asker and the bot of the language, who take turns; times are made
/// up, one text every five seconds.
enum Chatterbot {
  static func convert(_ folder: String, to sink: RecordSink) throws -> [String: Int] {
    var bots: Set<UserID> = []
    for name in try SeedConverter.entries(of: folder).filter({ $0.hasSuffix(".yml") }).sorted() {
      let place = String(name.dropLast(".yml".count))
      let bot = UserID("bot-\(place.prefix { $0 != "." })")
      for (index, texts) in try conversations(folder + "/" + name).enumerated() {
        let asker = UserID("asker-\(place)-\(index)")
        let channel = SeedID.channel("chatterbot/\(place)/\(index)")
        let start: Int64 = 1_609_459_200_000 + Int64(index) * 60_000
        try DirectSeed.write(
          channel, [asker, bot], name: nil, createdAt: start,
          newUsers: bots.insert(bot).inserted ? [asker, bot] : [asker], to: sink)
        for (turn, text) in texts.enumerated() {
          let message = Message(
            channel: channel, id: SeedID.message("chatterbot/\(place)/\(index)/\(turn)"),
            sender: turn % 2 == 0 ? asker : bot, createdAt: Timestamp(milliseconds: start + Int64(turn) * 5_000),
            content: .text(text.isEmpty ? " " : text))
          try sink(.message(MessageRecord(message: message)))
        }
      }
    }
    return [:]
  }

  /// The texts of every list below `conversations`.
  private static func conversations(_ file: String) throws -> [[String]] {
    guard let data = FileManager.default.contents(atPath: file) else {
      throw SeedError(file: file, reason: "cannot be read")
    }
    var reader = ConversationReader()
    try data.withUnsafeBytes { bytes in
      var parser = yaml_parser_t()
      guard yaml_parser_initialize(&parser) == 1 else { throw SeedError(file: file, reason: "no memory for the parser") }
      defer { yaml_parser_delete(&parser) }
      yaml_parser_set_input_string(&parser, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
      while !reader.isAtEnd {
        var event = yaml_event_t()
        guard yaml_parser_parse(&parser, &event) == 1 else {
          throw SeedError(file: file, line: Int(cyaml_line(&parser)), reason: "not YAML")
        }
        reader.take(&event)
        yaml_event_delete(&event)
      }
    }
    return reader.conversations
  }
}

private struct ConversationReader {
  var conversations: [[String]] = []
  var isAtEnd = false
  private var depth = 0
  private var isInside = false
  private var current: [String] = []

  mutating func take(_ event: inout yaml_event_t) {
    switch event.type {
    case YAML_STREAM_END_EVENT: isAtEnd = true
    case YAML_SEQUENCE_START_EVENT:
      depth += 1
      if isInside, depth == 2 { current = [] }
    case YAML_SEQUENCE_END_EVENT:
      if isInside, depth == 2 { conversations.append(current) }
      depth -= 1
      if depth == 0 { isInside = false }
    case YAML_SCALAR_EVENT:
      let bytes = UnsafeBufferPointer(start: cyaml_scalar_text(&event), count: cyaml_scalar_length(&event))
      let text = String(decoding: bytes, as: UTF8.self)
      if depth == 0 { isInside = text == "conversations" } else if isInside, depth == 2 { current.append(text) }
    default: break
    }
  }
}
