import AllAdapters
import ChatInterchange
import ChatJSON
import ChatMigration
import Foundation
import SendbirdAdapter
import UnifiedChat

/// Files that people hand around: archives, their lines, mappings, exports of vendors' consoles.
extension FuzzTarget {
  static let files: [FuzzTarget] = [archive, lines, mapping] + consoles

  // MARK: Archives

  /// Changes of a small archive: the first byte is how much of it is left (0: all), then for each change three bytes of
  /// place, one of length and so many bytes.
  static let archive = FuzzTarget(
    "archive", seeds: [[0], [0, 0, 0, 60, 4, 0, 0, 0, 9], [200, 0, 16, 0, 3, 1, 2, 3], [0, 0, 0x20, 5, 8, 0xFF, 0, 0xFF, 0, 0x80, 1, 2, 3]]
  ) { (bytes) async throws(BrokenLaw) in
    let whole = try await SampleArchive.shared.bytes()
    let scratch = Scratch()
    let path = scratch.file("a.uchat")
    scratch.put(changed(whole, by: bytes), at: path)
    // Both ways in: the check of the pages refuses most damage before the reader sees it.
    for checks in [true, false] {
      guard let archive = try? Archive.open(at: path, checks: checks) else { continue }
      try await read(archive)
      try? await archive.close()
    }
  }

  private static func changed(_ whole: [UInt8], by changes: [UInt8]) -> [UInt8] {
    var copy = whole
    var rest = changes.dropFirst()
    if let kept = changes.first, kept > 0 { copy.removeLast(whole.count - whole.count * Int(kept) / 256) }
    while rest.count > 4 {
      let place = rest.prefix(3).reduce(0) { $0 << 8 | Int($1) } % max(1, copy.count)
      let count = Int(rest[rest.startIndex + 3] % 32)
      for (index, byte) in rest.dropFirst(4).prefix(count).enumerated() where place + index < copy.count {
        copy[place + index] = byte
      }
      rest = rest.dropFirst(4 + count)
    }
    return copy
  }

  /// Everything that a reader may ask for. What is called whole has records in all its rows.
  private static func read(_ archive: Archive) async throws(BrokenLaw) {
    let isWhole = (try? await archive.verify())?.isWhole ?? false
    _ = try? await archive.identity()
    _ = try? await archive.counts()
    _ = try? await archive.search(ArchiveQuery(text: "hi"), limit: 10)
    _ = try? await archive.unreadable(limit: 10)
    for user in (try? await archive.users(limit: 20)) ?? [] {
      try require((try? user.stored.user()) != nil || !isWhole, "a whole archive holds no user where one is counted")
    }
    for channel in (try? await archive.channels(limit: 20)) ?? [] {
      _ = try? channel.stored.channel()
      for member in (try? await archive.members(of: channel.ordinal, limit: 20)) ?? [] { _ = try? member.member() }
      for message in (try? await archive.messages(in: channel.ordinal, limit: 20)) ?? [] {
        try require((try? message.stored.message()) != nil || !isWhole, "a whole archive holds no message where one is counted")
      }
    }
  }

  // MARK: Lines

  static let sampleLines = [
    #"{"type":"user","id":"alice","name":"Alice","customData":"{\"a\":1}"}"#, #"{"type":"user","id":"bob"}"#,
    #"{"type":"channel","id":"c1","kind":"group","name":"n","createdAt":1}"#,
    #"{"type":"member","channel":"c1","user":"alice","role":"owner"}"#,
    #"{"type":"member","channel":"c1","user":"bob","role":"member","readPosition":"1/0/"}"#,
    #"{"type":"message","channel":"c1","id":"m1","sender":"alice","createdAt":5,"content":{"kind":"text","text":"hi"}}"#,
    #"{"type":"message","channel":"c1","id":"m2","sender":"bob","createdAt":6,"content":{"kind":"recalled","by":"bob"}}"#,
    #"{"type":"message","channel":"c1","id":"m3","sender":"bob","createdAt":7,"content":{"kind":"unknown","vendorKind":"x","raw":"{}"},"reactions":[{"key":"k","users":["alice"]}]}"#,
    #"{"type":"file","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","name":"f","data":""}"#,
  ]

