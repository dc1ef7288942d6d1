/// A type that reads itself from a document without a tree in between.
public protocol JSONReadable {
  /// Consumes exactly one value.
  init(from reader: inout JSONReader) throws(JSONError)
}

/// A type that writes itself into a document without a tree in between.
public protocol JSONWritable {
  /// Writes exactly one value.
  func write(to writer: inout JSONWriter)
}

extension JSONReadable {
  /// Reads one whole document.
  @inlinable public init(json bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) {
    self = try JSONReader.read(bytes, limits: limits) { reader throws(JSONError) in try Self(from: &reader) }
  }
}

extension JSONWritable {
  /// One whole document.
  @inlinable public func jsonBytes() -> [UInt8] {
    var writer = JSONWriter()
    write(to: &writer)
    return writer.bytes()
  }
}

extension JSONReader {
  @inlinable public mutating func read<Value: JSONReadable>(
    _ type: Value.Type = Value.self
  ) throws(JSONError) -> Value { try Value(from: &self) }

  /// An array of one type.
  @inlinable public mutating func readArray<Element: JSONReadable>(
    of type: Element.Type = Element.self
  ) throws(JSONError) -> [Element] {
    var elements: [Element] = []
    try beginArray()
    while try nextElement() { elements.append(try Element(from: &self)) }
    return elements
  }

  /// Nil for null.
  @inlinable public mutating func readOptional<Value: JSONReadable>(
    _ type: Value.Type = Value.self
  ) throws(JSONError) -> Value? {
    if try readNull() { return nil }
    return try Value(from: &self)
  }
}

extension JSONWriter {
  @inlinable public mutating func write(_ value: some JSONWritable) { value.write(to: &self) }

  @inlinable public mutating func write(_ elements: [some JSONWritable]) {
    beginArray()
    for element in elements { element.write(to: &self) }
    endArray()
  }

  public mutating func member(_ key: StaticString, _ value: String) {
    self.key(key)
    write(value)
  }

  public mutating func member(_ key: StaticString, _ value: Int64) {
    self.key(key)
    write(value)
  }

  public mutating func member(_ key: StaticString, _ value: Bool) {
    self.key(key)
    write(value)
  }

  @inlinable public mutating func member(_ key: StaticString, _ value: some JSONWritable) {
    self.key(key)
    value.write(to: &self)
  }

  @inlinable public mutating func member(_ key: StaticString, _ elements: [some JSONWritable]) {
    self.key(key)
    write(elements)
  }

  /// No member at all for nil.
  @inlinable public mutating func memberUnlessNil(_ key: StaticString, _ value: (some JSONWritable)?) {
    if let value { member(key, value) }
  }
}

extension String: JSONReadable, JSONWritable {
  @inlinable public init(from reader: inout JSONReader) throws(JSONError) { self = try reader.readString() }
  @inlinable public func write(to writer: inout JSONWriter) { writer.write(self) }
}

extension Int64: JSONReadable, JSONWritable {
  @inlinable public init(from reader: inout JSONReader) throws(JSONError) { self = try reader.readInt64() }
  @inlinable public func write(to writer: inout JSONWriter) { writer.write(self) }
}

extension UInt64: JSONReadable, JSONWritable {
  @inlinable public init(from reader: inout JSONReader) throws(JSONError) { self = try reader.readUInt64() }
  @inlinable public func write(to writer: inout JSONWriter) { writer.write(self) }
}

extension Int: JSONReadable, JSONWritable {
  @inlinable public init(from reader: inout JSONReader) throws(JSONError) { self = try reader.readInteger() }
  @inlinable public func write(to writer: inout JSONWriter) { writer.write(self) }
}

extension Int32: JSONReadable, JSONWritable {
  @inlinable public init(from reader: inout JSONReader) throws(JSONError) { self = try reader.readInteger() }
  @inlinable public func write(to writer: inout JSONWriter) { writer.write(Int64(self)) }
}

extension Bool: JSONReadable, JSONWritable {
  @inlinable public init(from reader: inout JSONReader) throws(JSONError) { self = try reader.readBool() }
  @inlinable public func write(to writer: inout JSONWriter) { writer.write(self) }
}

extension Double: JSONReadable, JSONWritable {
  @inlinable public init(from reader: inout JSONReader) throws(JSONError) { self = try reader.readDouble() }
  /// Null if infinite or not a number, which JSON cannot say.
  public func write(to writer: inout JSONWriter) { writer.write(JSONValue(self)) }
}

extension JSONValue: JSONReadable, JSONWritable {
  public init(from reader: inout JSONReader) throws(JSONError) { self = try reader.readValue() }
  public func write(to writer: inout JSONWriter) { writer.write(self) }
}

extension Array: JSONReadable where Element: JSONReadable {
  @inlinable public init(from reader: inout JSONReader) throws(JSONError) { self = try reader.readArray() }
}

extension Array: JSONWritable where Element: JSONWritable {
  @inlinable public func write(to writer: inout JSONWriter) { writer.write(self) }
}
