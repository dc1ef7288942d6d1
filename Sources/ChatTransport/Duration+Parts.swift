extension Duration {
  /// At least one, since C libraries take zero for "no limit", and at most the 24 days that they can count.
  var wholeMilliseconds: Int {
    let (seconds, attoseconds) = components
    let whole = Int(min(max(seconds, 0), Int64(Int32.max))) * 1000 + Int(max(0, attoseconds) / 1_000_000_000_000_000)
    return min(max(1, whole), Int(Int32.max))
  }

  var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
