import ChatTransport
import Synchronization

/// A WebSocket of a client on a socket.
final class SocketLink: EmulatorLink {
  let id: EmulatorConnectionID
  let writer: SocketWriter
  private let key: String
  private let head: HTTPRequestHead

  init(id: EmulatorConnectionID, writer: SocketWriter, key: String, head: HTTPRequestHead) {
    self.id = id
    self.writer = writer
    self.key = key
    self.head = head
  }

  func accept(subprotocol: String?) {
    writer.answer(HTTPResponseWriter.switching(key: key, subprotocol: subprotocol), upgrading: true, keepsAlive: true)
  }

  func reject(_ response: HTTPResponse) {
    writer.answer(
      HTTPResponseWriter.bytes(response, to: head, keepsAlive: false), upgrading: false, keepsAlive: false)
  }

  func send(_ message: WebSocketMessage) { writer.write(WebSocketFrame.bytes(message)) }

  /// In one packet, so that the client wakes up once.
  func send(_ messages: [WebSocketMessage]) { writer.write(messages.flatMap { WebSocketFrame.bytes($0) }) }

  func close(_ close: WebSocketClose) {
    writer.write(WebSocketFrame.bytes(close))
    writer.finish(.afterFlush)
  }

  func cut() { writer.finish(.reset) }

  func tookInput(_ bytes: Int) { writer.tookInput(bytes) }

  func write(_ bytes: [UInt8]) -> Bool {
    writer.write(bytes)
    return true
  }

  func halfClose() -> Bool {
    writer.halfClose()
    return true
  }
}

/// One HTTP exchange of a client on a socket.
final class SocketReply: EmulatorReply {
  private let writer: SocketWriter
  private let head: HTTPRequestHead

  init(writer: SocketWriter, head: HTTPRequestHead) {
    self.writer = writer
    self.head = head
  }

  func respond(_ response: HTTPResponse) {
    let keepsAlive = head.keepsAlive
    writer.answer(
      HTTPResponseWriter.bytes(response, to: head, keepsAlive: keepsAlive), upgrading: false, keepsAlive: keepsAlive)
  }

  func cut() { writer.finish(.reset) }
}

/// What a server is set to; the same for every connection.
struct SocketServerSettings: Sendable {
  /// Bytes of one request's body; a larger one is answered with 413.
  var bodyLimit = 256 << 20
  /// Bytes of one WebSocket message; a larger one closes with 1009.
  var messageLimit = 16 << 20
  var access = EmulatorAccess()
  /// How long the head of a request may take to arrive, its body may pause, and an answer may stay unread.
  var patience = Duration.seconds(60)
  /// The whole of one request may take that many times as long.
  var longestRequest = 20
  /// Open connections; the next ones wait in the system until one ends.
  var connectionLimit = 20_000
  /// Bytes of unfinished requests and messages, of all connections together; who goes over it is cut.
  var inputLimit = 1 << 30
  /// `127.0.0.1:7001`, for requests without a Host field.
  var authority = ""
}

/// Whom a server works for. Calls come from the loop's thread.
struct SocketService: Sendable {
  var makeConnectionID: @Sendable () -> EmulatorConnectionID
  var makeExchangeID: @Sendable () -> EmulatorExchangeID
  var deliver: @Sendable ([HostWork]) -> Void
}

/// One connection as the loop's thread sees it.
final class SocketPeer {
  private enum Mode {
    case http(HTTPRequestReader)
    case upgrading(SocketLink)
    case webSocket(WebSocketFrameReader, SocketLink)
    /// Our side has ended; what still comes is thrown away until the peer ends too, so that it reads our last words.
    case draining
  }

  let descriptor: Int32
  let writer: SocketWriter
  /// When this peer is closed at the latest, whatever it waits for.
  private(set) var deadline: ContinuousClock.Instant?
  /// When the request that is arriving began, and when its rest is due.
  private var arrival: (start: ContinuousClock.Instant, due: ContinuousClock.Instant)?
  /// When the client must have read something of what waits for it.
  private var unreadDue: ContinuousClock.Instant?
  /// The client has sent its last byte.
  private(set) var hasEnded = false

