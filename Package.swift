// swift-tools-version: 6.2
import Foundation
import PackageDescription

/// Every Swift target of ours is built in the Swift 6 language mode, and a warning fails the build.
let strict: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

let onLinux = TargetDependencyCondition.when(platforms: [.linux])!

/// A peer of the benchmarks alone (Debian: libsimdjson-dev); without it they leave that comparison out.
let hasSimdjson = FileManager.default.fileExists(atPath: "/usr/include/simdjson.h")

func library(_ name: String, _ dependencies: [Target.Dependency], path: String? = nil) -> Target {
  .target(name: name, dependencies: dependencies, path: path, swiftSettings: strict)
}

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], path: String? = nil) -> Target {
  .testTarget(
    name: name, dependencies: dependencies, path: path ?? "Tests/\(name)", swiftSettings: strict)
}

/// The three targets of a vendor, and their tests. The emulator never sees the adapter, so that what they
/// share is the wire alone. One vendor's own clients leave databases behind, which its adapter reads.
func vendorTargets(_ vendor: String) -> [Target] {
  let databases: [Target.Dependency] = vendor == "LeanCloud" ? ["CSQLite"] : []
  return [
    library(
      "\(vendor)Wire", ["UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange"],
      path: "Adapters/\(vendor)/Wire"),
    library(
      "\(vendor)Adapter",
      [
        .target(name: "\(vendor)Wire"), "UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange",
        "ChatTransport",
      ] + databases,
      path: "Adapters/\(vendor)/Adapter"),
    library(
      "\(vendor)Emulator",
      [
        .target(name: "\(vendor)Wire"), "UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange",
        "ChatTransport",
      ],
      path: "Adapters/\(vendor)/Emulator"),
    tests(
      "\(vendor)Tests",
      [
        .target(name: "\(vendor)Wire"), .target(name: "\(vendor)Adapter"), .target(name: "\(vendor)Emulator"),
        "UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange", "ChatTransport", "ChatEmulation",
      ] + databases),
  ]
}

let vendors = ["Sendbird", "OpenIM", "LeanCloud"]

