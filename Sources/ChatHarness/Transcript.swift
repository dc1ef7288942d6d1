import ChatEmulation
import ChatJSON
import ChatTransport

/// Frames as lines that a person reads, without secrets.
enum Transcript {
  static func lines(_ entries: some Sequence<JournalEntry>) -> [String] {
    var start: Int64?
    return entries.map { entry in
      let from = start ?? entry.time
      start = from
      return line(entry, since: from)
    }
  }

  private static func line(_ entry: JournalEntry, since start: Int64) -> String {
    let arrow = entry.direction == .inbound ? "→" : "←"
    let link = entry.connection.map { "socket \($0.number)" } ?? entry.exchange.map { "request \($0.number)" } ?? ""
    var text = "+\(entry.time &- start) ms \(arrow) \(link) \(entry.operation.name) (\(entry.operation.vendorName))"
    if let user = entry.operation.user { text += " of \(user)" }
    if let status = entry.status { text += " \(status)" }
    if !entry.rules.isEmpty { text += " [faulted]" }
    return text + " " + content(entry)
  }

  private static func content(_ entry: JournalEntry) -> String {
    guard let bytes = entry.bytes, !bytes.isEmpty else { return "" }
    let start = bytes.firstIndex { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[") } ?? bytes.endIndex
    // A command word may stand before the JSON.
    guard start <= 8, let json = try? JSONValue(parsing: Array(bytes[start...])) else { return "\(bytes.count) bytes" }
    return String(decoding: bytes[..<start], as: UTF8.self) + String(Redaction.json(json).text().prefix(400))
  }
}