  private let settings: SocketServerSettings
  private var mode: Mode
  private var input = InputBuffer()

  init(descriptor: Int32, writer: SocketWriter, settings: SocketServerSettings) {
    self.descriptor = descriptor
    self.writer = writer
    self.settings = settings
    mode = .http(HTTPRequestReader(bodyLimit: settings.bodyLimit))
  }

  /// Answers that a client may leave unread and still be heard.
  private static let unreadLimit = 8 << 20

  /// False while so much unparsed input, unhandled input or unread output waits that the client must be slowed down.
  func wantsRead(unread: Int) -> Bool {
    !hasEnded && (input.count < 1 << 20 || !isWaiting) && unread < Self.unreadLimit
      && (isDraining || writer.mayTakeMore())
  }

  /// Bytes that wait for the rest of their request or message.
  var heldBytes: Int {
    switch mode {
    case .http(let reader): input.count + reader.heldBytes
    case .webSocket(let reader, _): input.count + reader.heldBytes
    default: input.count
    }
  }

  private var isWaiting: Bool {
    if case .upgrading = mode { return true }
    if case .http = mode { return !writer.mayParse() }
    return false
  }

  var isDraining: Bool { if case .draining = mode { true } else { false } }

  func received(_ bytes: UnsafeRawBufferPointer, _ service: SocketService, _ work: inout [HostWork]) {
    if isDraining { return }
    input.append(bytes)
    parse(service, &work)
  }

  /// The link to report as ended when the connection is lost.
  var openLink: SocketLink? {
    switch mode {
    case .upgrading(let link), .webSocket(_, let link): link
    default: nil
    }
  }

  func drain(until deadline: ContinuousClock.Instant) {
    mode = .draining
    input = InputBuffer()
    self.deadline = deadline
  }

  // MARK: Times

  /// The earliest of what is due; nil: this peer may stay as it is for ever.
  var due: ContinuousClock.Instant? { earlier(deadline, earlier(arrival?.due, unreadDue)) }

  private func earlier(_ one: ContinuousClock.Instant?, _ other: ContinuousClock.Instant?) -> ContinuousClock.Instant? {
    guard let one, let other else { return one ?? other }
    return min(one, other)
  }

  /// Notes that something arrived: a request that began must go on, and come to its end.
  func noteArrival(at now: ContinuousClock.Instant) {
    guard case .http(let reader) = mode, reader.isInside || !input.isEmpty, !isWaiting else { return arrival = nil }
    let start = arrival?.start ?? now
    guard reader.hasHead else { return arrival = (start, start + settings.patience) }
    arrival = (start, min(now + settings.patience, start + settings.patience * settings.longestRequest))
  }

  /// Notes whether something waits that the client does not read, and whether it has read since.
  func noteSending(waits: Bool, moved: Bool, at now: ContinuousClock.Instant) {
    if !waits { unreadDue = nil } else if moved || unreadDue == nil { unreadDue = now + settings.patience }
  }

  /// A request that did not come to its end is answered as such. False: the connection is to be cut.
  func refuseOverdue(at now: ContinuousClock.Instant) -> Bool {
    guard let arrival, arrival.due <= now, unreadDue.map({ $0 > now }) ?? true, deadline == nil else { return false }
    self.arrival = nil
    refuse(HTTPResponse(status: 408, body: Array("the request did not come to its end".utf8)), head: nil)
    return true
  }

  /// The client ends its half. True when an answer is still due to it, which is then waited for.
  func ended(deadline: ContinuousClock.Instant) -> Bool {
    guard case .http = mode, writer.awaitsAnswer() else { return false }
    hasEnded = true
    self.deadline = deadline
    return true
  }

