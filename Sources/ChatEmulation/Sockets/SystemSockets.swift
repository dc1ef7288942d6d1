#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The few system calls that a server needs, with the differences between platforms in one place.
enum SystemSocket {
  struct Failure: Error {
    var code: Int32
    var call: String
    var text: String { "\(call): \(String(cString: strerror(code)))" }
  }

  /// A listening, non-blocking TCP socket and the port that it got.
  static func listen(address: String, port: UInt16) throws(Failure) -> (descriptor: Int32, port: UInt16) {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE | AI_NUMERICSERV
    #if canImport(Glibc)
      hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #else
      hints.ai_socktype = SOCK_STREAM
    #endif
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address, String(port), &hints, &found) == 0, let info = found else {
      throw Failure(code: EADDRNOTAVAIL, call: "address")
    }
    defer { freeaddrinfo(found) }
    let descriptor = socket(info.pointee.ai_family, info.pointee.ai_socktype, info.pointee.ai_protocol)
    guard descriptor >= 0 else { throw Failure(code: errno, call: "socket") }
    set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
    makeNonBlocking(descriptor)
    guard bind(descriptor, info.pointee.ai_addr, info.pointee.ai_addrlen) == 0 else {
      throw closing(descriptor, "bind")
    }
    #if canImport(Glibc)
      let listened = Glibc.listen(descriptor, 1024)
    #elseif canImport(Musl)
      let listened = Musl.listen(descriptor, 1024)
    #else
      let listened = Darwin.listen(descriptor, 1024)
    #endif
    guard listened == 0 else { throw closing(descriptor, "listen") }
    return (descriptor, boundPort(descriptor) ?? port)
  }

  private static func closing(_ descriptor: Int32, _ call: String) -> Failure {
    let failure = Failure(code: errno, call: call)
    _ = close(descriptor)
    return failure
  }

  private static func boundPort(_ descriptor: Int32) -> UInt16? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> UInt16? in
        guard getsockname(descriptor, address, &length) == 0 else { return nil }
        // The port lies at the same place for IPv4 and IPv6.
        return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
      }
    }
  }

  /// The next connection, non-blocking; nil when there is none, a failure when the process is out of descriptors.
  static func accept(_ listener: Int32) throws(Failure) -> Int32? {
    while true {
      #if canImport(Glibc)
        let descriptor = Glibc.accept(listener, nil, nil)
      #elseif canImport(Musl)
        let descriptor = Musl.accept(listener, nil, nil)
      #else
        let descriptor = Darwin.accept(listener, nil, nil)
      #endif
      if descriptor >= 0 {
        makeNonBlocking(descriptor)
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        #if canImport(Darwin)
          set(descriptor, SOL_SOCKET, SO_NOSIGPIPE, 1)
        #endif
        return descriptor
      }
      switch errno {
      case EINTR, ECONNABORTED: continue
      case EAGAIN: return nil
      default: throw Failure(code: errno, call: "accept")
      }
    }
  }

  /// Bytes written; 0 when the socket is full, nil when it is broken.
  static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int? {
    #if canImport(Darwin)
      let flags: Int32 = 0
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    while true {
      let count = send(descriptor, bytes.baseAddress, bytes.count, flags)
      if count >= 0 { return count }
      if errno == EINTR { continue }
      return errno == EAGAIN ? 0 : nil
    }
  }

  enum Read { case bytes(Int), nothing, end }

  static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Read {
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count > 0 { return .bytes(count) }
      if count == 0 { return .end }
      if errno == EINTR { continue }
      return errno == EAGAIN ? .nothing : .end
    }
  }

  static func shutdownWriting(_ descriptor: Int32) {
    _ = shutdown(descriptor, Int32(SHUT_WR))
  }

  /// Ends a connection; `abruptly` resets it, so that the peer sees an error and not an end.
  static func close(_ descriptor: Int32, abruptly: Bool) {
    if abruptly {
      var value = linger(l_onoff: 1, l_linger: 0)
      _ = setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }
    _ = close(descriptor)
  }

  private static func close(_ descriptor: Int32) -> Int32 {
    #if canImport(Glibc)
      Glibc.close(descriptor)
    #elseif canImport(Musl)
      Musl.close(descriptor)
    #else
      Darwin.close(descriptor)
    #endif
  }

  /// A non-blocking pipe: reading end, writing end.
  static func wakePipe() throws(Failure) -> (Int32, Int32) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw Failure(code: errno, call: "pipe") }
    ends.forEach(makeNonBlocking)
    return (ends[0], ends[1])
  }

  static func wake(_ descriptor: Int32) {
    var byte: UInt8 = 1
    #if canImport(Glibc)
      _ = Glibc.write(descriptor, &byte, 1)
    #elseif canImport(Musl)
      _ = Musl.write(descriptor, &byte, 1)
    #else
      _ = Darwin.write(descriptor, &byte, 1)
    #endif
  }

  static func emptyPipe(_ descriptor: Int32) {
    withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
      #if canImport(Glibc)
        while Glibc.read(descriptor, buffer.baseAddress, buffer.count) == buffer.count {}
      #elseif canImport(Musl)
        while Musl.read(descriptor, buffer.baseAddress, buffer.count) == buffer.count {}
      #else
        while Darwin.read(descriptor, buffer.baseAddress, buffer.count) == buffer.count {}
      #endif
    }
  }

  /// Allows this process as many open sockets as the system lets it have.
  static func raiseDescriptorLimit() {
    var limit = rlimit()
    #if canImport(Darwin)
      let resource = RLIMIT_NOFILE
    #else
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #endif
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(resource, &limit)
  }

  private static func makeNonBlocking(_ descriptor: Int32) {
    let flags = fcntl(descriptor, F_GETFL)
    _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  private static func set(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
    var value = value
    _ = setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
  }
}
