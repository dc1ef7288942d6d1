extension JSONReader {
  /// Reads any value as a tree. Iterative: nesting costs heap, never stack.
  public mutating func readValue() throws(JSONError) -> JSONValue {
    // `depth` is at most `limits.depth`, and below zero only after wrong use.
    var builder = TreeBuilder(depthLimit: max(0, min(limits.depth - max(0, depth), JSONLimits.deepestTree)))
    atStart = false
    while true {
      // A value is due here; an opening bracket leads to the next one.
      guard let value = try builder.begin(&self) else { continue }
      if !builder.isOpen { return value }
      if let root = try builder.attach(value, &self) { return root }
    }
  }

  @inline(__always) mutating func readScalar(_ byte: UInt8) throws(JSONError) -> JSONValue {
    switch byte {
    case UInt8(ascii: "\""):
      let raw = try scanString()
      return .string(try decode(raw))
    case UInt8(ascii: "-"), 0x30...0x39:
      let raw = try scanNumber()
      switch raw.kind {
      case .int(let value): return .int(value)
      case .uint(let value): return .uint(value)
      case .text: return .number(JSONNumber(validated: text(raw)))
      }
    case UInt8(ascii: "t"):
      try literal("true")
      return .bool(true)
    case UInt8(ascii: "f"):
      try literal("false")
      return .bool(false)
    case UInt8(ascii: "n"):
      try literal("null")
      return .null
    default:
      throw failure(.unexpectedByte(byte), at: cursor)
    }
  }
}

/// The containers that are open while a tree is read. Their items lie on two common stacks, so that each array is
/// made once, with its exact size.
struct TreeBuilder: ~Copyable {
  private struct Frame {
    var isObject: Bool
    /// Where its items begin on the stack of members or of elements.
    var start: Int
    /// Where in the stack of members the value goes that is read now.
    var target = 0
    /// Two bits for each key so far, by its bytes: if either is clear, a key is new.
    var seen: (UInt64, UInt64) = (0, 0)
    /// The keys of a large object, by their place in it.
    var index: [ByteKey: Int]?
  }

  private var frames = MoveStack<Frame>()
  private var elements = MoveStack<JSONValue>()
  private var members = MoveStack<JSONObject.Entry>()
  private let depthLimit: Int

  init(depthLimit: Int) { self.depthLimit = depthLimit }

  var isOpen: Bool { @inline(__always) get { frames.count > 0 } }

  /// Reads a scalar or an empty container and returns it, or opens a container and returns nil.
  @inline(__always) mutating func begin(_ reader: inout JSONReader) throws(JSONError) -> JSONValue? {
    let byte = try reader.peek()
    guard byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") else { return try reader.readScalar(byte) }
    guard frames.count < depthLimit else {
      throw reader.failure(.tooDeep(limit: depthLimit + reader.depth), at: reader.cursor)
    }
    reader.cursor += 1
    let next = try reader.peek()
    if byte == UInt8(ascii: "[") {
      if next == UInt8(ascii: "]") {
        reader.cursor += 1
        return .array([])
      }
      frames.push(Frame(isObject: false, start: elements.count))
    } else {
      if next == UInt8(ascii: "}") {
        reader.cursor += 1
        return .object(JSONObject())
      }
      frames.push(Frame(isObject: true, start: members.count))
      try readKey(&reader)
    }
    return nil
  }

  /// Puts a finished value into the innermost container, and that into the next one if it ends here, and so on.
  /// Returns the outermost container if all have ended, nil if another value is due.
  @inline(__always)
  mutating func attach(_ first: consuming JSONValue, _ reader: inout JSONReader) throws(JSONError) -> JSONValue? {
    var value = first
    repeat {
      let last = frames.count &- 1
      let isObject = frames[last].isObject
      if isObject {
        members[frames[last].target].value = consume value
      } else {
        elements.push(consume value)
      }
      let byte = try reader.peek()
      if byte == UInt8(ascii: ",") {
        reader.cursor += 1
        if isObject { try readKey(&reader) }
        return nil
      }
      guard byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
        throw reader.failure(.unexpectedByte(byte), at: reader.cursor)
      }
      reader.cursor += 1
      value = closeInnermost()
    } while isOpen
    return value
  }

  @inline(__always) private mutating func closeInnermost() -> JSONValue {
    let frame = frames.pop()
    if frame.isObject { return .object(JSONObject(unique: members.popAll(from: frame.start), index: frame.index)) }
    return .array(elements.popAll(from: frame.start))
  }

  /// Reads a key and the colon, and makes the place where the value goes.
  @inline(__always) private mutating func readKey(_ reader: inout JSONReader) throws(JSONError) {
    let byte = try reader.peek()
    guard byte == UInt8(ascii: "\"") else { throw reader.failure(.unexpectedByte(byte), at: reader.cursor) }
    let place = reader.cursor
    let raw = try reader.scanString()
    let key = try reader.decode(raw)
    try reader.expect(UInt8(ascii: ":"))
    let last = frames.count &- 1
    // The bits are of the raw bytes. Escapes hide a key's bytes, so such a key sets them all.
    let bits = raw.hasEscapes ? (~0, ~0) : Self.bits(raw)
    let mayBeKnown = frames[last].seen.0 & bits.0 != 0 && frames[last].seen.1 & bits.1 != 0
    frames[last].seen.0 |= bits.0
    frames[last].seen.1 |= bits.1
    if mayBeKnown, let known = find(key) {
      if reader.limits.duplicateKeys == .reject {
        throw reader.failure(.duplicateKey, at: place, inside: reader.cursor)
      }
      frames[last].target = known
    } else {
      frames[last].target = members.count
      members.push(.init(key: key, value: .null))
      if members.count &- frames[last].start > JSONObject.indexThreshold { extendIndex() }
    }
  }

  @inline(__always) private static func bits(_ raw: JSONReader.RawString) -> (UInt64, UInt64) {
    guard raw.count > 0 else { return (1, 1) }
    let first = UInt64(raw.start[0])
    let middle = UInt64(raw.start[raw.count >> 1])
    let last = UInt64(raw.start[raw.count &- 1])
    let mixed = first | middle &<< 8 | last &<< 16 | UInt64(truncatingIfNeeded: raw.count) &<< 24
    let hash = mixed &* 0x9E37_79B9_7F4A_7C15
    return (1 &<< (hash &>> 58), 1 &<< (hash &>> 52 & 63))
  }

  /// The place of the innermost object's member `key` on the stack of members.
  private func find(_ key: String) -> Int? {
    let frame = frames[frames.count &- 1]
    if let index = frame.index { return index[ByteKey(key)].map { $0 &+ frame.start } }
    return (frame.start..<members.count).first { ByteKey.equal(members[$0].key, key) }
  }

  @inline(never) private mutating func extendIndex() {
    let last = frames.count &- 1
    let start = frames[last].start
    if frames[last].index == nil {
      var index: [ByteKey: Int] = [:]
      for place in start..<members.count { index[ByteKey(members[place].key)] = place &- start }
      frames[last].index = index
    } else {
      frames[last].index?[ByteKey(members[members.count &- 1].key)] = members.count &- 1 &- start
    }
  }
}
