#if os(Linux)
  import Glibc

  /// Names to addresses. Blocks, so that it is not for the service threads.
  enum Resolver {
    /// The address itself if `host` is one already.
    static func numeric(_ host: String) -> String? { lookUp(host, flags: AI_NUMERICHOST).first }

    /// In the order in which they should be tried; empty if there is none.
    static func addresses(of host: String) -> [String] { lookUp(host, flags: 0) }

    /// Whether that port of that numeric address is closed, as far as can be told in a quarter of a second.
    static func isRefused(_ address: String, port: Int) -> Bool {
      var hints = addrinfo()
      hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
      hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
      var list: UnsafeMutablePointer<addrinfo>?
      guard getaddrinfo(address, String(port), &hints, &list) == 0, let entry = list?.pointee else { return false }
      defer { freeaddrinfo(list) }
      let descriptor = socket(entry.ai_family, entry.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
      guard descriptor >= 0 else { return false }
      defer { close(descriptor) }
      var limit = timeval(tv_sec: 0, tv_usec: 250_000)
      setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      return Glibc.connect(descriptor, entry.ai_addr, entry.ai_addrlen) != 0 && errno == ECONNREFUSED
    }

    private static func lookUp(_ host: String, flags: Int32) -> [String] {
      var hints = addrinfo()
      hints.ai_flags = flags
      hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
      var list: UnsafeMutablePointer<addrinfo>?
      guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
      defer { freeaddrinfo(list) }
      var addresses: [String] = []
      var entry = list
      while let current = entry {
        if let address = text(of: current.pointee) { addresses.append(address) }
        entry = current.pointee.ai_next
      }
      return addresses
    }

    private static func text(of entry: addrinfo) -> String? {
      var buffer = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      let result = getnameinfo(
        entry.ai_addr, entry.ai_addrlen, &buffer, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST)
      guard result == 0 else { return nil }
      return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
#endif
