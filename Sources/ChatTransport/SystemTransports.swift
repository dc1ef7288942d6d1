#if os(Linux)
  extension Transports {
    /// The platform's clients, the same at each call, so that all share connections and threads.
    public static func system() -> Transports { shared }

    private static let shared = Transports(http: CurlHTTPClient(), webSocket: LWSWebSocketClient())
  }
#endif
