import UnifiedChat

/// What is wrong with an archive; no findings mean that it is whole.
public struct ArchiveVerification: Sendable, Hashable {
  public struct Finding: Sendable, Hashable, CustomStringConvertible {
    /// `channel`, `file`, `manifest` or `copy`.
    public var kind: String
    public var id: String
    public var reason: String

    public var description: String { "\(kind) \(id): \(reason)" }
  }

  public var counts: ArchiveCounts
  public var digest: String?
  public var findings: [Finding]
  public var isWhole: Bool { findings.isEmpty }
}

extension Archive {
  /// Reads everything again: the digests of the manifest, and each file's bytes against its name.
  /// - Parameter copy: a second archive that has to hold the same.
  public func verify(against copy: Archive? = nil) async throws(ChatError) -> ArchiveVerification {
    var findings = try verifyRows()
    findings += try verifyFiles()
    let result = ArchiveVerification(counts: try counts(), digest: try digest(), findings: findings)
    guard let copy else { return result }
    return try await compare(result, with: copy)
  }

  private func verifyRows() throws(ChatError) -> [ArchiveVerification.Finding] {
    guard try isComplete() else {
      return [.init(kind: "manifest", id: path, reason: "the reading did not end; run the pull again")]
    }
    var findings: [ArchiveVerification.Finding] = []
    let sections = try sectionDigests { channel throws(ChatError) in
      let now = try digest(of: channel)
      if now != channel.digest {
        findings.append(.init(kind: "channel", id: channel.id.rawValue, reason: "changed since the reading ended"))
      }
      return now
    }
    for (section, now) in sections where try manifestValue(section) != now {
      findings.append(.init(kind: "manifest", id: section, reason: "changed since the reading ended"))
    }
    return findings
  }

  private func verifyFiles() throws(ChatError) -> [ArchiveVerification.Finding] {
    var findings: [ArchiveVerification.Finding] = []
    var after = ""
    while true {
      let page = try storedFiles(after: after, limit: 500)
      for file in page {
        let sha256 = file.stored.sha256
        switch try files.digest(of: sha256) {
        case nil: findings.append(.init(kind: "file", id: sha256, reason: "missing in \(files.folder)"))
        case sha256?: break
        default: findings.append(.init(kind: "file", id: sha256, reason: "its bytes changed"))
        }
      }
      guard let last = page.last else { return findings }
      after = last.stored.sha256
    }
  }

  private func compare(
    _ own: ArchiveVerification, with copy: Archive
  ) async throws(ChatError) -> ArchiveVerification {
    let other = try await copy.verify()
    var result = own
    result.findings += other.findings.map {
      .init(kind: "copy", id: copy.path, reason: $0.description)
    }
    if own.digest != other.digest || own.digest == nil {
      result.findings.append(.init(kind: "copy", id: copy.path, reason: "holds something else"))
    }
    return result
  }
}
