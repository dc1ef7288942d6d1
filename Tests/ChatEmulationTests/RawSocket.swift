import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A client that sends exact bytes, and says how the connection ended.
enum RawSocket {
  struct Answer: Sendable {
    var bytes: [UInt8] = []
    var text: String { String(decoding: bytes, as: UTF8.self) }
    /// The connection was reset, not ended.
    var wasReset = false
  }

  /// Sends `parts` one after the other and reads until the server ends the connection (at most 10 s) or until
  /// `count` bytes are there; then sends `last`, if there is such a thing, and reads until the end.
  static func exchange(
    _ parts: [[UInt8]], port: UInt16, endingHalf: Bool = false, upTo count: Int = .max, last: [UInt8]? = nil
  ) async -> Answer {
    await withCheckedContinuation { continuation in
      // An own thread, because these calls block.
      Thread { continuation.resume(returning: run(parts, port, endingHalf, count, last)) }.start()
    }
  }

  static func exchange(
    _ text: String, port: UInt16, endingHalf: Bool = false, upTo count: Int = .max
  ) async -> Answer {
    await exchange([Array(text.utf8)], port: port, endingHalf: endingHalf, upTo: count)
  }

  private static func run(
    _ parts: [[UInt8]], _ port: UInt16, _ endingHalf: Bool, _ count: Int, _ last: [UInt8]?
  ) -> Answer {
    var answer = Answer()
    #if canImport(Darwin)
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #else
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    defer { close(descriptor) }
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let connected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard connected == 0 else { return answer }
    for part in parts { send(descriptor, part, part.count, Int32(MSG_NOSIGNAL)) }
    if endingHalf { shutdown(descriptor, Int32(SHUT_WR)) }
    guard receive(descriptor, &answer, upTo: count), let last else { return answer }
    send(descriptor, last, last.count, Int32(MSG_NOSIGNAL))
    _ = receive(descriptor, &answer, upTo: .max)
    return answer
  }

  /// False at the end of the connection.
  private static func receive(_ descriptor: Int32, _ answer: inout Answer, upTo count: Int) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while answer.bytes.count < count {
      let read = recv(descriptor, &buffer, buffer.count, 0)
      if read < 0 { answer.wasReset = errno == ECONNRESET }
      if read <= 0 { return false }
      answer.bytes += buffer[..<read]
    }
    return true
  }

  /// A frame of a client, masked.
  static func frame(_ first: UInt8, _ payload: [UInt8], mask: [UInt8] = [1, 2, 3, 4]) -> [UInt8] {
    var frame = [first]
    switch payload.count {
    case ..<126: frame.append(0x80 | UInt8(payload.count))
    case ..<65536: frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
    default: frame += [0x80 | 127] + (0..<8).reversed().map { UInt8(payload.count >> (8 * $0) & 255) }
    }
    return frame + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
  }

  static let upgrade = Array(
    """
    GET /ws?user=raw HTTP/1.1\r
    Host: localhost\r
    Upgrade: websocket\r
    Connection: keep-alive, Upgrade\r
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
    Sec-WebSocket-Version: 13\r
    \r

    """.utf8)
}