let package = Package(
  name: "UnifiedChat",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "UnifiedChat", targets: ["UnifiedChat"]),
    .library(name: "ChatClient", targets: ["ChatClient"]),
    .library(name: "ChatMigration", targets: ["ChatMigration"]),
    .library(name: "ChatEmulation", targets: ["ChatEmulation"]),
    .library(name: "ChatConformance", targets: ["ChatConformance"]),
    .library(name: "AllAdapters", targets: ["AllAdapters"]),
    .executable(name: "unifiedchat", targets: ["UnifiedChatCLI"]),
    .executable(name: "hello-chat", targets: ["HelloChat"]),
    .executable(name: "benchmarks", targets: ["Benchmarks"]),
  ] + vendors.map { .library(name: "\($0)Adapter", targets: ["\($0)Adapter"]) },
  targets: [
    // C libraries of the system, each behind the smallest shim that Swift needs.
    .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
    .target(name: "CZlib", linkerSettings: [.linkedLibrary("z")]),
    .target(name: "CCrypto", linkerSettings: [.linkedLibrary("crypto", .when(platforms: [.linux]))]),
    .target(name: "CCurl", linkerSettings: [.linkedLibrary("curl", .when(platforms: [.linux]))]),
    .target(
      name: "CWebSockets", linkerSettings: [.linkedLibrary("websockets", .when(platforms: [.linux]))]),

    library("UnifiedChat", []),
    library("ChatJSON", []),
    library("ChatCrypto", ["CZlib", .target(name: "CCrypto", condition: onLinux)]),
    .target(name: "CYAML", linkerSettings: [.linkedLibrary("yaml")]),
    library("ChatSamples", ["UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange", "CYAML"]),
    library("ChatInterchange", ["UnifiedChat", "ChatJSON", "ChatCrypto"]),
    library(
      "ChatTransport",
      [
        "ChatJSON", "ChatCrypto", .target(name: "CCurl", condition: onLinux),
        .target(name: "CWebSockets", condition: onLinux),
      ]),
    library("ChatCache", ["UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange", "CSQLite"]),
    library("ChatClient", ["UnifiedChat", "ChatCache", "ChatJSON"]),
    library(
      "ChatEmulation",
      [
        "UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange", "ChatTransport",
        .target(name: "CWebSockets", condition: onLinux),
      ]),
    library(
      "ChatMigration", ["UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange", "CSQLite"]),
    library(
      "ChatConformance",
      ["UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange", "ChatCache", "ChatClient", "ChatMigration"]),
    library(
      "AllAdapters",
      ["UnifiedChat", "ChatJSON", "ChatTransport"]
        + vendors.flatMap { [.target(name: "\($0)Adapter"), .target(name: "\($0)Emulator")] },
      path: "Adapters/All"),
    program(
      "UnifiedChatCLI",
      [
        "UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange", "ChatTransport", "ChatCache", "ChatClient",
        "ChatEmulation", "ChatMigration", "ChatConformance", "ChatSamples", "ChatHarness", "AllAdapters",
      ]),
    library(
      "ChatHarness",
      ["UnifiedChat", "ChatJSON", "ChatTransport", "ChatEmulation", "ChatConformance", "AllAdapters"]),
    program("HelloChat", ["UnifiedChat", "ChatClient", "AllAdapters"]),
    program(
      "Benchmarks",
      [
        "UnifiedChat", "ChatJSON", "ChatTransport", "ChatCache", "ChatClient", "ChatEmulation", "ChatConformance",
        "ChatHarness", "ChatInterchange", "ChatMigration", "AllAdapters", "CSQLite", "CBenchmarkPeers",
      ]),
    .target(
      name: "CBenchmarkPeers", cxxSettings: hasSimdjson ? [.define("PEER_SIMDJSON")] : [],
      linkerSettings: hasSimdjson ? [.linkedLibrary("simdjson")] : []),

    tests("UnifiedChatTests", ["UnifiedChat"]),
    tests("ChatJSONTests", ["ChatJSON"]),
    tests("ChatCryptoTests", ["ChatCrypto"]),
    tests("ChatInterchangeTests", ["ChatInterchange", "UnifiedChat", "ChatJSON"]),
    tests("ChatTransportTests", ["ChatTransport", "ChatJSON", "ChatCrypto", "ChatEmulation", "ChatHarness"]),
    tests("ChatCacheTests", ["ChatCache", "UnifiedChat", "ChatJSON", "ChatInterchange"]),
    tests(
      "ChatClientTests",
      ["ChatClient", "ChatCache", "UnifiedChat", "ChatJSON", "ChatInterchange", "ChatConformance"]),
    tests(
      "ChatEmulationTests",
      ["ChatEmulation", "ChatTransport", "UnifiedChat", "ChatJSON", "ChatInterchange"]),
    tests(
      "ChatMigrationTests",
      ["ChatMigration", "ChatCache", "UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange", "ChatConformance"]),
    tests(
      "ChatConformanceTests",
      [
        "ChatConformance", "UnifiedChat", "ChatJSON", "ChatInterchange", "ChatTransport", "ChatEmulation",
        "ChatClient", "ChatCache", "ChatMigration", "ChatHarness", "AllAdapters",
      ], path: "Tests/Conformance"),
    tests("MutantTests", ["ChatConformance", "ChatHarness", "ChatClient", "UnifiedChat"], path: "Tests/Mutants"),
    tests("ChatSamplesTests", ["ChatSamples", "UnifiedChat", "ChatJSON", "ChatInterchange"]),
    tests(
      "UnifiedChatCLITests",
      ["UnifiedChat", "ChatJSON", "ChatInterchange", "UnifiedChatCLI", "HelloChat", "CSQLite"]),
    tests("ArchitectureTests", []),
    // Every parser of bytes from outside: mutated in the tests, and by libFuzzer in the program.
    library(
      "ChatFuzzing",
      [
        "UnifiedChat", "ChatJSON", "ChatCrypto", "ChatInterchange", "ChatTransport", "ChatEmulation", "ChatClient",
        "ChatMigration", "AllAdapters", "SendbirdAdapter",
      ] + vendors.map { .target(name: "\($0)Wire") }, path: "Tests/Fuzzing/Targets"),
    .executableTarget(
      name: "Fuzz", dependencies: ["ChatFuzzing"], path: "Tests/Fuzzing/Program", swiftSettings: strict),
    tests("FuzzingTests", ["ChatFuzzing"], path: "Tests/Fuzzing/Replay"),
  ] + vendors.flatMap(vendorTargets),
  cxxLanguageStandard: .cxx17
)
