import ChatJSON
import ChatTransport
import OpenIMWire
import Synchronization
import UnifiedChat

/// One open socket of the gateway: pairs answers with requests, keeps the link alive, hands on what the server sends by
/// itself. It ends once and is not used again.
actor OpenIMLink {
  enum Push: Sendable {
    case message(conversation: String, OpenIMMessageData, isNotice: Bool, operationID: String)
    case presence(JSONValue)
    case kicked
    case ended(WebSocketClose)
  }

  /// In the order of arrival; the last one is `.ended` or `.kicked`.
  nonisolated let pushes: AsyncStream<Push>

  private let connection: any WebSocketConnection
  private let clock: any ChatClock
  private let user: String
  private let trace: OpenIMTrace
  private let timeout: Duration
  private let feed: AsyncStream<Push>.Continuation
  private let codec = OpenIMCodec(form: .json, isCompressed: false)
  private var waiting: [String: OpenIMWaiter<Result<JSONValue, ChatError>>] = [:]
  private var count: UInt64 = 0
  private var lastInput: Timestamp
  private var isEnded = false
  private var tasks: [Task<Void, Never>] = []

  /// What the gateway takes in one message; a longer one would end the link with 1009.
  static let maximumFrame = 51_200

  init(
    _ connection: any WebSocketConnection, user: String, clock: any ChatClock, trace: OpenIMTrace, timeout: Duration
  ) {
    self.connection = connection
    self.user = user
    self.clock = clock
    self.trace = trace
    self.timeout = timeout
    lastInput = clock.now
    (pushes, feed) = AsyncStream.makeStream(of: Push.self)
  }

  func start() {
    tasks = [
      Task { [weak self, connection] in
        while true {
          do {
            let message = try await connection.receive()
            guard let self else { return }
            await self.received(message)
          } catch {
            await self?.end(error as? WebSocketClose ?? WebSocketClose())
            return
          }
        }
      },
      Task { [weak self, clock] in
        while (try? await clock.sleep(for: .seconds(18))) != nil {
          guard let self, await self.checkAlive() else { return }
        }
      },
    ]
  }

  /// A text ping, since its answer can be seen, and six seconds for it. The server gives up a link after 30 s.
  private func checkAlive() async -> Bool {
    guard !isEnded else { return false }
    let asked = clock.now
    try? await connection.send(.text(#"{"type":"ping"}"#))
    guard (try? await clock.sleep(for: .seconds(6))) != nil else { return false }
    if lastInput < asked, !isEnded {
      await connection.close(code: 1000, reason: "no answer to a ping")
      end(WebSocketClose(reason: "no answer to a ping"))
    }
    return !isEnded
  }

  func close() async {
    end(WebSocketClose(code: 1000))
    await connection.close(code: 1000, reason: "")
  }

  private func end(_ close: WebSocketClose) {
    guard !isEnded else { return }
    isEnded = true
    for task in tasks { task.cancel() }
    let error = ChatError(.network(.closed), operation: .connect, detail: "the link ended")
    for waiter in waiting.values { waiter.fulfil(.failure(error)) }
    waiting = [:]
    feed.yield(.ended(close))
    feed.finish()
  }

  // MARK: Incoming

  private func received(_ message: WebSocketMessage) {
    lastInput = clock.now
    guard !isEnded, case .binary(let bytes) = message, let frame = try? codec.decodeResponse(bytes) else { return }
    if !frame.increment.isEmpty {
      waiting.removeValue(forKey: frame.increment)?.fulfil(Self.result(of: frame))
      return
    }
    switch OpenIMOperation(rawValue: frame.operation) {
    case .push: deliver(frame)
    case .presence:
      if let body = try? OpenIMBody.presenceTips.decode(frame.data) { feed.yield(.presence(body)) }
    case .kicked:
      feed.yield(.kicked)
    default: break
    }
  }

  private static func result(of frame: OpenIMResponseFrame) -> Result<JSONValue, ChatError> {
    guard frame.code == 0 else {
      let fault = OpenIMFault(code: frame.code, message: frame.message)
      return .failure(OpenIMErrorTable.error(fault, operation: .connect, requestID: frame.operationID))
    }
    guard let body = OpenIMOperation(rawValue: frame.operation)?.answer else { return .success([:]) }
    do { return .success(try body.decode(frame.data)) } catch {
      return .failure(ChatError(.protocolViolation, operation: .decode, detail: "an answer is no \(body.rawValue)"))
    }
  }

  private func deliver(_ frame: OpenIMResponseFrame) {
    guard let body = try? OpenIMBody.push.decode(frame.data) else { return }
    for (member, isNotice) in [("msgs", false), ("notificationMsgs", true)] {
      for entry in body[member]?.object ?? [:] {
        for json in entry.value["Msgs"]?.array ?? [] {
          feed.yield(
            .message(
              conversation: entry.key, OpenIMMessageData(json: json), isNotice: isNotice,
              operationID: frame.operationID))
        }
      }
    }
  }

  // MARK: Requests

  /// - Throws: the vendor's fault; `.timeout` after the configured time, `.network` when the link ends meanwhile (the
  ///   outcome is then unknown), `.tooLarge` before a byte leaves.
  func request(
    _ operation: OpenIMOperation, _ body: JSONValue, for purpose: ChatError.Operation
  ) async throws(ChatError) -> JSONValue {
    guard !isEnded else { throw ChatError(.network(.closed), operation: purpose, detail: "not connected") }
    count &+= 1
    let increment = "\(user)_\(count)"
    let frame = OpenIMRequestFrame(
      operation: operation.rawValue, sender: user, operationID: trace.next(), increment: increment,
      data: try Self.encode(operation, body, for: purpose))
    let bytes = codec.encode(frame)
    guard bytes.count <= Self.maximumFrame else {
      throw ChatError(.tooLarge(limit: Int64(Self.maximumFrame), unit: .bytes), operation: purpose)
    }
    let waiter = OpenIMWaiter<Result<JSONValue, ChatError>>()
    waiting[increment] = waiter
    do { try await connection.send(.binary(bytes)) } catch {
      waiting[increment] = nil
      throw ChatError(error, for: purpose)
    }
    let result = await waiter.value(
      within: timeout, clock, late: .failure(ChatError(.timeout, operation: purpose)),
      cancelled: .failure(.cancelled(purpose)))
    waiting[increment] = nil
    do { return try result.get() } catch {
      var error = error
      error.operation = purpose
      throw error
    }
  }

  private static func encode(
    _ operation: OpenIMOperation, _ body: JSONValue, for purpose: ChatError.Operation
  ) throws(ChatError) -> [UInt8] {
    do { return try operation.request?.encode(body) ?? [] } catch {
      throw ChatError(.invalidArgument(field: "request"), operation: purpose, detail: "\(error)")
    }
  }
}

/// One value that comes once.
final class OpenIMWaiter<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var continuation: CheckedContinuation<Value, Never>?
  }

  private let state = Mutex(State())

  /// Later ones are ignored.
  func fulfil(_ value: Value) {
    let continuation = state.withLock { state -> CheckedContinuation<Value, Never>? in
      guard state.value == nil else { return nil }
      state.value = value
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume(returning: value)
  }

  var current: Value? { state.withLock { $0.value } }

  /// For one caller.
  func value(within timeout: Duration, _ clock: any ChatClock, late: Value, cancelled: Value) async -> Value {
    if let current { return current }
    let alarm = clock.alarm(after: timeout) { self.fulfil(late) }
    defer { alarm.cancel() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready = state.withLock { state -> Value? in
          if let value = state.value { return value }
          state.continuation = continuation
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      fulfil(cancelled)
    }
  }
}
