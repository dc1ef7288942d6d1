import ChatJSON
import Foundation
import LeanCloudWire

/// What a word in a message leads to: the service's filter, and the app's own hook before a message is taken.
struct WordRules: Sendable {
  var filtered: [String] = []
  var refused: [String] = []
  /// What a hit becomes.
  static let mask = "***"
  /// The code that the app's hook gives beside the service's.
  static let hookCode: Int64 = 40_000

  /// Without empty words and the spaces around them.
  static func list(_ text: String) -> [String] {
    text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
  }

  func refuses(_ data: String) -> Bool { refused.contains { data.contains($0) } }

  /// nil where nothing was found. Of a typed message only the text is looked at.
  func masking(_ data: String) -> String? {
    guard !filtered.isEmpty else { return nil }
    if var object = (try? JSONValue(parsing: data))?.object, object["_lctype"] != nil {
      guard let masked = object["_lctext"]?.string.flatMap(mask) else { return nil }
      object["_lctext"] = .string(masked)
      return JSONValue.object(object).text()
    }
    return mask(data)
  }

  private func mask(_ text: String) -> String? {
    var masked = text
    for word in filtered { masked = masked.replacing(word, with: Self.mask) }
    return masked == text ? nil : masked
  }
}

extension LeanCloudEmulator {
  /// After a message of a socket was taken: where the filter changed it, everybody is told, the author too.
  func censor(_ id: String, in conversation: Conversation) {
    guard let index = conversation.index(of: id), !conversation.messages[index].isBinary,
      let masked = words.masking(conversation.messages[index].data)
    else { return }
    let old = conversation.messages[index]
    change(
      conversation, at: index, Edit(data: masked, mentions: old.mentions, mentionsAll: old.mentionsAll, isByService: true),
      except: nil)
  }
}
