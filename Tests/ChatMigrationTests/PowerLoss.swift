import Foundation

/// A SQLite file and its log as a disk may hold them when the power goes.
///
/// In WAL mode everything new is appended to the log, frame after frame (24 bytes and a page each, after 32 bytes of
/// header), and a frame that ends a transaction says so. A loss leaves a beginning of the log, perhaps with half a
/// frame or a wrong one at its end, or, while the log is brought into the file, some pages of the file new and some
/// old beside a whole log. <https://www.sqlite.org/fileformat2.html#walformat>
struct PowerLoss {
  let file: [UInt8]
  let log: [UInt8]
  private let pageSize: Int

  init(_ path: String) throws {
    file = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    log = Array(try Data(contentsOf: URL(fileURLWithPath: path + "-wal")))
    pageSize = log.count < 32 ? 4096 : log[8..<12].reduce(0) { $0 << 8 | Int($1) }
  }

  var frames: Int { max(0, log.count - 32) / (24 + pageSize) }

  private func start(ofFrame frame: Int) -> Int { 32 + frame * (24 + pageSize) }

  private func field(_ place: Int) -> Int { log[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } }

  /// Frames up to the end of the last transaction that ends within the first `frames`.
  func committed(within frames: Int) -> Int {
    (0..<frames).last { field(start(ofFrame: $0) + 4) != 0 }.map { $0 + 1 } ?? 0
  }

  /// Each boundary of two frames is tried with one of them.
  enum End: Int, CaseIterable {
    case whole, torn, wrong

    var offset: Int { rawValue }

    func places(in loss: PowerLoss) -> [Int] {
      Array(stride(from: offset, through: loss.frames, by: Self.allCases.count))
    }
  }

  /// The log's first frames, and of the next one nothing, half, or other bytes than were to be written.
  func cut(after frames: Int, _ end: End) -> (file: [UInt8], log: [UInt8]) {
    let start = start(ofFrame: frames)
    guard frames < self.frames else { return (file, log) }
    switch end {
    case .whole: return (file, Array(log[..<start]))
    case .torn: return (file, Array(log[..<(start + 24 + pageSize / 2)]))
    case .wrong:
      var part = Array(log[..<(start + 24 + pageSize)])
      part[start + 24 + pageSize / 3] ^= 0x10
      return (file, part)
    }
  }

  /// The log is whole, and `pages` of its pages are in the file already.
  func checkpointed(_ pages: Int) -> (file: [UInt8], log: [UInt8]) {
    var newest: [Int: Int] = [:]
    for frame in 0..<committed(within: frames) { newest[field(start(ofFrame: frame))] = start(ofFrame: frame) + 24 }
    var copy = file
    for (page, place) in newest.sorted(by: { $0.key < $1.key }).prefix(pages) where page > 0 {
      let end = page * pageSize
      if copy.count < end { copy += [UInt8](repeating: 0, count: end - copy.count) }
      copy.replaceSubrange(end - pageSize..<end, with: log[place..<place + pageSize])
    }
    return (copy, log)
  }
}
