import Foundation
import Testing

/// What the package's own description says of one target.
private struct Target: Decodable {
  struct Dependency: Decodable {
    var name: String

    /// `{"byName": ["X", …]}` or `{"target": ["X", …]}`.
    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      let form = try container.decode([String: [Name?]].self)
      name = form.values.first?.first??.text ?? ""
    }

    private struct Name: Decodable {
      var text: String?
      init(from decoder: any Decoder) throws { text = try? decoder.singleValueContainer().decode(String.self) }
    }
  }

  var name: String
  var type: String
  var path: String?
  var dependencies: [Dependency]
}

private struct Description: Decodable {
  var dependencies: [Empty]
  var targets: [Target]
  struct Empty: Decodable {}
}

private let root = URL(fileURLWithPath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

private func describe() throws -> Description {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  // A scratch folder of its own: the build that runs this test holds the lock of the usual one.
  let scratch = FileManager.default.temporaryDirectory.appendingPathComponent("describe-\(UUID().uuidString)")
  defer { try? FileManager.default.removeItem(at: scratch) }
  process.arguments = [
    "swift", "package", "--package-path", root.path, "--scratch-path", scratch.path, "dump-package",
  ]
  let pipe = Pipe()
  process.standardOutput = pipe
  process.standardError = FileHandle.nullDevice
  try process.run()
  let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  return try JSONDecoder().decode(Description.self, from: data)
}

@Suite("Arrows point one way")
struct ArrowTests {
  private static let vendors = ["Sendbird", "OpenIM", "LeanCloud"]

  /// Every library target and all that it may import of ours; C targets are leaves.
  private static let allowed: [String: Set<String>] = {
    let base: Set<String> = ["UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange"]
    var arrows: [String: Set<String>] = [
      "UnifiedChat": [], "ChatJSON": [], "ChatCrypto": [],
      "ChatInterchange": ["UnifiedChat", "ChatJSON", "ChatCrypto"],
      "ChatSamples": base,
      "ChatTransport": ["ChatJSON", "ChatCrypto"],
      "ChatCache": base,
      "ChatClient": base.union(["ChatCache"]),
      "ChatEmulation": base.union(["ChatTransport"]),
      "ChatMigration": base,
      "ChatConformance": base.union(["ChatCache", "ChatClient", "ChatMigration"]),
    ]
    for vendor in vendors {
      arrows["\(vendor)Wire"] = base
      arrows["\(vendor)Adapter"] = base.union(["\(vendor)Wire", "ChatTransport"])
      arrows["\(vendor)Emulator"] = base.union(["\(vendor)Wire", "ChatTransport"])
    }
    return arrows
  }()

  /// May see everything: they put the rooms together.
  private static let composers: Set<String> = [
    "AllAdapters", "ChatHarness", "UnifiedChatCLI", "HelloChat", "Benchmarks", "ChatFuzzing", "Fuzz",
  ]

  @Test("every library depends on what its room may see, and on nothing from outside")
  func libraries() throws {
    let description = try describe()
    #expect(description.dependencies.isEmpty)
    let ours = description.targets.filter { $0.type != "test" }
    let cTargets = Set(ours.map(\.name).filter { $0.hasPrefix("C") && !$0.hasPrefix("Chat") })
    for target in ours where !cTargets.contains(target.name) && !Self.composers.contains(target.name) {
      let arrows = Set(target.dependencies.map(\.name)).subtracting(cTargets)
      guard let allowed = Self.allowed[target.name] else {
        Issue.record("\(target.name) is in no room of the map")
        continue
      }
      #expect(arrows.isSubset(of: allowed), "\(target.name) sees \(arrows.subtracting(allowed).sorted())")
    }
    #expect(Set(Self.allowed.keys).isSubset(of: Set(ours.map(\.name))))
  }

  @Test("only the registry, the harness, the programs and the fuzzers may name a vendor")
  func vendorNames() throws {
    for target in try describe().targets where target.type != "test" {
      let seen = target.dependencies.map(\.name).filter { name in Self.vendors.contains { name.hasPrefix($0) } }
      let isVendor = Self.vendors.contains { target.name.hasPrefix($0) }
      #expect(seen.isEmpty || isVendor || ["AllAdapters", "ChatFuzzing"].contains(target.name), "\(target.name) sees \(seen)")
    }
  }

  @Test(
    "no word of a vendor stands above the adapters",
    arguments: [
      "UnifiedChat", "ChatJSON", "ChatTransport", "ChatCache", "ChatClient", "ChatEmulation", "ChatMigration",
      "ChatConformance", "ChatInterchange", "ChatHarness",
    ])
  func vendorWords(room: String) throws {
    let names = ["sendbird", "openim", "leancloud"]
    let wireWords = ["LOGI", "peerId", "conversationID", "serverMsgID", "_lctype"]
    let folder = root.appendingPathComponent("Sources/\(room)")
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    for case let file as URL in files ?? FileManager.DirectoryEnumerator() where file.pathExtension == "swift" {
      let code = try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
      for (index, line) in code.enumerated() {
        // Docstrings may name the source of a fact; code may not.
        let statement = line.range(of: "//").map { line[..<$0.lowerBound] } ?? line[...]
        for word in names where statement.lowercased().contains(word) {
          Issue.record("\(file.lastPathComponent):\(index + 1) says \(word)")
        }
        for word in wireWords where statement.contains(word) {
          Issue.record("\(file.lastPathComponent):\(index + 1) says \(word)")
        }
      }
    }
  }

  @Test("the bill of materials lists every library that the package links")
  func billOfMaterials() throws {
    let process = Process()
    process.executableURL = root.appendingPathComponent(".ci/bill-of-materials")
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    struct Bill: Decodable {
      struct Component: Decodable { var name: String }
      var components: [Component]
    }
    let names = try JSONDecoder().decode(Bill.self, from: data).components.map(\.name)
    for name in ["sqlite3", "libcurl", "libwebsockets", "libcrypto", "zlib", "yaml-0.1"] {
      #expect(names.contains(name))
    }
  }

  @Test("what the compiler can no longer check has its reason beside it")
  func reasons() throws {
    let unchecked = [
      "@unchecked Sendable", "nonisolated(unsafe)", "unowned(unsafe)", "@preconcurrency", "assumeIsolated",
      "try!", " as! ", "Task.sleep",
    ]
    var seen = 0
    for room in ["Sources", "Adapters"] {
      let files = FileManager.default.enumerator(at: root.appendingPathComponent(room), includingPropertiesForKeys: nil)
      for case let file as URL in files ?? FileManager.DirectoryEnumerator() where file.pathExtension == "swift" {
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
          let statement = line.range(of: "//").map { line[..<$0.lowerBound] } ?? line[...]
          guard let word = unchecked.first(where: { statement.contains($0) }) else { continue }
          seen += 1
          let around = lines[max(0, index - 3)...index]
          #expect(around.contains { $0.contains("//") }, "\(file.lastPathComponent):\(index + 1) has \(word) without a reason")
        }
      }
    }
    // The search finds something where there is something.
    #expect(seen > 5)
  }

  @Test("no two paths differ only by case")
  func pathsDiffer() throws {
    var seen: [String: String] = [:]
    for folder in ["Sources", "Adapters", "Schemas", "Tests"] {
      let files = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
      while let path = files?.nextObject() as? String {
        let full = folder + "/" + path
        if let other = seen.updateValue(full, forKey: full.lowercased()) { Issue.record("\(other) and \(full)") }
      }
    }
  }
}
