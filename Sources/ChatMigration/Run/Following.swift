import UnifiedChat

/// How a source is followed until people are moved over.
public struct FollowOptions: Sendable {
  /// Between two passes.
  public var interval: Duration
  /// Every so many passes everything is read again, so that edits, recalls, deletions and read marks come along; the
  /// others only look for what is new.
  public var passesPerRereading: Int
  /// Asked before each pass: true when nobody writes at the source any more, and the last passes are due.
  public var isCutOver: @Sendable () async -> Bool

  public init(
    interval: Duration = .seconds(10), passesPerRereading: Int = 30, isCutOver: @escaping @Sendable () async -> Bool
  ) {
    self.interval = interval
    self.passesPerRereading = max(1, passesPerRereading)
    self.isCutOver = isCutOver
  }
}

/// One pass of following: what the source had that the destination did not, and now has.
public struct FollowPass: Sendable, Hashable {
  /// 1 and up.
  public var number: Int
  public var new: Int
  public var changed: Int
  public var removed: Int
  /// Whether everything was read again.
  public var isWhole: Bool
  public var isCutOver: Bool
  public var at: Timestamp

  /// How far the destination was behind.
  public var lag: Int { new + changed + removed }
}

extension MigrationRun {
  /// Carries over what is new until the cut-over, then looks through everything once more, and again until a pass
  /// finds nothing, and verifies. The archive and ledger of an earlier run are gone on with.
  public func follow(
    _ options: FollowOptions, onPass: @Sendable (FollowPass) -> Void
  ) async throws(ChatError) -> FidelityReport {
    var number = 0
    while true {
      if Task.isCancelled { throw .cancelled(.readSource) }
      let isCutOver = await options.isCutOver()
      let isWhole = isCutOver || number % options.passesPerRereading == 0
      number += 1
      let summary = try await pull(refreshes: true, rereads: isWhole)
      _ = try await load()
      onPass(
        FollowPass(
          number: number, new: summary.newMessages, changed: summary.changed, removed: summary.removed,
          isWhole: isWhole, isCutOver: isCutOver, at: clock.now))
      if isCutOver {
        if summary.isUnchanged { return try await conclude() }
      } else {
        do { try await clock.sleep(for: options.interval) } catch { throw .cancelled(.readSource) }
      }
    }
  }
}
