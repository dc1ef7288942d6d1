#if os(Linux)
  import CCurl
  import Synchronization

  /// The thread that runs a client's transfers, as others see it.
  final class CurlEngine: Sendable {
    private enum Command {
      case start(CurlTransfer)
      case cancel(CurlTransfer)
    }

    private struct Inbox {
      var commands: [Command] = []
      var isStopping = false
      /// Once true, the multi handle may be gone.
      var hasStopped = false
    }

    // A C pointer. Other threads only wake it up, which libcurl allows, and only before `hasStopped`.
    nonisolated(unsafe) private let multi: UnsafeMutableRawPointer?
    private let inbox = Mutex(Inbox())

    /// libcurl's own set-up is not safe against itself.
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    init() {
      multi = Self.isReady ? curl_multi_init() : nil
      ServiceThread.start(named: "http") { [self] in run() }
    }

    func start(_ transfer: CurlTransfer, _ continuation: CurlTransfer.Continuation) {
      transfer.continuation = continuation
      if !post(.start(transfer)) { transfer.finish(.failure(transfer.error(.closed, "the client was shut down"))) }
    }

    func cancel(_ transfer: CurlTransfer) {
      transfer.isCancelled.store(true, ordering: .releasing)
      _ = post(.cancel(transfer))
    }

    func stop() {
      inbox.withLock { inbox in
        inbox.isStopping = true
        if !inbox.hasStopped, let multi { curl_multi_wakeup(multi) }
      }
    }

    private func post(_ command: Command) -> Bool {
      inbox.withLock { inbox in
        guard !inbox.hasStopped, let multi else { return false }
        if inbox.commands.isEmpty { curl_multi_wakeup(multi) }
        inbox.commands.append(command)
        return true
      }
    }

    private func run() {
      guard let multi else { return }
      let loop = CurlLoop(multi)
      while true {
        let (commands, isStopping) = inbox.withLock { inbox in
          defer { inbox.commands = [] }
          if inbox.isStopping { inbox.hasStopped = true }
          return (inbox.commands, inbox.isStopping)
        }
        for command in commands {
          switch command {
          case .start(let transfer): loop.start(transfer)
          case .cancel(let transfer): loop.cancel(transfer)
          }
        }
        if isStopping { break }
        loop.turn()
      }
      loop.end()
    }
  }

  /// What lives on the engine's thread and nowhere else.
  private final class CurlLoop {
    private let multi: UnsafeMutableRawPointer
    private var running: [UnsafeMutableRawPointer: CurlTransfer] = [:]
    private var idleHandles: [UnsafeMutableRawPointer] = []

    /// Connections kept for later requests; beyond, the one unused for longest is closed.
    private static let keptConnections = 64
    private static let keptHandles = 32
    /// Nothing depends on waking up by itself: libcurl shortens this to its own next timer.
    private static let longestWait: Int32 = 60_000

    init(_ multi: UnsafeMutableRawPointer) {
      self.multi = multi
      ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, Self.keptConnections)
    }

    func start(_ transfer: CurlTransfer) {
      // Cancelled before it came here: the order to cancel was or will be of no effect.
      guard !transfer.isCancelled.load(ordering: .acquiring) else {
        return transfer.finish(.failure(transfer.error(.cancelled, "", nothingSent: true)))
      }
      guard let handle = idleHandles.popLast() ?? curl_easy_init() else {
        return transfer.finish(.failure(transfer.error(.other, "out of memory", nothingSent: true)))
      }
      var result = transfer.prepare(handle)
      if result == CURLE_OK, curl_multi_add_handle(multi, handle) != CURLM_OK { result = CURLE_FAILED_INIT }
      guard result == CURLE_OK else {
        let failure = transfer.outcome(of: result, handle)
        recycle(handle)
        return transfer.finish(failure)
      }
      running[handle] = transfer
    }

    func cancel(_ transfer: CurlTransfer) {
      guard let handle = transfer.handle, running[handle] === transfer else { return }
      let failure = transfer.error(.cancelled, "", nothingSent: transfer.nothingSent(handle))
      leave(handle)
      transfer.finish(.failure(failure))
    }

    /// Moves bytes, settles what is done, then waits for more to do.
    func turn() {
      var count: Int32 = 0
      curl_multi_perform(multi, &count)
      settle()
      curl_multi_poll(multi, nil, 0, Self.longestWait, nil)
    }

    func end() {
      for (handle, transfer) in running {
        let failure = transfer.error(.closed, "the client was shut down", nothingSent: transfer.nothingSent(handle))
        curl_multi_remove_handle(multi, handle)
        curl_easy_cleanup(handle)
        transfer.finish(.failure(failure))
      }
      running = [:]
      idleHandles.forEach(curl_easy_cleanup)
      curl_multi_cleanup(multi)
    }

    private func settle() {
      var waiting: Int32 = 0
      while let message = curl_multi_info_read(multi, &waiting) {
        var result = CURLE_OK
        // The message is gone once its handle leaves.
        guard ccurl_is_done(message, &result) != 0, let handle = message.pointee.easy_handle,
          let transfer = running[handle]
        else { continue }
        let outcome = transfer.outcome(of: result, handle)
        leave(handle)
        transfer.finish(outcome)
      }
    }

    private func leave(_ handle: UnsafeMutableRawPointer) {
      running[handle] = nil
      curl_multi_remove_handle(multi, handle)
      recycle(handle)
    }

    private func recycle(_ handle: UnsafeMutableRawPointer) {
      curl_easy_reset(handle)
      if idleHandles.count < Self.keptHandles { idleHandles.append(handle) } else { curl_easy_cleanup(handle) }
    }
  }
#endif
