import ChatTransport
import Testing

@Suite("The retry policy")
struct RetryPolicyTests {
  /// The largest and the smallest of what a generator can give.
  private struct Constant: RandomNumberGenerator {
    let value: UInt64
    func next() -> UInt64 { value }
  }

  @Test(
    "the longest wait doubles up to the cap, and nothing overflows",
    arguments: [
      (0, 1.0), (1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (64, 10.0), (Int.max, 10.0), (Int.min, 1.0),
    ])
  func longest(failures: Int, seconds: Double) {
    let policy = RetryPolicy(base: .seconds(1), cap: .seconds(10))
    var random = EmulatorRandom(seed: 7)
    let drawn = (0..<2000).map { _ in policy.delay(afterFailures: failures, using: &random) }
    #expect(drawn.allSatisfy { $0 >= .zero && $0 <= .seconds(seconds) })
    // Even over the whole range: full jitter.
    for tenth in 0..<10 {
      let range = Duration.seconds(seconds * Double(tenth) / 10)..<(.seconds(seconds * Double(tenth + 1) / 10))
      #expect(drawn.filter { range.contains($0) }.count > 120)
    }
  }

  @Test("no base or no cap is no wait", arguments: [(Duration.zero, Duration.seconds(1)), (.seconds(1), .zero)])
  func none(base: Duration, cap: Duration) {
    var random = Constant(value: .max)
    #expect(RetryPolicy(base: base, cap: cap).delay(afterFailures: 3, using: &random) == .zero)
  }

  @Test(
    "Retry-After is seconds or a date in one of three forms",
    arguments: [
      ("0", 0), ("7", 7), (" 120 ", 120), ("Sun, 06 Nov 1994 08:49:37 GMT", 37), ("Sunday, 06-Nov-94 08:49:37 GMT", 37),
      ("Sun Nov  6 08:49:37 1994", 37), ("Sun, 06 Nov 1994 08:48:59 GMT", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
      ("99999999999999999999999", 2_147_483_647), ("", nil), ("soon", nil), ("-1", nil), ("1.5", nil), ("7s", nil),
      ("Sun, 06 Nov 1994 25:49:37 GMT", nil), ("Sun, 32 Nov 1994 08:49:37 GMT", nil),
      ("Sun, 06 Nov 1994 08:49 GMT", nil),
      ("Sun, 06 Foo 1994 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49:37 CET", nil),
      ("Sun, 06 Nov ٢٠٢٠ 08:49:37 GMT", nil),
    ] as [(String, Int64?)])
  func retryAfter(text: String, seconds: Int64?) {
    // 1994-11-06 08:49:00 GMT.
    let wait = RetryPolicy.retryAfter(text, now: 784_111_740_000)
    #expect(wait == seconds.map { .seconds($0) })
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
