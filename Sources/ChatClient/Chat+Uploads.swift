import ChatCache
import Synchronization
import UnifiedChat

// A file goes up before its message. Where it is in the outbox (bytes or path) and, once it is up, its URL: killed
// after that, nothing is uploaded twice; killed before, it begins again, since no vendor knows parts of another run.

extension Chat {
  /// Uploads what is not uploaded yet. nil: the message was cancelled meanwhile.
  func uploaded(_ entry: OutboxEntry) async throws(ChatError) -> OutboxEntry? {
    var current = entry
    // Replaced while it was on its way up: then the new one goes up.
    while let attachment = current.draft.content.attachment, attachment.url == nil {
      let done = try await upload(attachment, of: current)
      let next = try cache?.write { session throws(ChatError) in
        try session.setUploaded(done, inPlaceOf: attachment, of: entry.localID)
        return try session.outboxEntry(entry.localID)
      }
      guard let next = next ?? nil else { return nil }
      current = next
    }
    return current
  }

  /// In a task of its own, so that `cancel` and an edit can end it.
  private func upload(_ attachment: Attachment, of entry: OutboxEntry) async throws(ChatError) -> Attachment {
    let progress = uploadProgress[entry.localID]
    let task = Task { [adapter] in
      do throws(ChatError) {
        let done = try await adapter.upload(attachment, for: entry.channel) { progress?.tell($0, of: $1) }
        guard done.url != nil else {
          throw ChatError(.protocolViolation, operation: .upload, detail: "the upload was answered without a URL")
        }
        progress?.finish()
        return Result<Attachment, ChatError>.success(done)
      } catch {
        return .failure(error)
      }
    }
    uploads[entry.localID] = task
    let result = try await ask(await finished(task))
    // After a log-out a later worker may upload the same one.
    if uploads[entry.localID] == task { uploads[entry.localID] = nil }
    return try result.get()
  }

  /// Ended with the worker that waits for it.
  private func finished(_ task: Task<Result<Attachment, ChatError>, Never>) async -> Result<Attachment, ChatError> {
    await withTaskCancellationHandler { await task.value } onCancel: { task.cancel() }
  }

  /// The bytes that are on their way are not wanted any more.
  func stopUpload(of localID: LocalID) { uploads.removeValue(forKey: localID)?.cancel() }
}

/// Progress that never goes back, also when a try begins again, and ends with the total once.
final class UploadProgress: Sendable {
  private let told: @Sendable (_ sent: Int64, _ total: Int64) -> Void
  private let last = Mutex<(sent: Int64, total: Int64)>((-1, 0))

  init(_ told: @escaping @Sendable (_ sent: Int64, _ total: Int64) -> Void) { self.told = told }

  func tell(_ sent: Int64, of total: Int64) {
    let isNews = last.withLock { last in
      guard sent > last.sent else { return false }
      last = (sent, total)
      return true
    }
    if isNews { told(sent, total) }
  }

  /// Some vendors answer before the last step is told.
  func finish() {
    let total = last.withLock { $0.sent < $0.total ? $0.total : nil }
    if let total { tell(total, of: total) }
  }
}
