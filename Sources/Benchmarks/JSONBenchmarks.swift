import ChatJSON
import Foundation

let jsonBenchmarks: [Benchmark] = [
  Benchmark(name: "json.decode.message") { try decodeMessages() },
  Benchmark(name: "json.decode.array") { try decodeArray() },
  Benchmark(name: "json.encode.message") { try encodeMessages() },
  Benchmark(name: "json.encode.array") { try encodeArray() },
  Benchmark(name: "json.tree") { try tree() },
]

private let messages = (0..<64).map(SampleMessage.sample)
private let documents = messages.map { $0.jsonBytes() }
private let documentBytes = documents.reduce(0) { $0 + $1.count }
/// At least 1 MiB.
private let manyMessages = (0..<(1 << 20) * 64 / documentBytes).map(SampleMessage.sample)

private struct Disagreement: Error { var between: String }

private func megabytes(_ runs: Double, _ bytes: Int) -> Double { runs * Double(bytes) / 1e6 }

private func compare(
  _ what: String, bytes: Int, _ ours: @escaping () throws -> Void, _ peers: [(String, Double?, () throws -> Void)]
) throws -> [Comparison] {
  let speeds = try Measure.runsPerSecond([ours] + peers.map(\.2)).map { megabytes($0, bytes) }
  return zip(peers, speeds.dropFirst()).map { peer, speed in
    Comparison(what: what, peer: peer.0, ours: speeds[0], theirs: speed, unit: "MB/s", goal: peer.1)
  }
}

private func decodeMessages() throws -> [Comparison] {
  let decoder = JSONDecoder()
  let data = documents.map { Data($0) }
  var peers: [(String, Double?, () throws -> Void)] = [
    ("JSONDecoder", 10, { for document in data { keep(try decoder.decode(SampleMessage.self, from: document)) } })
  ]
  if SimdjsonPeer.isAvailable {
    let simdjson = SimdjsonPeer()
    let padded = documents.map { (SimdjsonPeer.padded($0), $0.count) }
    let theirs = try padded.map { try simdjson.message($0.0, count: $0.1) }
    guard theirs == messages else { throw Disagreement(between: "simdjson and the sample") }
    peers.append(("simdjson", 1, { for (bytes, count) in padded { keep(try simdjson.message(bytes, count: count)) } }))
  }
  guard try documents.map({ try SampleMessage(json: $0) }) == messages else {
    throw Disagreement(between: "ChatJSON and the sample")
  }
  let average = documentBytes / documents.count
  return try compare(
    "decode a message of \(average) bytes", bytes: documentBytes,
    { for document in documents { keep(try SampleMessage(json: document)) } }, peers)
}

private func decodeArray() throws -> [Comparison] {
  let document = manyMessages.jsonBytes()
  let decoder = JSONDecoder()
  let data = Data(document)
  var peers: [(String, Double?, () throws -> Void)] = [
    ("JSONDecoder", 10, { keep(try decoder.decode([SampleMessage].self, from: data)) })
  ]
  if SimdjsonPeer.isAvailable {
    let simdjson = SimdjsonPeer()
    let padded = SimdjsonPeer.padded(document)
    guard try simdjson.array(padded, count: document.count) == manyMessages else {
      throw Disagreement(between: "simdjson and the sample")
    }
    peers.append(("simdjson", 1, { keep(try simdjson.array(padded, count: document.count)) }))
  }
  return try compare(
    "decode an array of \(document.count >> 10) KiB", bytes: document.count,
    { keep(try [SampleMessage](json: document)) }, peers)
}

private func encodeMessages() throws -> [Comparison] {
  let encoder = JSONEncoder()
  return try compare(
    "encode a message of \(documentBytes / documents.count) bytes", bytes: documentBytes,
    { for message in messages { keep(message.jsonBytes()) } },
    [("JSONEncoder", 10, { for message in messages { keep(try encoder.encode(message)) } })])
}

private func encodeArray() throws -> [Comparison] {
  let encoder = JSONEncoder()
  let size = manyMessages.jsonBytes().count
  return try compare(
    "encode an array of \(size >> 10) KiB", bytes: size, { keep(manyMessages.jsonBytes()) },
    [("JSONEncoder", 10, { keep(try encoder.encode(manyMessages)) })])
}

private func tree() throws -> [Comparison] {
  let data = documents.map { Data($0) }
  let values = try documents.map { try JSONValue(parsing: $0) }
  let objects = try data.map { try JSONSerialization.jsonObject(with: $0) }
  let parse = try compare(
    "parse a message into a tree", bytes: documentBytes,
    { for document in documents { keep(try JSONValue(parsing: document)) } },
    [("JSONSerialization", nil, { for document in data { keep(try JSONSerialization.jsonObject(with: document)) } })])
  let write = try compare(
    "write a message from a tree", bytes: documentBytes, { for value in values { keep(value.bytes()) } },
    [("JSONSerialization", nil, { for object in objects { keep(try JSONSerialization.data(withJSONObject: object)) } })]
  )
  return parse + write
}
