#if os(Linux)
  import CCurl

  /// HTTP over libcurl, HTTP/1.1, on one thread of its own for all requests of this client.
  ///
  /// - Connections are kept and used again. Redirects are answers like others. TLS certificates and names are verified.
  /// - Answers in gzip or deflate are decoded, unless the request has an `Accept-Encoding` field of its own; the header
  ///   fields stay as the server sent them.
  /// - Fields are sent as given; of its own the client adds `Host`, `Content-Length` and `Accept-Encoding`.
  /// - A request that is not safe (anything but GET, HEAD, OPTIONS) is sent once. If a kept connection turns out to be
  ///   closed after a byte may have left, the error is `.closed` and the caller decides.
  /// - Proxies are taken from the environment (`http_proxy`, `https_proxy`, `no_proxy`), but never for this machine.
  /// - Progress is reported on the client's thread: be brief there.
  public final class CurlHTTPClient: HTTPClient {
    private let engine: CurlEngine
    private let settings: CurlSettings

    /// - Parameter certificateAuthorities: path of a PEM file to trust instead of the system's authorities.
    public init(certificateAuthorities: String? = nil) {
      engine = CurlEngine()
      settings = CurlSettings(certificateAuthorities: certificateAuthorities)
    }

    deinit { engine.stop() }

    public func send(
      _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws(TransportError) -> HTTPResponse {
      let endpoint = try Endpoint.http(request.url)
      try request.headers.checkWireForm(peer: endpoint.peer)
      guard request.method.utf8.allSatisfy({ (0x41...0x5A).contains($0) || $0 == 0x2D }), !request.method.isEmpty else {
        throw TransportError(.other, peer: endpoint.peer, detail: "the method is not a word", nothingSent: true)
      }
      let transfer = CurlTransfer(request, endpoint: endpoint, settings: settings, progress: progress)
      let result = await withTaskCancellationHandler {
        await withCheckedContinuation { engine.start(transfer, $0) }
      } onCancel: {
        engine.cancel(transfer)
      }
      return try result.get()
    }
  }

  struct CurlSettings: Sendable {
    var certificateAuthorities: String?
  }
#endif
