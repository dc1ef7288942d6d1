import ChatCrypto
import Foundation
import UnifiedChat

/// Whose cache: nothing of one identity is ever shown to another.
public struct CacheIdentity: Sendable, Hashable {
  public var vendor: VendorName
  /// The app at the vendor; "" where there is only one.
  public var app: String
  public var user: UserID

  public init(vendor: VendorName, app: String, user: UserID) {
    self.vendor = vendor
    self.app = app
    self.user = user
  }

  /// A name that any file system keeps apart, whatever the ids are made of: ids that differ only in case,
  /// normalisation or slashes give different files, and none leads out of the folder.
  var fileName: String {
    var bytes: [UInt8] = []
    for part in [vendor.rawValue, app, user.rawValue] {
      // The length in front, so that no two identities give the same bytes.
      bytes += Array("\(part.utf8.count):".utf8) + Array(part.utf8)
    }
    return "chat-" + Hex.encode(Array(Digest.sha256(bytes).prefix(20))) + ".sqlite"
  }
}

/// Where caches live.
public enum CacheLocation: Sendable, Hashable {
  /// Gone with the object: tests, previews, tools.
  case memory
  /// A folder, made for its owner alone if it does not exist.
  case directory(String)
}

/// What the header of a SQLite file tells of its program.
struct CacheHeader: Equatable {
  var version: Int64
  var applicationID: Int64
}

/// The file of one cache, and what belongs to it on disk.
struct CacheFile {
  let path: String

  init(identity: CacheIdentity, directory: String) {
    path = (directory as NSString).appendingPathComponent(identity.fileName)
  }

  init(path: String) { self.path = path }

  /// SQLite's companions of the main file.
  static let suffixes = ["", "-wal", "-shm", "-journal", "-lock"]

  var exists: Bool { FileManager.default.fileExists(atPath: path) }

  var size: Int64 {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    return (attributes?[.size] as? NSNumber)?.int64Value ?? 0
  }

  /// The folder and an empty file that only their owner can read.
  func create() throws(ChatError) {
    let folder = (path as NSString).deletingLastPathComponent
    if !FileManager.default.fileExists(atPath: folder) {
      do {
        try FileManager.default.createDirectory(
          atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      } catch {
        throw StorageFault(reason: .denied, cause: "cannot make the folder").error(path: path)
      }
    }
    // SQLite gives its companions the mode of the main file. A link would lead what is written to another's file.
    let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StorageFault(systemError: errno).error(path: path) }
    fchmod(descriptor, 0o600)
    close(descriptor)
  }

  /// Whose the file says it is, read without SQLite, so that a file of a newer program, or of another one, is not
  /// touched at all. nil for a file too short to have a header.
  func header() -> CacheHeader? {
    guard let handle = FileHandle(forReadingAtPath: path) else { return nil }
    defer { try? handle.close() }
    // Any failure means "no header"; SQLite will say more when it opens the file.
    guard let bytes = try? handle.read(upToCount: 72), bytes.count == 72, bytes.starts(with: Data("SQLite format 3\0".utf8))
    else { return nil }
    func field(_ place: Int) -> Int64 {
      Int64(bytes.dropFirst(place).prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    }
    return CacheHeader(version: field(60), applicationID: field(68))
  }

  /// Moves the file and its companions aside and returns the new place.
  func quarantine() throws(ChatError) -> CacheFile {
    var number = 1
    while FileManager.default.fileExists(atPath: "\(path).damaged-\(number)") { number += 1 }
    let aside = CacheFile(path: "\(path).damaged-\(number)")
    for suffix in Self.suffixes where FileManager.default.fileExists(atPath: path + suffix) {
      guard rename(path + suffix, aside.path + suffix) == 0 else {
        throw StorageFault(systemError: errno).error(path: path + suffix)
      }
    }
    return aside
  }

  /// Removes the file, its companions and what was set aside of it.
  func erase() throws(ChatError) {
    let folder = (path as NSString).deletingLastPathComponent
    let name = (path as NSString).lastPathComponent
    guard FileManager.default.fileExists(atPath: folder) else { return }
    do {
      for entry in try FileManager.default.contentsOfDirectory(atPath: folder) where entry.hasPrefix(name) {
        try FileManager.default.removeItem(atPath: (folder as NSString).appendingPathComponent(entry))
      }
    } catch {
      throw StorageFault(reason: .denied, cause: "cannot remove it").error(path: path)
    }
  }
}
