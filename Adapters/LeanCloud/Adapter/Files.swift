import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

/// Bytes of attachments: ask for a place, put them there, say that they are there.
///
/// - Source: wire reference §9.6 (`fileTokens`, upload, `fileCallback`).
struct LeanCloudFiles: Sendable {
  var rest: LeanCloudREST
  var key: LeanCloudREST.Key = .master

  /// The address of the stored bytes.
  func upload(
    _ attachment: Attachment, bytes: [UInt8], operation: ChatError.Operation,
    progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)? = nil
  ) async throws(ChatError) -> String {
    let mimeType = attachment.mimeType ?? "application/octet-stream"
    let place = try await rest.call(
      "POST", "/1.1/fileTokens",
      body: [
        "name": .string(attachment.name ?? "file"), "mime_type": .string(mimeType),
        "metaData": ["size": .int(Int64(bytes.count))],
      ], key: key, operation: operation)
    guard let url = place["url"]?.string, let upload = place["upload_url"]?.string, let token = place["token"]?.string
    else { throw ChatError(.protocolViolation, operation: operation, detail: "no place for the file was given") }
    guard place["provider"]?.string == "s3" else {
      throw ChatError(
        .server, operation: operation,
        detail: "files lie with provider \(place["provider"]?.string ?? "unknown"); only s3 is served")
    }
    var request = HTTPRequest("PUT", upload, body: bytes, timeout: rest.timeout)
    request.headers["Content-Type"] = mimeType
    let report: (@Sendable (TransferProgress) -> Void)? = progress.map { progress in
      { @Sendable in progress($0.sent, $0.sentTotal) }
    }
    let response = try await rest.send(request, operation, progress: report)
    let isStored = (200...299).contains(response.status)
    _ = try await rest.call(
      "POST", "/1.1/fileCallback", body: ["token": .string(token), "result": .bool(isStored)], key: key,
      operation: operation)
    guard isStored else { throw LeanCloudFault.error(response, nil, operation: operation) }
    return url
  }

  func download(
    _ attachment: Attachment, limit: Int64, operation: ChatError.Operation
  ) async throws(ChatError) -> [UInt8] {
    try await Self.fetch(attachment, limit: limit, http: rest.http, timeout: rest.timeout, operation: operation)
  }

  /// The address of a file needs no key.
  static func fetch(
    _ attachment: Attachment, limit: Int64, http: any HTTPClient, timeout: Duration, operation: ChatError.Operation
  ) async throws(ChatError) -> [UInt8] {
    guard let url = attachment.url, !url.isEmpty else {
      throw ChatError(.invalidArgument(field: "url"), operation: operation, detail: "the attachment has no address")
    }
    if let size = attachment.size, size > limit {
      throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: operation)
    }
    let response: HTTPResponse
    var request = HTTPRequest("GET", url, timeout: timeout)
    // What is too much is not even received.
    request.maxResponseSize = min(request.maxResponseSize, Int(clamping: max(0, limit)))
    do { response = try await http.send(request) } catch {
      throw LeanCloudFault.error(error, operation: operation)
    }
    guard (200...299).contains(response.status) else {
      throw LeanCloudFault.error(response, try? JSONValue(parsing: response.body), operation: operation)
    }
    guard Int64(response.body.count) <= limit else {
      throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: operation)
    }
    return response.body
  }
}
