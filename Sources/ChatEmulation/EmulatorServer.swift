import ChatTransport
import Foundation

/// Why a server could not start, with the mend.
public enum EmulatorServerError: Error, Sendable, Hashable, CustomStringConvertible {
  case portInUse(UInt16)
  case portNotPermitted(UInt16)
  /// Not an IP address of this machine.
  case addressNotAvailable(String)
  case system(String)

  public var description: String {
    switch self {
    case .portInUse(let port):
      "port \(port) is in use: stop the program that listens there, or choose another port (0 takes a free one)"
    case .portNotPermitted(let port): "port \(port) needs more rights: choose one from 1024 on (0 takes a free one)"
    case .addressNotAvailable(let address):
      "\(address) is no address of this machine: give a numeric one, for example 127.0.0.1 or 0.0.0.0"
    case .system(let text): text
    }
  }
}

/// An emulator on a TCP port: HTTP/1.1 and WebSocket, for clients in any language.
///
/// Own code over `poll`, not libwebsockets, for what was measured of its server (4.1.6): it hands out the path decoded
/// and normalised (`/a%2Fb//c` becomes `/a/b/c`), never ends a chunked request body, can't list header fields that it
/// does not know, and must decide an upgrade before the emulator has seen the request. An emulator has to see what the
/// client sent, byte for byte, and must be able to send frames that a correct library refuses to send.
public final class EmulatorServer: Sendable {
  public let host: EmulatorHost
  public let address: String
  /// The port that clients use; the one asked for, or a free one when that was 0.
  public let port: UInt16
  /// `http://127.0.0.1:7001`.
  public var baseURL: String { "http://\(Self.authority(address, port))" }

  private let server: SocketServer

  /// Starts to listen and tells the emulator its base URL.
  /// - Parameters:
  ///   - address: numeric; anything but a loopback address lets other machines in.
  ///   - bodyLimit: bytes of one request's body; a larger one is answered with 413.
  ///   - messageLimit: bytes of one WebSocket message; a larger one closes with 1009.
  ///   - access: which names and pages are served; others are refused with 403.
  ///   - patience: how long a client may take for the head of a request, or leave its answers unread.
  public init(
    _ host: EmulatorHost, address: String = "127.0.0.1", port: UInt16 = 0, bodyLimit: Int = 256 << 20,
    messageLimit: Int = 16 << 20, access: EmulatorAccess = EmulatorAccess(), patience: Duration = .seconds(60)
  ) async throws(EmulatorServerError) {
    let service = SocketService(
      makeConnectionID: { host.makeConnectionID() }, makeExchangeID: { host.makeExchangeID() },
      deliver: { host.submitAndWake($0) })
    var settings = SocketServerSettings()
    settings.bodyLimit = bodyLimit
    settings.messageLimit = messageLimit
    settings.access = access
    settings.patience = patience
    server = try SocketServer(address: address, port: port, service: service, settings: settings)
    self.host = host
    self.address = address
    self.port = server.port
    await host.attach(server)
    await host.setBaseURL("http://\(Self.authority(address, server.port))")
  }

  /// True for addresses that only this machine reaches.
  public static func isLoopback(_ address: String) -> Bool { address.hasPrefix("127.") || address == "::1" }

  /// Ends every connection and frees the port; returns when that is done.
  public func stop() async { await server.stop() }

  static func authority(_ address: String, _ port: UInt16) -> String {
    // A client can't connect to the address that stands for all of them.
    let reachable = address == "0.0.0.0" ? "127.0.0.1" : address == "::" ? "::1" : address
    return reachable.contains(":") ? "[\(reachable)]:\(port)" : "\(reachable):\(port)"
  }
}

/// A loop on its thread.
final class SocketServer: Sendable {
  let port: UInt16
  private let mailbox: SocketMailbox
  private let stopped = OneShot<Void>()

  init(
    address: String, port: UInt16, service: SocketService, settings: SocketServerSettings
  ) throws(EmulatorServerError) {
    let mailbox: SocketMailbox
    let bound: (descriptor: Int32, port: UInt16)
    do throws(SystemSocket.Failure) {
      bound = try SystemSocket.listen(address: address, port: port)
      mailbox = try SocketMailbox()
    } catch {
      throw Self.explain(error, address, port)
    }
    self.mailbox = mailbox
    self.port = bound.port
    var settings = settings
    settings.authority = EmulatorServer.authority(address, bound.port)
    let stopped = self.stopped
    let thread = Thread { [settings] in
      // The loop lives on this thread alone.
      SocketLoop(
        listener: bound.descriptor, address: address, port: bound.port, mailbox: mailbox, service: service,
        settings: settings, onStop: { stopped.fulfil(()) }
      ).run()
    }
    thread.name = "emulator \(bound.port)"
    thread.start()
  }

  deinit { mailbox.post(.stop) }

  func setAccepting(_ accepts: Bool) { mailbox.post(.accepting(accepts)) }

  func stop() async {
    mailbox.post(.stop)
    await stopped.wait(cancelled: ())
  }

  private static func explain(
    _ failure: SystemSocket.Failure, _ address: String, _ port: UInt16
  ) -> EmulatorServerError {
    switch failure.code {
    case EADDRINUSE: .portInUse(port)
    case EACCES: .portNotPermitted(port)
    case EADDRNOTAVAIL: .addressNotAvailable(address)
    default: .system("can't listen on \(address):\(port): \(failure.text)")
    }
  }
}
