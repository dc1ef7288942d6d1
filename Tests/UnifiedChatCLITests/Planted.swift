import Foundation

/// Something that must not be told, in the forms in which it could be.
struct Planted: Sendable {
  let name: String
  let text: String

  /// As it is, percent-encoded, escaped for JSON, HTML and a shell, in hex and in base64.
  var forms: [(form: String, bytes: [UInt8])] {
    let bytes = Array(text.utf8)
    var forms: [(String, String)] = [("plain", text)]
    forms.append(("percent", bytes.map { Self.isPlain($0) ? String(UnicodeScalar($0)) : Self.percent($0) }.joined()))
    forms.append(("percent, all", bytes.map(Self.percent).joined()))
    forms.append(("JSON", Self.json(text, slashes: false)))
    forms.append(("JSON, slashes", Self.json(text, slashes: true)))
    forms.append(("JSON, ASCII", Self.json(text, slashes: false, ascii: true)))
    forms.append(("JSON in JSON", Self.json(Self.json(text, slashes: false), slashes: false)))
    let html = text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
    forms.append(("HTML", html.replacingOccurrences(of: "\"", with: "&quot;")))
    forms.append(("hex", bytes.map { String(format: "%02x", $0) }.joined()))
    // In base64 the neighbours decide the digits at both ends; those in between are always the same.
    for shift in 0..<3 {
      let padded = Data([UInt8](repeating: 0, count: shift) + bytes).base64EncodedString()
      let kept = padded.dropFirst(shift == 0 ? 0 : shift + 1).filter { $0 != "=" }.dropLast()
      forms.append(("base64", String(kept)))
      let safe = kept.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
      forms.append(("base64url", String(safe)))
    }
    return forms.map { ($0.0, Array($0.1.utf8)) }
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case 48...57, 65...90, 97...122: true
    default: "-._~".utf8.contains(byte)
    }
  }

  private static func percent(_ byte: UInt8) -> String { String(format: "%%%02X", byte) }

  private static func json(_ text: String, slashes: Bool, ascii: Bool = false) -> String {
    var result = text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
    if slashes { result = result.replacingOccurrences(of: "/", with: "\\/") }
    guard ascii else { return result }
    return result.utf16.map { $0 < 0x80 ? String(UnicodeScalar(UInt8($0))) : String(format: "\\u%04x", Int($0)) }.joined()
  }

  /// The forms that stand in `bytes`; hex digits and escapes in either case.
  func found(in bytes: [UInt8]) -> [String] {
    let data = Data(bytes)
    let lower = Data(bytes.map { (65...90).contains($0) ? $0 + 32 : $0 })
    return forms.filter { form in
      if data.range(of: Data(form.bytes)) != nil { return true }
      guard ["hex", "JSON, ASCII", "percent", "percent, all"].contains(form.form) else { return false }
      return lower.range(of: Data(form.bytes.map { (65...90).contains($0) ? $0 + 32 : $0 })) != nil
    }.map(\.form)
  }
}

/// Everything that runs have printed and written.
struct Evidence {
  private(set) var pieces: [(place: String, bytes: [UInt8])] = []

  mutating func add(_ place: String, _ text: String) { pieces.append((place, Array(text.utf8))) }

  /// Every file below `folder` but those that `isOwn` names: what the test itself put there.
  mutating func addFiles(of folder: URL, except isOwn: (String) -> Bool) throws {
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where !isOwn(name) {
      let path = folder.appendingPathComponent(name).path
      guard let bytes = FileManager.default.contents(atPath: path) else { continue }
      pieces.append((name, Array(bytes)))
    }
  }

  /// Where something of `planted` stands, and in which form. Only places that `isSearched` lets through.
  func leaks(of planted: [Planted], where isSearched: (String) -> Bool = { _ in true }) -> [String] {
    pieces.filter { isSearched($0.place) }.flatMap { piece in
      planted.flatMap { secret in secret.found(in: piece.bytes).map { "\(piece.place): \(secret.name) (\($0))" } }
    }
  }
}
