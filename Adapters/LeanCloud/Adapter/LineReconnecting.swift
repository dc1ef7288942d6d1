import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

// How a link that ended or answers no ping is replaced.

extension LeanCloudLine {
  // MARK: Reconnecting

  func ended(_ close: WebSocketClose, on id: UInt64) async {
    guard id == socketID, socket != nil else { return }
    if let code = close.code, let reason = LeanCloudFault.refusal(code: Int(code)), state != .connecting {
      return await refuse(reason)
    }
    let wasConnected = state == .connected
    if let code = close.code, code >= 4000, !wasConnected {
      // During the login the code is the answer to it.
      let error = LeanCloudErrors.error(code: Int(code), reason: close.reason, operation: .connect)
      for (_, entry) in pending { entry.answer.fulfil(.failure(error)) }
    }
    dropSocket()
    if wasConnected { startReconnecting(isImmediate: false) }
  }

  func startReconnecting(isImmediate: Bool) {
    generation &+= 1
    let attempt = generation
    reconnecting?.cancel()
    move(to: .reconnecting(attempt: 1))
    reconnecting = Task { [weak self] in await self?.reconnect(attempt, isImmediate: isImmediate) }
  }

  func reconnect(_ attempt: UInt64, isImmediate: Bool) async {
    var tries = 1
    while attempt == generation {
      if !(tries == 1 && isImmediate) {
        do { try await clock.sleep(for: delay(before: tries)) } catch { return }
      }
      guard attempt == generation else { return }
      do {
        try await open(isReopen: true, attempt: attempt)
        return
      } catch {
        guard attempt == generation else { return }
        if let reason = Self.refusal(error), error.retry == .never { return await refuse(reason) }
        if let limit = settings.retry.maxAttempts, tries >= limit {
          generation &+= 1
          return move(to: .disconnected(.gaveUp))
        }
      }
      tries += 1
      move(to: .reconnecting(attempt: tries))
    }
  }

  /// Doubles with each try, and a random part of it, so that a restarted server is not met by all at once.
  func delay(before attempt: Int) -> Duration {
    let base = settings.retry.baseDelay.wholeMilliseconds
    let limit = settings.retry.maxDelay.wholeMilliseconds
    let doubled = base.multipliedReportingOverflow(by: 1 << min(attempt - 1, 20))
    let whole = doubled.overflow ? limit : min(doubled.partialValue, limit)
    return .milliseconds(max(1, jitter.next(upTo: whole)))
  }

  // MARK: Pings

  func startPinging() {
    pinger?.cancel()
    let interval = settings.pingInterval
    let limit = settings.pongLimit
    let clock = clock
    let id = socketID
    pinger = Task { [weak self] in
      while !Task.isCancelled {
        do { try await clock.sleep(for: interval) } catch { return }
        guard let sentAt = await self?.ping(id) else { return }
        do { try await clock.sleep(for: limit) } catch { return }
        guard await self?.isAlive(id, since: sentAt) == true else { return }
      }
    }
  }

  func ping(_ id: UInt64) async -> Timestamp? {
    guard id == socketID, let socket else { return nil }
    let now = clock.now
    if settings.subprotocol.format == .json {
      try? await socket.send(.text("{}"))
    } else {
      serial &+= 1
      var frame = LeanCloudFrame("echo")
      frame.serial = serial
      try? await write(frame)
    }
    return now
  }

  func isAlive(_ id: UInt64, since sentAt: Timestamp) async -> Bool {
    guard id == socketID, socket != nil else { return false }
    if lastInbound >= sentAt { return true }
    let dead = socket
    await ended(WebSocketClose(), on: id)
    await dead?.close(code: 1000, reason: "")
    return false
  }
}

/// Seeded where tests want it.
struct LeanCloudJitter: Sendable {
  private var state: UInt64?

  init(seed: UInt64?) { state = seed }

  mutating func next(upTo limit: Int64) -> Int64 {
    guard limit > 0 else { return 0 }
    guard let old = state else { return Int64.random(in: 0...limit) }
    // SplitMix64.
    let sum = old &+ 0x9E37_79B9_7F4A_7C15
    state = sum
    var z = sum
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    z ^= z >> 31
    return Int64(z % (UInt64(limit) + 1))
  }
}
