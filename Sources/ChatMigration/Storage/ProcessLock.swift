import Foundation
import Synchronization
import UnifiedChat

/// A lock on a file that the system releases when the process ends, however it ends.
final class ProcessLock: Sendable {
  private let descriptor: Int32
  private let path: String

  init(
    _ path: String, isShared: Bool = false, operation: ChatError.Operation = .writeDestination
  ) throws(ChatError) {
    self.path = path
    while true {
      let descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard descriptor >= 0 else { throw PrivateFile.failure(errno, path, operation) }
      guard flock(descriptor, (isShared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 else {
        close(descriptor)
        throw ChatError(
          .storage(.busy), operation: operation,
          detail: "\(path): another run is at work\(isShared ? " and does not share" : ""); wait for its end")
      }
      if Self.isAt(path, descriptor) {
        self.descriptor = descriptor
        return
      }
      // Its last holder removed the file between the two calls; who comes now would lock another one.
      close(descriptor)
    }
  }

  private static func isAt(_ path: String, _ descriptor: Int32) -> Bool {
    var (own, named) = (stat(), stat())
    return fstat(descriptor, &own) == 0 && stat(path, &named) == 0 && own.st_ino == named.st_ino
      && own.st_dev == named.st_dev
  }

  deinit { close(descriptor) }

  /// - Parameter removesFile: for who holds the lock alone.
  func release(removesFile: Bool = false) {
    if removesFile { unlink(path) }
    flock(descriptor, LOCK_UN)
  }
}

/// Who holds leases of a ledger: each process has a file of its own, locked for as long as it lives.
final class LeaseOwners: Sendable {
  /// Of this process and ledger.
  let own: String
  private let ledger: String
  private let lock: ProcessLock

  init(_ ledger: String) throws(ChatError) {
    self.ledger = ledger
    own = "\(getpid())-\(UInt32.random(in: 0...(.max)))"
    lock = try ProcessLock("\(ledger).owner-\(own)")
  }

  /// Whether the process behind `owner` has ended. Its file is removed then.
  func isGone(_ owner: String) -> Bool {
    guard owner != own else { return false }
    let path = "\(ledger).owner-\(owner)"
    guard PrivateFile.exists(path) else { return true }
    guard let lock = try? ProcessLock(path) else { return false }
    lock.release(removesFile: true)
    return true
  }

  func end() { lock.release(removesFile: true) }

  deinit { unlink("\(ledger).owner-\(own)") }
}
