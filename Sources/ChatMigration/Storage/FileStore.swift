import ChatCrypto
import Foundation
import UnifiedChat

/// The bytes of attachments beside an archive, each once, named by their SHA-256: `<archive>.files/ab/cdef…`.
public struct FileStore: Sendable {
  public let folder: String

  public init(folder: String) { self.folder = folder }

  /// The place of a file; nil when `sha256` is not 64 lower-case hex digits, which an archive from elsewhere may say.
  public func path(of sha256: String) -> String? {
    let digits = Array(sha256.utf8)
    let isHex = digits.allSatisfy {
      ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9")) || ($0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "f"))
    }
    guard digits.count == 64, isHex else { return nil }
    return "\(folder)/\(sha256.prefix(2))/\(sha256.dropFirst(2))"
  }

  public func contains(_ sha256: String) -> Bool { path(of: sha256).map(PrivateFile.exists) ?? false }

  /// The whole file; nil when it is not here.
  public func bytes(of sha256: String) throws(ChatError) -> [UInt8]? {
    guard let path = path(of: sha256), PrivateFile.exists(path) else { return nil }
    return try PrivateFile.read(path, operation: .archive)
  }

  /// The SHA-256 of what lies there, read in pieces; nil when it is not here.
  public func digest(of sha256: String) throws(ChatError) -> String? {
    guard let path = path(of: sha256), PrivateFile.exists(path) else { return nil }
    let reader = try FileReader(path, operation: .archive)
    var digest = RunningDigest(.sha256)
    while let piece = try reader.next() { digest.update(piece) }
    return Hex.encode(digest.value)
  }

  /// A file that comes in pieces. `name` tells apart those that come at the same time.
  func receive(_ name: String) throws(ChatError) -> IncomingFile {
    try PrivateFile.createFolder(folder, operation: .archive)
    let incoming = folder + "/incoming"
    try PrivateFile.createFolder(incoming, operation: .archive)
    return try IncomingFile(store: self, path: "\(incoming)/\(name)")
  }

  func store(_ bytes: [UInt8]) async throws(ChatError) -> StoredFile {
    let file = try receive(Hex.encode(Digest.sha256(bytes)))
    try await file.append(bytes)
    return try await file.finish()
  }

  /// Removes what an interrupted run left half received.
  func removeUnfinished() { try? FileManager.default.removeItem(atPath: folder + "/incoming") }
}

struct StoredFile: Sendable, Hashable {
  var sha256: String
  var size: Int64
}

/// One file on its way into a store.
actor IncomingFile {
  private let store: FileStore
  private let writer: FileWriter
  private var digest = RunningDigest(.sha256)
  private(set) var size: Int64 = 0

  init(store: FileStore, path: String) throws(ChatError) {
    self.store = store
    writer = try FileWriter(path, operation: .archive)
  }

  func append(_ bytes: [UInt8]) throws(ChatError) {
    try writer.write(bytes)
    digest.update(bytes)
    size += Int64(bytes.count)
  }

  func finish() throws(ChatError) -> StoredFile {
    let sha256 = Hex.encode(digest.value)
    guard let path = store.path(of: sha256) else {
      throw ChatError(.storage(.other), operation: .archive, detail: "no place for \(sha256)")
    }
    try PrivateFile.createFolder("\(store.folder)/\(sha256.prefix(2))", operation: .archive)
    try writer.finish(movingTo: path)
    return StoredFile(sha256: sha256, size: size)
  }
}
