extension HTTPResponse {
  /// What `Retry-After` asks for (RFC 9110 §10.2.3): whole seconds, or a date, which counts from the server's own
  /// `Date`, so that no clock has to agree with another. A date that has passed is no wait, and the longest is 2³¹ − 1
  /// seconds. Nil for what is neither, and for a date in an answer without `Date`.
  public var retryAfter: Duration? {
    guard let value = headers["Retry-After"] else { return nil }
    let text = value.utf8.drop { $0 == 0x20 }
    let digits = text.prefix { (0x30...0x39).contains($0) }
    if !digits.isEmpty, text[digits.endIndex...].allSatisfy({ $0 == 0x20 }) {
      // More than anyone waits, and what a clock can still add.
      return .seconds(min(Int64(String(Substring(digits))) ?? .max, Int64(Int32.max)))
    }
    guard let date = HTTPDate.milliseconds(value), let now = headers["Date"].flatMap(HTTPDate.milliseconds) else {
      return nil
    }
    return .milliseconds(min(max(0, date &- now), Int64(Int32.max) * 1000))
  }
}
