import ChatJSON
import ChatTransport
import Foundation

/// A line of a record file that an emulator did not take.
public struct RecordFileError: Error, Sendable, Hashable, CustomStringConvertible {
  public var file: String
  /// From 1; nil when the file itself can't be read.
  public var line: Int?
  public var reason: String

  public var description: String { line.map { "\(file):\($0): \(reason)" } ?? "\(file): \(reason)" }
}

extension EmulatorHost {
  /// Loads neutral records (`Schemas/records.schema.json`), one JSON object a line; empty lines are skipped. Memory
  /// does not grow with the file. Records before a wrong line stay loaded.
  /// - Returns: the number of records.
  /// - Throws: `RecordFileError` that names file, line and reason.
  @discardableResult
  public nonisolated func load(
    contentsOf file: String, progress: (@Sendable (Int) -> Void)? = nil
  ) async throws(RecordFileError) -> Int {
    var lines = try LineReader(file)
    var count = 0
    var batch: [(line: Int, record: JSONValue)] = []
    while let (number, bytes) = try lines.next() {
      batch.append((number, try Self.parse(bytes, file, number)))
      if batch.count < 256 { continue }
      try await load(batch, of: file)
      count += batch.count
      batch = []
      progress?(count)
    }
    try await load(batch, of: file)
    return count + batch.count
  }

  private static func parse(_ line: [UInt8], _ file: String, _ number: Int) throws(RecordFileError) -> JSONValue {
    do throws(JSONError) {
      return try JSONValue(parsing: line, limits: JSONLimits(size: LineReader.limit))
    } catch {
      throw RecordFileError(file: file, line: number, reason: error.description)
    }
  }

  private func load(_ batch: [(line: Int, record: JSONValue)], of file: String) throws(RecordFileError) {
    for (line, record) in batch {
      do throws(EmulatorError) {
        try load(record)
      } catch {
        throw RecordFileError(file: file, line: line, reason: error.description)
      }
    }
  }
}

/// The lines of a file, one at a time.
struct LineReader {
  /// Bytes of one line: a file's bytes lie in one.
  static let limit = 512 << 20

  private let file: String
  private let handle: FileHandle
  private var buffer = InputBuffer()
  private var scanned = 0
  private var number = 0
  private var isAtEnd = false

  init(_ file: String) throws(RecordFileError) {
    self.file = file
    do {
      handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: file))
    } catch {
      throw RecordFileError(file: file, line: nil, reason: "can't be read; check its name and rights")
    }
  }

  /// The next line that is not empty, without its end.
  mutating func next() throws(RecordFileError) -> (number: Int, bytes: [UInt8])? {
    while true {
      guard let line = try nextLine() else { return nil }
      number += 1
      let bytes = line.last == 13 ? Array(line.dropLast()) : line
      if !bytes.isEmpty { return (number, bytes) }
    }
  }

  private mutating func nextLine() throws(RecordFileError) -> [UInt8]? {
    while true {
      if let end = buffer.end(of: [10], from: scanned) {
        scanned = 0
        return Array(buffer.take(end).dropLast())
      }
      scanned = buffer.count
      if isAtEnd { return buffer.isEmpty ? nil : Array(buffer.take(buffer.count)) }
      guard buffer.count <= Self.limit else {
        throw RecordFileError(file: file, line: number + 1, reason: "the line is longer than \(Self.limit) bytes")
      }
      try fill()
    }
  }

  private mutating func fill() throws(RecordFileError) {
    do {
      guard let data = try handle.read(upToCount: 1 << 20), !data.isEmpty else { return isAtEnd = true }
      buffer.append(Array(data))
    } catch {
      throw RecordFileError(file: file, line: number + 1, reason: "can't be read on: \(error.localizedDescription)")
    }
  }
}
