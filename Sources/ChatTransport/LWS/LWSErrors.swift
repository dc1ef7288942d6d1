#if os(Linux)
  /// What libwebsockets' words for a failed opening mean to us. Words that match no row are `.other`.
  enum LWSErrors {
    /// Beginnings, in lower case.
    private static let rows: [(beginning: String, kind: TransportError.Kind)] = [
      ("unable to connect", .unreachable),
      ("ipv6 lws_getaddrinfo46 failed", .unresolvedHost),
      ("server's cert", .tls), ("connect ssl", .tls), ("connect syscall", .tls), ("connect unk", .tls),
      ("bio_create", .tls), ("tls", .tls),
      ("hs:", .protocolViolation), ("problems parsing", .protocolViolation), ("ws protocol", .protocolViolation),
      ("peer hung up", .closed), ("read failed", .closed), ("closed before", .closed), ("first service", .closed),
    ]

    static func error(_ text: String, _ link: LWSLink) -> TransportError {
      let nothingSent = !link.wire.requestWasSent
      if let refusal = link.wire.refusal {
        return link.error(.upgradeRefused(refusal), nothingSent: nothingSent)
      }
      let lowercased = text.lowercased()
      let kind = rows.first { lowercased.hasPrefix($0.beginning) }?.kind ?? .other
      return link.error(kind, text.filter { !$0.isNewline }, nothingSent: nothingSent)
    }
  }
#endif
