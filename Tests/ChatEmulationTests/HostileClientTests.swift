import ChatTransport
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#endif

@testable import ChatEmulation

@Suite("Clients that mean no good", .timeLimit(.minutes(5)))
struct HostileClientTests {
  private func start(patience: Duration = .milliseconds(200)) async throws -> EmulatorServer {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual(start: 1_000_000))
    return try await EmulatorServer(host, bodyLimit: 1 << 20, messageLimit: 1 << 20, patience: patience)
  }

  private func isWell(_ server: EmulatorServer) async -> Bool {
    await RawSocket.exchange("GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n", port: server.port).text.contains("200 OK")
  }

  @Test(
    "a request that never comes to its end is answered 408, and its connection ends",
    arguments: [
      "G", "GET /echo HTTP/1.1\r\n", "GET /echo HTTP/1.1\r\nX: y\r\n", "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
      "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
      "GET /echo HTTP/1.1\r\n\r\nGET /again HTTP/1.1\r\n",
    ])
  func slowLoris(_ beginning: String) async throws {
    let server = try await start()
    let answer = await RawSocket.exchange(beginning, port: server.port)
    #expect(answer.text.contains("HTTP/1.1 408 Request Timeout\r\n"))
    #expect(!answer.wasReset)
    #expect(await isWell(server))
    await server.stop()
  }

  @Test("a connection that has asked nothing, or was answered, may stay")
  func idle() async throws {
    let server = try await start(patience: .milliseconds(50))
    let first = "GET /echo HTTP/1.1\r\n\r\n"
    let client = SlowClient(port: server.port)
    #expect(await onThread { client.connects() })
    // Pauses that are longer than the patience, before, between and after the requests.
    for _ in 0..<2 {
      await onThread { client.wait(milliseconds: 120) }
      let answer = await onThread {
        _ = client.send(Array(first.utf8))
        return client.read(upTo: 1 << 16)
      }
      #expect(answer.contains("200 OK"))
      await onThread { client.wait(milliseconds: 120) }
    }
    client.end()
    await server.stop()
  }

  @Test("a client that never reads its answers is cut, and memory stays bounded")
  func neverReads() async throws {
    let server = try await start()
    let client = SlowClient(port: server.port)
    #expect(await onThread { client.connects() })
    // 64 MiB of echoes that nobody reads: the server stops listening to it long before, and then gives it up.
    let message = RawSocket.frame(0x82, [UInt8](repeating: 1, count: 1 << 20), mask: [0, 0, 0, 0])
    let (sent, failure) = await onThread {
      _ = client.send(RawSocket.upgrade)
      for sent in 0..<64 {
        let failure = client.send(message)
        if failure != 0 { return (sent, failure) }
      }
      return (64, 0)
    }
    #expect(sent < 64)
    #expect([EPIPE, ECONNRESET].contains(failure))
    client.end()
    #expect(await isWell(server))
    await server.stop()
  }

  @Test("a client that sends faster than the emulator handles is slowed down, and nothing of it is lost")
  func outrunsTheHost() async throws {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual(start: 1_000_000))
    let server = try await EmulatorServer(host, messageLimit: 2 << 20)
    let client = SlowClient(port: server.port, patience: 500)
    let opened = await onThread {
      guard client.connects(), client.send(RawSocket.upgrade) == 0 else { return "" }
      return client.read(upTo: 1 << 16)
    }
    #expect(opened.hasPrefix("HTTP/1.1 101"))
    await host.control.pause()
    // A command that answers nothing.
    let command = Array("stop ".utf8) + [UInt8](repeating: 0x61, count: 1 << 20)
    let message = RawSocket.frame(0x81, command, mask: [0, 0, 0, 0])
    let flood = Array(repeating: message, count: 64).flatMap(\.self)
    let sent = await onThread { client.sendWhatFits(flood) }
    // What is handed over, one more message, and what the two sockets hold.
    #expect(sent < 40 << 20)
    await host.control.resume()
    let ping = RawSocket.frame(0x81, Array("the end".utf8), mask: [0, 0, 0, 0])
    let answer = await onThread {
      var rest = flood[sent...] + ping
      // A busy machine may let one write wait longer than this client does; not twenty seconds.
      var emptyTries = 0
      while !rest.isEmpty {
        let count = client.sendWhatFits(Array(rest))
        emptyTries = count == 0 ? emptyTries + 1 : 0
        if emptyTries == 40 { return "the server takes no more" }
        rest = rest.dropFirst(count)
      }
      var text = ""
      while !text.contains("the end") {
        let more = client.read(upTo: 1 << 16)
        if more.isEmpty { break }
        text += more
      }
      return text
    }
    #expect(answer.contains("the end"))
    client.end()
    await server.stop()
  }

  @Test(
    "floods of header fields are refused with a status",
    arguments: [
      ("GET / HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 10_000) + "\r\n", 431),
      ("GET / HTTP/1.1\r\nX: " + String(repeating: "y", count: 70_000), 431),
      ("GET /" + String(repeating: "y", count: 70_000), 431),
      ("GET / HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 300) + "\r\n", 431),
    ])
  func headerFlood(_ request: String, _ status: Int) async throws {
    let server = try await start()
    let answer = await RawSocket.exchange(request, port: server.port)
    #expect(answer.text.hasPrefix("HTTP/1.1 \(status) ") || answer.wasReset)
    #expect(await isWell(server))
    await server.stop()
  }

  @Test("the server answers the next client beside five thousand idle connections, or as many as this machine allows")
  func manyIdle() async throws {
    SystemSocket.raiseDescriptorLimit()
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    // Both ends are in this process, which has other files too. Some machines allow few.
    let count = max(10, min(5_000, Int(clamping: limit.rlim_cur) / 2 - 200))
    let server = try await start(patience: .seconds(60))
    var clients: [SlowClient] = []
    while clients.count < count {
      let some = (0..<min(250, count - clients.count)).map { _ in SlowClient(port: server.port) }
      guard await onThread({ some.allSatisfy { $0.connects() } }) else { break }
      clients += some
      #expect(await isWell(server), "after \(clients.count)")
    }
    #expect(clients.count == count)
    for _ in 0..<5 { #expect(await isWell(server)) }
    for client in clients { client.end() }
    #expect(await isWell(server))
    await server.stop()
  }
}

/// Runs what blocks on a thread that may.
private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
  await withCheckedContinuation { continuation in
    Thread { continuation.resume(returning: body()) }.start()
  }
}

/// A client that does things at its own pace. Each call blocks for at most ten seconds.
private final class SlowClient: Sendable {
  private let descriptor: Int32
  private let port: UInt16

  /// - Parameter patience: ms that a write waits for room.
  init(port: UInt16, patience: Int = 10_000) {
    self.port = port
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    limit = timeval(tv_sec: patience / 1000, tv_usec: patience % 1000 * 1000)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  func connects() -> Bool {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  /// 0, or why the server does not take it any more.
  func send(_ bytes: [UInt8]) -> Int32 {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count <= 0 { return errno }
      sent += count
    }
    return 0
  }

  /// How many bytes the server took before it let a write wait for longer than the patience.
  func sendWhatFits(_ bytes: [UInt8]) -> Int {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Foundation.send(descriptor, $0.baseAddress, min($0.count, 1 << 18), Int32(MSG_NOSIGNAL))
      }
      if count <= 0 { break }
      sent += count
    }
    return sent
  }

  func read(upTo count: Int) -> String {
    var buffer = [UInt8](repeating: 0, count: count)
    let got = recv(descriptor, &buffer, count, 0)
    return String(decoding: buffer.prefix(max(0, got)), as: UTF8.self)
  }

  func wait(milliseconds: UInt32) { usleep(milliseconds * 1000) }

  func end() { close(descriptor) }
}
