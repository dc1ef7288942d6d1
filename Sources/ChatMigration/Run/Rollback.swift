import UnifiedChat

/// What a rollback took away, and what it had to leave.
public struct RollbackSummary: Sendable, Hashable {
  public var channels = 0
  /// Of channels that were there before, and of those that cannot be removed as a whole.
  public var messages = 0
  public var users = 0
  /// What this run made and the destination cannot remove, with the reason; at most a hundred.
  public var left: [String] = []
  public var leftCount = 0

  public init() {}

  mutating func leave(_ what: String, _ count: Int = 1) {
    leftCount += count
    if left.count < 100 { left.append(what) }
  }

  public var isComplete: Bool { leftCount == 0 }
}

/// Removes what the runs of one ledger made, and nothing else: channels they made with all that is in them, messages
/// that they wrote into other channels, accounts that they made. Killed and started again, it goes on.
struct Rollback {
  let ledger: any Ledger
  let destination: any ChatDestination
  let keepsUsers: Bool
  let pacer: Pacer
  let progress: ProgressReporter

  func run() async throws(ChatError) -> RollbackSummary {
    var summary = RollbackSummary()
    let counts = try await ledger.counts()
    progress.begin(.rollBack, total: counts.channels)
    var skipped: Set<Int64> = []
    while true {
      if Task.isCancelled { throw .cancelled(.writeDestination) }
      let page = try await ledger.ownChannels(limit: 50 + skipped.count).filter { !skipped.contains($0.channel) }
      guard !page.isEmpty else { break }
      for channel in page {
        if try await !remove(channel, &summary) { skipped.insert(channel.channel) }
        progress.add(1)
      }
    }
    if !keepsUsers { try await removeUsers(&summary) }
    progress.end()
    // What is left is still this run's: the ledger keeps it.
    if summary.isComplete { try await ledger.reset() }
    return summary
  }

  private static func reason(_ error: ChatError, _ what: String) -> String {
    if case .unsupported = error.kind { return "this destination cannot remove \(what)" }
    return error.description
  }

  /// False when something of it stays.
  private func remove(_ channel: OwnChannel, _ summary: inout RollbackSummary) async throws(ChatError) -> Bool {
    var reason: String?
    var isBeyond = false
    if channel.isOwn {
      do throws(ChatError) {
        try await pacer.perform(.writeDestination) { () throws(ChatError) in
          try await destination.removeChannel(channel.destination)
        }
        try await ledger.forget(channel: channel.channel)
        summary.channels += 1
        return true
      } catch {
        guard error.isOfItems else { throw error }
        reason = Self.reason(error, "channels of this kind")
        if case .unsupported = error.kind { isBeyond = true }
      }
    }
    let isEmptied = try await removeMessages(of: channel, &summary)
    if let reason {
      summary.leave("channel \(channel.destination): \(reason)")
      // No later rollback could remove it, either; a later load fills it again.
      if isBeyond, isEmptied { try await ledger.forget(channel: channel.channel) }
    } else if isEmptied {
      try await ledger.forget(channel: channel.channel)
    }
    return isEmptied && (reason == nil || isBeyond)
  }

  private func removeMessages(
    of channel: OwnChannel, _ summary: inout RollbackSummary
  ) async throws(ChatError) -> Bool {
    while true {
      if Task.isCancelled { throw .cancelled(.writeDestination) }
      let own = try await ledger.ownMessages(in: channel.channel, limit: max(1, destination.limits.batch))
      guard !own.isEmpty else { return true }
      do throws(ChatError) {
        try await pacer.perform(.writeDestination) { () throws(ChatError) in
          try await destination.removeMessages(Array(own.values), in: channel.destination)
        }
      } catch {
        guard error.isOfItems else { throw error }
        summary.leave("messages of channel \(channel.destination): \(Self.reason(error, "messages"))")
        return false
      }
      try await ledger.forget(messages: Array(own.keys), in: channel.channel)
      summary.messages += own.count
    }
  }

  private func removeUsers(_ summary: inout RollbackSummary) async throws(ChatError) {
    while true {
      if Task.isCancelled { throw .cancelled(.writeDestination) }
      let own = try await ledger.ownUsers(limit: Loader.userBatch)
      guard !own.isEmpty else { return }
      do throws(ChatError) {
        try await pacer.perform(.writeDestination) { () throws(ChatError) in
          try await destination.removeUsers(Array(own.values))
        }
      } catch {
        guard error.isOfItems else { throw error }
        return summary.leave("accounts of users: \(Self.reason(error, "accounts"))")
      }
      try await ledger.forget(users: Array(own.keys))
      summary.users += own.count
    }
  }
}
