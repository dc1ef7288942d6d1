#if os(Linux)
  import CCurl
  import Glibc

  /// What libcurl's outcomes mean to us. An outcome that is in no row is `.other`.
  enum CurlErrors {
    private static let kinds: [CURLcode.RawValue: TransportError.Kind] = {
      let rows: [([CURLcode], TransportError.Kind)] = [
        ([CURLE_URL_MALFORMAT], .invalidURL),
        ([CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY], .unresolvedHost),
        ([CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY], .unreachable),
        (
          [
            CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
            CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_ENGINE_NOTFOUND,
            CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT, CURLE_USE_SSL_FAILED,
          ], .tls
        ),
        ([CURLE_OPERATION_TIMEDOUT], .timeout),
        (
          [
            CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_SEND_FAIL_REWIND,
            CURLE_SSL_SHUTDOWN_FAILED,
          ], .closed
        ),
        ([CURLE_ABORTED_BY_CALLBACK], .cancelled),
        ([CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_HTTP2, CURLE_HTTP2_STREAM], .protocolViolation),
      ]
      return Dictionary(uniqueKeysWithValues: rows.flatMap { row in row.0.map { ($0.rawValue, row.1) } })
    }()

    /// - Parameters:
    ///   - systemError: `errno` of the last connection attempt, which tells a closed port from a dead network.
    ///   - wasSent: whether the request was on its way: libcurl has one code for a scheme that it does not speak and for
    ///     an answer that is not HTTP.
    static func kind(of result: CURLcode, systemError: Int32, wasSent: Bool) -> TransportError.Kind {
      switch result {
      case CURLE_COULDNT_CONNECT where systemError == ECONNREFUSED: .refused
      case CURLE_UNSUPPORTED_PROTOCOL: wasSent ? .protocolViolation : .invalidURL
      default: kinds[result.rawValue] ?? .other
      }
    }
  }
#endif
