#if os(Linux)
  import Foundation
  import Glibc

  /// Starts threads for C libraries that want one of their own.
  enum ServiceThread {
    static func start(named name: String, _ body: @escaping @Sendable () -> Void) {
      let thread = Thread {
        blockBrokenPipe()
        body()
      }
      thread.name = name
      thread.start()
    }

    /// TLS writes to sockets that the peer has closed would otherwise end the process; as it is they fail with an error.
    private static func blockBrokenPipe() {
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGPIPE)
      pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
  }
#endif
