extension Transports {
  /// The platform's clients, the same at each call, so that all share connections and threads.
  public static func system() -> Transports { platform }

  #if os(Linux)
    private static let platform = Transports(http: CurlHTTPClient(), webSocket: LWSWebSocketClient())
  #elseif canImport(Darwin)
    private static let platform: Transports = {
      let transport = URLSessionTransport()
      return Transports(http: transport, webSocket: transport)
    }()
  #endif
}
