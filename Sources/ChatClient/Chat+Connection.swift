import ChatCache
import UnifiedChat

extension Chat {
  /// Opens the cache of `user`, then the session. What is cached can be read from the first moment, also when the
  /// connect fails; what was not sent yet goes out once the session is open.
  /// - Throws: what the adapter throws; `.storage` when the cache cannot be opened; `.invalidArgument` for an empty
  ///   user id; `.conflict` while another user is connected.
  public func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User {
    guard !user.rawValue.isEmpty else {
      throw ChatError(.invalidArgument(field: "user"), operation: .connect, detail: "a user id is needed")
    }
    guard !isActive || self.user == user else {
      throw ChatError(.conflict, operation: .connect, detail: "connected as another user; disconnect first")
    }
    try open(for: user)
    let session = session
    isActive = true
    isSilent = false
    startPump()
    // Another one after a `disconnect`, also of the same user.
    let pumpNumber = pumpNumber
    do throws(ChatError) {
      await continueChanges()
      let own = try await adapter.connect(as: user, credential: credential)
      let clears = await adapter.capabilities.has(.unreadSendClears)
      guard isActive, self.session == session, self.pumpNumber == pumpNumber else {
        throw ChatError.cancelled(.connect)
      }
      sendClears = clears
      if !isOnline { wentOnline() }
      startSync()
      return own
    } catch {
      let isOver = self.session != session || self.pumpNumber != pumpNumber
      // Ended while it was on its way: no link is left behind that nobody asked for.
      if isOver, !isActive { await adapter.disconnect() }
      if case .connected = await adapter.state { throw error }
      if self.session == session, self.pumpNumber == pumpNumber { isActive = false }
      throw error
    }
  }

  /// Opens the cache of `user` without connecting: reading and enqueuing work, nothing is sent before `connect`.
  public func open(for user: UserID) throws(ChatError) {
    if self.user == user, cache != nil { return }
    guard !isActive else {
      throw ChatError(.conflict, operation: .cache, detail: "connected as another user; disconnect first")
    }
    cache?.close()
    cache = nil
    let identity = CacheIdentity(vendor: vendor, app: options.app, user: user)
    let opened = try LocalCache(identity, at: options.cacheLocation)
    // Whatever was live when the last process ended is not so now.
    let gaps = try opened.write { session throws(ChatError) in try session.openGaps() }
    session += 1
    forgetSession()
    behind = gaps
    cache = opened
    self.user = user
    if let recovery = opened.recovery {
      log(.error, "cache was damaged and rebuilt; old file: \(recovery.quarantined), saved: \(recovery.savedMessages)")
    }
  }

  /// Ends what is under way for the user before, and forgets what is in memory of them. After a failed connect events
  /// may come still.
  private func forgetSession() {
    stopPump()
    endTasks()
    endWaiting()
    isOnline = false
    sendClears = false
    held = [:]
    lastAnnounced = [:]
    lastCounted = [:]
    unannounced = [:]
    toldUnstored = [:]
    joinedMeanwhile = []
    behind = [:]
    unstored = [:]
    isLossDue = false
    hasLostChanges = false
    followed = []
    unsettled = []
    uploadProgress = [:]
    acknowledged = [:]
    isPurgeDue = false
  }

  /// Ends the session; works without the server. The outbox keeps what was not sent. Reading from the cache still
  /// works. Calls that wait for a send end with `.cancelled`, and the message stays in the outbox.
  public func disconnect() async {
    let session = session
    await adapter.disconnect()
    // There was nobody, and meanwhile somebody came in: theirs is another session.
    guard self.session == session else { return }
    releaseHeld()
    publishState(.disconnected(.requested))
    isSilent = true
    isActive = false
    isOnline = false
    hasLostChanges = false
    epoch += 1
    stopPump()
    endTasks()
    noteMissed(in: nil)
    trimCache()
    endWaiting()
  }

  private func stopPump() {
    pump?.cancel()
    pump = nil
    pumpNumber += 1
  }

  private func endWaiting() {
    for waiting in waiters.values {
      for waiter in waiting.values { waiter.resume(returning: .failure(.cancelled(.send))) }
    }
    waiters = [:]
  }

  private func endTasks() {
    sync?.cancel()
    sync = nil
    syncWanted = false
    for task in workers.values { task.cancel() }
    workers = [:]
    for upload in uploads.values { upload.cancel() }
    uploads = [:]
    outboxWatch?.cancel()
    outboxWatch = nil
    cache?.leaveOutbox()
    for task in refreshes.values { task.cancel() }
    refreshes = [:]
    for task in typing.values { task.cancel() }
    typing = [:]
    typingTold = [:]
  }

