import ChatTransport
import Foundation
import Testing

/// A TLS server of the `openssl` program, with a certificate for `localhost` that only its own file vouches for.
private final class TLSServer: Sendable {
  static let program = "/usr/bin/openssl"
  static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: program) }

  let port: Int
  let certificate: String
  private let folder: URL
  private let processID: Int32

  /// Starts one on a thread that may block.
  static func start(name: String = "localhost", isExpired: Bool = false) async throws -> TLSServer {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try TLSServer(name: name, isExpired: isExpired) }) }
    }
  }

  private init(name: String, isExpired: Bool) throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "tls-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    certificate = folder.appending(path: "certificate.pem").path
    let key = folder.appending(path: "key.pem").path
    try Self.makeCertificate(certificate, key: key, name: name, isExpired: isExpired)
    // With `-www`, it answers every request with a page of HTTP.
    let server = try Self.run(["s_server", "-www", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key])
    processID = server.process.processIdentifier
    // It prints `ACCEPT 127.0.0.1:<port>` once it listens.
    var output = ""
    while !output.contains("ACCEPT ") || !output.hasSuffix("\n") {
      let more = server.output.availableData
      guard !more.isEmpty else { throw CocoaError(.executableLoad) }
      output += String(decoding: more, as: UTF8.self)
    }
    let line = output.split(separator: "\n").first { $0.hasPrefix("ACCEPT ") }
    port = line?.split(separator: ":").last.flatMap { Int($0) } ?? 0
  }

  deinit {
    // Not `terminate`: the program may have inherited a mask that keeps that signal away.
    kill(processID, SIGKILL)
    // Nothing depends on the folder's being gone.
    try? FileManager.default.removeItem(at: folder)
  }

  /// Signed by its own key. One that has expired was good until a day ago.
  private static func makeCertificate(_ path: String, key: String, name: String, isExpired: Bool) throws {
    let subject = ["-subj", "/CN=\(name)", "-addext", "subjectAltName=DNS:\(name)"]
    let keyForm = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key]
    guard isExpired else {
      return try run(["req", "-x509", "-days", "2", "-out", path] + keyForm + subject).process.waitUntilExit()
    }
    let request = path + ".request"
    try run(["req", "-new", "-out", request] + keyForm + subject).process.waitUntilExit()
    let signing = ["x509", "-req", "-in", request, "-signkey", key, "-days", "-1", "-copy_extensions", "copy", "-out", path]
    try run(signing).process.waitUntilExit()
  }

  private static func run(_ arguments: [String]) throws -> (process: Process, output: FileHandle) {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.standardInput = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    return (process, output.fileHandleForReading)
  }
}

@Suite("TLS", .enabled(if: TLSServer.isAvailable, "the openssl program is not there"), .timeLimit(.minutes(5)))
struct TLSTests {
  @Test("a certificate that the given authorities vouch for is accepted")
  func trusted() async throws {
    let server = try await TLSServer.start()
    let http = CurlHTTPClient(certificateAuthorities: server.certificate)
    let response = try await http.send(HTTPRequest("GET", "https://localhost:\(server.port)/"))
    #expect(response.status == 200)
    #expect(String(decoding: response.body, as: UTF8.self).contains("s_server"))
    // The page is no WebSocket, but that it arrives shows that the tunnel stands.
    let webSocket = LWSWebSocketClient(certificateAuthorities: server.certificate)
    let error = await #expect(throws: TransportError.self) {
      try await webSocket.connect(WebSocketRequest("wss://localhost:\(server.port)/"))
    }
    guard case .upgradeRefused(let answer) = error?.kind else { return #expect(error == nil) }
    #expect(answer.status == 200)
    #expect(String(decoding: answer.body, as: UTF8.self).contains("s_server"))
  }

  @Test("a certificate that nobody vouches for is refused before anything is sent")
  func untrusted() async throws {
    let server = try await TLSServer.start()
    await expectTLSFailure(CurlHTTPClient(), LWSWebSocketClient(), "localhost:\(server.port)")
  }

  @Test("a certificate for another name is refused before anything is sent")
  func otherName() async throws {
    let server = try await TLSServer.start(name: "chat.example")
    await expectTLSFailure(
      CurlHTTPClient(certificateAuthorities: server.certificate),
      LWSWebSocketClient(certificateAuthorities: server.certificate), "localhost:\(server.port)")
  }

  @Test("a certificate that has expired is refused before anything is sent, whoever vouches for it")
  func expired() async throws {
    let server = try await TLSServer.start(isExpired: true)
    await expectTLSFailure(
      CurlHTTPClient(certificateAuthorities: server.certificate),
      LWSWebSocketClient(certificateAuthorities: server.certificate), "localhost:\(server.port)")
  }

  @Test("a file of authorities that is not there is a failure of TLS")
  func missingFile() async throws {
    let server = try await TLSServer.start()
    let file = "/nonexistent/authorities.pem"
    await expectTLSFailure(
      CurlHTTPClient(certificateAuthorities: file), LWSWebSocketClient(certificateAuthorities: file),
      "localhost:\(server.port)")
  }

  private func expectTLSFailure(_ http: CurlHTTPClient, _ webSocket: LWSWebSocketClient, _ authority: String) async {
    let first = await #expect(throws: TransportError.self) {
      try await http.send(HTTPRequest("POST", "https://\(authority)/", body: [1]))
    }
    #expect(first?.kind == .tls)
    #expect(first?.nothingSent == true)
    let second = await #expect(throws: TransportError.self) {
      try await webSocket.connect(WebSocketRequest("wss://\(authority)/"))
    }
    #expect(second?.kind == .tls)
    #expect(second?.nothingSent == true)
  }
}
