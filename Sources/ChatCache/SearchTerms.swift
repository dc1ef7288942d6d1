import Foundation

/// How text is cut for the search index.
///
/// Where a script puts no spaces between words (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar) and for symbols and
/// emoji, the terms are every pair of neighbours and the last character alone, so that a query of one character
/// finds a term by its beginning, one of two characters is a term, and a longer one is a row of them. Elsewhere a
/// term is a word.
///
/// Folding: case, full-width Latin to plain, accents dropped (composed or not). Traditional and simplified characters
/// are not folded.
enum SearchTerms {
  /// What the index holds of a text.
  struct Entry {
    /// Separated by spaces, in order.
    var terms: String
    /// The first two characters of every word. Beginnings of that length have no list of their own in the index, since
    /// every pair would stand there a second time; so they stand among the tags.
    var heads: Set<String>
  }

  static func entry(_ text: String) -> Entry {
    var terms: [String] = []
    var heads: Set<String> = []
    for run in runs(of: text) {
      switch run {
      case .word(let term):
        terms.append(term)
        if let head = beginning(of: term, headLength) { heads.insert(head) }
      case .pairs(let characters):
        terms += pairs(characters)
        if let last = characters.last { terms.append(last) }
      }
    }
    return Entry(terms: terms.joined(separator: " "), heads: heads)
  }

  /// How the index is asked for one word of the user.
  struct Query {
    /// Finds what has the word, and no more than neighbours of its parts.
    var exact: String
    /// Finds that and more, newest first without reading the rest; nil when `exact` does so itself. `exact` reads
    /// everything that begins with the word before it gives the first hit.
    var quick: String?
    /// `quick` finds hardly more than `exact`.
    var isQuickTight = false
  }

  /// nil when the word has nothing that is indexed.
  static func query(_ word: String) -> Query? {
    var pieces: [String] = []
    // A pair cannot go on, so that it is asked for as it is: the index then reads the newest hits alone.
    var isOpen = true
    let runs = runs(of: word)
    for (place, run) in runs.enumerated() {
      switch run {
      case .word(let term):
        pieces.append(term)
        isOpen = true
      case .pairs(let characters):
        pieces += pairs(characters)
        isOpen = characters.count == 1
        // The index has the last character of a run as a term of its own; at the end of a query more may follow.
        let isLast = place == runs.count - 1
        if let last = characters.last, !isLast || characters.count == 1 { pieces.append(last) }
      }
    }
    guard let last = pieces.last else { return nil }
    // One phrase, its last term by its beginning: neighbours in the query are neighbours in the text.
    let query = Query(exact: phrase(pieces, isOpen: isOpen))
    guard isOpen, case .word = runs.last else { return query }
    return quickened(query, pieces.dropLast(), last)
  }

  private static func quickened(_ query: Query, _ before: ArraySlice<String>, _ last: String) -> Query {
    var query = query
    switch last.unicodeScalars.count {
    case headLength:
      let head = "tags : \"\(last)\""
      query.quick = before.isEmpty ? head : phrase(Array(before), isOpen: false) + " AND " + head
      query.isQuickTight = true
    case (longestBeginning + 1)...:
      guard let start = beginning(of: last, longestBeginning) else { break }
      query.quick = phrase(Array(before) + [start], isOpen: true)
    default: break
    }
    return query
  }

  private static func phrase(_ pieces: [String], isOpen: Bool) -> String {
    "terms : \"" + pieces.joined(separator: " ") + (isOpen ? "\"*" : "\"")
  }

  private static let headLength = 2
  /// The longest beginning of which the index keeps a list (`prefix` of the schema).
  private static let longestBeginning = 6

  private static func beginning(of term: String, _ length: Int) -> String? {
    let scalars = term.unicodeScalars.prefix(length)
    return scalars.count == length ? String(scalars) : nil
  }

