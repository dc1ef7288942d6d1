import ChatCrypto
import ChatJSON
import ChatTransport
import Foundation
import Synchronization
import UnifiedChat

/// Why an emulator's state could not be read or written, with the mend.
public struct EmulatorStoreError: Error, Sendable, Hashable, CustomStringConvertible {
  public var file: String
  public var reason: String
  public var description: String { "\(file): \(reason)" }
}

/// Keeps an emulator's state in one file of a directory: `<vendor>.state`, readable by its owner only.
///
/// The file is a line of JSON that names format, vendor, size and SHA-256, then the snapshot. It is replaced in one
/// step, so that a kill leaves the old state or the new one. A file that does not fit its first line is refused and
/// never overwritten.
public final class EmulatorStore: Sendable {
  public let file: String
  private let host: EmulatorHost
  /// Held as long as the store lives: two programs on one state would each undo what the other saved.
  private let lock: Int32
  /// What the file holds, as the host counts changes.
  private let saved = Mutex(Saved())

  private struct Saved {
    var changes: UInt64?
    var isRefused = false
  }

  /// - Throws: when the directory can't be made, or another program has this state in use.
  public init(_ host: EmulatorHost, directory: String) throws(EmulatorStoreError) {
    self.host = host
    file = URL(fileURLWithPath: directory).appendingPathComponent("\(host.vendor).state").path
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw EmulatorStoreError(file: directory, reason: "can't be made: \(error.localizedDescription)")
    }
    lock = open(file + ".lock", O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard lock >= 0 else {
      throw EmulatorStoreError(file: directory, reason: "can't be written to; check its rights")
    }
    // From here on the descriptor is closed by `deinit`, also when this throws.
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      throw EmulatorStoreError(file: file, reason: "is in use by another emulator; stop it, or choose another folder")
    }
  }

  deinit { if lock >= 0 { close(lock) } }

  /// Brings the saved state into the host; false when there is none yet.
  /// - Throws: when the file is cut off, changed, of another vendor or of a newer format. It stays as it is, and `save`
  ///   refuses to replace it.
  public func load() async throws(EmulatorStoreError) -> Bool {
    guard FileManager.default.fileExists(atPath: file) else { return false }
    do throws(EmulatorStoreError) {
      let snapshot = try read()
      do throws(EmulatorError) {
        try await host.restore(snapshot)
      } catch {
        throw damage(error.description)
      }
    } catch {
      saved.withLock { $0.isRefused = true }
      throw error
    }
    let changes = await host.changes
    saved.withLock { $0.changes = changes }
    return true
  }

  private func read() throws(EmulatorStoreError) -> JSONValue {
    guard let data = FileManager.default.contents(atPath: file) else {
      throw EmulatorStoreError(file: file, reason: "can't be read; check its rights")
    }
    let bytes = Array(data)
    guard let end = bytes.firstIndex(of: 10), let head = try? JSONValue(parsing: Array(bytes[..<end])),
      let format = head["format"]?.int, let size = head["bytes"]?.int, let digest = head["sha256"]?.string
    else { throw damage("its first line is not that of an emulator's state") }
    guard format == 1 else {
      throw EmulatorStoreError(file: file, reason: "has format \(format), this program reads 1: use a newer program")
    }
    let payload = Array(bytes[(end + 1)...])
    guard payload.count == Int(exactly: size) else { throw damage("it has \(payload.count) bytes of \(size)") }
    guard Hex.encode(Digest.sha256(payload)) == digest else { throw damage("its bytes were changed") }
    do throws(JSONError) {
      return try JSONValue(parsing: payload, limits: JSONLimits(size: .max))
    } catch {
      throw damage(error.description)
    }
  }

  private func damage(_ what: String) -> EmulatorStoreError {
    EmulatorStoreError(
      file: file, reason: "is damaged (\(what)); put a copy of it back, or move it away to start empty")
  }

  /// Writes the state if it changed since the last time.
  public func save() async throws(EmulatorStoreError) {
    let (isRefused, last) = saved.withLock { ($0.isRefused, $0.changes) }
    if isRefused { throw EmulatorStoreError(file: file, reason: "was not readable and is not replaced") }
    let changes = await host.changes
    if changes == last { return }
    let payload = await host.snapshot().bytes()
    let head: JSONValue = [
      "format": 1, "vendor": .string(host.vendor), "bytes": JSONValue(payload.count),
      "sha256": .string(Hex.encode(Digest.sha256(payload))),
    ]
    try write(head.bytes() + [10] + payload)
    saved.withLock { $0.changes = changes }
  }

  /// Writes beside the file and puts the result in its place.
  private func write(_ bytes: [UInt8]) throws(EmulatorStoreError) {
    let fresh = file + ".new"
    do {
      // What a kill left there, or a link that would lead the state to another's file, goes first.
      unlink(fresh)
      let descriptor = open(fresh, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
      let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
      try handle.write(contentsOf: Data(bytes))
      try handle.synchronize()
      try handle.close()
      guard rename(fresh, file) == 0 else { throw CocoaError(.fileWriteUnknown) }
    } catch {
      throw EmulatorStoreError(
        file: file, reason: "can't be written: \(error.localizedDescription); make room or check the rights")
    }
  }

  /// Saves what changed, again and again until the task is cancelled. The pause is at least `pause`, and twenty times
  /// what the last saving took: a large state costs at most a twentieth of the time.
  public func keepSaving(
    every pause: Duration = .seconds(2), failed: @Sendable (EmulatorStoreError) -> Void
  ) async {
    let clock = ContinuousClock()
    var wait = pause
    while (try? await SystemClock().sleep(for: wait)) != nil {
      let start = clock.now
      do throws(EmulatorStoreError) {
        try await save()
      } catch {
        failed(error)
      }
      wait = max(pause, (clock.now - start) * 20)
    }
  }
}
