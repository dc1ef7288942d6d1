import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// What happens when the link ends or the session key expires.

extension SendbirdAdapter {
  // MARK: Reconnect

  func linkEnded(_ mine: UInt64, _ link: UInt64) async {
    guard epoch == mine, linkNumber == link else { return }
    guard state == .connected else {
      dropLink()
      return
    }
    let socket = self.socket
    epoch &+= 1
    dropLink()
    startReconnecting()
    await socket?.close(code: 1000, reason: "")
  }

  func startReconnecting() {
    epoch &+= 1
    let mine = epoch
    move(to: .reconnecting(attempt: 1))
    reconnecting = Task { [weak self] in await self?.reconnect(mine) }
  }

  func reconnect(_ mine: UInt64) async {
    var attempt = 1
    while epoch == mine, !Task.isCancelled {
      if attempt > 1 {
        if let most = profile.retry.maxAttempts, attempt > most { return giveUp(mine) }
        move(to: .reconnecting(attempt: attempt))
        guard (try? await clock.sleep(for: delay(before: attempt))) != nil, epoch == mine else { return }
      }
      do throws(ChatError) {
        try await openLink(mine, resuming: sessionKey != nil)
        try await reenter(mine)
        guard epoch == mine else { return }
        reconnecting = nil
        publish(.missedEvents(in: nil), source: .catchUp)
        return move(to: .connected)
      } catch {
        guard epoch == mine else { return }
        let socket = self.socket
        dropLink()
        await socket?.close(code: 1000, reason: "")
        guard epoch == mine else { return }
        if await isFinal(error, mine) { return }
        attempt += 1
      }
    }
  }

  /// The part of each pause that this client waits, its own for every client: those who lost their links together do
  /// not come back together. From a half to the whole.
  static func pace(_ seed: UInt64?) -> Double {
    guard let seed else { return .random(in: 0.5...1) }
    let mixed = (seed ^ (seed >> 33)) &* 0xFF51_AFD7_ED55_8CCD
    return 0.5 + Double(mixed >> 11) / Double(1 << 54)
  }

  /// The first try is immediate; the second waits the base delay, each further one twice as long, all at this client's
  /// pace.
  func delay(before attempt: Int) -> Duration {
    var delay = profile.retry.baseDelay
    for _ in 2..<max(2, min(attempt, 40)) where delay < profile.retry.maxDelay { delay = delay * 2 }
    return .milliseconds(Int64(Double(min(delay, profile.retry.maxDelay).wholeMilliseconds) * pace))
  }

  func giveUp(_ mine: UInt64) {
    guard epoch == mine else { return }
    epoch &+= 1
    dropLink()
    move(to: .disconnected(.gaveUp))
    forgetSession()
  }

  /// What a refused reconnect means: a session that can be renewed is tried again by token, the rest is the end.
  func isFinal(_ error: ChatError, _ mine: UInt64) async -> Bool {
    switch error.vendor?.code {
    case "400303", "400309":
      // The key is gone: the next try logs in with the token. Without a fresh key the same answer would come again.
      let hadKey = sessionKey != nil
      sessionKey = nil
      if hadKey { return false }
    case "400302":
      sessionKey = nil
      if environment.credentials != nil, await askProvider() { return epoch != mine }
    default: break
    }
    guard epoch == mine else { return true }
    guard let reason = Self.refusal(error) else { return false }
    end(error.vendor?.code == "400302" ? .credentialExpired : reason)
    return true
  }

  /// Open channels that were entered are entered again before the connection counts as one.
  func reenter(_ mine: UInt64) async throws(ChatError) {
    for channel in entered.sorted() {
      let id = newRequestID()
      do {
        _ = try await ask("ENTR", ["channel_url": .string(channel.rawValue)], id: id, .join, duringLogin: true)
      } catch {
        guard epoch == mine, error.vendor != nil else { throw error }
        // Deleted meanwhile, or banned from it.
        entered.remove(channel)
        publish(.channelLeft(channel, .unknown), source: .catchUp)
      }
    }
  }

  // MARK: Renewal

  /// One renewal at a time; whoever needs it waits for the same one.
  func renew(_ code: Int64) async -> Bool {
    if let renewal { return await renewal.value }
    let task = Task { await self.performRenewal(code) }
    renewal = task
    let isGood = await task.value
    if renewal == task { renewal = nil }
    return isGood
  }

  func performRenewal(_ code: Int64) async -> Bool {
    guard user != nil else { return false }
    if code == 400310 || code == 400300 {
      end(code == 400300 ? .userDisabled : .kickedByAdmin)
      return false
    }
    if code == 400309, token != nil, await refreshKey() { return true }
    // One that was cancelled belongs to a session that is over, whoever is logged in now.
    guard await askProvider() else {
      if user != nil, !Task.isCancelled { end(.credentialExpired) }
      return false
    }
    if await refreshKey() { return true }
    if user != nil, !Task.isCancelled { end(.credentialExpired) }
    return false
  }

  /// How long an app's token server may take.
  static let providerLimit: Duration = .seconds(30)

  /// Asks the app for a new token. False when there is nobody to ask, or nothing came in time.
  func askProvider() async -> Bool {
    guard let provider = environment.credentials, let user else { return false }
    publish(.credentialRequested, source: .local)
    let answer = try? await provider.credential(for: user, within: Self.providerLimit, on: clock)
    guard case .token(let fresh)? = answer, self.user == user else { return false }
    token = fresh
    publish(.credentialRenewed, source: .local)
    return true
  }

  /// A new session key for the token: by the socket where it is open, else by REST.
  func refreshKey() async -> Bool {
    guard let token, let user else { return false }
    if socket != nil {
      let id = Self.renewalPrefix + newRequestID()
      let payload: JSONObject = ["token": .string(token), "expiring_session": 1]
      if let frame = try? await ask("LOGI", payload, id: id, .renewCredential, duringLogin: true) {
        guard self.user == user, !Task.isCancelled else { return false }
        sessionKey = frame.payload.text("new_key") ?? frame.payload.text("key") ?? sessionKey
        return true
      }
    }
    let path = ["users", user.rawValue, "session_key"]
    let answer = try? await rest.call(
      "POST", path, body: ["expiring_session": true], as: .accessToken(token), operation: .renewCredential)
    guard let key = answer?.text("key"), self.user == user, !Task.isCancelled else { return false }
    sessionKey = key
    return true
  }
}
