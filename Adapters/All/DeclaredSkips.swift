/// Cases that find out on their way that a vendor gives them nothing to look at. The list is closed: a case that begins
/// to skip fails, and what stands here is printed by every report.
private enum DeclaredSkips {
  /// By case, the adapters that may skip it, and why.
  static let rules: [String: (adapters: Set<String>, why: String)] = [
    "AUTH-02": (["leancloud"], "no token is brought"),
    "AUTH-04": (["leancloud"], "no token is brought"),
    "AUTH-05": (["leancloud"], "no token is brought"),
    "AUTH-06": (["leancloud"], "no token is brought"),
    "AUTH-12": (["openim"], "nobody can be disabled"),
    "CONN-10": (["sendbird"], "a login ends no other one"),
    "DEDUP-03": (["leancloud", "leancloud-session"], "a client id is stored once, or not told"),
    "ERR-01": (["leancloud-session"], "no refusals of sends are known"),
    "ERR-03": (["leancloud", "leancloud-session"], "clients ask by frames, and no gateway answers those"),
    "ERR-06": (["leancloud-session"], "no refusals of sends are known"),
    "ERR-12": (["leancloud", "leancloud-session"], "clients ask by frames"),
    "FILE-05": (["openim", "leancloud"], "no limit of files is known"),
    "HIST-15": (["openim", "leancloud-session"], "a page is no list in an answer that can be changed"),
    "LIMIT-02": (["openim"], "no limit of ids is known"),
    "LIMIT-03": (["sendbird", "openim", "leancloud-session"], "no limit of members that can be reached"),
    "META-05": (["openim", "leancloud", "leancloud-session"], "a channel's data is JSON on the wire, or not told by a request"),
    "META-06": (["openim", "leancloud", "leancloud-session"], "no place for an unknown member in the answer about a channel"),
    "MIGR-23": (["openim"], "the vendor exports no files"),
    "RCPT-05": (["sendbird"], "readers of groups are there, so that their absence cannot be shown"),
    "RECON-07": (["openim"], "a catch-up asks with no token"),
    "RECON-08": (["openim"], "the vendor has no token"),
    "RECV-07": (["openim"], "frames are Protobuf, which has no unknown names"),
    "SEC-04": (["leancloud", "leancloud-session"], "clients ask by frames"),
    "UNRD-07": (["sendbird", "leancloud"], "the service sends a number, no pair"),
    "UNRD-11": (["openim", "leancloud"], "the service sends no number"),
  ]
}

extension AllAdapters {
  /// Cases of the conformance suite that a vendor gives nothing to look at, and why.
  public static func declaredSkips(of vendor: String, model: String?) -> [String: String] {
    let name = model.map { "\(vendor)-\($0)" } ?? vendor
    return DeclaredSkips.rules.filter { $0.value.adapters.contains(name) }.mapValues(\.why)
  }
}
