import Foundation
import UnifiedChat

/// Files and folders that only their owner may read: chats are nobody else's business.
package enum PrivateFile {
  /// Creates an empty file with mode 0600.
  /// - Throws: `.conflict` if something is there already.
  static func create(_ path: String, operation: ChatError.Operation) throws(ChatError) {
    let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure(errno, path, operation) }
    close(descriptor)
  }

  static func createFolder(_ path: String, operation: ChatError.Operation) throws(ChatError) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw failure(errno, path, operation) }
  }

  /// A link could lead what is written to another's file.
  package static func refuseLink(_ path: String, operation: ChatError.Operation) throws(ChatError) {
    var information = stat()
    if lstat(path, &information) == 0, information.st_mode & S_IFMT == S_IFLNK { throw failure(ELOOP, path, operation) }
  }

  /// SQLite would say no more than that it cannot open it.
  static func refuseFolder(_ path: String, operation: ChatError.Operation) throws(ChatError) {
    var information = stat()
    if stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFDIR { throw failure(EISDIR, path, operation) }
  }

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Bytes of the file; nil when it is not there.
  static func size(_ path: String) -> Int64? {
    var information = stat()
    return stat(path, &information) == 0 ? Int64(information.st_size) : nil
  }

  static func read(_ path: String, operation: ChatError.Operation) throws(ChatError) -> [UInt8] {
    let reader = try FileReader(path, operation: operation)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(clamping: size(path) ?? 0))
    while let piece = try reader.next() { bytes += piece }
    return bytes
  }

  /// The first `count` bytes, or all if there are fewer.
  static func prefix(_ path: String, count: Int, operation: ChatError.Operation) throws(ChatError) -> [UInt8] {
    Array(try FileReader(path, pieceSize: count, operation: operation).next() ?? [])
  }

  /// Before a finished file takes the place of `path`: a device, pipe, link or folder there is never replaced.
  package static func requireReplaceable(_ path: String, operation: ChatError.Operation) throws(ChatError) {
    var information = stat()
    guard lstat(path, &information) == 0, information.st_mode & S_IFMT != S_IFREG else { return }
    throw ChatError(.storage(.denied), operation: operation, detail: "\(path): is no regular file; name another path")
  }

  /// An archive and a ledger hold what is nowhere else: no other output takes their place.
  package static func refuseDatabase(_ path: String, operation: ChatError.Operation) throws(ChatError) {
    guard let size = size(path), size >= 16, try prefix(path, count: 16, operation: operation) == Array("SQLite format 3\0".utf8)
    else { return }
    throw ChatError(
      .storage(.denied), operation: operation, detail: "\(path): is an archive, a ledger or a cache and is not replaced; name another file")
  }

  /// Writes `bytes` beside `path` and puts the file in its place, so that a reader sees the old or the new one.
  package static func replace(_ path: String, with bytes: [UInt8], operation: ChatError.Operation) throws(ChatError) {
    try requireReplaceable(path, operation: operation)
    let writer = try FileWriter(path + ".part", operation: operation)
    try writer.write(bytes)
    try writer.finish(movingTo: path)
  }

  static func failure(_ code: Int32, _ path: String, _ operation: ChatError.Operation) -> ChatError {
    let (kind, mend): (ChatError.Kind, String) =
      switch code {
      case EEXIST: (.conflict, "is there already; name another path")
      case ENOENT: (.storage(.denied), "no such file or folder")
      case EACCES, EPERM, EROFS: (.storage(.denied), "not permitted; check owner and mode")
      case ENOSPC, EDQUOT, EFBIG: (.storage(.full), "no space left; free some and run the same command again")
      case EISDIR: (.storage(.denied), "is a folder")
      case ELOOP: (.storage(.denied), "is a symbolic link; name the file itself")
      default: (.storage(.other), String(cString: strerror(code)))
      }
    return ChatError(kind, operation: operation, detail: "\(path): \(mend)")
  }
}

/// Reads a file in pieces. Not for sharing.
final class FileReader {
  private let descriptor: Int32
  private let path: String
  private let operation: ChatError.Operation
  private let pieceSize: Int

  init(_ path: String, pieceSize: Int = 1 << 18, operation: ChatError.Operation) throws(ChatError) {
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    self.path = path
    self.operation = operation
    self.pieceSize = pieceSize
    guard descriptor >= 0 else { throw PrivateFile.failure(errno, path, operation) }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// nil at the end.
  func next() throws(ChatError) -> [UInt8]? {
    var failed: Int32 = 0
    let piece = [UInt8](unsafeUninitializedCapacity: pieceSize) { buffer, count in
      var got = 0
      repeat { got = Foundation.read(descriptor, buffer.baseAddress, pieceSize) } while got < 0 && errno == EINTR
      if got < 0 { failed = errno }
      count = max(got, 0)
    }
    guard failed == 0 else { throw PrivateFile.failure(failed, path, operation) }
    return piece.isEmpty ? nil : piece
  }
}

/// Writes a new owner-only file from the start. Not for sharing.
package final class FileWriter {
  private let descriptor: Int32
  let path: String
  private let operation: ChatError.Operation
  private var isFinished = false

  /// A file that is there already, as a killed run leaves it, goes first: it may have an owner and a mode of its own.
  /// - Throws: `.storage(.denied)` for a link or a folder in its place.
  package init(_ path: String, operation: ChatError.Operation) throws(ChatError) {
    let flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW
    var opened = open(path, flags, 0o600)
    if opened < 0, errno == EEXIST {
      try PrivateFile.refuseLink(path, operation: operation)
      try PrivateFile.requireReplaceable(path, operation: operation)
      unlink(path)
      opened = open(path, flags, 0o600)
    }
    guard opened >= 0 else { throw PrivateFile.failure(errno, path, operation) }
    (descriptor, self.path, self.operation) = (opened, path, operation)
  }

  /// A file that was not finished is removed; one that could not be opened is not ours.
  deinit {
    guard descriptor >= 0 else { return }
    close(descriptor)
    if !isFinished { unlink(path) }
  }

  package func write(_ bytes: [UInt8]) throws(ChatError) {
    var failed: Int32 = 0
    bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count, let start = buffer.baseAddress {
        let count = Foundation.write(descriptor, start + done, buffer.count - done)
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else {
          failed = count == 0 ? EIO : errno
          return
        }
        done += count
      }
    }
    guard failed == 0 else { throw PrivateFile.failure(failed, path, operation) }
  }

  /// The bytes are on the disk before the name is: whoever finds the name finds all of them.
  package func finish(movingTo target: String) throws(ChatError) {
    guard fsync(descriptor) == 0, rename(path, target) == 0 else {
      throw PrivateFile.failure(errno, target, operation)
    }
    isFinished = true
  }
}
