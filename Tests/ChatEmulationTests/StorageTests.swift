import ChatEmulation
import ChatJSON
import ChatTransport
import Foundation
import Synchronization
import Testing

/// A directory of its own for one test.
final class ScratchDirectory: Sendable {
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("emulation-\(UUID().uuidString)").path

  init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String, _ text: String) throws -> String {
    let file = path + "/" + name
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    return file
  }
}

@Suite("The state of an emulator on disk")
struct StorageTests {
  let scratch: ScratchDirectory
  let host: EmulatorHost

  init() throws {
    scratch = try ScratchDirectory()
    host = try Self.makeHost()
  }

  static func makeHost() throws -> EmulatorHost {
    try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual(start: 1_000_000))
  }

  /// One life of a store; gone when this returns.
  private func keep(_ record: JSONValue, in directory: String) async throws -> String {
    let store = try EmulatorStore(host, directory: directory)
    #expect(try await store.load() == false)
    try await host.load(record)
    try await store.save()
    return store.file
  }

  @Test("two emulators do not share one state")
  func shared() throws {
    let first = try EmulatorStore(host, directory: scratch.path)
    let error = #expect(throws: EmulatorStoreError.self) {
      _ = try EmulatorStore(try Self.makeHost(), directory: scratch.path)
    }
    #expect(error?.reason.contains("in use") == true)
    withExtendedLifetime(first) {}
  }

  @Test("what was saved is there after a new start, and only its owner can read it")
  func saved() async throws {
    let file = try await keep(["type": "user", "name": "😀\u{301}"], in: scratch.path + "/a/b")
    let attributes = try FileManager.default.attributesOfItem(atPath: file)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let other = try Self.makeHost()
    #expect(try await EmulatorStore(other, directory: scratch.path + "/a/b").load())
    #expect(await other.records() == [["type": "user", "name": "😀\u{301}"]])
  }

  @Test("links in the place of the file are replaced, and what they lead to is not touched")
  func links() async throws {
    let victim = try scratch.file("victim", "mine")
    let store = try EmulatorStore(host, directory: scratch.path)
    for link in [store.file, store.file + ".new"] {
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: victim)
    }
    try await store.save()
    #expect(FileManager.default.contents(atPath: victim) == Data("mine".utf8))
    let attributes = try FileManager.default.attributesOfItem(atPath: store.file)
    #expect(attributes[.type] as? FileAttributeType == .typeRegular)
  }

  @Test("nothing is written when nothing changed")
  func unchanged() async throws {
    let store = try EmulatorStore(host, directory: scratch.path)
    try await store.save()
    try FileManager.default.removeItem(atPath: store.file)
    try await store.save()
    #expect(!FileManager.default.fileExists(atPath: store.file))
    try await host.load(["type": "user"])
    try await store.save()
    #expect(FileManager.default.fileExists(atPath: store.file))
  }

  struct Damage: Sendable, CustomTestStringConvertible {
    var title: String
    var reason: String
    var change: @Sendable ([UInt8]) -> [UInt8]
    var testDescription: String { title }
  }

  @Test(
    "a damaged file is named with the mend, and never overwritten",
    arguments: [
      Damage(title: "cut off", reason: "bytes of") { Array($0.dropLast(5)) },
      Damage(title: "empty", reason: "first line") { _ in [] },
      Damage(title: "one byte changed", reason: "changed") { $0.map { $0 == 0x75 ? 0x76 : $0 } },
      Damage(title: "of a newer format", reason: "newer program") { _ in
        Array("{\"format\":2,\"bytes\":0,\"sha256\":\"\"}\n".utf8)
      },
    ])
  func damaged(_ damage: Damage) async throws {
    let file = try await keep(["type": "user"], in: scratch.path)
    let url = URL(fileURLWithPath: file)
    let bytes = damage.change(Array(try Data(contentsOf: url)))
    try Data(bytes).write(to: url)
    let fresh = try Self.makeHost()
    let second = try EmulatorStore(fresh, directory: scratch.path)
    let error = await #expect(throws: EmulatorStoreError.self) { try await second.load() }
    #expect(error?.file == file)
    #expect(error?.reason.contains(damage.reason) == true)
    try await fresh.load(["type": "channel"])
    await #expect(throws: EmulatorStoreError.self) { try await second.save() }
    #expect(Array(try Data(contentsOf: url)) == bytes)
  }

  @Test("records are loaded line by line, with any line end and without a last one")
  func lines() async throws {
    let file = try scratch.file("r.jsonl", "{\"type\":\"a\"}\n\n{\"type\":\"b\"}\r\n{\"type\":\"c\"}")
    #expect(try await host.load(contentsOf: file) == 3)
    #expect(await host.records().compactMap { $0["type"]?.string } == ["a", "b", "c"])
  }

  @Test("many records are loaded in order, with progress")
  func manyLines() async throws {
    let text = (0..<3000).map { "{\"type\":\"m\",\"n\":\($0),\"pad\":\"\(String(repeating: "x", count: 900))\"}" }
    let file = try scratch.file("r.jsonl", text.joined(separator: "\n"))
    let seen = Mutex<[Int]>([])
    #expect(try await host.load(contentsOf: file) { count in seen.withLock { $0.append(count) } } == 3000)
    #expect(seen.withLock { $0 } == (1...11).map { $0 * 256 })
    #expect(await host.records().compactMap { $0["n"]?.int } == (0..<3000).map { Int64($0) })
  }

  @Test(
    "a wrong line is named with its file and number",
    arguments: [
      ("{\"type\":\"a\"}\n{\"type\":", 2, "JSON"), ("{\"type\":\"a\"}\n\n{\"name\":1}\n", 3, "/type is missing"),
    ])
  func wrongLine(_ text: String, _ line: Int, _ reason: String) async throws {
    let file = try scratch.file("r.jsonl", text)
    let error = await #expect(throws: RecordFileError.self) { try await host.load(contentsOf: file) }
    #expect(error?.file == file)
    #expect(error?.line == line)
    #expect(error?.description.hasPrefix("\(file):\(line): ") == true)
    #expect(error?.reason.contains(reason) == true)
  }

  @Test("a file that is not there is named")
  func missingFile() async throws {
    let error = await #expect(throws: RecordFileError.self) { try await host.load(contentsOf: "/nowhere/r.jsonl") }
    #expect(error?.description == "/nowhere/r.jsonl: can't be read; check its name and rights")
  }

  @Test("the coverage table shows what was called, and what is missing")
  func coverage() {
    let table = [
      EmulatorCoverage(endpoint: "GET /a", isImplemented: true, calls: 3),
      EmulatorCoverage(endpoint: "GET /b", isImplemented: true, calls: 12),
      EmulatorCoverage(endpoint: "GET /c", isImplemented: true, calls: 0),
      EmulatorCoverage(endpoint: "GET /d", isImplemented: false, calls: 1),
    ].table()
    #expect(
      table == """
        implemented: 3 endpoints, 2 of them called
          12  GET /b
           3  GET /a
        not implemented:
           1  GET /d
        """)
  }

  @Test("a served emulator loads, restores, tells where it is, and saves when it ends")
  func run() async throws {
    let file = try scratch.file("r.jsonl", "{\"type\":\"a\"}\n")
    var lines = try await run(loading: [file])
    #expect(lines == ["loaded 1", "listening with control", "saved echo.state", "coverage implemented: 1 endpoints, 1 of them called"])
    lines = try await run(loading: [])
    #expect(lines.first == "restored echo.state")
  }

  private func run(loading files: [String]) async throws -> [String] {
    let events = Mutex<[String]>([])
    let (ready, isReady) = AsyncStream.makeStream(of: String.self)
    let settings = EmulatorRunSettings(
      controlPort: 0, clock: .virtual, dataDirectory: scratch.path, recordFiles: files, printsCoverage: true)
    let task = Task {
      try await EmulatorServer.run(EmulatorFactory(EchoEmulator.self), options: EmulatorOptions(), settings: settings) {
        event in
        events.withLock { $0.append(Self.describe(event)) }
        if case .listening(let url, _) = event { isReady.yield(url) }
      }
    }
    for await url in ready {
      let port = try #require(UInt16(url.split(separator: ":").last ?? ""))
      let answer = await RawSocket.exchange("GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n", port: port)
      #expect(answer.text.hasPrefix("HTTP/1.1 200 OK"))
      break
    }
    task.cancel()
    try await task.value
    return events.withLock { $0 }
  }

  private static func describe(_ event: EmulatorServer.RunEvent) -> String {
    func name(_ file: String) -> String { String(file.split(separator: "/").last ?? "") }
    switch event {
    case .warning(let text): return "warning \(text)"
    case .restored(let file): return "restored \(name(file))"
    case .loaded(_, let records): return "loaded \(records)"
    case .listening(_, let control): return control == nil ? "listening" : "listening with control"
    case .saved(let file): return "saved \(name(file))"
    case .coverage(let table): return "coverage \(table.split(separator: "\n").first ?? "")"
    }
  }
}
