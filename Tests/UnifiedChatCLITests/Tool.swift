import Foundation
import Testing

/// The program of this build, run as a user runs it.
struct Tool {
  struct Outcome {
    var code: Int32
    var output: String
    var errors: String
  }

  static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Beside the test bundle.
  static let path: String = {
    let arguments = CommandLine.arguments.first ?? ""
    let folder = URL(fileURLWithPath: arguments).deletingLastPathComponent()
    let beside = folder.appendingPathComponent("unifiedchat").path
    return FileManager.default.isExecutableFile(atPath: beside)
      ? beside : root.appendingPathComponent(".build/debug/unifiedchat").path
  }()

  let folder: URL

  /// A tool that works in a new folder.
  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("cli-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }

  func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: folder.appendingPathComponent(name))
  }

  func start(_ arguments: [String], output: Any? = nil, errors: Any? = nil) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Self.path)
    process.arguments = arguments
    process.currentDirectoryURL = folder
    process.standardOutput = output ?? FileHandle.nullDevice
    process.standardError = errors ?? FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    return process
  }

  func run(_ arguments: String...) throws -> Outcome { try run(arguments) }

  func run(_ arguments: [String]) throws -> Outcome {
    // Files, not pipes: a full pipe would stop the program.
    let names = ["out", "err"].map { folder.appendingPathComponent(".\($0)-\(UUID().uuidString)") }
    let handles = try names.map { name in
      _ = FileManager.default.createFile(atPath: name.path, contents: nil)
      return try FileHandle(forWritingTo: name)
    }
    let process = try start(arguments, output: handles[0], errors: handles[1])
    process.waitUntilExit()
    for handle in handles { try handle.close() }
    let texts = try names.map { String(decoding: try Data(contentsOf: $0), as: UTF8.self) }
    return Outcome(code: process.terminationStatus, output: texts[0], errors: texts[1])
  }
}
