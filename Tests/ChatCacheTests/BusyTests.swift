import Foundation
import Synchronization
import Testing
import UnifiedChat

@testable import ChatCache

/// SQLITE_BUSY and SQLITE_READONLY.
private let (busy, readOnlyCode): (Int32, Int32) = (5, 8)

@Suite("A file that others hold", .timeLimit(.minutes(1)))
struct BusyTests {
  @Test("busy answers in a row are waited out, wherever they come, and never reach the caller", arguments: 1...5)
  func injected(_ row: Int) throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    let asked = Mutex(0)
    cache.inject { _ in
      // Of `row` + 1 questions only the last is let through.
      asked.withLock { asked in
        asked += 1
        return asked % (row + 1) == 0 ? nil : busy
      }
    }
    for number in 1...100 as ClosedRange<Int64> {
      try cache.write { session throws(ChatError) in _ = try session.merge(text("\(number)", number)) }
      if number % 10 == 0 { #expect(try cache.texts().count == Int(number)) }
    }
    #expect(asked.withLock { $0 } > 200 * row)
    cache.inject(nil)
    #expect(try cache.texts() == (1...100).map { "\($0)" })
    #expect(try cache.integrity() == "ok")
  }

  @Test("one that stays busy is one clear error, and nothing of the change remains")
  func stays() throws {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in _ = try session.merge(text("before", 1)) }
    for sql in ["BEGIN IMMEDIATE", "COMMIT"] {
      cache.inject { $0 == sql ? busy : nil }
      let error = #expect(throws: ChatError.self) {
        try cache.write { session throws(ChatError) in _ = try session.merge(text("lost", 2)) }
      }
      #expect(error?.kind == .storage(.busy))
      cache.inject(nil)
      #expect(try cache.texts() == ["before"])
    }
    try cache.write { session throws(ChatError) in _ = try session.merge(text("after", 3)) }
    #expect(try cache.texts() == ["before", "after"])
  }

  @Test("another connection that takes the lock again and again delays, and refuses nobody")
  func lockTaken() async throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    let path = try #require(cache.path)
    let isOver = Atomic(false)
    let holds = Atomic(0)
    let holder = Task.detached {
      let other = try Database(path: path, mode: .create)
      while !isOver.load(ordering: .relaxed) {
        _ = try other.transaction { () throws(ChatError) in
          try other.run("INSERT OR REPLACE INTO cursors VALUES ('held', '', ?)", [.int(1)])
        }
        holds.add(1, ordering: .relaxed)
      }
    }
    while holds.load(ordering: .relaxed) == 0 { await Task.yield() }
    var number: Int64 = 0
    while number < 60 || holds.load(ordering: .relaxed) < 5 {
      number += 1
      try cache.write { session throws(ChatError) in _ = try session.merge(text("\(number)", number)) }
    }
    isOver.store(true, ordering: .relaxed)
    try await holder.value
    #expect(try cache.texts().count == Int(number))
  }

  @Test("a read sees one moment of the file, with all its statements")
  func oneMoment() throws {
    let folder = Folder()
    let reader = try makeCache(folder.location), writer = try makeCache(folder.location)
    try writer.write { session throws(ChatError) in _ = try session.merge(text("first", 1)) }
    let (before, after) = try reader.read { session throws(ChatError) in
      let before = try session.count(in: "c")
      // Another process, between two statements.
      try writer.write { session throws(ChatError) in _ = try session.merge(text("second", 2)) }
      return (before, try session.count(in: "c"))
    }
    #expect(before == 1 && after == 1)
    #expect(try reader.texts() == ["first", "second"])
  }

  @Test("a file that may only be read is one clear error, and keeps what is unsent")
  func readOnly() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in
      _ = try session.merge(text("kept", 1))
      _ = try session.enqueue(
        OutboxEntry(localID: "l", channel: "c", clientMessageID: "k", draft: .text("unsent"), createdAt: Timestamp(milliseconds: 1)))
    }
    // What SQLite says of a file system that was mounted again for reading only.
    cache.inject { $0 == "BEGIN IMMEDIATE" ? readOnlyCode : nil }
    let error = #expect(throws: ChatError.self) {
      try cache.write { session throws(ChatError) in _ = try session.merge(text("new", 2)) }
    }
    #expect(error?.kind == .storage(.denied) && error?.detail.contains("make the folder writable") == true)
    #expect(try cache.texts() == ["kept"])
    #expect(try cache.read { session throws(ChatError) in try session.waitingMessages(in: "c") }.map(\.content) == [.text("unsent")])
    cache.inject(nil)
    try cache.write { session throws(ChatError) in _ = try session.merge(text("new", 2)) }
    #expect(try cache.texts() == ["kept", "new"])
  }
}