  static let lines = FuzzTarget(
    "lines",
    seeds: [
      Array(sampleLines.map { $0 + "\n" }.joined().utf8), Array((sampleLines[2] + "\n" + sampleLines[5] + "\r\n\nno line").utf8),
      Array((sampleLines[5] + "\n" + sampleLines[2]).utf8),
    ]
  ) { (bytes) async throws(BrokenLaw) in
    let scratch = Scratch()
    guard let first = await exported(bytes, scratch, "1") else { return }
    guard let second = await exported(first, scratch, "2") else { throw BrokenLaw("what was exported cannot be imported") }
    try require(first == second, "an export changes when it is imported and exported again")
  }

  /// The lines of an archive of `lines`; nil for what is refused.
  private static func exported(_ lines: [UInt8], _ scratch: Scratch, _ name: String) async -> [UInt8]? {
    let (input, output) = (scratch.file("in-\(name)"), scratch.file("out-\(name)"))
    scratch.put(lines, at: input)
    let identity = Archive.Identity(id: "1", vendor: "records", createdAt: Timestamp(milliseconds: 0))
    guard
      let archive = try? await ArchiveLines.importing(
        input, into: scratch.file("\(name).uchat"), identity, at: Timestamp(milliseconds: 1)
      ).archive
    else { return nil }
    let isWritten = (try? await ArchiveLines.export(archive, to: output)) != nil
    try? await archive.close()
    return isWritten ? FileManager.default.contents(atPath: output).map { Array($0) } : nil
  }

  // MARK: Mappings

