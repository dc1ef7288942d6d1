import Synchronization
import UnifiedChat

/// What was done when a damaged file was found on opening.
public struct CacheRecovery: Sendable, Hashable {
  /// Where the damaged file lies now.
  public var quarantined: String
  /// Unsent messages that could be read from it and go on in the new one.
  public var savedMessages: Int
}

/// Everything that one user of one app at one vendor has seen, and what they have not sent yet, in one SQLite file.
///
/// Calls block for as long as the disk takes and may come from any thread; each `read` and each `write` is one
/// transaction and sees no half of another one. Another process may use the same file: being locked out is waited
/// for (up to a minute) and not shown to the caller.
public final class LocalCache: Sendable {
  public let identity: CacheIdentity
  /// nil for a cache in memory.
  public let path: String?
  public let recovery: CacheRecovery?
  private let database: Mutex<Database?>
  /// nil in memory, where nobody else is.
  private let outboxLock: OutboxLock?

  /// Opens or makes the cache, brings it to the present schema and checks it.
  ///
  /// A damaged file is set aside, never deleted; what can be read of the outbox goes into the new file.
  /// - Throws: `.storage` with the reason: `.newerVersion` leaves the file as it is.
  public init(_ identity: CacheIdentity, at location: CacheLocation) throws(ChatError) {
    self.identity = identity
    switch location {
    case .memory:
      path = nil
      recovery = nil
      outboxLock = nil
      database = Mutex(try CacheOpening.fresh(path: ":memory:", identity: identity))
    case .directory(let directory):
      let file = CacheFile(identity: identity, directory: directory)
      let opened = try CacheOpening.open(file, identity: identity)
      path = file.path
      recovery = opened.recovery
      outboxLock = OutboxLock(path: file.path + "-lock")
      database = Mutex(opened.database)
    }
  }

  /// As `init(_:at:)` of a folder; `observer` is called after each statement of an upgrade. For tests of what a kill, a
  /// full disk or a step outside of the transaction leaves in the middle.
  /// - Parameter observer: gets a way to run further SQL on the same connection, which is not observed.
  package init(
    _ identity: CacheIdentity, directory: String,
    afterEachStatement observer: @escaping (_ run: (String) throws(ChatError) -> Void) -> Void
  ) throws(ChatError) {
    self.identity = identity
    let file = CacheFile(identity: identity, directory: directory)
    let opened = try CacheOpening.open(file, identity: identity, observer: observer)
    path = file.path
    recovery = opened.recovery
    outboxLock = OutboxLock(path: file.path + "-lock")
    database = Mutex(opened.database)
  }

  /// One transaction that changes nothing.
  public func read<Value: Sendable>(
    _ body: (CacheSession) throws(ChatError) -> Value
  ) throws(ChatError) -> Value {
    try database.withLock { (database) throws(ChatError) -> Value in
      let database = try Self.opened(database)
      return try database.reading { () throws(ChatError) in try body(CacheSession(database: database, user: identity.user)) }
    }
  }

  /// One transaction; when `body` throws, nothing of it remains.
  public func write<Value: Sendable>(
    _ body: (CacheSession) throws(ChatError) -> Value
  ) throws(ChatError) -> Value {
    try database.withLock { (database) throws(ChatError) -> Value in
      let database = try Self.opened(database)
      return try database.transaction { () throws(ChatError) in try body(CacheSession(database: database, user: identity.user)) }
    }
  }

  /// Takes the right to send what waits in the outbox: one process at a time has it, and a second one that sent the
  /// same rows would double them.
  /// - Returns: false while another process has it.
  public func takeOutbox() -> Bool { outboxLock?.tryLock() ?? true }

  /// Gives the right back; also done by the end of the process, however it comes.
  public func leaveOutbox() { outboxLock?.unlock() }

  /// Writes out what is in the log and closes the file. Later calls throw `.storage(.other)`.
  public func close() {
    leaveOutbox()
    database.withLock { database in
      if let open = database { CacheOpening.sayGoodbye(open) }
      database = nil
    }
  }

  /// Whether there is a file of `identity`.
  public static func exists(_ identity: CacheIdentity, at location: CacheLocation) -> Bool {
    guard case .directory(let directory) = location else { return false }
    return CacheFile(identity: identity, directory: directory).exists
  }

