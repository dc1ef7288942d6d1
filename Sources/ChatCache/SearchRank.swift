import UnifiedChat

/// What a message is filtered by, as words of the index.
enum SearchTag {
  static func channel(_ id: ChannelID) -> String { "c" + hash(id.rawValue) }
  static func sender(_ id: UserID) -> String { "u" + hash(id.rawValue) }
  static func kind(_ name: String) -> String { "k" + hash(name) }

  static func all(of message: Message) -> String {
    var tags = [channel(message.channel), kind(message.content.kindName)]
    if let sender = message.sender { tags.append(self.sender(sender)) }
    return tags.joined(separator: " ")
  }

  /// FNV-1a. Two ids with one hash cost a look at the message itself, which decides.
  private static func hash(_ text: String) -> String {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return String(hash, radix: 36)
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
