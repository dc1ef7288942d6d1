#if os(Linux)
  import CWebSockets
  import Glibc
  import Synchronization

  /// The thread that runs all WebSockets of the process.
  // @unchecked: what is not in `inbox` belongs to the engine's thread.
  final class LWSEngine: @unchecked Sendable {
    enum Command {
      case open(LWSLink)
      case resolved(LWSLink, [String])
      case next(LWSLink)
      case failed(LWSLink, TransportError)
      case cancel(LWSLink)
      case write(LWSLink)
      case close(LWSLink)
      case resume(LWSLink)
    }

    /// Nil if libwebsockets does not start, which only a lack of memory or of files brings about.
    static let shared = LWSEngine()

    private let context: OpaquePointer
    private let inbox = Mutex<[Command]>([])
    /// Links by the token that libwebsockets hands back: a number, never used twice, so that a late callback for a
    /// connection that we gave up finds nothing.
    private var links: [UInt: LWSLink] = [:]
    private var lastToken: UInt = 0
    /// By the path of the authorities' file; the empty one is the system's.
    private var hosts: [String: OpaquePointer] = [:]

    private init?() {
      guard let context = cws_client_context(nil),
        let host = cws_client_vhost(context, "client", webSocketEvent, nil)
      else { return nil }
      self.context = context
      hosts[""] = host
      ServiceThread.start(named: "websocket") { [self] in run() }
    }

    func post(_ command: Command) {
      let wakes = inbox.withLock { commands in
        commands.append(command)
        return commands.count == 1
      }
      if wakes { lws_cancel_service(context) }
    }

    // MARK: On the engine's thread

    /// Serves sockets and commands in turn, for as long as the process lives.
    private func run() {
      while lws_service(context, 0) >= 0 { handleCommands() }
    }

    func link(_ user: UnsafeMutableRawPointer?) -> LWSLink? { user.flatMap { links[UInt(bitPattern: $0)] } }

    private func handleCommands() {
      let commands = inbox.withLock { commands in
        defer { commands = [] }
        return commands
      }
      for command in commands { handle(command) }
    }

    private func handle(_ command: Command) {
      switch command {
      case .open(let link): open(link)
      case .resolved(let link, let addresses): resolved(link, addresses)
      case .next(let link): if link.isOpening { tryNextAddress(link) }
      case .failed(let link, let error): if link.isOpening { finish(link, .failure(error)) }
      case .cancel(let link):
        if link.isOpening { abandon(link, link.error(.cancelled, nothingSent: !link.wire.requestWasSent)) }
      case .write(let link): if let wsi = link.wire.wsi { lws_callback_on_writable(wsi) }
      case .close(let link): if let wsi = link.wire.wsi { close(wsi) }
      case .resume(let link): if let wsi = link.wire.wsi { lws_rx_flow_control(wsi, 1) }
      }
    }

    /// Lets the close frame out, which the link has ready.
    func close(_ wsi: OpaquePointer) {
      lws_rx_flow_control(wsi, 1)
      lws_callback_on_writable(wsi)
      // The frame may not get through to a peer that does not read.
      cws_client_kill_later(wsi, Self.closingSeconds)
    }

    private static let closingSeconds: Int32 = 5

    private func open(_ link: LWSLink) {
      // Cancelled before it was posted.
      guard link.isOpening else { return }
      link.wire.token = newToken(for: link)
      let microseconds = Int64(link.request.timeout.wholeMilliseconds) * 1000
      link.wire.timer = cws_timer_start(
        context, microseconds, openingTimeIsUp, UnsafeMutableRawPointer(bitPattern: link.wire.token))
      let host = link.endpoint.host
      if let address = Resolver.numeric(host) { return resolved(link, [address]) }
      ServiceThread.start(named: "resolver") { [self] in post(.resolved(link, link.resolve(host))) }
    }

    private func newToken(for link: LWSLink) -> UInt {
      lastToken += 1
      links[lastToken] = link
      return lastToken
    }

    private func resolved(_ link: LWSLink, _ addresses: [String]) {
      guard link.isOpening else { return }
      guard !addresses.isEmpty else {
        return finish(link, .failure(link.error(.unresolvedHost, nothingSent: true)))
      }
      link.wire.addresses = addresses
      tryNextAddress(link)
    }

    private func tryNextAddress(_ link: LWSLink) {
      guard let address = link.wire.addresses.first else { return }
      guard let host = host(trusting: link.certificateAuthorities) else {
        let detail = "the authorities' file can't be used"
        return finish(link, .failure(link.error(.tls, detail, nothingSent: true)))
      }
      startAttempt(link)
      let endpoint = link.endpoint
      let names = link.request.subprotocols.joined(separator: ", ")
      link.wire.isStarting = true
      let started = address.withCString { address in
        endpoint.target.withCString { path in
          (link.request.headers["Host"] ?? endpoint.authority).withCString { authority in
            names.withCString { names in
              var target = cws_target(
                address: address, port: Int32(endpoint.port), is_secure: endpoint.isSecure ? 1 : 0, path: path,
                host: authority, subprotocols: link.request.subprotocols.isEmpty ? nil : names)
              let user = UnsafeMutableRawPointer(bitPattern: link.wire.attempt)
              return cws_client_connect(context, host, &target, user)
            }
          }
        }
      }
      // A connection that is lost before this returns is returned all the same, and is freed memory then.
      link.wire.wsi = link.wire.isStarting ? started : nil
      link.wire.isStarting = false
      if link.wire.wsi == nil {
        attemptFailed(link, started == nil ? "Unable to connect" : "closed before it was open")
      }
    }

    /// An address that swallows what it is sent must leave time for the next one.
    private func startAttempt(_ link: LWSLink) {
      endAttempt(link)
      link.wire.attempt = newToken(for: link)
      guard link.wire.addresses.count > 1 else { return }
      link.wire.attemptTimer = cws_timer_start(
        context, Int64(link.longestAttempt.wholeMilliseconds) * 1000, attemptHasTakenTooLong,
        UnsafeMutableRawPointer(bitPattern: link.wire.attempt))
    }

    private func endAttempt(_ link: LWSLink) {
      stopAttemptTimer(link)
      links[link.wire.attempt] = nil
    }

    /// The address answers, so that it is the right one.
    func stopAttemptTimer(_ link: LWSLink) {
      cws_timer_free(link.wire.attemptTimer)
      link.wire.attemptTimer = nil
    }

    func attemptTimeIsUp(_ link: LWSLink) {
      guard link.isOpening else { return }
      let wsi = link.wire.wsi
      endAttempt(link)
      attemptFailed(link, "Unable to connect")
      if let wsi { cws_client_kill(wsi) }
    }

    /// libwebsockets has freed a connection. Mostly it has told its end before, and there is no link any more.
    func destroyed(_ wsi: OpaquePointer, of link: LWSLink) {
      link.wire.isStarting = false
      guard link.wire.wsi == wsi else { return }
      if link.isOpening { attemptFailed(link, "closed before it was open") } else { forget(link) }
    }

    /// An attempt at one address has ended; others may be left.
    func attemptFailed(_ link: LWSLink, _ text: String) {
      link.wire.wsi = nil
      stopAttemptTimer(link)
      let error = LWSErrors.error(text, link)
      guard error.kind == .unreachable else { return finish(link, .failure(error)) }
      let address = link.wire.addresses.removeFirst()
      if !link.wire.addresses.isEmpty { return post(.next(link)) }
      // libwebsockets does not hand on why a connection failed, so the system is asked once more.
      ServiceThread.start(named: "resolver") { [self] in
        let isRefused = Resolver.isRefused(address, port: link.endpoint.port)
        post(.failed(link, isRefused ? link.error(.refused, nothingSent: true) : error))
      }
    }

    func timeIsUp(_ link: LWSLink) {
      if link.isOpening { abandon(link, link.error(.timeout, nothingSent: !link.wire.requestWasSent)) }
    }

    /// Gives up opening. What libwebsockets still does for it finds no link.
    private func abandon(_ link: LWSLink, _ error: TransportError) {
      let wsi = link.wire.wsi
      finish(link, .failure(error))
      if let wsi { cws_client_kill(wsi) }
    }

    /// Settles the opening: from here on the link is open or gone.
    func finish(_ link: LWSLink, _ result: Result<String?, TransportError>) {
      cws_timer_free(link.wire.timer)
      link.wire.timer = nil
      stopAttemptTimer(link)
      if case .failure = result { forget(link) }
      link.finishOpening(result)
    }

    func forget(_ link: LWSLink) {
      link.wire.wsi = nil
      links[link.wire.token] = nil
      endAttempt(link)
      link.endAll()
    }

    private func host(trusting authorities: String?) -> OpaquePointer? {
      let key = authorities ?? ""
      if let host = hosts[key] { return host }
      let host = cws_client_vhost(context, "client \(hosts.count)", webSocketEvent, authorities)
      hosts[key] = host
      return host
    }
  }
#endif
