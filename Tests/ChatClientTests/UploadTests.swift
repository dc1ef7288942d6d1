import ChatCache
import Foundation
import Synchronization
import Testing
import UnifiedChat

@testable import ChatClient

@Suite("Files on their way", .serialized, .timeLimit(.minutes(1)))
struct UploadTests {
  private final class Folder {
    let path = FileManager.default.temporaryDirectory.appending(path: "upload-\(UUID())").path
    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  private static func file(_ name: String, _ bytes: [UInt8] = [1, 2, 3]) -> MessageDraft {
    MessageDraft(.file(Attachment(name: name, source: .bytes(bytes))))
  }

  private func uploads(_ adapter: ScriptedAdapter) async -> [String] {
    await adapter.journal.filter { $0.hasPrefix("upload") }
  }

  @Test("a file goes up again after a kill in the middle, and not after a kill behind it; the message goes once", arguments: [true, false])
  func killed(_ isUp: Bool) async throws {
    let folder = Folder()
    let adapter = ScriptedAdapter(emulated: [.messageIdempotentSend])
    let options = ChatOptions(cacheLocation: .directory(folder.path))
    let bench = try await Bench(adapter, options: options)
    if isUp { await adapter.script([.hold]) } else { await adapter.holdUploads(true) }
    try await bench.chat.enqueue(Self.file("a.txt"), to: "c")
    try await until { await adapter.isHolding }
    // The same end for the file as a kill: what is stored now is all that is known later.
    await bench.chat.disconnect()
    await adapter.holdUploads(false)
    await adapter.clearJournal()
    let next = try await Bench(adapter, options: options)
    try await until { try await next.chat.unsentCount() == 0 }
    #expect(await adapter.messages["c"]?.map(\.content.attachment?.url) == ["https://files/a.txt"])
    #expect(await uploads(adapter) == [])
    #expect(await adapter.uploaded == (isUp ? ["a.txt"] : ["a.txt", "a.txt"]))
  }

  @Test("cancelling ends the upload, and nothing of it arrives; what stands behind it goes on")
  func cancelled() async throws {
    let bench = try await Bench()
    await bench.adapter.holdUploads(true)
    let waiting = try await bench.chat.enqueue(Self.file("large.bin"), to: "c")
    try await bench.chat.enqueue(.text("behind"), to: "c")
    try await until { await bench.adapter.isHolding }
    #expect(try await bench.chat.cancel(try #require(waiting.localID)))
    try await until { await bench.texts() == ["behind"] }
    try await until { await bench.heard.lines.contains("cancelled large.bin") }
    #expect(await bench.heard.lines.filter { $0.hasPrefix("cancelled") } == ["cancelled large.bin"])
  }

