/// A `multipart/form-data` body (RFC 7578), as uploads use it.
public struct SendbirdMultipart: Sendable, Hashable {
  public struct Part: Sendable, Hashable {
    public var name: String
    public var fileName: String?
    public var mimeType: String?
    public var bytes: [UInt8]

    public init(name: String, fileName: String? = nil, mimeType: String? = nil, bytes: [UInt8]) {
      self.name = name
      self.fileName = fileName
      self.mimeType = mimeType
      self.bytes = bytes
    }
  }

  public var parts: [Part]

  public init(_ parts: [Part]) { self.parts = parts }

  public subscript(name: String) -> Part? { parts.first { $0.name == name } }

  public func text(_ name: String) -> String? { self[name].map { String(decoding: $0.bytes, as: UTF8.self) } }

  /// The body between lines of `boundary`, which must not occur in the parts.
  public func encode(boundary: String) -> [UInt8] {
    var body: [UInt8] = []
    for part in parts {
      var head = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.quote(part.name))\""
      if let file = part.fileName { head += "; filename=\"\(Self.quote(file))\"" }
      if let type = part.mimeType { head += "\r\nContent-Type: \(Self.oneLine(type))" }
      body += Array(head.utf8) + Array("\r\n\r\n".utf8) + part.bytes + Array("\r\n".utf8)
    }
    return body + Array("--\(boundary)--\r\n".utf8)
  }

  /// nil when `contentType` names no boundary or the body does not follow it.
  public init?(parsing body: [UInt8], contentType: String) {
    guard let boundary = Self.parameter("boundary", of: contentType), !boundary.isEmpty else { return nil }
    let line = Array("--\(boundary)".utf8)
    guard var start = Self.find(line, in: body, from: 0) else { return nil }
    parts = []
    while true {
      start += line.count
      if body[start...].starts(with: Array("--".utf8)) { return }
      guard body[start...].starts(with: Array("\r\n".utf8)),
        let end = Self.find(Array("\r\n".utf8) + line, in: body, from: start),
        let part = Self.part(body[min(start + 2, end)..<end])
      else { return nil }
      parts.append(part)
      start = end + 2
    }
  }

  private static func part(_ bytes: ArraySlice<UInt8>) -> Part? {
    let all = Array(bytes)
    guard let blank = find(Array("\r\n\r\n".utf8), in: all, from: 0) else { return nil }
    var part = Part(name: "", bytes: Array(all[(blank + 4)...]))
    for line in String(decoding: all[..<blank], as: UTF8.self).split(separator: "\r\n") {
      let pieces = line.split(separator: ":", maxSplits: 1)
      guard pieces.count == 2 else { continue }
      let value = String(pieces[1].drop { $0 == " " })
      switch pieces[0].lowercased() {
      case "content-disposition":
        part.name = parameter("name", of: value) ?? ""
        part.fileName = parameter("filename", of: value)
      case "content-type": part.mimeType = value
      default: break
      }
    }
    return part.name.isEmpty ? nil : part
  }

  /// The value of a `; name="…"` parameter. Browsers and the form-data module escape quotes and line ends by `%`.
  private static func parameter(_ name: String, of header: String) -> String? {
    var rest = Substring(header)
    while let semicolon = rest.firstIndex(of: ";") {
      rest = rest[rest.index(after: semicolon)...].drop { $0 == " " }
      guard let equals = rest.firstIndex(of: "=") else { return nil }
      let key = rest[..<equals].lowercased()
      rest = rest[rest.index(after: equals)...]
      let value: Substring
      if rest.first == "\"" {
        rest = rest.dropFirst()
        value = rest.prefix { $0 != "\"" }
        rest = rest.dropFirst(value.count + 1)
      } else {
        value = rest.prefix { $0 != ";" }
        rest = rest.dropFirst(value.count)
      }
      if key == name { return PercentCoding.decode(value) }
    }
    return nil
  }

  /// As browsers do it. By bytes, since CR LF is one character to `String`.
  private static func quote(_ text: String) -> String {
    var quoted: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): quoted += Array("%22".utf8)
      case 0x0D: quoted += Array("%0D".utf8)
      case 0x0A: quoted += Array("%0A".utf8)
      default: quoted.append(byte)
      }
    }
    return String(decoding: quoted, as: UTF8.self)
  }

  private static func oneLine(_ text: String) -> String { String(text.prefix { !$0.isNewline }) }

  private static func find(_ needle: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
    guard let first = needle.first, start >= 0, bytes.count >= needle.count else { return nil }
    return bytes.withUnsafeBufferPointer { bytes in
      var index = start
      while index <= bytes.count - needle.count {
        if bytes[index] == first, bytes[index..<(index + needle.count)].elementsEqual(needle) { return index }
        index += 1
      }
      return nil
    }
  }
}
