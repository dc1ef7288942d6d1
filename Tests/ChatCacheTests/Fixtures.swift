import Foundation
import UnifiedChat

@testable import ChatCache

let me: UserID = "me"

func makeCache(_ location: CacheLocation = .memory, user: UserID = me) throws -> LocalCache {
  try LocalCache(CacheIdentity(vendor: "test", app: "app", user: user), at: location)
}

/// A folder of its own that is gone with the object.
final class Folder {
  let path: String

  init() { path = FileManager.default.temporaryDirectory.appending(path: "cache-\(UUID())").path }
  deinit { try? FileManager.default.removeItem(atPath: path) }

  var location: CacheLocation { .directory(path) }
  var files: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path).sorted()) ?? [] }
}

func text(
  _ words: String, _ sequence: Int64, by sender: UserID = "bob", in channel: ChannelID = "c", id: MessageID? = nil,
  client: ClientMessageID? = nil
) -> Message {
  Message(
    channel: channel, id: id ?? MessageID("m\(sequence)"), clientMessageID: client, sender: sender,
    position: MessagePosition(sequence: sequence), createdAt: Timestamp(milliseconds: 1000 + sequence),
    content: .text(words))
}

func position(_ sequence: Int64) -> MessagePosition { MessagePosition(sequence: sequence) }

extension LocalCache {
  /// Texts of the main list.
  func texts(in channel: ChannelID = "c") throws -> [String] {
    try read { session throws(ChatError) in
      try session.messages(
        in: channel, .newer, of: .lowest, within: CachedRange(low: .lowest, high: .highest), limit: 10_000)
    }.map { $0.content.searchableText ?? $0.content.kindName }
  }

  func found(_ query: String) throws -> [String] {
    try read { session throws(ChatError) in try session.search(CacheSearch(query, limit: 1000)) }.items
      .map { $0.content.searchableText ?? "" }
  }
}
