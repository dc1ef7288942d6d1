#if os(Linux)
  import CWebSockets
  import Synchronization

  /// One WebSocket, from the wish to open it to its end.
  ///
  /// Two sides meet here: tasks that send and receive, and the engine's thread. What both touch is in `shared`.
  // @unchecked: what is not in `shared` never changes or belongs to the engine's thread (`wire`).
  final class LWSLink: @unchecked Sendable {
    typealias Opening = CheckedContinuation<Result<String?, TransportError>, Never>
    typealias Sending = CheckedContinuation<Result<Void, TransportError>, Never>
    typealias Receiving = CheckedContinuation<Result<WebSocketMessage, WebSocketClose>, Never>

    let request: WebSocketRequest
    let endpoint: Endpoint
    let certificateAuthorities: String?
    let engine: LWSEngine
    /// Blocks.
    let resolve: @Sendable (String) -> [String]
    /// How long one of several addresses may stay silent.
    let longestAttempt: Duration
    /// Of the engine's thread alone.
    var wire = LWSWire()

    private let shared = Mutex(Shared())

    private struct Shared {
      var nextTicket: UInt64 = 0
      var opening: Opening?
      var inbox = Inbox()
      var receivers: [(ticket: UInt64, continuation: Receiving)] = []
      /// What receivers are told once the inbox is empty.
      var end: WebSocketClose?
      var outbox: [Outgoing] = []
      /// The message that libwebsockets has and the socket has not yet taken as a whole.
      var inFlight: (ticket: UInt64, continuation: Sending)?
      var pongWaiters: [(ticket: UInt64, continuation: Sending)] = []
      var acceptsMessages = true
      var isPaused = false
    }

    private struct Outgoing {
      var ticket: UInt64
      var content: Content
      var continuation: Sending?

      enum Content {
        case message(LWSFrame)
        /// Whoever waits for the pong is the continuation.
        case ping
        case close(UInt16, String)
      }
    }

    /// Reading from the socket stops above the first pair and goes on below the second.
    private static let pauseAbove = (bytes: 8 << 20, count: 8192)
    private static let resumeBelow = (bytes: 1 << 20, count: 1024)

    init(
      _ request: WebSocketRequest, endpoint: Endpoint, certificateAuthorities: String?, engine: LWSEngine,
      resolve: @escaping @Sendable (String) -> [String], longestAttempt: Duration
    ) {
      self.request = request
      self.endpoint = endpoint
      self.certificateAuthorities = certificateAuthorities
      self.engine = engine
      self.resolve = resolve
      self.longestAttempt = longestAttempt
    }

    // MARK: Tasks

    func open(_ continuation: Opening) {
      shared.withLock { $0.opening = continuation }
      engine.post(.open(self))
    }

    func cancelOpening() { engine.post(.cancel(self)) }

    func send(_ frame: LWSFrame) async -> Result<Void, TransportError> { await enqueue(.message(frame)) }

    /// Ends with the next pong that comes after the ping was written.
    func roundTrip() async -> Result<Void, TransportError> { await enqueue(.ping) }

    func ping() throws(TransportError) {
      let isOpen = shared.withLock { shared in
        if shared.acceptsMessages { shared.outbox.append(Outgoing(ticket: 0, content: .ping, continuation: nil)) }
        return shared.acceptsMessages
      }
      guard isOpen else { throw error(.closed, nothingSent: true) }
      engine.post(.write(self))
    }

    func close(code: UInt16, reason: String) {
      let receivers = shared.withLock { shared -> [Receiving] in
        guard shared.acceptsMessages else { return [] }
        shared.acceptsMessages = false
        shared.outbox.append(Outgoing(ticket: 0, content: .close(code, reason), continuation: nil))
        return end(&shared, WebSocketClose(code: code, reason: reason))
      }
      for receiver in receivers { receiver.resume(returning: .failure(WebSocketClose(code: code, reason: reason))) }
      engine.post(.close(self))
    }

    func receive() async -> Result<WebSocketMessage, WebSocketClose> {
      let ticket = newTicket()
      return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let (result, resumes) = shared.withLock { shared in take(&shared, ticket, continuation) }
          if resumes { engine.post(.resume(self)) }
          if let result { continuation.resume(returning: result) } else if Task.isCancelled { cancelReceiving(ticket) }
        }
      } onCancel: {
        cancelReceiving(ticket)
      }
    }

    private func take(
      _ shared: inout Shared, _ ticket: UInt64, _ continuation: Receiving
    ) -> (Result<WebSocketMessage, WebSocketClose>?, resumes: Bool) {
      guard let message = shared.inbox.next() else {
        if let end = shared.end { return (.failure(end), false) }
        shared.receivers.append((ticket, continuation))
        return (nil, false)
      }
      let resumes = shared.isPaused && shared.inbox.isBelow(Self.resumeBelow)
      if resumes { shared.isPaused = false }
      return (.success(message), resumes)
    }

    private func cancelReceiving(_ ticket: UInt64) {
      let receiver = shared.withLock { shared in
        shared.receivers.firstIndex { $0.ticket == ticket }.map { shared.receivers.remove(at: $0) }
      }
      receiver?.continuation.resume(returning: .failure(WebSocketClose(code: nil, reason: "cancelled")))
    }

    private func enqueue(_ content: Outgoing.Content) async -> Result<Void, TransportError> {
      let ticket = newTicket()
      return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isOpen = shared.withLock { shared in
            guard shared.acceptsMessages else { return false }
            shared.outbox.append(Outgoing(ticket: ticket, content: content, continuation: continuation))
            return true
          }
          guard isOpen else { return continuation.resume(returning: .failure(error(.closed, nothingSent: true))) }
          engine.post(.write(self))
          if Task.isCancelled { cancelSending(ticket) }
        }
      } onCancel: {
        cancelSending(ticket)
      }
    }

    /// A message that has not begun is taken back; one that has begun goes on, since half a message can't be.
    private func cancelSending(_ ticket: UInt64) {
      let (continuation, nothingSent) = shared.withLock { shared -> (Sending?, Bool) in
        if let index = shared.outbox.firstIndex(where: { $0.ticket == ticket }) {
          return (shared.outbox.remove(at: index).continuation, true)
        }
        if let index = shared.pongWaiters.firstIndex(where: { $0.ticket == ticket }) {
          return (shared.pongWaiters.remove(at: index).continuation, false)
        }
        guard let inFlight = shared.inFlight, inFlight.ticket == ticket else { return (nil, false) }
        shared.inFlight = nil
        return (inFlight.continuation, false)
      }
      continuation?.resume(returning: .failure(error(.cancelled, nothingSent: nothingSent)))
    }

    private func newTicket() -> UInt64 {
      shared.withLock { shared in
        shared.nextTicket += 1
        return shared.nextTicket
      }
    }

    // MARK: The engine's thread

    func finishOpening(_ result: Result<String?, TransportError>) {
      let opening = shared.withLock { shared in
        defer { shared.opening = nil }
        return shared.opening
      }
      opening?.resume(returning: result)
    }

    var isOpening: Bool { shared.withLock { $0.opening != nil } }

    var wantsToWrite: Bool { shared.withLock { !$0.outbox.isEmpty || $0.inFlight != nil } }

    /// Writes the next of the outbox.
    /// - Returns: what libwebsockets takes for "go on" (0) or "close" (-1).
    func write(to wsi: OpaquePointer) -> Int32 {
      let (done, next) = shared.withLock { shared -> (Sending?, Outgoing?) in
        // libwebsockets asks for more only when it has nothing left over.
        let done = shared.inFlight?.continuation
        shared.inFlight = nil
        guard !shared.outbox.isEmpty else { return (done, nil) }
        let next = shared.outbox.removeFirst()
        // At once, so that a cancellation finds at every moment who waits.
        switch (next.content, next.continuation) {
        case (.message, let waiter?): shared.inFlight = (next.ticket, waiter)
        case (.ping, let waiter?): shared.pongWaiters.append((next.ticket, waiter))
        default: break
        }
        return (done, next)
      }
      done?.resume(returning: .success(()))
      guard let next else { return 0 }
      switch next.content {
      case .close(let code, let reason):
        LWSClosing.prepare(wsi, code: code, reason: reason)
        return -1
      case .ping:
        var frame = LWSFrame.ping
        guard frame.write(to: wsi) else { return -1 }
      case .message(var frame):
        guard frame.write(to: wsi) else {
          takeInFlight()?.resume(returning: .failure(error(.closed, nothingSent: false)))
          return -1
        }
        if lws_partial_buffered(wsi) == 0 { takeInFlight()?.resume(returning: .success(())) }
      }
      if wantsToWrite { lws_callback_on_writable(wsi) }
      return 0
    }

    /// Who waits for the message that was begun; nil when cancelled meanwhile.
    private func takeInFlight() -> Sending? {
      shared.withLock { shared in
        defer { shared.inFlight = nil }
        return shared.inFlight?.continuation
      }
    }

    /// - Returns: whether reading should stop for now.
    func deliver(_ message: WebSocketMessage) -> Bool {
      let (receiver, pauses) = shared.withLock { shared -> (Receiving?, Bool) in
        guard shared.end == nil else { return (nil, false) }
        if !shared.receivers.isEmpty { return (shared.receivers.removeFirst().continuation, false) }
        shared.inbox.append(message)
        guard !shared.isPaused, shared.inbox.isAbove(Self.pauseAbove) else { return (nil, false) }
        shared.isPaused = true
        return (nil, true)
      }
      receiver?.resume(returning: .success(message))
      return pauses
    }

    func receivedPong() {
      let waiters = shared.withLock { shared in
        defer { shared.pongWaiters = [] }
        return shared.pongWaiters
      }
      for waiter in waiters { waiter.continuation.resume(returning: .success(())) }
    }

    var hasEnded: Bool { shared.withLock { $0.end != nil } }

    /// No message comes any more; what came is still read.
    func endReceiving(_ close: WebSocketClose) {
      let receivers = shared.withLock { end(&$0, close) }
      for receiver in receivers { receiver.resume(returning: .failure(close)) }
    }

    /// The peer broke a rule: a close frame goes out before anything else, and nothing after it.
    func refuseMore(_ close: WebSocketClose) {
      endReceiving(close)
      shared.withLock { shared in
        shared.acceptsMessages = false
        shared.outbox.insert(
          Outgoing(ticket: 0, content: .close(close.code ?? 1002, close.reason), continuation: nil), at: 0)
      }
    }

    /// Nothing comes or goes any more.
    func endAll() {
      endReceiving(WebSocketClose())
      let (begun, waiting) = shared.withLock { shared in
        defer {
          shared.acceptsMessages = false
          shared.outbox = []
          shared.inFlight = nil
          shared.pongWaiters = []
        }
        let begun = shared.pongWaiters.map(\.continuation) + (shared.inFlight.map { [$0.continuation] } ?? [])
        return (begun, shared.outbox.compactMap(\.continuation))
      }
      for sending in begun { sending.resume(returning: .failure(error(.closed, nothingSent: false))) }
      for sending in waiting { sending.resume(returning: .failure(error(.closed, nothingSent: true))) }
    }

    private func end(_ shared: inout Shared, _ close: WebSocketClose) -> [Receiving] {
      if shared.end == nil { shared.end = close }
      defer { shared.receivers = [] }
      return shared.receivers.map(\.continuation)
    }

    func error(_ kind: TransportError.Kind, _ detail: String = "", nothingSent: Bool) -> TransportError {
      TransportError(kind, peer: endpoint.peer, detail: detail, nothingSent: nothingSent)
    }
  }

  /// Messages that have come and are not yet read.
  private struct Inbox {
    private var messages: [WebSocketMessage] = []
    /// Taking one must not move the rest.
    private var first = 0
    private var bytes = 0

    mutating func append(_ message: WebSocketMessage) {
      messages.append(message)
      bytes += message.byteCount
    }

    mutating func next() -> WebSocketMessage? {
      guard first < messages.count else { return nil }
      let message = messages[first]
      // What is taken must not be kept until the others are, which may be large.
      messages[first] = .binary([])
      first += 1
      bytes -= message.byteCount
      if first == messages.count || (first > 256 && first > messages.count / 2) {
        messages.removeFirst(first)
        first = 0
      }
      return message
    }

    func isAbove(_ limit: (bytes: Int, count: Int)) -> Bool {
      bytes > limit.bytes || messages.count - first > limit.count
    }

    func isBelow(_ limit: (bytes: Int, count: Int)) -> Bool {
      bytes < limit.bytes && messages.count - first < limit.count
    }
  }
#endif
