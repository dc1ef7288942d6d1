import Foundation
import Synchronization

/// The largest resident memory of this process that was seen.
final class ResidentMemory: Sendable {
  private let largest = Mutex(0)

  /// Bytes; nil where the system does not tell.
  static func now() -> Int? {
    // Pages of the kernel: all, resident, …
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .ascii) else { return nil }
    let parts = text.split(separator: " ")
    guard parts.count > 1, let pages = Int(parts[1]) else { return nil }
    return pages * Int(getpagesize())
  }

  var peak: Int { largest.withLock { $0 } }

  func look() {
    guard let now = Self.now() else { return }
    largest.withLock { $0 = max($0, now) }
  }
}
