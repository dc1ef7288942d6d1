extension JSONValue {
  /// Parses one document: exactly one value with white space around it, by RFC 8259 and nothing more lenient.
  ///
  /// Never traps and needs no stack for nesting. Duplicate keys and lone surrogate escapes are treated as `limits`
  /// say; ill-formed UTF-8, a byte order mark and control characters in strings are refused.
  /// - Throws: `JSONError` with the path and the byte offset of the first offence.
  public init(parsing bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) {
    self = try JSONReader.read(bytes, limits: limits) { reader throws(JSONError) in try reader.readValue() }
  }

  /// As above, over bytes that live as long as the call.
  public init(parsing buffer: UnsafeBufferPointer<UInt8>, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    self = try JSONReader.read(buffer, limits: limits) { reader throws(JSONError) in try reader.readValue() }
  }

  public init(parsing text: String, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    var text = text
    let result = text.withUTF8 { buffer in
      Result { () throws(JSONError) in try JSONValue(parsing: buffer, limits: limits) }
    }
    self = try result.get()
  }

  /// The shortest form: no white space, members in order, only what must be escaped is escaped.
  public func bytes() -> [UInt8] {
    var writer = JSONWriter()
    writer.write(self)
    return writer.bytes()
  }

  public func text() -> String { String(decoding: bytes(), as: UTF8.self) }

  /// Members sorted by the bytes of their keys at every level, otherwise as `bytes()`: equal values give equal bytes.
  public func canonicalBytes() -> [UInt8] {
    var writer = JSONWriter()
    writer.writeCanonical(self)
    return writer.bytes()
  }
}

extension JSONWriter {
  public mutating func write(_ value: JSONValue) {
    switch value {
    case .array(let elements):
      beginArray()
      for element in elements { write(element) }
      endArray()
    case .object(let object):
      beginObject()
      for member in object.storage {
        key(member.key)
        write(member.value)
      }
      endObject()
    default: writeScalar(value)
    }
  }

  mutating func writeCanonical(_ value: JSONValue) {
    switch value {
    case .array(let elements):
      beginArray()
      for element in elements { writeCanonical(element) }
      endArray()
    case .object(let object):
      beginObject()
      for member in object.storage.sorted(by: { ByteKey.precedes($0.key, $1.key) }) {
        key(member.key)
        writeCanonical(member.value)
      }
      endObject()
    default: writeScalar(value)
    }
  }

  private mutating func writeScalar(_ value: JSONValue) {
    switch value {
    case .null, .array, .object: writeNull()
    case .bool(let value): write(value)
    case .int(let value): write(value)
    case .uint(let value): write(value)
    case .number(let value): write(value)
    case .string(let value): write(value)
    }
  }
}
