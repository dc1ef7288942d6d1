import Foundation
import Synchronization
import UnifiedChat

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Text to the standard streams, unbuffered: another program may wait for it.
enum Standard {
  enum Stream: Int32 { case output = 1, error = 2 }

  static func line(_ text: String) { write(text + "\n", to: .output) }
  static func error(_ text: String) { write(text + "\n", to: .error) }
  static func write(_ text: String, to stream: Stream) { write(Array(text.utf8), to: stream) }

  /// Why a result could not be written; nil while all went out, or nobody wants it any more.
  static var failure: String? {
    outputError.withLock { $0 }.map { String(cString: strerror($0)) }
  }

  private static let outputError = Mutex<Int32?>(nil)

  static func write(_ bytes: [UInt8], to stream: Stream) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { bytes in
        #if canImport(Glibc)
          Glibc.write(stream.rawValue, bytes.baseAddress, bytes.count)
        #else
          Darwin.write(stream.rawValue, bytes.baseAddress, bytes.count)
        #endif
      }
      if count > 0 {
        rest = rest.dropFirst(count)
        continue
      }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        var place = pollfd(fd: stream.rawValue, events: Int16(POLLOUT), revents: 0)
        _ = poll(&place, 1, -1)
      // A closed pipe: nobody reads what would be said.
      case EPIPE: return
      case let code:
        if stream == .output { outputError.withLock { $0 = $0 ?? code } }
        return
      }
    }
  }
}

/// Secrets of files, without the newline that editors add.
enum Secrets {
  /// Of those that are files and that others on this machine can read.
  static func warn(_ credentials: Profile.Credentials) {
    for reference in [credentials.admin, credentials.appKey, credentials.token] {
      if case .file(let path)? = reference { warn(file: path) }
    }
  }

  private static let warned = Mutex<Set<String>>([])

  private static func warn(file: String) {
    guard warned.withLock({ $0.insert(file).inserted }) else { return }
    // Secrets that an orchestrator mounts are links.
    let target = (file as NSString).resolvingSymlinksInPath
    let mode = try? FileManager.default.attributesOfItem(atPath: target)[.posixPermissions] as? Int
    if let mode, mode & 0o077 != 0 {
      Standard.error("warning: \(file.inert): others on this machine can read this secret; chmod 600 it")
    }
  }

  static func read(file: String) throws -> String {
    guard let data = FileManager.default.contents(atPath: file) else {
      throw Failure(.configuration, "\(file): the secret cannot be read; create the file with mode 0600")
    }
    warn(file: file)
    var text = String(decoding: data, as: UTF8.self)
    if text.hasSuffix("\n") { text.removeLast() }
    guard !text.isEmpty else { throw Failure(.configuration, "\(file): the secret is empty") }
    return text
  }
}
