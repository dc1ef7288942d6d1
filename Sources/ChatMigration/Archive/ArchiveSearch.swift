import Foundation
import UnifiedChat

/// What is sought in an archive.
public struct ArchiveQuery: Sendable, Hashable {
  /// Words that must all occur, in any order, whatever their case; words of one Chinese character are words too.
  public var words: [String]
  public var channel: ChannelID?
  public var sender: UserID?
  /// From here on, this moment included.
  public var since: Timestamp?
  /// Up to here, this moment not included.
  public var until: Timestamp?

  /// - Parameter text: words between white space.
  public init(
    text: String = "", channel: ChannelID? = nil, sender: UserID? = nil, since: Timestamp? = nil,
    until: Timestamp? = nil
  ) {
    words = text.split(whereSeparator: \.isWhitespace).map(String.init)
    self.channel = channel
    self.sender = sender
    self.since = since
    self.until = until
  }
}

public struct ArchiveHit: Sendable, Hashable {
  public var channel: ChannelID
  /// The archive's numbers, for `after`.
  public var place: ArchivePlace
  public var message: Message
}

/// Where a message stands in an archive.
public struct ArchivePlace: Sendable, Hashable {
  public var channel: Int64
  public var ordinal: Int64

  public init(channel: Int64, ordinal: Int64) {
    self.channel = channel
    self.ordinal = ordinal
  }
}

extension Archive {
  /// The next hits, at most `limit`, channel by channel in the order of the archive. Reads every message once; there is
  /// no index that would have to be kept.
  public func search(
    _ query: ArchiveQuery, after place: ArchivePlace? = nil, limit: Int
  ) throws(ChatError) -> [ArchiveHit] {
    var hits: [ArchiveHit] = []
    var after = place ?? ArchivePlace(channel: 0, ordinal: 0)
    var names: [Int64: ChannelID] = [:]
    let only = try query.channel.map { id throws(ChatError) in try channel(id)?.ordinal ?? -1 }
    while hits.count < limit {
      let page = try candidates(query, only: only, after: after, limit: 500)
      guard let last = page.last else { break }
      for (place, stored) in page where hits.count < limit {
        after = place
        let message = try stored.message().message
        guard query.words.allSatisfy({ message.content.contains(word: $0) }) else { continue }
        let name: ChannelID
        if let known = names[place.channel] { name = known } else { name = try channel(place.channel)?.id ?? "" }
        names[place.channel] = name
        hits.append(ArchiveHit(channel: name, place: place, message: message))
      }
      if hits.count < limit { after = last.0 }
    }
    return hits
  }

  private func candidates(
    _ query: ArchiveQuery, only channel: Int64?, after place: ArchivePlace, limit: Int
  ) throws(ChatError) -> [(ArchivePlace, StoredRecord)] {
    // The longest word that stands in a record byte for byte does most of the work.
    let word = query.words.filter(\.isPlain).max { $0.utf8.count < $1.utf8.count }
    return try database.rows(
      """
      SELECT channel, ordinal, record FROM messages
      WHERE (channel, ordinal) > (?1, ?2) AND (?3 IS NULL OR channel = ?3) AND (?4 IS NULL OR sender = ?4)
        AND (?5 IS NULL OR created_at >= ?5) AND (?6 IS NULL OR created_at < ?6) AND (?7 IS NULL OR record LIKE ?7)
      ORDER BY channel, ordinal LIMIT ?8
      """, .integer(place.channel), .integer(place.ordinal), .integer(channel), .text(query.sender?.rawValue),
      .integer(query.since?.milliseconds), .integer(query.until?.milliseconds), .text(word.map { "%\($0)%" }),
      .integer(limit)
    ) { row in
      (
        ArchivePlace(channel: row.integer(0), ordinal: row.integer(1)),
        StoredRecord(json: row.text(2), raw: nil)
      )
    }
  }
}

extension String {
  /// Whether it stands in JSON as it is, and in one form only but for the case of ASCII letters, which LIKE ignores.
  fileprivate var isPlain: Bool {
    !isEmpty
      && unicodeScalars.allSatisfy { scalar in
        switch scalar.value {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case 0x3400...0x4DBF, 0x4E00...0x9FFF, 0x20000...0x323AF: true
        default: scalar == "-" || scalar == "." || scalar == "@" || scalar == ":"
        }
      }
  }
}

extension MessageContent {
  /// Texts that a reader sees or seeks by.
  public var searchableTexts: [String] {
    switch self {
    case .text(let text), .markdown(let text): [text]
    case .image(let file), .audio(let file), .video(let file), .file(let file): [file.name ?? ""]
    case .location(let place): [place.name ?? ""]
    case .card(let user, let name, _): [user.rawValue, name ?? ""]
    case .sticker(let data), .custom(let data): [data.text]
    case .merged(let title, let messages): [title] + messages.flatMap(\.content.searchableTexts)
    case .system(let notice): [notice.text ?? "", notice.kind]
    case .recalled: []
    case .unknown(_, let raw): [raw.text]
    }
  }

  fileprivate func contains(word: String) -> Bool {
    searchableTexts.contains { $0.range(of: word, options: .caseInsensitive) != nil }
  }
}
