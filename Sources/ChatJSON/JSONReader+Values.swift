extension JSONReader {
  public mutating func readString() throws(JSONError) -> String {
    let byte = try peek()
    guard byte == UInt8(ascii: "\"") else { throw mismatch("string", byte) }
    let raw = try scanString()
    return try decode(raw)
  }
}