  static let mapping = FuzzTarget(
    "mapping",
    seeds: ["a,b\n# comment\nc\td\r\n", #"{"a":"b","c":"d"}"#, "\u{FEFF}a,b\n", "caf\u{E9},1\ncafe\u{301},2\n"].map { Array($0.utf8) }
  ) { (bytes) async throws(BrokenLaw) in
    let scratch = Scratch()
    let path = scratch.file("map")
    scratch.put(bytes, at: path)
    guard let pairs = try? MappingFile.read(path) else { return }
    try require(pairs.allSatisfy { !$0.old.isEmpty && !$0.new.isEmpty }, "an id is empty")
    try require(Set(pairs.map { Array($0.old.utf8) }).count == pairs.count, "an id is mapped twice")
  }

  // MARK: Exports

  /// LeanCloud's first byte chooses the file's name, which tells what is in it.
  private static let consoles: [FuzzTarget] = [
    FuzzTarget(
      "console.leancloud",
      seeds: [
        [0] + Array(#"[{"objectId":"5f1a5f1a5f1a5f1a5f1a5f1a","m":["a","b"],"name":"n","createdAt":"2020-01-01T00:00:00.000Z","lm":{"__type":"Date","iso":"2020-01-01T00:00:00.000Z"}}]"#.utf8),
        [1] + Array(#"{"results":[{"objectId":"u1","username":"alice","nickname":"A"}]}"#.utf8),
        [2] + Array(##"#filetype:JSON-streaming {"type":"Class","class":"_ConversationMemberInfo"}"##.utf8) + [10]
          + Array(#"{"clientId":"a","cid":"5f1a5f1a5f1a5f1a5f1a5f1a","role":"Manager"}"#.utf8),
        [3] + Array(#"[{"msg-id":"m1","conv-id":"5f1a5f1a5f1a5f1a5f1a5f1a","from":"a","timestamp":5,"data":"{\"_lctype\":-1,\"_lctext\":\"x\"}","is-conv":true}]"#.utf8),
        [4] + Array("{\"objectId\":\"5f1a\",\"m\":[\"a\"]}\n{\"no\n".utf8), [5, 0x1F, 0x8B, 8, 0],
      ]
    ) { (bytes) async throws(BrokenLaw) in
      let names = ["_Conversation.json", "_User.json", "_ConversationMemberInfo.jsonl", "messages.json", "x.jsonl", "x.json.gz"]
      guard let first = bytes.first, let entry = try? registry.entry(for: "leancloud"), let read = entry.readExport else { return }
      let scratch = Scratch()
      let path = scratch.file(names[Int(first) % names.count])
      scratch.put(Array(bytes.dropFirst()), at: path)
      guard let source = try? read(path, AdapterEnvironment()) else { return }
      try await walk(source)
    },
    FuzzTarget(
      "console.sendbird",
      seeds: [
        Array(#"{"users":[{"user_id":"a","nickname":"A"}]}"#.utf8),
        Array(#"{"channels":[{"channel_url":"c","name":"n","created_at":1,"members":[{"user_id":"a"}]}]}"#.utf8),
        Array(#"{"messages":[{"message_id":1,"type":"MESG","message":"x","created_at":1,"channel_url":"c","user":{"user_id":"a"}}]}"#.utf8),
        Array(#"[{"message_id":1,"type":"FILE","file":{"url":"u","name":"f","size":1,"type":"t"},"created_at":1,"channel_url":"c"}]"#.utf8),
        Self.zip,
      ]
    ) { (bytes) async throws(BrokenLaw) in
      guard let source = try? SendbirdExportSource(files: [("export", bytes)], http: Unreachable()) else { return }
      try await walk(source)
    },
  ]

  /// One stored file in a zip archive.
  private static let zip: [UInt8] = {
    let content = Array(#"{"users":[{"user_id":"a"}]}"#.utf8)
    let name = Array("u.json".utf8)
    func field(_ value: UInt32, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) } }
    let sizes = field(0x680A_449C, 4) + field(UInt32(content.count), 4) + field(UInt32(content.count), 4)
    let entry = field(20, 2) + field(0, 2) + field(0, 2) + field(0, 4) + sizes + field(UInt32(name.count), 2) + field(0, 2)
    let local = field(0x0403_4B50, 4) + entry + name + content
    let central = field(0x0201_4B50, 4) + field(20, 2) + entry + field(0, 2) + field(0, 2) + field(0, 2) + field(0, 4) + field(0, 4) + name
    let end = field(0x0605_4B50, 4) + field(0, 4) + field(1, 2) + field(1, 2) + field(UInt32(central.count), 4) + field(UInt32(local.count), 4) + field(0, 2)
    return local + central + end
  }()

  /// All pages of all lists: each list comes to its end, and ids that the source gave are known to it.
  private static func walk(_ source: any ChatSource) async throws(BrokenLaw) {
    _ = try? await source.check()
    try await pages("users") { cursor throws(ChatError) in try await source.users(after: cursor).next }
    var channels: [ChannelID] = []
    var cursor: Cursor?
    var turns = 0
    repeat {
      guard let page = try? await source.channels(after: cursor) else { return }
      channels += page.items.map(\.channel.id)
      cursor = page.next
      turns += 1
      try require(turns < 100, "the list of channels does not end")
    } while cursor != nil
    for channel in channels.prefix(8) {
      try await pages("members") { cursor throws(ChatError) in try await source.members(of: channel, after: cursor).next }
      try await pages("messages") { cursor throws(ChatError) in try await source.messages(in: channel, after: cursor).next }
    }
  }

  private static func pages(_ list: String, _ next: (Cursor?) async throws(ChatError) -> Cursor?) async throws(BrokenLaw) {
    var cursor: Cursor?
    for _ in 0..<100 {
      do throws(ChatError) { cursor = try await next(cursor) } catch { return }
      if cursor == nil { return }
    }
    throw BrokenLaw("the list of \(list) does not end")
  }
}

/// A folder that is gone with the value's owner.
private final class Scratch: Sendable {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fuzz-\(UUID().uuidString)").path

  init() { try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func file(_ name: String) -> String { folder + "/" + name }
  func put(_ bytes: [UInt8], at path: String) { _ = FileManager.default.createFile(atPath: path, contents: Data(bytes)) }
}

/// The archive that `FuzzTarget.archive` changes, made once.
private actor SampleArchive {
  static let shared = SampleArchive()
  private var made: [UInt8]?

  func bytes() async throws(BrokenLaw) -> [UInt8] {
    if let made { return made }
    let scratch = Scratch()
    let (input, path) = (scratch.file("lines"), scratch.file("a.uchat"))
    scratch.put(Array(FuzzTarget.sampleLines.map { $0 + "\n" }.joined().utf8), at: input)
    let identity = Archive.Identity(id: "1", vendor: "records", createdAt: Timestamp(milliseconds: 0))
    let time = Timestamp(milliseconds: 1)
    guard let archive = try? await ArchiveLines.importing(input, into: path, identity, at: time).archive,
      (try? await archive.close()) != nil, let data = FileManager.default.contents(atPath: path)
    else { throw BrokenLaw("the sample is refused") }
    made = Array(data)
    return Array(data)
  }
}
