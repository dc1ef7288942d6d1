/// Every case that is implemented, in the order of the specification.
public enum ConformanceSuite {
  public static let version = "0.1.0"

  public static let cases: [ConformanceCase] = written.filter { !held.contains($0.id) }

  /// With those that are not counted yet: they run when they are named.
  public static let written: [ConformanceCase] =
    connection + credential + channel + member + send + sendContent + receive + history + order + identity + edit
    + deletion + receipt + unread + typing + file + reaction + meta + search + cache + offline + reconnection
    + concurrency + error + limit + text + time + security + signing + invitation + wire + frames + cacheRows + cacheFiles + oddAnswers + answer
    + returning + vendorActs + migration + migrationRuns + migrationFidelity + migrationSize

  /// Written, and not yet right on every adapter: a case counts from the day on which it is.
  private static let held: Set<String> = []

  public static var groups: [String] {
    cases.reduce(into: []) { groups, next in
      if !groups.contains(next.group) { groups.append(next.group) }
    }
  }
}