  /// Whether a folded word stands in a folded text, not from the middle of a word of letters on: what the index finds,
  /// to the letter. By bytes, since `String` would not find half of a composed character.
  static func stands(_ word: String, in text: String) -> Bool {
    let (needle, bytes) = (Array(word.utf8), Array(text.utf8))
    guard let first = needle.first, needle.count <= bytes.count else { return needle.isEmpty }
    let beginsAsWord = word.unicodeScalars.first.map { isWord($0) && !isPaired($0) } ?? false
    for place in 0...bytes.count - needle.count
    where bytes[place] == first && bytes[place..<place + needle.count].elementsEqual(needle) {
      guard beginsAsWord, let before = scalar(before: place, in: bytes) else { return true }
      if isPaired(before) || !isWord(before) { return true }
    }
    return false
  }

  private static func scalar(before place: Int, in bytes: [UInt8]) -> Unicode.Scalar? {
    var start = place
    while start > 0 {
      start -= 1
      if bytes[start] & 0xC0 != 0x80 { break }
    }
    return String(decoding: bytes[start..<place], as: UTF8.self).unicodeScalars.last
  }

  /// What two texts are compared by when a match is checked to the letter.
  static func folded(_ text: String) -> String {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.lowercased() }
    if text.unicodeScalars.allSatisfy(isPlain) { return foldedPlain(text) }
    var result = String.UnicodeScalarView()
    for scalar in text.decomposedStringWithCanonicalMapping.unicodeScalars {
      if (0x0300...0x036F).contains(scalar.value) { continue }
      let plain =
        (0xFF01...0xFF5E).contains(scalar.value) ? Unicode.Scalar(scalar.value - 0xFEE0) ?? scalar : scalar
      result.append(contentsOf: plain.properties.lowercaseMapping.unicodeScalars)
    }
    // Hangul comes apart in decomposing: put together again, so that a syllable is one character.
    return String(result).precomposedStringWithCanonicalMapping
  }

  /// Has no other form and no case but those of Latin letters: most Chinese texts are of nothing else.
  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case ..<0x80, 0x3000...0x3029, 0x4E00...0x9FFF, 0xFF01...0xFF5E: true
    default: false
    }
  }

  private static func foldedPlain(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      let value = (0xFF01...0xFF5E).contains(scalar.value) ? scalar.value - 0xFEE0 : scalar.value
      let isCapital = (0x41...0x5A).contains(value)
      result.append(isCapital ? Unicode.Scalar(value + 0x20) ?? scalar : Unicode.Scalar(value) ?? scalar)
    }
    return String(result)
  }

  private enum Run {
    case word(String)
    case pairs([String])
  }

  private static func pairs(_ characters: [String]) -> [String] {
    zip(characters, characters.dropFirst()).map { $0 + $1 }
  }

  private static func runs(of text: String) -> [Run] {
    var runs: [Run] = []
    var word = String.UnicodeScalarView()
    var pairs: [String] = []
    func endWord() {
      if !word.isEmpty { runs.append(.word(String(word))) }
      word.removeAll()
    }
    func endPairs() {
      if !pairs.isEmpty { runs.append(.pairs(pairs)) }
      pairs = []
    }
    for scalar in folded(text).unicodeScalars {
      if isPaired(scalar) {
        endWord()
        pairs.append(String(scalar))
      } else if isWord(scalar) {
        endPairs()
        word.append(scalar)
      } else {
        endWord()
        endPairs()
      }
    }
    endWord()
    endPairs()
    return runs
  }

  private static func isPaired(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x0E00...0x0EFF, 0x1000...0x109F, 0x1100...0x11FF, 0x1780...0x17FF: true
    case 0x2E80...0x2FDF, 0x3005...0x3007, 0x3021...0x30FF, 0x3100...0x318F, 0x31A0...0x31FF, 0x3400...0x9FFF: true
    case 0xAC00...0xD7FF, 0xF900...0xFAFF, 0xFF66...0xFFDC, 0x20000...0x3FFFF: true
    case 0x2190...0x2BFF, 0x1F000...0x1FAFF: true
    default: false
    }
  }

  private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.value < 0x80 {
      return (0x30...0x39).contains(scalar.value) || (0x61...0x7A).contains(scalar.value)
    }
    return switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .nonspacingMark,
      .spacingMark, .decimalNumber, .letterNumber, .otherNumber:
      true
    default: false
    }
  }
}