  @Test("an edit while a file is on its way up sends what it says now", arguments: [Self.file("new.txt", [9]), .text("only words")])
  func editedOnTheWay(_ draft: MessageDraft) async throws {
    let bench = try await Bench()
    await bench.adapter.holdUploads(true)
    let waiting = try await bench.chat.enqueue(Self.file("old.txt"), to: "c")
    try await until { await bench.adapter.isHolding }
    _ = try await bench.chat.edit(waiting, to: draft)
    await bench.adapter.holdUploads(false)
    try await bench.run { try await until { try await bench.chat.unsentCount() == 0 } }
    let sent = await bench.adapter.messages["c"] ?? []
    #expect(sent.map(\.content.kindName) == [draft.content.kindName])
    #expect(sent.first?.content.attachment?.url == draft.content.attachment.map { "https://files/\($0.name ?? "")" })
    if case .bytes(let bytes) = draft.content.attachment?.source { #expect(await bench.adapter.uploadedBytes.last == bytes) }
  }

  @Test("an edited message answers what it answered and stays in its thread, through failure, restart and resend")
  func place() async throws {
    let folder = Folder()
    let options = ChatOptions(cacheLocation: .directory(folder.path))
    let adapter = ScriptedAdapter(emulated: [.messageIdempotentSend])
    let bench = try await Bench(adapter, options: options)
    let parent = await adapter.write("parent", push: true)
    await bench.heard.first { $0.isReceived("parent") }
    await adapter.script([.refuse(ChatError(.permission(), operation: .send, detail: "muted"))])
    var draft = MessageDraft.text("reply")
    draft.threadParent = parent.id
    let failed = try await bench.chat.enqueue(draft, to: "c")
    await bench.heard.first { if case .messageFailed = $0.kind { true } else { false } }
    await bench.chat.disconnect()
    let next = try await Bench(adapter, options: options)
    let kept = try await next.chat.waitingMessages(in: "c")
    // Why it failed is kept as well.
    #expect(kept.map(\.state) == [.failed(ChatError(.permission(), operation: .send, detail: "muted"))])
    #expect(kept.map(\.threadParent) == [parent.id])
    _ = try await next.chat.edit(try #require(kept.first), to: .text("better reply"))
    try await next.chat.resend(try #require(failed.localID))
    try await until { try await next.chat.unsentCount() == 0 }
    let sent = await adapter.messages["c"]?.last
    #expect(sent?.words == "better reply" && sent?.threadParent == parent.id)
    #expect(try await next.chat.history(of: "c", .newest(10)).messages.map(\.words) == ["parent"])
  }

  @Test("an edit that names what it answers or its thread shows and sends that", arguments: [true, false])
  func newPlace(_ isThread: Bool) async throws {
    let folder = Folder()
    let options = ChatOptions(cacheLocation: .directory(folder.path))
    let adapter = ScriptedAdapter(emulated: [.messageIdempotentSend])
    let bench = try await Bench(adapter, options: options)
    await adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    var draft = MessageDraft.text("words")
    if isThread { draft.threadParent = "old" } else { draft.replyTo = Reply(id: "old") }
    let waiting = try await bench.chat.enqueue(draft, to: "c")
    if isThread { draft.threadParent = "new" } else { draft.replyTo = Reply(id: "new") }
    let edited = try await bench.chat.edit(waiting, to: draft)
    await bench.chat.disconnect()
    let next = try await Bench(adapter, options: options, connects: false)
    try await next.chat.open(for: "alice")
    for message in [edited] + (try await next.chat.waitingMessages(in: "c")) {
      #expect(message.replyTo == draft.replyTo && message.threadParent == draft.threadParent)
    }
    let entry = try await next.chat.cache?.read { session throws(ChatError) in
      try waiting.localID.flatMap { id throws(ChatError) in try session.outboxEntry(id) }
    }
    #expect(entry?.draft.replyTo == draft.replyTo && entry?.draft.threadParent == draft.threadParent)
  }

  @Test("an upload that is answered without a URL fails the message after a few tries, and frees the queue")
  func withoutURL() async throws {
    let bench = try await Bench()
    await bench.adapter.answerUploadsWithoutURL()
    let error = await #expect(throws: ChatError.self) {
      try await bench.run { try await bench.chat.send(Self.file("a.txt"), to: "c") }
    }
    #expect(error?.kind == .protocolViolation && error?.operation == .upload)
    #expect(await bench.adapter.uploaded.count == 3)
    _ = try await bench.chat.send(.text("behind"), to: "c")
    #expect(await bench.texts() == ["behind"])
  }

  @Test("a worker whose session has ended sends nothing, and no message goes twice", arguments: [true, false])
  func ended(_ comesBack: Bool) async throws {
    let adapter = ScriptedAdapter(without: [.messageClientID, .messageIdempotentSend])
    let bench = try await Bench(adapter)
    await adapter.makeUploadsStubborn()
    await adapter.holdUploads(true)
    let waiting = try await bench.chat.enqueue(Self.file("a.txt"), to: "c")
    try await until { await adapter.isHolding }
    await bench.chat.disconnect()
    if comesBack { _ = try await bench.chat.connect(as: "alice", credential: .none) }
    await adapter.holdUploads(false)
    if comesBack {
      try await bench.run { try await until { try await bench.chat.unsentCount() == 0 } }
      #expect(await adapter.messages["c"]?.count == 1)
    } else {
      for _ in 1...200 { await Task.yield() }
      let entry = try await bench.chat.cache?.read { session throws(ChatError) in
        try waiting.localID.flatMap { id throws(ChatError) in try session.outboxEntry(id) }
      }
      #expect(entry?.attempts == 0 && entry?.state == .queued)
    }
    #expect(await bench.heard.lines.filter { $0.hasPrefix("failed") || $0.hasPrefix("updated") } == [])
  }

  @Test("progress never goes back, ends with the total, and says that once")
  func progress() async throws {
    let bench = try await Bench()
    await bench.adapter.scriptUploads([[10, 40, 20, 40], [10, 30, 60]], failing: 1)
    let told = Mutex<[Int64]>([])
    try await bench.chat.enqueue(Self.file("a.txt"), to: "c") { sent, total in
      told.withLock { $0.append(sent * 1000 + total) }
    }
    try await bench.run { try await until { try await bench.chat.unsentCount() == 0 } }
    #expect(told.withLock { $0 } == [10, 40, 60, 100].map { $0 * 1000 + 100 })
  }
}
