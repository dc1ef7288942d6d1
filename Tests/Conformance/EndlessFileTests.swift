import AllAdapters
import ChatEmulation
import ChatHarness
import ChatTransport
import Foundation
import Synchronization
import Testing
import UnifiedChat

@Suite("A file that has no end is not read for ever", .timeLimit(.minutes(1)))
struct EndlessFileTests {
  /// A place with files that never end: whoever asks gets as much as they said that they take, and an error for more.
  private final class EndlessFile: HTTPClient {
    static let url = "http://files.test/endless"
    static let circle = "http://files.test/circle"
    private let inner: any HTTPClient
    private let asked = Mutex<[HTTPRequest]>([])
    /// What each request was ready to receive.
    var limits: [Int] { requests.map(\.maxResponseSize) }
    var requests: [HTTPRequest] { asked.withLock { $0 } }

    init(_ inner: any HTTPClient) { self.inner = inner }

    func send(
      _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws(TransportError) -> HTTPResponse {
      guard request.url.hasPrefix("http://files.test/") else { return try await inner.send(request, progress: progress) }
      asked.withLock { $0.append(request) }
      if request.url == Self.circle { return HTTPResponse(status: 302, headers: ["Location": Self.circle]) }
      throw TransportError(.tooLarge(limit: request.maxResponseSize), nothingSent: false)
    }
  }

  private let file = Attachment(url: EndlessFile.url, name: "endless", size: 10)

  private func town(_ vendor: String) throws -> (service: VendorService, files: EndlessFile) {
    var files: EndlessFile?
    let service = try VendorService(vendor, device: "phone") { inner in
      let place = EndlessFile(inner)
      files = place
      return place
    }
    return (service, try #require(files))
  }

  @Test(
    "a client receives no more of it than the caller allows, and says so", arguments: VendorService.names,
    [0, 1, 1000, 5 << 20] as [Int64])
  func client(_ vendor: String, _ limit: Int64) async throws {
    let (service, files) = try town(vendor)
    let adapter = try service.adapter()
    var file = file
    // A size that is told may be a lie.
    file.size = nil
    let error = await #expect(throws: ChatError.self) { try await adapter.download(file, limit: limit) }
    #expect(error?.kind == .tooLarge(limit: limit, unit: .bytes))
    #expect(files.limits == [Int(limit)])
  }

  @Test("tools receive no more of it than 256 MiB, keep nothing of it, and say so", arguments: VendorService.names)
  func source(_ vendor: String) async throws {
    let (service, files) = try town(vendor)
    let source = try service.source()
    let kept = Mutex(0)
    let error = await #expect(throws: ChatError.self) {
      try await source.download(file) { piece throws(ChatError) in kept.withLock { $0 += piece.count } }
    }
    #expect(error?.kind == .tooLarge(limit: 256 << 20, unit: .bytes))
    #expect(files.limits == [256 << 20])
    #expect(kept.withLock { $0 } == 0)
  }

  @Test("a place that sends on to itself is left, and is told no secret", arguments: VendorService.names)
  func circle(_ vendor: String) async throws {
    let (service, files) = try town(vendor)
    var file = file
    file.url = EndlessFile.circle
    let source = try service.source()
    await #expect(throws: ChatError.self) { try await source.download(file) { _ throws(ChatError) in } }
    #expect((1...5).contains(files.requests.count))
    for request in files.requests { #expect(request.headers.fields.isEmpty && request.body.isEmpty) }
  }
}
