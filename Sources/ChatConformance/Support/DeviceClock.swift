import Synchronization
import UnifiedChat

/// The clock of one device: may be wrong, and knows how many timers run on it.
final class DeviceClock: ChatClock {
  private let base: any ChatClock
  private let state = Mutex(State())

  private struct State {
    var offset = Duration.zero
    var sleepers = 0
  }

  init(_ base: any ChatClock) { self.base = base }

  var now: Timestamp { base.now + state.withLock { $0.offset } }

  /// How far the device is ahead.
  func setOffset(_ offset: Duration) { state.withLock { $0.offset = offset } }

  /// Timers that run now.
  var sleepers: Int { state.withLock { $0.sleepers } }

  func sleep(for duration: Duration) async throws {
    state.withLock { $0.sleepers += 1 }
    defer { state.withLock { $0.sleepers -= 1 } }
    try await base.sleep(for: duration)
  }
}
