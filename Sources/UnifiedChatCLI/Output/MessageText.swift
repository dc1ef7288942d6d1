import UnifiedChat

/// A message as one line for a person.
enum MessageText {
  static func line(_ message: Message) -> String {
    "\(message.createdAt)  \(safe(message.sender?.rawValue ?? "–")): \(words(message.content))"
      + (message.editedAt == nil ? "" : " (edited)")
  }

  static func words(_ content: MessageContent) -> String {
    switch content {
    case .text(let text), .markdown(let text): safe(text)
    case .image(let file), .audio(let file), .video(let file), .file(let file):
      "[\(content.kindName) \(safe(file.name ?? ""))]"
    case .location(let place): "[location \(place.latitude), \(place.longitude) \(safe(place.name ?? ""))]"
    case .card(let user, let name, _): "[card of \(safe(name ?? user.rawValue))]"
    case .merged(let title, let messages): "[\(messages.count) messages: \(safe(title))]"
    case .system(let notice): "[\(notice.kind)\(notice.text.map { ": " + safe($0) } ?? "")]"
    case .recalled: "[recalled]"
    case .sticker: "[sticker]"
    case .custom: "[custom]"
    case .unknown(let kind, _): "[unknown kind \(safe(kind))]"
    }
  }

  /// Marks and overrides of direction, which make a text look like another.
  private static func turnsText(_ scalar: UInt32) -> Bool {
    (0x202A...0x202E).contains(scalar) || (0x2066...0x2069).contains(scalar) || (0x200E...0x200F).contains(scalar)
      || scalar == 0x061C
  }

  /// Without control characters: a message must not move a terminal's cursor or change its title.
  static func safe(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { scalar in
          scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
            && Self.turnsText(scalar.value) ? " " : scalar
        }))
  }
}
