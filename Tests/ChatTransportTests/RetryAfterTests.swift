import ChatTransport
import Testing

@Suite("Retry-After")
struct RetryAfterTests {
  @Test(
    "Retry-After is seconds or a date in one of three forms",
    arguments: [
      ("0", 0), ("7", 7), (" 120 ", 120), ("Sun, 06 Nov 1994 08:49:37 GMT", 37), ("Sunday, 06-Nov-94 08:49:37 GMT", 37),
      ("Sun Nov  6 08:49:37 1994", 37), ("Sun, 06 Nov 1994 08:48:59 GMT", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
      ("99999999999999999999999", 2_147_483_647), ("9223372036854775807", 2_147_483_647),
      ("Fri, 31 Dec 9999 23:59:59 GMT", 2_147_483_647), ("", nil), ("soon", nil), ("-1", nil), ("1.5", nil), ("7s", nil),
      ("Sun, 06 Nov 1994 25:49:37 GMT", nil), ("Sun, 32 Nov 1994 08:49:37 GMT", nil),
      ("Sun, 06 Nov 1994 08:49 GMT", nil),
      ("Sun, 06 Foo 1994 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49:37 CET", nil),
      ("Sun, 06 Nov ٢٠٢٠ 08:49:37 GMT", nil),
    ] as [(String, Int64?)])
  func retryAfter(text: String, seconds: Int64?) {
    var response = HTTPResponse(status: 429)
    response.headers["Date"] = "Sun, 06 Nov 1994 08:49:00 GMT"
    #expect(response.retryAfter == nil)
    response.headers["Retry-After"] = text
    #expect(response.retryAfter == seconds.map { .seconds($0) })
  }

  @Test("a date without the server's own time says nothing")
  func noDate() {
    var response = HTTPResponse(status: 503)
    response.headers["Retry-After"] = "Sun, 06 Nov 1994 08:49:37 GMT"
    #expect(response.retryAfter == nil)
  }

  @Test(
    "dates are counted from 1970 over leap years and centuries",
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
      ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
      ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200), ("Tue, 12 Jan 2027 00:00:00 GMT", 1_799_712_000),
      ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400), ("Fri, 31 Dec 2100 23:59:60 GMT", 4_133_980_800),
    ] as [(String, Int64)])
  func dates(text: String, seconds: Int64) {
    #expect(HTTPDate.milliseconds(text) == seconds * 1000)
  }
}
