import ChatInterchange
import ChatJSON
import UnifiedChat

extension Extractor {
  /// Fetches the attachments of `record` that are not here, and puts SHA-256 and size into it. One that cannot be
  /// fetched stays as it is, without a digest, and is listed.
  func fetchFiles(
    of record: inout MessageRecord, channel: ArchivedChannel, unreadable: inout [UnreadableRecord]
  ) async throws(ChatError) -> [FetchedFile] {
    var fetched: [FetchedFile] = []
    var found: [StoredFile?] = []
    for attachment in record.message.content.attachments {
      do throws(ChatError) {
        let file = try await fetch(attachment, name: "\(channel.ordinal)")
        found.append(file)
        fetched.append(
          FetchedFile(
            stored: file, url: attachment.url, name: attachment.name, mimeType: attachment.mimeType))
        if let told = attachment.sha256, told != file.sha256 {
          unreadable.append(unreadableFile(attachment, record, "its bytes have another SHA-256 than the source says"))
        }
      } catch {
        if error.kind.stopsTheRun || error.operation == .archive { throw error }
        // A file may lie on a server that is gone for good. If the service itself does not answer either, the run
        // stops here and goes on later; else the file is listed.
        if error.isRetryable { _ = try await source.check() }
        found.append(nil)
        unreadable.append(unreadableFile(attachment, record, error.description))
      }
    }
    var index = 0
    record.message.content = record.message.content.mappingAttachments { attachment in
      defer { index += 1 }
      var attachment = attachment
      let file = found.indices.contains(index) ? found[index] : nil
      attachment.sha256 = file?.sha256
      if let file { attachment.size = file.size }
      return attachment
    }
    return fetched
  }

  private func unreadableFile(
    _ attachment: Attachment, _ record: MessageRecord, _ reason: String
  ) -> UnreadableRecord {
    UnreadableRecord(
      kind: "file", id: record.message.id?.rawValue, channel: record.message.channel, reason: reason,
      raw: JSONText(unchecked: attachment.json().text()))
  }

  private func fetch(_ attachment: Attachment, name: String) async throws(ChatError) -> StoredFile {
    if let url = attachment.url, let known = try await archive.file(at: url),
      archive.files.contains(known.sha256)
    {
      return known
    }
    if let limit = options.maximumFileBytes, let size = attachment.size, size > limit {
      throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: .download, detail: "\(size) bytes")
    }
    return try await pacer.perform(.download) { () throws(ChatError) in
      let file = try archive.files.receive(name)
      let limit = options.maximumFileBytes ?? .max
      try await source.download(attachment) { piece throws(ChatError) in
        guard await file.size + Int64(piece.count) <= limit else {
          throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: .download)
        }
        try await file.append(piece)
      }
      return try await file.finish()
    }
  }
}

extension ChatError.Kind {
  /// Whether the failure is none of the item's, so that every other item would fail as well.
  fileprivate var stopsTheRun: Bool {
    switch self {
    case .cancelled, .authentication, .storage: true
    default: false
    }
  }
}