  /// Removes everything of `identity` from the disk, damaged files included. The cache must be closed.
  public static func erase(_ identity: CacheIdentity, at location: CacheLocation) throws(ChatError) {
    guard case .directory(let directory) = location else { return }
    try CacheFile(identity: identity, directory: directory).erase()
  }

  private static func opened(_ database: Database?) throws(ChatError) -> Database {
    guard let database else {
      throw ChatError(.storage(.other), operation: .cache, detail: "the cache is closed; connect again")
    }
    return database
  }
}

/// The cache inside one transaction. Valid during the call that hands it out.
public struct CacheSession {
  let database: Database
  let user: UserID

  /// Whose cache it is.
  public var owner: UserID { user }
}

extension LocalCache {
  /// Whether anything was recalled, hidden, cleared or removed since the last call: its words are on the disk still, until
  /// a `purge`.
  public func takeErased() -> Bool {
    database.withLock { database in
      defer { database?.hasErased = false }
      return database?.hasErased ?? false
    }
  }

  /// Makes sure that nothing of erased messages is left on the disk: neither in free pages nor in the log nor, unless
  /// the index is left out, in the search index, which keeps the terms of removed messages until its parts are joined;
  /// that takes time with the size of the index.
  /// - Returns: false when somebody reads the file just now, so that the log still has the old pages.
  @discardableResult
  public func purge(index: Bool = true) throws(ChatError) -> Bool {
    try database.withLock { (database) throws(ChatError) in
      let database = try Self.opened(database)
      if index { try database.run("INSERT INTO search (search) VALUES ('optimize')") }
      return try database.emptyLog()
    }
  }

  /// "ok", or the first damage that SQLite finds.
  public func integrity() throws(ChatError) -> String {
    try database.withLock { (database) throws(ChatError) in
      try Self.opened(database).first("PRAGMA integrity_check(1)") { row throws(ChatError) in row.text(0) } ?? "no answer"
    }
  }

  /// Bytes of the file and its log; 0 in memory.
  public var size: Int64 {
    guard let path else { return 0 }
    return CacheFile.suffixes.reduce(0) { $0 + CacheFile(path: path + $1).size }
  }

  /// Brings the file under `limit` bytes: the oldest messages go first, half of a channel at a time, the channel that
  /// was quiet longest before the others. What was removed becomes a gap that the server fills when somebody reads
  /// there. Messages that nobody else has stay, those to be sent and those of this device alone, and channels themselves.
  public func trim(to limit: Int64) throws(ChatError) {
    var rounds = 0
    while size > limit {
      let removed = try write { session throws(ChatError) in try session.evictOldest() }
      rounds += 1
      try database.withLock { (database) throws(ChatError) in
        let database = try Self.opened(database)
        // The index gives the room of removed messages back when its parts are joined: that takes its time.
        if removed == 0 || rounds % 4 == 0 { try database.run("INSERT INTO search (search) VALUES ('optimize')") }
        // A file of version 1 gives no pages back by pieces until it was written anew once.
        let isIncremental = try database.first("PRAGMA auto_vacuum") { row throws(ChatError) in row.int(0) } == 2
        try database.query(isIncremental ? "PRAGMA incremental_vacuum" : "VACUUM") { _ throws(ChatError) in }
        try database.emptyLog()
      }
      if removed == 0 { return }
    }
  }
}

// For tests, also those that a program runs: what happens to the disk under a cache.
extension LocalCache {
  /// Lets SQLite answer what `answer` says to the beginnings and ends of transactions.
  package func inject(_ answer: (@Sendable (_ sql: String) -> Int32?)?) {
    database.withLock { $0?.injected = answer }
  }

  /// Limits the file, as a full disk would: it grows no further than this, and never shrinks for it.
  package func limitPages(to count: Int) throws(ChatError) {
    try database.withLock { (database) throws(ChatError) in
      try Self.opened(database).query("PRAGMA max_page_count = \(count)") { _ throws(ChatError) in }
    }
  }

  /// Where the file of `identity` lies in a folder.
  package static func path(of identity: CacheIdentity, in directory: String) -> String {
    CacheFile(identity: identity, directory: directory).path
  }

  /// Runs SQL on a closed file, which stays of the version that it is.
  package static func run(_ sql: String, onFile path: String) throws(ChatError) {
    try Database(path: path, mode: .create).execute(sql)
  }

  /// The version that a file is brought to.
  package static var schemaVersion: Int { Int(CacheMigrations.current) }
}
