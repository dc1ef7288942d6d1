/// Dates in HTTP fields (RFC 9110 §5.6.7), in the three forms that a recipient must accept.
public enum HTTPDate {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Milliseconds since 1970, or nil for what is no such date. The name of the weekday is not looked at.
  public static func milliseconds(_ text: String) -> Int64? {
    let words = text.split { " ,-".contains($0) }.map(String.init)
    // Sun, 06 Nov 1994 08:49:37 GMT · Sunday, 06-Nov-94 08:49:37 GMT
    if words.count == 6, words[5] == "GMT" {
      return milliseconds(day: words[1], month: words[2], year: words[3], time: words[4])
    }
    // Sun Nov  6 08:49:37 1994
    guard words.count == 5 else { return nil }
    return milliseconds(day: words[2], month: words[1], year: words[4], time: words[3])
  }

  private static func milliseconds(day: String, month: String, year: String, time: String) -> Int64? {
    let clock = time.split(separator: ":", omittingEmptySubsequences: false).map { number(String($0), 2) }
    guard let month = months.firstIndex(of: month), let day = number(day, 2), let year = fullYear(year),
      clock.count == 3, let hour = clock[0], let minute = clock[1], let second = clock[2],
      // 60 is a leap second.
      (1...31).contains(day), hour < 24, minute < 60, second <= 60
    else { return nil }
    let days = days(year: year, month: month + 1, day: day)
    return Int64(((days * 24 + hour) * 60 + minute) * 60 + second) * 1000
  }

  /// Two digits stand for 1970…2069: nobody retries after a date of the century before.
  private static func fullYear(_ text: String) -> Int? {
    if text.utf8.count == 4 { return number(text, 4) }
    return text.utf8.count == 2 ? number(text, 2).map { $0 < 70 ? 2000 + $0 : 1900 + $0 } : nil
  }

  private static func number(_ text: String, _ mostDigits: Int) -> Int? {
    guard (1...mostDigits).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return nil
    }
    return Int(text)
  }

  /// Days since 1970-01-01 in the Gregorian calendar; years begin in March, so that the leap day is their last.
  private static func days(year: Int, month: Int, day: Int) -> Int {
    let shifted = month <= 2 ? year - 1 : year
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
  }
}
