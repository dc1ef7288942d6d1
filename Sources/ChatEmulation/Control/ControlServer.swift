import ChatCrypto
import ChatJSON
import ChatTransport
import Synchronization

/// The control interface over HTTP, on its own port of 127.0.0.1 and never on the vendor's.
///
/// Every call but the dashboard page carries `Authorization: Bearer <token>`. Bodies and answers are JSON; an error is
/// `{"error": {"kind", "message"}}` with status 400, 401, 404, 409 (no such hook) or 422 (the emulator refuses).
public final class ControlServer: Sendable {
  public let port: UInt16
  /// Made anew at each start.
  public let token: String
  public var baseURL: String { "http://127.0.0.1:\(port)" }

  private let server: SocketServer

  public init(_ control: EmulatorControl, port: UInt16 = 0) throws(EmulatorServerError) {
    let token = Hex.encode(SecureBytes.random(24))
    self.token = token
    let lastID = Mutex<UInt64>(0)
    let nextID: @Sendable () -> UInt64 = {
      lastID.withLock {
        $0 &+= 1
        return $0
      }
    }
    let service = SocketService(
      makeConnectionID: { EmulatorConnectionID(nextID()) }, makeExchangeID: { EmulatorExchangeID(nextID()) },
      deliver: { work in for item in work { Self.serve(item, ControlRouter(control: control), token) } })
    var settings = SocketServerSettings()
    settings.bodyLimit = 1 << 30
    server = try SocketServer(address: "127.0.0.1", port: port, service: service, settings: settings)
    self.port = server.port
  }

  public func stop() async { await server.stop() }

  private static func serve(_ work: HostWork, _ router: ControlRouter, _ token: String) {
    switch work {
    case .open(_, _, let link): link.reject(HTTPResponse(status: 404))
    case .http(_, let request, let reply):
      if request.method == "GET", ControlRouter.path(of: request.url) == "/" {
        return reply.respond(HTTPResponse(status: 200, headers: Dashboard.headers, body: Dashboard.page))
      }
      guard isAllowed(request, token) else {
        return reply.respond(ControlRouter.failure(401, "unauthorized", "the token of this run is needed: Authorization: Bearer …"))
      }
      // Calls may wait, so each has its own task; the connection keeps their answers in order.
      Task { reply.respond(await router.answer(request)) }
    default: break
    }
  }

  private static func isAllowed(_ request: HTTPRequest, _ token: String) -> Bool {
    SecureBytes.areEqual(Array((request.headers["authorization"] ?? "").utf8), Array("Bearer \(token)".utf8))
  }
}
