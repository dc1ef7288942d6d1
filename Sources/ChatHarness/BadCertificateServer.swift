import ChatConformance
import ChatTransport
import Foundation
import UnifiedChat

/// A TLS server of the `openssl` program whose certificate is no good. Whatever gets through to it is answered by a
/// page of HTTP.
final class BadCertificateServer: Sendable {
  private static let program = "/usr/bin/openssl"
  static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: program) }

  let port: Int
  /// Vouches for it; nil where nobody does.
  let authorities: String?
  private let folder: URL
  private let processID: Int32

  /// Starts one on a thread that may block.
  static func start(_ certificate: BadCertificate) async throws -> BadCertificateServer {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try BadCertificateServer(certificate) }) }
    }
  }

  private init(_ certificate: BadCertificate) throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("certificate.pem").path
    let key = folder.appendingPathComponent("key.pem").path
    try Self.make(certificate, file, key: key)
    authorities = certificate == .selfSigned ? nil : file
    let server = try Self.run(["s_server", "-www", "-accept", "127.0.0.1:0", "-cert", file, "-key", key])
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
  private static func make(_ certificate: BadCertificate, _ path: String, key: String) throws {
    let name = certificate == .otherHost ? "elsewhere.test" : "localhost"
    let subject = ["-subj", "/CN=\(name)", "-addext", "subjectAltName=DNS:\(name)"]
    let form = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key]
    guard certificate == .expired else {
      return try run(["req", "-x509", "-days", "2", "-out", path] + form + subject).process.waitUntilExit()
    }
    let request = path + ".request"
    try run(["req", "-new", "-out", request] + form + subject).process.waitUntilExit()
    let signing = ["x509", "-req", "-in", request, "-signkey", key, "-days", "-1", "-copy_extensions", "copy", "-out", path]
    try run(signing).process.waitUntilExit()
  }

  private static func run(_ arguments: [String]) throws -> (process: Process, output: FileHandle) {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardInput = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    return (process, output.fileHandleForReading)
  }

  /// The platform's own, which trust who vouches for this certificate.
  var transports: Transports {
    #if os(Linux)
      Transports(
        http: CurlHTTPClient(certificateAuthorities: authorities),
        webSocket: LWSWebSocketClient(certificateAuthorities: authorities))
    #else
      .system()
    #endif
  }
}
