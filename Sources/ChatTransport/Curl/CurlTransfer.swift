#if os(Linux)
  import CCurl
  import Synchronization

  /// One request on its way through libcurl.
  // @unchecked: handed over to the engine's thread by its inbox and used only there, but for `isCancelled`, which is
  // atomic, and for what never changes.
  final class CurlTransfer: @unchecked Sendable {
    typealias Continuation = CheckedContinuation<Result<HTTPResponse, TransportError>, Never>

    let isCancelled = Atomic(false)
    let request: HTTPRequest
    let endpoint: Endpoint
    private let settings: CurlSettings
    private let progress: (@Sendable (TransferProgress) -> Void)?

    var continuation: Continuation?
    private(set) var handle: UnsafeMutableRawPointer?
    private var fields: OpaqueFieldList = nil
    private var headers = HTTPHeaders()
    private var headerBytes = 0
    private var headHasEnded = false
    private var body: [UInt8] = []
    /// How often libcurl was about to send the request.
    private var attempts = 0
    /// The limit that the answer went over.
    private var exceeded: Int?
    private var resendWasForbidden = false
    private var reported: TransferProgress?

    private typealias OpaqueFieldList = UnsafeMutablePointer<curl_slist>?

    /// Header fields of one answer, all together.
    static let headerLimit = 256 << 10

    init(
      _ request: HTTPRequest, endpoint: Endpoint, settings: CurlSettings,
      progress: (@Sendable (TransferProgress) -> Void)?
    ) {
      self.request = request
      self.endpoint = endpoint
      self.settings = settings
      self.progress = progress
    }

    deinit { curl_slist_free_all(fields) }

    func finish(_ result: Result<HTTPResponse, TransportError>) {
      continuation?.resume(returning: result)
      continuation = nil
      handle = nil
    }

    /// Sets a fresh handle up for this request.
    func prepare(_ handle: UnsafeMutableRawPointer) -> CURLcode {
      self.handle = handle
      let context = Unmanaged.passUnretained(self).toOpaque()
      var steps: [CURLcode] = [
        ccurl_set_string(handle, CURLOPT_URL, request.url),
        ccurl_set_string(handle, CURLOPT_PROTOCOLS_STR, "http,https"),
        // Paths go out as they are: `..` may be the name of something.
        ccurl_set_long(handle, CURLOPT_PATH_AS_IS, 1),
        ccurl_set_long(handle, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)),
        ccurl_set_long(handle, CURLOPT_NOSIGNAL, 1),
        // Leaving while a name is being looked up must not wait for the look-up.
        ccurl_set_long(handle, CURLOPT_QUICK_EXIT, 1),
        ccurl_set_long(handle, CURLOPT_TIMEOUT_MS, request.timeout.wholeMilliseconds),
        ccurl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, request.timeout.wholeMilliseconds),
        ccurl_set_long(handle, CURLOPT_TCP_KEEPALIVE, 1),
        ccurl_set_long(handle, CURLOPT_SSL_VERIFYPEER, 1),
        ccurl_set_long(handle, CURLOPT_SSL_VERIFYHOST, 2),
        ccurl_set_long(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1),
        ccurl_set_write(handle, receiveBody, context),
        ccurl_set_header(handle, receiveHeader, context),
        ccurl_set_prerequest(handle, beforeSending, context),
      ]
      if progress != nil { steps.append(ccurl_set_progress(handle, reportProgress, context)) }
      if endpoint.isLoopback { steps.append(ccurl_set_string(handle, CURLOPT_PROXY, "")) }
      if let file = settings.certificateAuthorities {
        // A directory that libcurl was built with would be believed beside the file.
        steps += [ccurl_set_string(handle, CURLOPT_CAINFO, file), ccurl_set_string(handle, CURLOPT_CAPATH, nil)]
      }
      if !request.headers.contains("Accept-Encoding") {
        steps.append(ccurl_set_string(handle, CURLOPT_ACCEPT_ENCODING, "gzip, deflate"))
      }
      steps += prepareMethod(handle) + prepareFields(handle)
      return steps.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    private func prepareMethod(_ handle: UnsafeMutableRawPointer) -> [CURLcode] {
      if request.method == "HEAD" { return [ccurl_set_long(handle, CURLOPT_NOBODY, 1)] }
      var steps = [ccurl_set_offset(handle, CURLOPT_MAXFILESIZE_LARGE, curl_off_t(request.maxResponseSize))]
      // A body of no bytes still has a length where the method speaks of a body at all.
      if !request.body.isEmpty || ["POST", "PUT", "PATCH"].contains(request.method) {
        steps.append(request.body.withUnsafeBytes { ccurl_set_body(handle, $0.baseAddress, $0.count) })
      }
      steps.append(ccurl_set_string(handle, CURLOPT_CUSTOMREQUEST, request.method))
      return steps
    }

    private func prepareFields(_ handle: UnsafeMutableRawPointer) -> [CURLcode] {
      var lines: [String] = []
      for field in request.headers.fields where field.name.lowercased() != "content-length" {
        let isBlank = field.value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 }
        // libcurl's way to write a field without a value; `Name:` would take the field away.
        lines.append(isBlank ? "\(field.name);" : "\(field.name): \(field.value)")
      }
      // What libcurl would add by itself: a type that the body does not have, a wish that nobody made, and a wait for
      // `100 Continue` that many servers never send.
      for name in ["Accept", "Content-Type", "Expect"] where !request.headers.contains(name) {
        lines.append("\(name):")
      }
      for line in lines {
        guard let longer = curl_slist_append(fields, line) else { return [CURLE_OUT_OF_MEMORY] }
        fields = longer
      }
      return [ccurl_set_headers(handle, fields)]
    }

    // MARK: What libcurl tells

    fileprivate func received(_ bytes: UnsafeRawBufferPointer) -> Bool {
      guard body.count + bytes.count <= request.maxResponseSize else {
        exceeded = request.maxResponseSize
        return false
      }
      body.append(contentsOf: bytes)
      return true
    }

    fileprivate func receivedHeader(_ line: UnsafeRawBufferPointer) -> Bool {
      headerBytes += line.count
      guard headerBytes <= Self.headerLimit else {
        exceeded = Self.headerLimit
        return false
      }
      // On bytes: a mark that combines with the colon would hide it from a search by characters.
      let text = line.trimmed
      if line.starts(with: "HTTP/".utf8) {
        // An interim answer came before; only the last one counts.
        headers = HTTPHeaders()
        headHasEnded = false
      } else if !text.isEmpty, line.first == 0x20 || line.first == 0x09 {
        guard !headers.fields.isEmpty else { return true }
        headers.fields[headers.fields.count - 1].value += " " + String(decoding: text, as: UTF8.self)
      } else if text.isEmpty {
        headHasEnded = true
      } else if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
        let name = String(decoding: text[..<colon], as: UTF8.self)
        let value = UnsafeRawBufferPointer(rebasing: text[(colon + 1)...]).trimmed
        headers.fields.append(HTTPHeaders.Field(name, String(decoding: value, as: UTF8.self)))
      }
      return true
    }

    /// Whether the request may be sent now. libcurl sends again by itself when a kept connection ends without an answer:
    /// fine for what may be done twice, or as long as nothing left this machine.
    fileprivate func maySend(_ handle: UnsafeMutableRawPointer) -> Bool {
      attempts += 1
      resendWasForbidden = attempts > 1 && !request.isSafe && !nothingSent(handle)
      return !resendWasForbidden
    }

    fileprivate func progressed(_ sent: Int64, _ received: Int64, _ receivedTotal: Int64) {
      let now = TransferProgress(
        sent: sent, received: received, sentTotal: Int64(request.body.count),
        receivedTotal: receivedTotal > 0 ? receivedTotal : nil)
      guard let progress, now != reported, sent > 0 || received > 0 else { return }
      reported = now
      progress(now)
    }

    // MARK: The outcome

    /// True when no byte of the request can have left: libcurl counts what the socket took.
    func nothingSent(_ handle: UnsafeMutableRawPointer) -> Bool {
      var sent = 0
      ccurl_get_long(handle, CURLINFO_REQUEST_SIZE, &sent)
      return attempts == 0 || sent == 0
    }

    func outcome(of result: CURLcode, _ handle: UnsafeMutableRawPointer) -> Result<HTTPResponse, TransportError> {
      let nothingSent = nothingSent(handle)
      if exceeded != nil || result == CURLE_FILESIZE_EXCEEDED {
        return .failure(error(.tooLarge(limit: exceeded ?? request.maxResponseSize), ""))
      }
      if resendWasForbidden {
        return .failure(error(.closed, "the kept connection ended without an answer", nothingSent: false))
      }
      guard result == CURLE_OK else {
        let kind = CurlErrors.kind(of: result, systemError: systemError(handle), wasSent: attempts > 0)
        return .failure(error(kind, String(cString: curl_easy_strerror(result)), nothingSent: nothingSent))
      }
      // libcurl takes a head that breaks off for one without a body.
      guard headHasEnded else { return .failure(error(.closed, "the answer's head broke off")) }
      var status = 0
      ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
      reportEnd(handle)
      return .success(HTTPResponse(status: status, headers: headers, body: body))
    }

    func error(_ kind: TransportError.Kind, _ detail: String, nothingSent: Bool = false) -> TransportError {
      TransportError(kind, peer: endpoint.peer, detail: detail, nothingSent: nothingSent)
    }

    private func systemError(_ handle: UnsafeMutableRawPointer) -> Int32 {
      var number = 0
      ccurl_get_long(handle, CURLINFO_OS_ERRNO, &number)
      return Int32(truncatingIfNeeded: number)
    }

    private func reportEnd(_ handle: UnsafeMutableRawPointer) {
      guard progress != nil else { return }
      var sent: curl_off_t = 0
      var received: curl_off_t = 0
      ccurl_get_offset(handle, CURLINFO_SIZE_UPLOAD_T, &sent)
      ccurl_get_offset(handle, CURLINFO_SIZE_DOWNLOAD_T, &received)
      progressed(Int64(sent), Int64(received), Int64(received))
    }
  }

  extension UnsafeRawBufferPointer {
    /// Without the white space at both ends.
    fileprivate var trimmed: Slice<UnsafeRawBufferPointer> {
      let isBlank: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
      let start = firstIndex { !isBlank($0) } ?? endIndex
      let end = lastIndex { !isBlank($0) }.map { $0 + 1 } ?? start
      return self[start..<end]
    }
  }

  // MARK: libcurl's callbacks, plain functions that libcurl calls on the engine's thread

  private func transfer(_ context: UnsafeMutableRawPointer) -> CurlTransfer {
    Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
  }

  private func receiveBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
  ) -> Int {
    guard let bytes, let context else { return 0 }
    let whole = size * count
    // Any number but the one given stops the transfer.
    return transfer(context).received(UnsafeRawBufferPointer(start: bytes, count: whole)) ? whole : whole + 1
  }

  private func receiveHeader(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
  ) -> Int {
    guard let bytes, let context else { return 0 }
    let whole = size * count
    return transfer(context).receivedHeader(UnsafeRawBufferPointer(start: bytes, count: whole)) ? whole : whole + 1
  }

  private func beforeSending(
    _ context: UnsafeMutableRawPointer?, _: UnsafeMutablePointer<CChar>?, _: UnsafeMutablePointer<CChar>?, _: Int32,
    _: Int32
  ) -> Int32 {
    guard let context else { return 1 }
    let transfer = transfer(context)
    guard let handle = transfer.handle, transfer.maySend(handle) else { return CURL_PREREQFUNC_ABORT }
    return CURL_PREREQFUNC_OK
  }

  private func reportProgress(
    _ context: UnsafeMutableRawPointer?, _ receivedTotal: curl_off_t, _ received: curl_off_t, _ sentTotal: curl_off_t,
    _ sent: curl_off_t
  ) -> Int32 {
    if let context { transfer(context).progressed(Int64(sent), Int64(received), Int64(receivedTotal)) }
    return 0
  }
#endif
