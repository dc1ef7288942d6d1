import Foundation
import Synchronization

/// Says which of several processes on one cache file sends what waits in it; with the process, the lock is gone.
///
/// An advisory lock of the file system, not a row of the database: nobody has to guess whether its owner is alive.
final class OutboxLock: Sendable {
  private let path: String
  private let descriptor = Mutex<Int32>(-1)

  init(path: String) { self.path = path }

  deinit { unlock() }

  /// - Returns: false while another process, or another connection of this one, holds it. Where no lock file can be
  ///   made, as on some network disks, everybody may go on.
  func tryLock() -> Bool {
    descriptor.withLock { descriptor in
      if descriptor >= 0 { return true }
      let opened = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
      guard opened >= 0 else { return true }
      guard flock(opened, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
        close(opened)
        return false
      }
      descriptor = opened
      return true
    }
  }

  func unlock() {
    descriptor.withLock { descriptor in
      guard descriptor >= 0 else { return }
      // Closing gives the lock back.
      close(descriptor)
      descriptor = -1
    }
  }
}
