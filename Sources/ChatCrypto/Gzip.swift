import CZlib

/// Why compressed bytes could not be read.
public enum GzipError: Error, Sendable, Hashable {
  /// Not gzip, or damaged: the header, the codes, the length or the check sum is wrong.
  case corrupt
  /// The bytes end before the data does.
  case truncated
  /// The data is longer than the caller allows; a small input can hold gigabytes.
  case tooLarge(limit: Int)
  /// zlib could not get the memory that it needs.
  case outOfMemory
}

/// The gzip file format (RFC 1952).
public enum Gzip {
  /// One gzip member.
  /// - Parameter level: 0 (stored) … 9 (smallest); others are brought into that range.
  public static func compress(_ bytes: [UInt8], level: Int = 6) throws(GzipError) -> [UInt8] {
    let stream = try Stream { stream in
      // 15 is the window of 32 KiB, 16 more asks for a gzip header and trailer.
      deflateInit2_(
        stream, Int32(min(9, max(0, level))), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size))
    } end: {
      deflateEnd($0)
    }
    var output: [UInt8] = []
    var rest = bytes[...]
    repeat {
      let flush = rest.count <= Stream.step ? Z_FINISH : Z_NO_FLUSH
      let result = stream.run(&rest, into: &output) { deflate($0, flush) }
      if result == Z_STREAM_END { return output }
      guard result == Z_OK || result == Z_BUF_ERROR else { throw .outOfMemory }
    } while true
  }

  /// The data of every member of `bytes`, one after another.
  /// - Parameter limit: bytes of data at most; reading stops there.
  public static func decompress(_ bytes: [UInt8], limit: Int) throws(GzipError) -> [UInt8] {
    let stream = try Stream { stream in
      inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    } end: {
      inflateEnd($0)
    }
    var output: [UInt8] = []
    var rest = bytes[...]
    while true {
      let inputBefore = rest.count
      let outputBefore = output.count
      let result = stream.run(&rest, into: &output) { inflate($0, Z_NO_FLUSH) }
      guard output.count <= limit else { throw .tooLarge(limit: limit) }
      switch result {
      case Z_STREAM_END:
        if rest.isEmpty { return output }
        inflateReset(stream.pointer)
      case Z_OK, Z_BUF_ERROR:
        if rest.count == inputBefore, output.count == outputBefore { throw .truncated }
      case Z_MEM_ERROR: throw .outOfMemory
      default: throw .corrupt
      }
    }
  }
}

/// One run of zlib. zlib keeps the address of its stream, which therefore lives on the heap.
private final class Stream {
  /// Bytes given and taken at a time: zlib counts in 32 bits, and the limit on output is checked between steps.
  static let step = 64 << 10

  let pointer = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private let end: (UnsafeMutablePointer<z_stream>) -> Int32

  init(
    start: (UnsafeMutablePointer<z_stream>) -> Int32, end: @escaping (UnsafeMutablePointer<z_stream>) -> Int32
  ) throws(GzipError) {
    self.end = end
    pointer.initialize(to: z_stream())
    guard start(pointer) == Z_OK else { throw .outOfMemory }
  }

  deinit {
    // Harmless on a stream that did not start.
    _ = end(pointer)
    pointer.deallocate()
  }

  /// Calls `body` once with at most one step of `input` and of room; what was used leaves `input`, what was made is
  /// appended to `output`.
  func run(
    _ input: inout ArraySlice<UInt8>, into output: inout [UInt8], body: (UnsafeMutablePointer<z_stream>) -> Int32
  ) -> Int32 {
    var room = [UInt8](repeating: 0, count: Self.step)
    let piece = input.prefix(Self.step)
    var result: Int32 = Z_OK
    var used = 0
    var made = 0
    piece.withUnsafeBufferPointer { source in
      room.withUnsafeMutableBufferPointer { target in
        pointer.pointee.next_in = UnsafeMutablePointer(mutating: source.baseAddress)
        pointer.pointee.avail_in = UInt32(source.count)
        pointer.pointee.next_out = target.baseAddress
        pointer.pointee.avail_out = UInt32(target.count)
        result = body(pointer)
        used = source.count - Int(pointer.pointee.avail_in)
        made = target.count - Int(pointer.pointee.avail_out)
      }
    }
    input = input.dropFirst(used)
    output.append(contentsOf: room[..<made])
    return result
  }
}
