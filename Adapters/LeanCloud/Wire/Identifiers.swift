import ChatCrypto

/// How LeanCloud's ids and dates look.
public enum LeanCloudID {
  /// 24 lower-case hex digits.
  public static func isObjectID(_ text: String) -> Bool {
    text.utf8.count == 24 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  /// 22 characters of base64 without padding; old ones hold `+` and `/`.
  public static func isMessageID(_ text: String) -> Bool {
    text.utf8.count == 22
      && text.utf8.allSatisfy {
        (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
          || [43, 45, 47, 95].contains($0)
      }
  }

  /// The id itself where it is an object id, else one that is always the same for the same text.
  public static func objectID(for text: String) -> String {
    if isObjectID(text) || text.hasPrefix("_tmp:") { return text }
    return String(Hex.encode(Digest.md5(Array("object:\(text)".utf8))).prefix(24))
  }

  /// The id itself where it is a message id, else one that is always the same for the same text in the same channel.
  public static func messageID(for text: String, channel: String) -> String {
    if isMessageID(text) { return text }
    return Base64.urlEncode(Digest.md5(Array("message:\(channel):\(text)".utf8)))
  }
}

/// ISO 8601 in UTC, by whole numbers: a date through floating point loses a millisecond now and then.
extension LeanCloudID {
  private static let dayLength: Int64 = 86_400_000

  /// `YYYY-MM-DDTHH:MM:SS.mmmZ`, for years 0 to 9999; times beyond are held at the ends.
  public static func iso(_ milliseconds: Int64) -> String {
    let time = min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999)
    let days = time >= 0 ? time / dayLength : (time - dayLength + 1) / dayLength
    let rest = time - days * dayLength
    let date = civil(days)
    return pad(date.year, 4) + "-" + pad(date.month, 2) + "-" + pad(date.day, 2) + "T" + pad(rest / 3_600_000, 2) + ":"
      + pad(rest / 60_000 % 60, 2) + ":" + pad(rest / 1000 % 60, 2) + "." + pad(rest % 1000, 3) + "Z"
  }

  /// Milliseconds of `YYYY-MM-DDTHH:MM:SS[.fraction]Z`; nil for anything else. Digits beyond the third are cut.
  public static func milliseconds(iso text: String) -> Int64? {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes.count <= 40, bytes.last == UInt8(ascii: "Z") else { return nil }
    let marks: [(Int, String)] = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")]
    for (index, mark) in marks where bytes[index] != mark.utf8.first { return nil }
    guard let year = number(bytes[0..<4]), let month = number(bytes[5..<7]), let day = number(bytes[8..<10]),
      let hour = number(bytes[11..<13]), let minute = number(bytes[14..<16]), let second = number(bytes[17..<19]),
      (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61
    else { return nil }
    var fraction: Int64 = 0
    if bytes[19] == UInt8(ascii: ".") {
      let digits = bytes[20..<(bytes.count - 1)]
      guard !digits.isEmpty, number(digits.prefix(18)) != nil, let value = number(digits.prefix(3)) else { return nil }
      fraction = [0, 100, 10, 1][min(digits.count, 3)] * value
    } else if bytes.count != 20 {
      return nil
    }
    return days(year, month, day) * dayLength + hour * 3_600_000 + minute * 60_000 + second * 1000 + fraction
  }

  private static func pad(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    var value: Int64 = 0
    for digit in digits {
      guard (48...57).contains(digit) else { return nil }
      value = value &* 10 &+ Int64(digit - 48)
    }
    return value
  }

  /// Days since 1970-01-01 of a date of the Gregorian calendar.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    // Years begin in March, so that the leap day is the last.
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * month + 2) / 5 + 1
    let civilMonth = month < 10 ? month + 3 : month - 9
    return (yearOfEra + era * 400 + (civilMonth <= 2 ? 1 : 0), civilMonth, day)
  }
}

extension LeanCloudID {
  /// The id that the first model gives a pair of peers in history: MD5 of the sorted ids joined by a colon.
  public static func pair(_ one: String, _ other: String) -> String {
    Hex.encode(Digest.md5(Array(LeanCloudSignature.joined([one, other]).utf8)))
  }

  /// The id of the history of one subscriber of a service conversation: MD5 of both ids joined by a colon.
  public static func historyDigest(of conversation: String, client: String) -> String {
    Hex.encode(Digest.md5(Array("\(conversation):\(client)".utf8)))
  }
}
