/// Finds the path of a place in a document by reading the bytes before it once more. Runs only after an error, so
/// that no path is kept while reading.
enum JSONLocator {
  private struct Frame {
    var isObject: Bool
    var index = 0
    var key: Range<Int>?
    var awaitsKey: Bool
  }

  /// A JSON Pointer to the innermost value that holds `offset`; inside a key it is the object's. The bytes before
  /// `offset` must be the beginning of a document. `ofContainer` gives the path one level up: at a closing bracket,
  /// that of what it closes.
  static func path(in bytes: UnsafeBufferPointer<UInt8>, at offset: Int, ofContainer: Bool = false) -> String {
    var frames: [Frame] = []
    var place = 0
    while place < min(offset, bytes.count) {
      switch bytes[place] {
      case UInt8(ascii: "{"): frames.append(Frame(isObject: true, awaitsKey: true))
      case UInt8(ascii: "["): frames.append(Frame(isObject: false, awaitsKey: false))
      case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = frames.popLast()
      case UInt8(ascii: ","):
        if !frames.isEmpty { advance(&frames[frames.count - 1]) }
      case UInt8(ascii: "\""):
        let close = closingQuote(bytes, place)
        if close < offset, let last = frames.indices.last, frames[last].awaitsKey {
          frames[last].key = place..<close + 1
          frames[last].awaitsKey = false
        }
        place = close
      default: break
      }
      place += 1
    }
    if ofContainer { _ = frames.popLast() }
    return frames.map { segment($0, bytes) }.joined()
  }

  private static func advance(_ frame: inout Frame) {
    frame.index += 1
    frame.key = nil
    frame.awaitsKey = frame.isObject
  }

  /// The index of the quote that closes the string opened at `open`, or the count of the bytes.
  private static func closingQuote(_ bytes: UnsafeBufferPointer<UInt8>, _ open: Int) -> Int {
    var place = open + 1
    while place < bytes.count, bytes[place] != UInt8(ascii: "\"") {
      place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1
    }
    return min(place, bytes.count)
  }

  private static func segment(_ frame: Frame, _ bytes: UnsafeBufferPointer<UInt8>) -> String {
    guard frame.isObject else { return "/\(frame.index)" }
    guard let key = frame.key else { return "" }
    let quoted = UnsafeBufferPointer(rebasing: bytes[key])
    let text = try? JSONReader.read(quoted, limits: JSONLimits(loneSurrogates: .replace)) {
      reader throws(JSONError) in try reader.readString()
    }
    return JSONPointer.escape(text ?? String(decoding: quoted, as: UTF8.self))
  }
}
