import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// A server on a free port of this machine that does to each connection, byte for byte, what a script says.
///
/// Each connection has a thread of its own, on which the script runs and may block. Nothing blocks for longer than
/// `Connection.patience`, so that a broken client fails a test and does not hang it.
final class ScriptedServer: Sendable {
  typealias Script = @Sendable (Connection) -> Void

  let port: UInt16
  private let listener: Int32
  private let accepted = Counter()
  private let hasStopped = Mutex(false)

  var acceptedConnections: Int { accepted.value.withLock { $0 } }
  var httpURL: String { "http://127.0.0.1:\(port)" }
  var webSocketURL: String { "ws://127.0.0.1:\(port)" }

  init(_ script: @escaping Script) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 256) == 0 && getsockname(listener, $0, &length) == 0
      }
    }
    precondition(isListening, "no free port for a test")
    self.listener = listener
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread { [accepted] in
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else {
          close(listener)
          return
        }
        let number = accepted.value.withLock { count in
          count += 1
          return count
        }
        Thread.detachNewThread {
          let connection = Connection(client, number: number)
          script(connection)
          connection.end()
        }
      }
    }
  }

  deinit { stop() }

  /// Accepts no more connections. Returns when the port is closed.
  func stop() {
    let isFirst = hasStopped.withLock { hasStopped in
      defer { hasStopped = true }
      return !hasStopped
    }
    // The thread that accepts closes it: a number that is free is soon another's.
    if isFirst { shutdown(listener, Int32(SHUT_RDWR)) }
  }
}

/// Outlives the server while its thread still counts.
private final class Counter: Sendable {
  let value = Mutex(0)
}

/// One connection of a `ScriptedServer`, used by its script alone.
final class Connection {
  static let patience = 50

  let number: Int
  private var descriptor: Int32
  private var unread: [UInt8] = []

  init(_ descriptor: Int32, number: Int) {
    self.descriptor = descriptor
    self.number = number
    var patience = timeval(tv_sec: Self.patience, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var noDelay: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &noDelay, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Exactly `count` bytes, or nil if the client ended before.
  func read(_ count: Int) -> [UInt8]? {
    while unread.count < count { guard fill() else { return nil } }
    defer { unread.removeFirst(count) }
    return Array(unread.prefix(count))
  }

  /// Returns when something is there to be read, or the client has ended.
  func waitForBytes() { if unread.isEmpty { _ = fill() } }

  /// The head of a request, up to and with its blank line, or nil if the client ended before.
  func readHead() -> String? {
    let mark = Array("\r\n\r\n".utf8)
    while true {
      if let end = unread.indices.first(where: { unread[$0...].starts(with: mark) }) {
        let head = unread.prefix(end + mark.count)
        unread.removeFirst(head.count)
        return String(decoding: head, as: UTF8.self)
      }
      guard fill() else { return nil }
    }
  }

  /// A whole request whose body has a length.
  func readRequest() -> (head: String, body: [UInt8])? {
    guard let head = readHead() else { return nil }
    let field = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
    let length = field.flatMap { Int($0.split(separator: ":")[1].trimmingCharacters(in: .whitespaces)) } ?? 0
    guard let body = read(length) else { return nil }
    return (head, body)
  }

  /// Reads and drops until the client has ended its side.
  func waitForEnd() { while fill() { unread.removeAll() } }

  func write(_ text: String) { write(Array(text.utf8)) }

  func write(_ bytes: some Collection<UInt8>) {
    let bytes = Array(bytes)
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      sent += count
    }
  }

  /// An answer with a length. `fields` end in CR LF each.
  func answer(_ status: Int, _ body: [UInt8] = [], fields: String = "") {
    write(Array("HTTP/1.1 \(status) X\r\nContent-Length: \(body.count)\r\n\(fields)\r\n".utf8) + body)
  }

  /// Ends our side; the client may still send.
  func endWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Ends the connection with a reset instead of an orderly end.
  func reset() {
    var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    end()
  }

  func end() {
    guard descriptor >= 0 else { return }
    close(descriptor)
    descriptor = -1
  }

  private func fill() -> Bool {
    guard descriptor >= 0 else { return false }
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else { return false }
    unread += buffer[..<count]
    return true
  }
}

/// Opens once; whoever waits goes on.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func open() { semaphore.signal() }

  /// Blocks a script's thread.
  func wait() {
    guard semaphore.wait(timeout: .now() + .seconds(Connection.patience)) == .success else { return }
    semaphore.signal()
  }

  /// Waits in a test, whose threads must not be blocked.
  func opened() async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        self.wait()
        continuation.resume()
      }
    }
  }
}
