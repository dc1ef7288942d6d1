public enum SecureBytes {
  /// `count` unpredictable bytes from the operating system's generator.
  public static func random(_ count: Int) -> [UInt8] {
    // getrandom(2) on Linux, arc4random on Apple: both are fit for keys.
    var generator = SystemRandomNumberGenerator()
    return (0..<max(0, count)).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  /// Whether both are the same, in a time that depends on their lengths alone; for signatures and tokens.
  public static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    platformConstantTimeEqual(left, right)
  }
}
