import Synchronization
import UnifiedChat

/// What has changed at the source since it was written: edits, recalls, deletions, members who left, profiles.
///
/// Every step may be done twice, so that a run that is killed here simply does it again.
extension Loader {
  private static let page = 200

  // MARK: Users

  /// Writes the profiles that changed.
  func changeUsers(_ form: DestinationForm) async throws(ChatError) {
    var done = Int64(try await ledger.note("changes.users") ?? "") ?? 0
    let watermark = try await ledger.userWatermark()
    while true {
      let changes = try await archive.changes(of: 0, after: done, limit: Self.page)
      guard let last = changes.last else { return }
      var users: [UserRecord] = []
      for id in Set(changes.map { UserID($0.id) }).sorted() {
        guard let user = try await archive.user(id), user.ordinal <= watermark else { continue }
        users.append(try user.stored.user())
      }
      var work = UserWork(isFirst: false)
      try await load(users, form, &work)
      done = last.number
      // They were counted when they were first written; what was refused now was not.
      var refused = LoadTally()
      for exception in work.tally.exceptions { refused.add(exception) }
      try await ledger.commit(
        0, changesUpTo: done, gone: users.map { MessageID($0.user.id.rawValue) }, late: [], refused)
      changeCount.add(users.count)
    }
  }

  // MARK: Channels

  /// Changes and removes what an earlier run wrote. New members, roles and read marks come with the channel itself.
  func applyChanges(_ work: inout ChannelWork, after number: Int64) async throws(ChatError) {
    var done = number
    while true {
      if Task.isCancelled { throw .cancelled(.writeDestination) }
      let changes = try await archive.changes(of: work.channel, after: done, limit: Self.page)
      guard let last = changes.last else { return }
      var result = ChangeResult()
      try await removeMembers(changes, work, &result)
      try await removeMessages(changes, work, &result)
      try await changeMessages(changes, work, &result)
      done = last.number
      try await ledger.commit(work.channel, changesUpTo: done, gone: result.gone, late: result.late, result.tally)
      changeCount.add(result.count)
    }
  }

  private struct ChangeResult {
    var gone: [MessageID] = []
    var late: [LateLoss] = []
    var tally = LoadTally()
    var count = 0

    mutating func add(late loss: Loss, kind: String, id: String) {
      late.append(LateLoss(kind: kind, id: id, loss: loss))
      tally.add(loss, of: id)
    }
  }

  private func removeMembers(
    _ changes: [ArchivedChange], _ work: ChannelWork, _ result: inout ChangeResult
  ) async throws(ChatError) {
    var gone: [UserID] = []
    for change in changes where change.list == .members && change.isRemoved {
      // Who came back since is a member.
      if try await archive.member(UserID(change.id), of: work.channel) == nil { gone.append(UserID(change.id)) }
    }
    guard !gone.isEmpty else { return }
    let users = try await ledger.destinations(of: gone)
    do throws(ChatError) {
      try await pacer.perform(.writeDestination) { [place = work.destination] () throws(ChatError) in
        try await destination.removeMembers(gone.compactMap { users[$0] }, from: place)
      }
      result.count += gone.count
    } catch {
      guard error.isOfItems else { throw error }
      for user in gone { result.add(late: .lateMember, kind: "member", id: user.rawValue) }
    }
  }

  private func removeMessages(
    _ changes: [ArchivedChange], _ work: ChannelWork, _ result: inout ChangeResult
  ) async throws(ChatError) {
    let ids = changes.filter { $0.list == .messages && $0.isRemoved }.map { MessageID($0.id) }
    let present = try await archive.messages(in: work.channel, ids: ids)
    var places = try await ledger.destinations(of: ids.filter { present[$0] == nil }, in: work.channel)
    var gone = ids.filter { places[$0] != nil }
    for id in gone where work.form.rules.reactions == .messages {
      for (reaction, place) in try await ledger.reactions(to: id, in: work.channel) {
        places[reaction] = place
        gone.append(reaction)
      }
    }
    for part in gone.chunks(of: max(1, destination.limits.batch)) {
      do throws(ChatError) {
        try await pacer.perform(.writeDestination) { [place = work.destination, places] () throws(ChatError) in
          try await destination.removeMessages(part.compactMap { places[$0] }, in: place)
        }
        result.gone += part
        result.count += part.filter { ReactionForm.message(of: $0) == nil }.count
        for id in part.compactMap({ places[$0] }) {
          result.late.append(LateLoss(kind: LateLoss.removed, id: id.rawValue, loss: .tombstone))
        }
      } catch {
        guard error.isOfItems else { throw error }
        for id in part where ReactionForm.message(of: id) == nil {
          result.add(late: .lateRemoval, kind: "message", id: id.rawValue)
        }
      }
    }
  }

