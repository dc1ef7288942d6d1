import ChatMigration
import Foundation
import UnifiedChat

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Results in files, which are their owner's alone and appear only when they are whole. What is no file, a pipe or a
/// device, is written as it is.
enum Files {
  static func write(_ bytes: [UInt8], to path: String) throws {
    try requireWritable(path)
    if isStandardOutput(path) { return Standard.write(bytes, to: .output) }
    do {
      guard isStream(path) else { return try PrivateFile.replace(path, with: bytes, operation: .archive) }
      guard let handle = FileHandle(forWritingAtPath: path) else { throw CocoaError(.fileWriteNoPermission) }
      try handle.write(contentsOf: Data(bytes))
      try handle.close()
    } catch let error as ChatError {
      throw Failure(.storage, "cannot be written: \(error.detail)")
    } catch {
      throw Failure(.storage, "\(path): cannot be written: \(error.localizedDescription)")
    }
  }

  /// To be asked before long work whose result goes there.
  /// - Throws: for a folder that is not there, for a link, which could lead the result to another's file, and for a file
  ///   that holds more than a result: an archive, a ledger and a cache are SQLite files, and none of them is ever replaced.
  static func requireWritable(_ path: String) throws {
    if isStandardOutput(path) || isStream(path) { return }
    var isFolder: ObjCBool = false
    _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    guard !path.isEmpty, !isFolder.boolValue else {
      throw Failure(.storage, "\(path.isEmpty ? "\"\"" : path): is no name of a file")
    }
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    guard FileManager.default.fileExists(atPath: folder) else {
      throw Failure(.storage, "\(path): there is no folder \(folder); make it, or name another file")
    }
    do {
      try PrivateFile.refuseLink(path, operation: .archive)
      try PrivateFile.refuseDatabase(path, operation: .archive)
    } catch { throw Failure(.storage, error.detail) }
  }

  /// Opened anew it would begin at its start, over what stands there.
  static func isStandardOutput(_ path: String) -> Bool { path == "-" || path == "/dev/stdout" }

  static func isStream(_ path: String) -> Bool {
    var information = stat()
    guard stat(path, &information) == 0 else { return false }
    let type = information.st_mode & S_IFMT
    return type != S_IFREG && type != S_IFDIR
  }
}
