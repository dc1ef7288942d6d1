import ChatInterchange
import ChatJSON
import Foundation
import UnifiedChat

/// JSON Lines of neutral records.
public enum RecordLines {
  /// Reads a `.jsonl` file, or every one in a folder in the order of their names.
  @discardableResult
  public static func read(_ path: String, to sink: RecordSink) throws -> [String: Int] {
    var files = [path]
    if !path.hasSuffix(".jsonl") {
      files = try SeedConverter.entries(of: path).filter { $0.hasSuffix(".jsonl") }.sorted().map { path + "/" + $0 }
    }
    for file in files { try readFile(file, to: sink) }
    return [:]
  }

  private static func readFile(_ file: String, to sink: RecordSink) throws {
    guard let handle = FileHandle(forReadingAtPath: file) else { throw SeedError(file: file, reason: "cannot be read") }
    defer { try? handle.close() }
    var rest: [UInt8] = []
    var number = 0
    while let block = try handle.read(upToCount: 1 << 20), !block.isEmpty {
      rest += block
      var start = 0
      while let end = rest[start...].firstIndex(of: 0x0A) {
        number += 1
        try take(rest[start..<end], file, number, sink)
        start = end + 1
      }
      rest.removeFirst(start)
    }
    number += 1
    try take(rest[...], file, number, sink)
  }

  private static func take(_ line: ArraySlice<UInt8>, _ file: String, _ number: Int, _ sink: RecordSink) throws {
    guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else { return }
    do { try sink(Record(json: JSONValue(parsing: Array(line)))) } catch let error as JSONError {
      throw SeedError(file: file, line: number, reason: "\(error)")
    } catch let error as RecordError {
      throw SeedError(file: file, line: number, reason: "\(error)")
    }
  }

  /// One record as a line with its newline.
  public static func line(_ record: Record) -> [UInt8] { record.json().bytes() + [0x0A] }
}
