import UnifiedChat

/// What a message is filtered by, as words of the index.
///
/// Two characters of the planes for private use, which no text of terms has: the index keeps beginnings of words, and a
/// tag of two characters has only one.
enum SearchTag {
  static func channel(_ id: ChannelID) -> String { hash("c", id.rawValue) }
  static func sender(_ id: UserID) -> String { hash("u", id.rawValue) }
  static func kind(_ name: String) -> String { hash("k", name) }

  static func all(of message: Message) -> [String] {
    [channel(message.channel), kind(message.content.kindName)] + (message.sender.map { [sender($0)] } ?? [])
  }

  /// FNV-1a, 34 bits of it. Two ids with one hash cost a look at the message itself, which decides.
  private static func hash(_ sort: String, _ text: String) -> String {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in [sort.utf8.first ?? 0] + text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    var tag = String.UnicodeScalarView()
    for half in [hash >> 47, hash >> 30 & 0x1_FFFF] {
      if let scalar = Unicode.Scalar(0xF_0000 + UInt32(half)) { tag.append(scalar) }
    }
    return String(tag)
  }
}

/// How well a text matches. Made here: SQLite's own rank needs the lengths of all texts, which the index leaves out.
enum SearchRank {
  /// For each word the number of places, up to 3, whole words counted threefold; against the length of the text.
  static func score(_ text: String, _ words: [String]) -> Double {
    let folded = Array(SearchTerms.folded(text).utf8)
    var sum = 0.0
    for word in words {
      let needle = Array(word.utf8)
      var places = 0
      for start in SearchHighlight.places(of: needle, in: folded) where places < 3 {
        places += 1
        let isWhole =
          (start == 0 || !isLetter(folded[start - 1]))
          && (start + needle.count == folded.count || !isLetter(folded[start + needle.count]))
        sum += isWhole ? 3 : 1
      }
    }
    return sum / (8 + Double(folded.count)).squareRoot()
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    byte >= 0x80 || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
  }
}

/// Finds the words of a query in a text as it is written.
enum SearchHighlight {
  static func ranges(of words: [String], in text: String) -> [Range<String.Index>] {
    // Folded character by character, with the place of each byte in the text.
    var folded: [UInt8] = []
    var origins: [String.Index] = []
    for place in text.indices {
      for byte in SearchTerms.folded(String(text[place])).utf8 {
        folded.append(byte)
        origins.append(place)
      }
    }
    var marked = [Bool](repeating: false, count: folded.count)
    for word in words {
      let needle = Array(word.utf8)
      for start in places(of: needle, in: folded) {
        for place in start..<start + needle.count { marked[place] = true }
      }
    }
    var ranges: [Range<String.Index>] = []
    for (place, isMarked) in marked.enumerated() where isMarked {
      let start = origins[place]
      let end = text.index(after: start)
      if let last = ranges.last, last.upperBound >= start {
        ranges[ranges.count - 1] = last.lowerBound..<max(end, last.upperBound)
      } else {
        ranges.append(start..<end)
      }
    }
    return ranges
  }

  /// Where `needle` begins in `bytes`, without overlap.
  static func places(of needle: [UInt8], in bytes: [UInt8]) -> [Int] {
    guard let first = needle.first, needle.count <= bytes.count else { return [] }
    var places: [Int] = []
    var place = 0
    while place <= bytes.count - needle.count {
      if bytes[place] == first, bytes[place..<place + needle.count].elementsEqual(needle) {
        places.append(place)
        place += needle.count
      } else {
        place += 1
      }
    }
    return places
  }
}
