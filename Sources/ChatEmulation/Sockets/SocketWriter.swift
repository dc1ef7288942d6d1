import Synchronization

/// What the loop is asked to do by other threads.
enum SocketCommand: Sendable {
  /// A writer has something for the loop: unsent bytes, an end, or leave to parse the next request.
  case attend(UInt64)
  case accepting(Bool)
  case stop
}

/// Commands on their way to the loop, and the pipe that wakes it.
final class SocketMailbox: Sendable {
  private struct State {
    var commands: [SocketCommand] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  let readingEnd: Int32
  private let writingEnd: Int32

  init() throws(SystemSocket.Failure) { (readingEnd, writingEnd) = try SystemSocket.wakePipe() }

  func post(_ command: SocketCommand) {
    state.withLock { state in
      if state.isClosed { return }
      state.commands.append(command)
      if state.commands.count == 1 { SystemSocket.wake(writingEnd) }
    }
  }

  func take() -> [SocketCommand] {
    state.withLock { state in
      SystemSocket.emptyPipe(readingEnd)
      defer { state.commands = [] }
      return state.commands
    }
  }

  /// The loop has ended: nobody reads any more.
  func close() {
    state.withLock { state in
      state.isClosed = true
      SystemSocket.close(readingEnd, abruptly: false)
      SystemSocket.close(writingEnd, abruptly: false)
    }
  }
}

/// The outgoing half of one connection, written to by the host's actor and by the loop.
///
/// Bytes go straight to the socket when nothing waits before them; the rest is left to the loop.
final class SocketWriter: Sendable {
  enum End: Sendable { case none, afterFlush, reset }

  private struct State {
    var descriptor: Int32
    var waiting: [[UInt8]] = []
    /// Bytes of the first waiting chunk that were sent.
    var offset = 0
    var waitingBytes = 0
    var end = End.none
    /// A request is being answered; the next one must wait.
    var isBusy = false
    var parsesWhenFree = false
    /// The client has ended its half: the connection ends with the answer.
    var attendsWhenFree = false
    var isUpgraded = false
    /// Bytes of messages that the host has not begun with.
    var handedOver = 0
    /// The loop reads no more until the host has caught up.
    var isFull = false
  }

  /// A client that reads nothing is cut when this much waits for it.
  private static let waitingLimit = 256 << 20

  /// A client that sends faster than the host handles is not read above the first, and again below the second.
  private static let handedOverLimit = 8 << 20
  private static let handedOverRest = 1 << 20

  let serial: UInt64
  private let mailbox: SocketMailbox
  private let state: Mutex<State>

  init(serial: UInt64, descriptor: Int32, mailbox: SocketMailbox) {
    self.serial = serial
    self.mailbox = mailbox
    state = Mutex(State(descriptor: descriptor))
  }

  /// Sends `bytes` after all that was given before.
  func write(_ bytes: [UInt8]) {
    let mustAttend = state.withLock { state in
      guard state.descriptor >= 0, state.end == .none else { return false }
      return Self.write(bytes, &state)
    }
    if mustAttend { mailbox.post(.attend(serial)) }
  }

  /// Answers the request that made the writer busy.
  func answer(_ bytes: [UInt8], upgrading: Bool, keepsAlive: Bool) {
    let mustAttend = state.withLock { state in
      guard state.descriptor >= 0, state.end == .none, state.isBusy else { return false }
      state.isBusy = false
      state.isUpgraded = upgrading
      let isWaiting = Self.write(bytes, &state)
      if !keepsAlive { state.end = .afterFlush }
      defer { state.parsesWhenFree = false }
      return isWaiting || !keepsAlive || state.parsesWhenFree || state.attendsWhenFree
    }
    if mustAttend { mailbox.post(.attend(serial)) }
  }

  /// No more bytes after these; the first end counts, but a reset always does.
  func finish(_ end: End) {
    state.withLock { state in
      if state.end != .reset { state.end = end }
    }
    mailbox.post(.attend(serial))
  }

  /// Ends the outgoing half only: the peer reads an end while it can still send.
  func halfClose() {
    state.withLock { state in
      if state.descriptor >= 0 { SystemSocket.shutdownWriting(state.descriptor) }
    }
  }

  /// The host has begun with an input of so many bytes.
  func tookInput(_ bytes: Int) {
    let mustAttend = state.withLock { state in
      state.handedOver -= bytes
      guard state.isFull, state.handedOver <= Self.handedOverRest else { return false }
      state.isFull = false
      return true
    }
    if mustAttend { mailbox.post(.attend(serial)) }
  }

  // MARK: For the loop

  /// Marks a request as being answered.
  func begin() { state.withLock { $0.isBusy = true } }

  /// True while an answer is due; the loop is then called when it is given.
  func awaitsAnswer() -> Bool {
    state.withLock { state in
      state.attendsWhenFree = state.isBusy
      return state.isBusy
    }
  }

  /// True when the next request may be parsed; otherwise the loop is called when it may.
  func mayParse() -> Bool {
    state.withLock { state in
      if state.isBusy { state.parsesWhenFree = true }
      // What comes behind the last request of a connection is not carried out.
      return !state.isBusy && state.end == .none
    }
  }

  var isUpgraded: Bool { state.withLock { $0.isUpgraded } }

  func handOver(_ bytes: Int) { state.withLock { $0.handedOver += bytes } }

  /// False while the host is behind; the loop is then called when it has caught up.
  func mayTakeMore() -> Bool {
    state.withLock { state in
      if state.handedOver >= Self.handedOverLimit { state.isFull = true }
      return !state.isFull
    }
  }

  /// Sends what waits; tells what is left to do, how many bytes the socket did not take yet, and whether it took any.
  func flush() -> (wantsWrite: Bool, unread: Int, moved: Bool, end: End) {
    state.withLock { state in
      var moved = false
      while let first = state.waiting.first {
        let sent = first.withUnsafeBytes {
          SystemSocket.write(state.descriptor, UnsafeRawBufferPointer(rebasing: $0[state.offset...]))
        }
        guard let sent else {
          state.waiting = []
          state.waitingBytes = 0
          state.end = .reset
          break
        }
        moved = moved || sent > 0
        state.offset += sent
        state.waitingBytes -= sent
        if state.offset < first.count { break }
        state.waiting.removeFirst()
        state.offset = 0
      }
      if state.end == .reset { return (false, 0, moved, .reset) }
      let isEmpty = state.waiting.isEmpty
      return (!isEmpty, state.waitingBytes, moved, isEmpty ? state.end : .none)
    }
  }

  /// Gives the descriptor up; nothing is written after this.
  func close(abruptly: Bool) {
    state.withLock { state in
      if state.descriptor >= 0 { SystemSocket.close(state.descriptor, abruptly: abruptly) }
      state.descriptor = -1
      state.waiting = []
    }
  }

  /// True when the loop must take over.
  private static func write(_ bytes: [UInt8], _ state: inout State) -> Bool {
    var sent = 0
    if state.waiting.isEmpty {
      // A broken socket is found by the loop as well, which then ends it.
      sent = bytes.withUnsafeBytes { SystemSocket.write(state.descriptor, $0) } ?? bytes.count
      if sent == bytes.count { return false }
      state.offset = sent
    }
    state.waiting.append(bytes)
    state.waitingBytes += bytes.count - sent
    if state.waitingBytes > waitingLimit { state.end = .reset }
    return state.waiting.count == 1 || state.end == .reset
  }
}
