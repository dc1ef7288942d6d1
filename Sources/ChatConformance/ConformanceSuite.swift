/// Every case that is implemented, in the order of the specification.
public enum ConformanceSuite {
  public static let version = "0.1.0"

  public static let cases: [ConformanceCase] =
    connection + channel + send + receive + history + order + error + migration

  public static var groups: [String] {
    cases.reduce(into: []) { groups, next in
      if !groups.contains(next.group) { groups.append(next.group) }
    }
  }
}
