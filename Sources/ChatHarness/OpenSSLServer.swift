import Foundation

/// A TLS server of the `openssl` program, with a certificate that only its own file vouches for. Whatever gets through
/// to it is answered by a page of HTTP.
public final class OpenSSLServer: Sendable {
  private static let program = "/usr/bin/openssl"
  /// Whether the program is there.
  public static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: program) }

  /// On 127.0.0.1.
  public let port: Int
  /// The file of the certificate, for whom it is to vouch.
  public let certificate: String
  private let folder: URL
  private let processID: Int32

  /// Starts one on a thread that may block. It ends with this object.
  ///
  /// - Parameters:
  ///   - name: whom the certificate names.
  ///   - isExpired: it was good until a day ago.
  /// - Throws: what Foundation says of a program that cannot be run, or ends before it listens.
  public static func start(name: String = "localhost", isExpired: Bool = false) async throws -> OpenSSLServer {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try OpenSSLServer(name: name, isExpired: isExpired) })
      }
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
