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
  /// The terms of a message, separated by spaces, in order.
  static func index(_ text: String) -> String { terms(text).joined(separator: " ") }

  /// The query for one word of the user; nil when it has nothing that is indexed.
  static func query(_ word: String) -> String? {
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
    guard !pieces.isEmpty else { return nil }
    // One phrase, its last term by its beginning: neighbours in the query are neighbours in the text.
    return "\"" + pieces.joined(separator: " ") + (isOpen ? "\"*" : "\"")
  }

  /// What two texts are compared by when a match is checked to the letter.
  static func folded(_ text: String) -> String {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.lowercased() }
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

  private enum Run {
    case word(String)
    case pairs([String])
  }

  private static func terms(_ text: String) -> [String] {
    var terms: [String] = []
    for run in runs(of: text) {
      switch run {
      case .word(let term): terms.append(term)
      case .pairs(let characters):
        terms += pairs(characters)
        if let last = characters.last { terms.append(last) }
      }
    }
    return terms
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