  /// Reads on in what has arrived, as far as the state allows.
  func parse(_ service: SocketService, _ work: inout [HostWork]) {
    while !input.isEmpty {
      switch mode {
      case .draining: return
      case .http(var reader):
        guard writer.mayParse() else { return }
        // The old copy must not keep the body alive while the reader appends to it.
        mode = .draining
        let event = reader.next(&input)
        mode = .http(reader)
        guard let event else { return }
        handle(event, service, &work)
      case .upgrading(let link):
        guard writer.mayParse() else { return }
        if writer.isUpgraded {
          mode = .webSocket(WebSocketFrameReader(maxMessageSize: settings.messageLimit), link)
        } else {
          return
        }
      case .webSocket(var reader, let link):
        mode = .draining
        let event = reader.next(&input)
        mode = .webSocket(reader, link)
        guard let event else { return }
        handle(event, link, &work)
      }
    }
  }

  private func handle(_ event: HTTPRequestReader.Event, _ service: SocketService, _ work: inout [HostWork]) {
    switch event {
    case .expectsContinue: writer.write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
    case .failure(let status, let reason):
      refuse(HTTPResponse(status: status, body: Array(reason.utf8)), head: nil)
    case .request(let head, let body):
      if let reason = settings.access.refusal(of: head) {
        // Without `head`: nothing here is for a page of that origin.
        refuse(HTTPResponse(status: 403, body: Array(reason.utf8)), head: nil)
      } else if let preflight = HTTPResponseWriter.preflight(head) {
        writer.write(HTTPResponseWriter.bytes(preflight, to: head, keepsAlive: true))
      } else if head.isUpgrade {
        upgrade(head, service, &work)
      } else {
        writer.begin()
        let request = HTTPRequest(head.method, url(head, "http"), headers: head.headers, body: body)
        work.append(.http(service.makeExchangeID(), request, SocketReply(writer: writer, head: head)))
      }
    }
  }

  private func refuse(_ response: HTTPResponse, head: HTTPRequestHead?) {
    writer.write(HTTPResponseWriter.bytes(response, to: head, keepsAlive: false))
    writer.finish(.afterFlush)
    mode = .draining
  }

  private func upgrade(_ head: HTTPRequestHead, _ service: SocketService, _ work: inout [HostWork]) {
    guard head.headers["sec-websocket-version"] == "13" else {
      return refuse(HTTPResponse(status: 426, headers: ["Sec-WebSocket-Version": "13"]), head: head)
    }
    guard let key = head.headers["sec-websocket-key"], key.utf8.count == 24, key.hasSuffix("==") else {
      return refuse(HTTPResponse(status: 400, body: Array("Sec-WebSocket-Key is missing or wrong".utf8)), head: head)
    }
    let offered = head.headers.fields.filter { $0.name.lowercased() == "sec-websocket-protocol" }
      .flatMap { $0.value.split(separator: ",").map { String($0.trimmingSpaces) } }.filter { !$0.isEmpty }
    let request = WebSocketRequest(
      url(head, "ws"), headers: head.headers, subprotocols: offered, maxMessageSize: settings.messageLimit)
    let link = SocketLink(id: service.makeConnectionID(), writer: writer, key: key, head: head)
    writer.begin()
    mode = .upgrading(link)
    work.append(.open(link.id, request, link))
  }

  private func handle(_ event: WebSocketFrameReader.Event, _ link: SocketLink, _ work: inout [HostWork]) {
    switch event {
    case .message(let message):
      writer.handOver(message.costWhileWaiting)
      work.append(.message(link.id, message))
    case .ping(let payload):
      writer.handOver(WebSocketMessage.costOfPing)
      writer.write(WebSocketFrame.bytes(.pong, payload))
      work.append(.ping(link.id))
    case .close(let close), .violation(let close):
      writer.write(WebSocketFrame.bytes(close))
      writer.finish(.afterFlush)
      mode = .draining
      work.append(.closed(link.id, close))
    }
  }

  private func url(_ head: HTTPRequestHead, _ scheme: String) -> String {
    if head.target.contains("://"), !head.target.hasPrefix("/") { return head.target }
    return "\(scheme)://\(head.headers["host"] ?? settings.authority)\(head.target)"
  }
}
