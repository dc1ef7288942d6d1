import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Lines to the standard streams, unbuffered: another program may wait for one.
enum Standard {
  static func line(_ text: String) { write(text + "\n", to: 1) }
  static func error(_ text: String) { write(text + "\n", to: 2) }

  private static func write(_ text: String, to descriptor: Int32) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { bytes in
        #if canImport(Glibc)
          Glibc.write(descriptor, bytes.baseAddress, bytes.count)
        #else
          Darwin.write(descriptor, bytes.baseAddress, bytes.count)
        #endif
      }
      // A closed pipe: nobody reads what would be said.
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }
}

/// Secrets of files, without the newline that editors add.
enum Secrets {
  static func read(file: String) throws -> String {
    guard let data = FileManager.default.contents(atPath: file) else {
      throw Failure(.configuration, "\(file): the secret cannot be read; create the file with mode 0600")
    }
    // Secrets that an orchestrator mounts are links.
    let target = (file as NSString).resolvingSymlinksInPath
    let mode = try? FileManager.default.attributesOfItem(atPath: target)[.posixPermissions] as? Int
    if let mode, mode & 0o077 != 0 {
      Standard.error("warning: \(file): others on this machine can read this secret; chmod 600 it")
    }
    var text = String(decoding: data, as: UTF8.self)
    if text.hasSuffix("\n") { text.removeLast() }
    guard !text.isEmpty else { throw Failure(.configuration, "\(file): the secret is empty") }
    return text
  }
}
