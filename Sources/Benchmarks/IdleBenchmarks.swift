import ChatEmulation
import ChatTransport
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What 5,000 connections that ask nothing cost an emulator's server: its memory beside that without them, and how long
/// the next client waits for its answer beside how long it waits when it is alone.
let idleBenchmarks: [Benchmark] = [Benchmark(name: "idle.connections") { try await compareIdle() }]

private let (idleConnections, questions) = (5_000, 300)

private struct IdleFailure: Error, CustomStringConvertible {
  var description: String
}

private func compareIdle() async throws -> [Comparison] {
  let server = try await EmulatorServer(EmulatorHost(EmulatorFactory(EchoMachine.self)))
  _ = try await answerTimes(of: server)
  let alone = try await answerTimes(of: server)
  let before = residentMegabytes()
  let clients = try openClients(to: server.port)
  // The last of them was taken when the server answers the next one.
  let beside = try await answerTimes(of: server)
  let after = residentMegabytes()
  for client in clients { close(client) }
  await server.stop()
  return [
    Comparison(
      what: "an answer beside \(clients.count) idle connections", peer: "beside none", ours: Measure.median(beside),
      theirs: Measure.median(alone), unit: "µs", higherIsBetter: false),
    Comparison(
      what: "memory with \(clients.count) idle connections", peer: "without them", ours: after, theirs: before,
      unit: "MB", higherIsBetter: false, goal: 0.5),
  ]
}

/// Microseconds of one question after the other, each with a connection of its own.
private func answerTimes(of server: EmulatorServer) async throws -> [Double] {
  let port = server.port
  return try await withCheckedThrowingContinuation { continuation in
    // A thread of its own: the server's tasks need all others.
    Thread {
      continuation.resume(
        with: Result { try (0..<questions).map { _ in try Measure.clock.measure { try ask(port) }.seconds * 1e6 } })
    }.start()
  }
}

private func ask(_ port: UInt16) throws {
  let client = try connected(to: port)
  defer { close(client) }
  let question = Array("GET / HTTP/1.1\r\nConnection: close\r\n\r\n".utf8)
  guard send(client, question, question.count, 0) == question.count else { throw IdleFailure(description: "not asked") }
  var buffer = [UInt8](repeating: 0, count: 4096)
  guard recv(client, &buffer, buffer.count, 0) > 0 else { throw IdleFailure(description: "not answered") }
}

/// As many as the process may have files, at most 5,000.
private func openClients(to port: UInt16) throws -> [Int32] {
  var limit = rlimit()
  #if canImport(Glibc)
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
    let resource = RLIMIT_NOFILE
  #endif
  getrlimit(resource, &limit)
  limit.rlim_cur = limit.rlim_max
  setrlimit(resource, &limit)
  // Both ends are in this process.
  let count = max(10, min(idleConnections, Int(clamping: limit.rlim_cur) / 2 - 100))
  return try (0..<count).map { _ in try connected(to: port) }
}

private func connected(to port: UInt16) throws -> Int32 {
  #if canImport(Glibc)
    let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  #else
    let client = socket(AF_INET, SOCK_STREAM, 0)
  #endif
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  let isConnected = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
  }
  guard isConnected else { throw IdleFailure(description: "a connection was refused") }
  return client
}

/// What this process has in memory now; on systems that do not tell, the most that it has had.
private func residentMegabytes() -> Double {
  guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
    let pages = text.split(separator: " ").dropFirst().first.flatMap({ Double($0) })
  else { return peakMegabytes() }
  return pages * Double(sysconf(Int32(_SC_PAGESIZE))) / 1e6
}