  /// Removes everything of the last user from this device. Disconnects first; works offline.
  /// - Throws: `.storage` when files cannot be removed; `.conflict` when the same user has come back meanwhile, after
  ///   another one: then nothing is removed.
  public func clearCachedData() async throws(ChatError) {
    guard let user else { return }
    let session = session
    await disconnect()
    if self.session == session {
      cache?.close()
      cache = nil
      self.session += 1
      forgetSession()
      self.user = nil
    } else if self.user == user {
      throw ChatError(.conflict, operation: .cache, detail: "connected again meanwhile")
    }
    // Where somebody else came in meanwhile, what is open now is theirs, and these files lie closed.
    try LocalCache.erase(CacheIdentity(vendor: vendor, app: options.app, user: user), at: options.cacheLocation)
  }

  public func suspend() async {
    await adapter.suspend()
    trimCache()
  }
  public func resume() async { await adapter.resume() }

  public func registerPush(token: String) async throws(ChatError) {
    try await require(.pushRegister, .registerPush)
    try await ask(await adapter.registerPush(token: token))
  }

  public func unregisterPush(token: String) async throws(ChatError) {
    try await require(.pushRegister, .registerPush)
    try await ask(await adapter.unregisterPush(token: token))
  }

  public func users(_ ids: [UserID]) async throws(ChatError) -> [User] {
    ids.isEmpty ? [] : try await ask(await adapter.users(ids))
  }

  public func updateProfile(name: String?, avatarURL: String?, customData: JSONText?) async throws(ChatError) -> User {
    try await ask(await adapter.updateProfile(name: name, avatarURL: avatarURL, customData: customData))
  }

  public func presence(of users: [UserID]) async throws(ChatError) -> [UserID: Presence] {
    try await require(.presenceQuery, .presence)
    return try await ask(await adapter.presence(of: users))
  }

  public func subscribePresence(of users: [UserID]) async throws(ChatError) {
    try await require(.presenceSubscribe, .presence)
    try await ask(await adapter.subscribePresence(of: users))
  }

  public func unsubscribePresence(of users: [UserID]) async throws(ChatError) {
    try await require(.presenceSubscribe, .presence)
    try await ask(await adapter.unsubscribePresence(of: users))
  }

  public func block(_ user: UserID) async throws(ChatError) {
    try await require(.userBlock, .block)
    try await ask(await adapter.block(user))
  }

  public func unblock(_ user: UserID) async throws(ChatError) {
    try await require(.userBlock, .block)
    try await ask(await adapter.unblock(user))
  }

  /// Refuses what the connected server cannot do, before any byte leaves.
  func require(_ capability: Capability, _ operation: ChatError.Operation) async throws(ChatError) {
    try await ownCapabilities().require(capability, for: operation)
  }

  // MARK: The link

  private func startPump() {
    guard pump == nil else { return }
    // Opened before the task starts, so that no event in between is lost.
    let stream = adapter.events()
    pump = Task { [weak self, pumpNumber] in
      for await event in stream {
        guard !Task.isCancelled, let self else { return }
        await self.receive(event, pumpNumber)
      }
    }
  }

  func connectionChanged(to next: ConnectionState) {
    if next == .connected {
      if !isOnline { wentOnline() }
    } else if isOnline, next != .connecting {
      // A link that connects was not lost: by the time its events are read it may stand already.
      isOnline = false
      epoch += 1
      noteMissed(in: nil)
    }
    publishState(next)
  }

  func wentOnline() {
    isOnline = true
    kickOutbox()
  }

  func publishState(_ next: ConnectionState) {
    guard next != publishedState else { return }
    publishedState = next
    publish(.connectionChanged(next), .local)
  }

  /// Keeps the cache under its limit, and erases what could not be erased before; done where nobody waits: when the
  /// session ends or sleeps.
  private func trimCache() {
    guard let cache else { return }
    if isPurgeDue { purge() }
    do throws(ChatError) {
      if let limit = options.cacheLimit { try cache.trim(to: limit) }
      // The app may be ended now: the file alone is then whole.
      try cache.purge(index: false)
    } catch {
      log(.error, "\(error)")
    }
  }

  /// Leaves nothing of a recalled, hidden or cleared message on the disk. For a large index that takes too long to do
  /// at once; then its terms stay until SQLite joins the parts of the index.
  func purgeErased() { if cache?.takeErased() == true { purge() } }

  private func purge() {
    guard let cache else { return }
    do throws(ChatError) {
      isPurgeDue = try !cache.purge(index: cache.size < 32 << 20)
    } catch {
      isPurgeDue = true
      log(.error, "\(error)")
    }
  }
}
