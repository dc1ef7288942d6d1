import CSQLite
import Foundation
import UnifiedChat

/// What SQLite or the file system refused, turned into an error that names the file and the mend.
struct StorageFault {
  var reason: ChatError.StorageReason
  var cause: String
  /// nil: what mends most faults of this reason.
  private var ownMend: String?

  init(reason: ChatError.StorageReason, cause: String, mend: String? = nil) {
    self.reason = reason
    self.cause = cause
    ownMend = mend
  }

  init(code: Int32, database: OpaquePointer?) {
    cause = String(cString: sqlite3_errstr(code))
    let systemError = database.map { sqlite3_system_errno($0) } ?? 0
    switch code & 0xFF {
    case SQLITE_FULL: reason = .full
    // A limit on the size of files shows as a failed write, not as a full disk.
    case SQLITE_IOERR where [EFBIG, ENOSPC, EDQUOT].contains(systemError): reason = .full
    case SQLITE_CORRUPT, SQLITE_NOTADB: reason = .corrupt
    case SQLITE_BUSY, SQLITE_LOCKED: reason = .busy
    case SQLITE_PERM, SQLITE_READONLY, SQLITE_AUTH, SQLITE_CANTOPEN: reason = .denied
    default: reason = .other
    }
  }

  /// A failed call of the file system.
  init(systemError: Int32) {
    cause = String(cString: strerror(systemError))
    switch systemError {
    case ENOSPC, EDQUOT, EFBIG: reason = .full
    case ELOOP, EISDIR:
      reason = .denied
      cause = systemError == EISDIR ? "a folder is in its place" : "a symbolic link is in its place"
      ownMend = "move that away, or choose another cache.directory"
    case EACCES, EPERM, EROFS: reason = .denied
    default: reason = .other
    }
  }

  func error(path: String) -> ChatError {
    ChatError(.storage(reason), operation: .cache, detail: "cache \(path): \(cause); \(mend)")
  }

  private var mend: String {
    if let ownMend { return ownMend }
    return switch reason {
    case .full: "free some disk space, nothing was lost"
    case .corrupt: "open the cache again to have it set aside and rebuilt"
    case .denied: "make the folder writable for this user or choose another cache.directory"
    case .busy: "another process has held it for a minute: end that process"
    case .newerVersion: "use the newer version of this app, or another cache.directory"
    case .other: "look at the disk and the folder"
    }
  }
}