  private func changeMessages(
    _ changes: [ArchivedChange], _ work: ChannelWork, _ result: inout ChangeResult
  ) async throws(ChatError) {
    let ids = changes.filter { $0.list == .messages && !$0.isRemoved }.map { MessageID($0.id) }
    let stored = try await archive.messages(in: work.channel, ids: ids)
    // What is not there yet is about to be written as it is now.
    let due = stored.values.sorted { $0.ordinal < $1.ordinal }
    let places = try await ledger.destinations(of: due.map(\.id), in: work.channel)
    for archived in due {
      guard let place = places[archived.id] else { continue }
      let original = try archived.stored.message()
      let users = try await directory.destinations(of: Set(original.message.namedUsers))
      // Its losses were counted when it was first written, but for the one that a change brings.
      var uncounted = LoadTally()
      let record = try await placingAttachments(of: work.form.message(original, users: users), work, &uncounted)
      let targets = try await ledger.destinations(of: record.message.targets, in: work.channel)
      try await change(record.answering(targets), archived.id, place, work, &result)
      if work.form.rules.reactions == .messages {
        try await changeReactions(work.form.reactions(of: original, users: users), to: archived.id, work, &result)
      }
    }
  }

  /// Writes the reactions that are new and removes those that are gone. A reaction has no time of its own, so a late one
  /// comes behind what was written before.
  private func changeReactions(
    _ wanted: [MessageRecord], to message: MessageID, _ work: ChannelWork, _ result: inout ChangeResult
  ) async throws(ChatError) {
    let known = try await ledger.reactions(to: message, in: work.channel)
    let ids = Set(wanted.compactMap(\.message.id))
    let gone = known.keys.filter { !ids.contains($0) }
    let new = wanted.filter { $0.message.id.map { known[$0] == nil } ?? false }
    do throws(ChatError) {
      for part in gone.chunks(of: max(1, destination.limits.batch)) {
        try await pacer.perform(.writeDestination) { [place = work.destination] () throws(ChatError) in
          try await destination.removeMessages(part.compactMap { known[$0] }, in: place)
        }
        result.gone += part
        for id in part.compactMap({ known[$0] }) {
          result.late.append(LateLoss(kind: LateLoss.removed, id: id.rawValue, loss: .tombstone))
        }
      }
      let found = try await put(new, work)
      try await ledger.commit(found: found, in: work.channel, areOwn: true)
      if found.count < new.count { result.add(late: .lateReactions, kind: "message", id: message.rawValue) }
    } catch {
      guard error.isOfItems else { throw error }
      result.add(late: .lateReactions, kind: "message", id: message.rawValue)
    }
  }

  private func change(
    _ record: MessageRecord, _ id: MessageID, _ place: MessageID, _ work: ChannelWork, _ result: inout ChangeResult
  ) async throws(ChatError) {
    do throws(ChatError) {
      let outcome = try await pacer.perform(.writeDestination) { [channel = work.destination] () throws(ChatError) in
        let outcome = try await destination.changeMessage(record, id: place, in: channel)
        if case .refused(let error) = outcome, !error.isFinalForItem { throw error }
        return outcome
      }
      switch outcome {
      case .written(let given), .existed(let given):
        if given != place { try await ledger.commit(found: [id: given], in: work.channel, areOwn: true) }
        for loss in destination.losses(of: .message(record)) where loss.field == "message.editedAt" {
          result.tally.add(loss, of: id.rawValue)
        }
        if record.message.editedAt == nil {
          // A recall, for example: no edit at its source, and perhaps one for the vendor.
          result.late.append(LateLoss(kind: LateLoss.touched, id: id.rawValue, loss: .touched))
          result.tally.add(.touched, of: id.rawValue)
        }
        result.count += 1
      case .skipped(let loss):
        result.add(late: loss, kind: "message", id: id.rawValue)
        result.count += 1
      case .refused(let error): throw error
      }
    } catch {
      guard error.isOfItems || error.isFinalForItem else { throw error }
      result.add(late: .lateChange, kind: "message", id: id.rawValue)
    }
  }
}

/// How many items a run changed.
final class ChangeCount: Sendable {
  private let count = Mutex(0)

  func add(_ number: Int) { count.withLock { $0 += number } }
  var value: Int { count.withLock { $0 } }
}

extension Archive {
  /// What a ledger is bound to: the archive, in the order that its messages have now.
  func stamp() throws(ChatError) -> String {
    let id = try identity().id
    return try manifestValue("order").map { "\(id) in order \($0)" } ?? id
  }
}
