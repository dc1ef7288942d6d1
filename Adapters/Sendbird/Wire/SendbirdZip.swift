import ChatCrypto

/// A zip file of documents, as the vendor's data export hands it out: stored or deflated entries, no encryption, no
/// entries of 4 GiB or more.
///
/// The raw deflate of a zip entry and the body of a gzip file are the same, so gzip's own implementation does the work
/// in both directions.
public enum SendbirdZip {
  public struct Entry: Sendable, Hashable {
    public var name: String
    public var bytes: [UInt8]

    public init(name: String, bytes: [UInt8]) {
      self.name = name
      self.bytes = bytes
    }
  }

  public enum Failure: Error, Sendable, Hashable {
    /// Not a zip file, or a damaged one; says where.
    case damaged(String)
    case unsupported(String)
    /// More bytes than the limit allows.
    case tooLarge
  }

  /// True for what begins as a zip file does.
  public static func isZip(_ bytes: [UInt8]) -> Bool {
    bytes.starts(with: [0x50, 0x4B, 0x03, 0x04]) || isEmptyZip(bytes)
  }

  private static func isEmptyZip(_ bytes: [UInt8]) -> Bool { bytes.starts(with: [0x50, 0x4B, 0x05, 0x06]) }

  // MARK: Writing

  public static func write(_ entries: [Entry]) -> [UInt8] {
    var file: [UInt8] = []
    var directory: [UInt8] = []
    for entry in entries {
      let name = Array(entry.name.utf8)
      let (method, body, checksum) = packed(entry.bytes)
      // Version 2.0, UTF-8 names, and no time: the same documents give the same bytes.
      var common: [UInt8] = []
      common.append(20, count: 2)
      common.append(0x0800, count: 2)
      common.append(method, count: 2)
      common.append(0x0021_0000, count: 4)
      common.append(checksum, count: 4)
      common.append(UInt64(body.count), count: 4)
      common.append(UInt64(entry.bytes.count), count: 4)
      common.append(UInt64(name.count), count: 2)
      common.append(0, count: 2)
      directory += [0x50, 0x4B, 0x01, 0x02, 20, 0] + common
      directory.append(0, count: 10)
      directory.append(UInt64(file.count), count: 4)
      directory += name
      file += [0x50, 0x4B, 0x03, 0x04] + common + name + body
    }
    var end: [UInt8] = [0x50, 0x4B, 0x05, 0x06, 0, 0, 0, 0]
    end.append(UInt64(entries.count), count: 2)
    end.append(UInt64(entries.count), count: 2)
    end.append(UInt64(directory.count), count: 4)
    end.append(UInt64(file.count), count: 4)
    end.append(0, count: 2)
    return file + directory + end
  }

  /// Deflated: gzip's body without its head of ten bytes and its tail of checksum and length.
  private static func packed(_ bytes: [UInt8]) -> (method: UInt64, body: [UInt8], checksum: UInt64) {
    guard let gzip = try? Gzip.compress(bytes), gzip.count >= 18 else { return (0, bytes, 0) }
    let tail = gzip.count - 8
    let checksum = (0..<4).reduce(UInt64(0)) { $0 | UInt64(gzip[tail + $1]) << UInt64(8 * $1) }
    return (8, Array(gzip[10..<tail]), checksum)
  }

  // MARK: Reading

  /// Every file of the archive, in the order of its directory; folders are left out.
  /// - Parameter limit: bytes of all entries together.
  public static func read(_ bytes: [UInt8], limit: Int = 1 << 30) throws(Failure) -> [Entry] {
    let (count, start) = try directory(of: bytes)
    var entries: [Entry] = []
    var place = start
    var total = 0
    for _ in 0..<count {
      guard place + 46 <= bytes.count, bytes[place...].starts(with: [0x50, 0x4B, 0x01, 0x02]) else {
        throw .damaged("the directory ends early at byte \(place)")
      }
      let flags = bytes.number(at: place + 8, 2)
      let method = bytes.number(at: place + 10, 2)
      let sizes = (packed: bytes.number(at: place + 20, 4), plain: bytes.number(at: place + 24, 4))
      let lengths = (
        name: bytes.number(at: place + 28, 2), rest: bytes.number(at: place + 30, 2) + bytes.number(at: place + 32, 2)
      )
      let offset = bytes.number(at: place + 42, 4)
      guard place + 46 + lengths.name <= bytes.count else { throw .damaged("a name ends early at byte \(place)") }
      let name = String(decoding: bytes[(place + 46)..<(place + 46 + lengths.name)], as: UTF8.self)
      place += 46 + lengths.name + lengths.rest
      if name.hasSuffix("/") { continue }
      guard flags & 1 == 0 else { throw .unsupported("\(name) is encrypted") }
      guard sizes.packed != 0xFFFF_FFFF, sizes.plain != 0xFFFF_FFFF else { throw .unsupported("\(name) needs zip64") }
      total += sizes.plain
      guard total <= limit else { throw .tooLarge }
      let checksum = Array(bytes[(place - 46 - lengths.name - lengths.rest + 16)...].prefix(4))
      let body = try body(of: bytes, at: offset, count: sizes.packed, name)
      entries.append(Entry(name: name, bytes: try unpacked(body, method, sizes.plain, checksum, name)))
    }
    return entries
  }

  private static func directory(of bytes: [UInt8]) throws(Failure) -> (count: Int, start: Int) {
    // The end record is the last thing but for a comment of at most 65,535 bytes.
    var place = bytes.count - 22
    while place >= max(0, bytes.count - 22 - 65_535) {
      if bytes[place...].starts(with: [0x50, 0x4B, 0x05, 0x06]) {
        let start = bytes.number(at: place + 16, 4)
        guard start <= place else { throw .damaged("the directory lies behind the end") }
        return (bytes.number(at: place + 10, 2), start)
      }
      place -= 1
    }
    throw .damaged("no end of a zip file was found")
  }

  private static func body(
    of bytes: [UInt8], at offset: Int, count: Int, _ name: String
  ) throws(Failure) -> ArraySlice<UInt8> {
    guard offset + 30 <= bytes.count, bytes[offset...].starts(with: [0x50, 0x4B, 0x03, 0x04]) else {
      throw .damaged("\(name) does not begin at byte \(offset)")
    }
    let start = offset + 30 + bytes.number(at: offset + 26, 2) + bytes.number(at: offset + 28, 2)
    guard start + count <= bytes.count else { throw .damaged("\(name) ends early") }
    return bytes[start..<(start + count)]
  }

  private static func unpacked(
    _ body: ArraySlice<UInt8>, _ method: Int, _ size: Int, _ checksum: [UInt8], _ name: String
  ) throws(Failure) -> [UInt8] {
    if method == 0 { return Array(body) }
    guard method == 8 else { throw .unsupported("\(name) is packed by method \(method)") }
    var gzip: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
    gzip += body
    gzip += checksum
    gzip.append(UInt64(size), count: 4)
    guard let plain = try? Gzip.decompress(gzip, limit: size) else { throw .damaged("\(name) cannot be unpacked") }
    return plain
  }
}

extension [UInt8] {
  /// Little-endian.
  fileprivate mutating func append(_ number: UInt64, count: Int) {
    for place in 0..<count { append(UInt8(truncatingIfNeeded: place < 8 ? number >> UInt64(8 * place) : 0)) }
  }

  /// Little-endian; bytes behind the end are 0.
  fileprivate func number(at start: Int, _ length: Int) -> Int {
    var number = 0
    for place in 0..<length where start + place < count { number |= Int(self[start + place]) << (8 * place) }
    return number
  }
}
