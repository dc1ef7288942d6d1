import ChatMigration
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

  static func safe(_ text: String) -> String { text.inert }
}
