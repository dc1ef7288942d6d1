import ChatCrypto
import ChatJSON
import Foundation
import LeanCloudWire

/// What Apple's keyed archives of plain values hold: dictionaries, arrays, texts, numbers, dates. The library for
/// Objective-C keeps conversations and lists of mentioned users so.
///
/// Only such values are made of the bytes, never an object of a class that they name.
///
/// - Source: the binary property list is documented in Apple's CFBinaryPList.c; `$top`, `$objects`, `NS.keys` and
///   `NS.objects` are what NSKeyedArchiver writes.
struct LeanCloudKeyedArchive {
  private let list: BinaryPropertyList
  private let objects: [Int]
  /// Values that may still be made: a small archive can name one array a billion times.
  private var budget = 200_000
  private static let depth = 64

  /// nil for anything else, and for an archive whose root is no plain value.
  static func value(of bytes: [UInt8]) -> JSONValue? {
    guard let list = BinaryPropertyList(bytes), let top = list.dictionary(list.top),
      let root = top["$top"].flatMap(list.dictionary)?["root"].flatMap(list.reference),
      let objects = top["$objects"].flatMap(list.array)
    else { return nil }
    var archive = LeanCloudKeyedArchive(list: list, objects: objects)
    return archive.value(root, depth: 0)
  }

  private init(list: BinaryPropertyList, objects: [Int]) {
    self.list = list
    self.objects = objects
  }

  private mutating func value(_ number: Int, depth: Int) -> JSONValue? {
    budget -= 1
    guard budget > 0, depth < Self.depth, objects.indices.contains(number) else { return nil }
    switch list.object(objects[number]) {
    case .string("$null"): return .null
    case .string(let text): return .string(text)
    case .integer(let value): return .int(value)
    case .real(let value): return value.isFinite ? JSONValue(value) : .null
    case .bool(let value): return .bool(value)
    case .data(let bytes): return .string(Base64.encode(bytes))
    case .dictionary(let members): return instance(members, depth: depth)
    default: return nil
    }
  }

  private mutating func instance(_ members: [String: Int], depth: Int) -> JSONValue? {
    if let keys = members["NS.keys"].flatMap(list.array), let values = members["NS.objects"].flatMap(list.array) {
      guard keys.count == values.count else { return nil }
      var object = JSONObject()
      for (key, item) in zip(keys, values) {
        guard let name = list.reference(key).flatMap({ value($0, depth: depth + 1) })?.string,
          let reference = list.reference(item)
        else { return nil }
        object[name] = value(reference, depth: depth + 1) ?? .null
      }
      return .object(object)
    }
    if let values = members["NS.objects"].flatMap(list.array) {
      var array: [JSONValue] = []
      for item in values {
        guard let reference = list.reference(item) else { return nil }
        array.append(value(reference, depth: depth + 1) ?? .null)
      }
      return .array(array)
    }
    switch (members["NS.string"] ?? members["NS.time"] ?? members["NS.data"]).map(list.object) {
    case .string(let text): return .string(text)
    case .data(let bytes): return .string(Base64.encode(bytes))
    case .real(let seconds):
      // Seconds since 2001.
      guard let time = Int64(exactly: (seconds * 1000).rounded()) else { return nil }
      return ["__type": "Date", "iso": .string(LeanCloudID.iso(time &+ 978_307_200_000))]
    default: return nil
    }
  }
}

/// A binary property list, bounds checked.
private struct BinaryPropertyList {
  enum Object: Equatable {
    case null
    case bool(Bool)
    case integer(Int64)
    case real(Double)
    case string(String)
    case data([UInt8])
    case array([Int])
    case dictionary([String: Int])
    case reference(Int)
  }

  let top: Int
  private let bytes: [UInt8]
  private let offsets: Int
  private let offsetSize: Int
  private let referenceSize: Int
  private let count: Int

  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 40, bytes.starts(with: Array("bplist00".utf8)) else { return nil }
    let trailer = bytes.count - 32
    func number(_ offset: Int) -> Int? {
      let value = bytes[(trailer + offset)..<(trailer + offset + 8)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return Int(exactly: value)
    }
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize), let count = number(8), let top = number(16),
      let offsets = number(24), count <= bytes.count, top < count, offsets >= 8, offsets <= trailer,
      count * offsetSize <= trailer - offsets
    else { return nil }
    (self.bytes, self.count, self.top, self.offsets) = (bytes, count, top, offsets)
  }

  func array(_ number: Int) -> [Int]? { if case .array(let items) = object(number) { items } else { nil } }
  func dictionary(_ number: Int) -> [String: Int]? {
    if case .dictionary(let members) = object(number) { members } else { nil }
  }
  func reference(_ number: Int) -> Int? { if case .reference(let number) = object(number) { number } else { nil } }

  private func integer(at start: Int, size: Int) -> UInt64? {
    guard size > 0, size <= 8, start >= 8, start <= offsets, size <= offsets - start else { return nil }
    return bytes[start..<(start + size)].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// `.null` for what is not there or of no kind that matters here.
  func object(_ number: Int) -> Object {
    guard (0..<count).contains(number) else { return .null }
    let entry = offsets + number * offsetSize
    let place = bytes[entry..<(entry + offsetSize)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard let start = Int(exactly: place), start >= 8, start < offsets else { return .null }
    let low = Int(bytes[start] & 0x0F)
    switch bytes[start] >> 4 {
    case 0x0: return bytes[start] == 9 ? .bool(true) : bytes[start] == 8 ? .bool(false) : .null
    case 0x1:
      // Sixteen bytes hold an unsigned number whose upper half is nothing.
      if low == 4 { return integer(at: start + 9, size: 8).map { .integer(Int64(bitPattern: $0)) } ?? .null }
      guard low <= 3, let value = integer(at: start + 1, size: 1 << low) else { return .null }
      return .integer(Int64(bitPattern: value))
    case 0x2, 0x3: return real(start, low)
    case 0x8:
      return integer(at: start + 1, size: low + 1).flatMap { Int(exactly: $0) }.map { .reference($0) } ?? .null
    default: return sized(start, low)
    }
  }

  private func real(_ start: Int, _ low: Int) -> Object {
    switch low {
    case 2:
      return integer(at: start + 1, size: 4).map { .real(Double(Float(bitPattern: UInt32(truncatingIfNeeded: $0)))) }
        ?? .null
    case 3: return integer(at: start + 1, size: 8).map { .real(Double(bitPattern: $0)) } ?? .null
    default: return .null
    }
  }

  private func sized(_ start: Int, _ low: Int) -> Object {
    var (length, first) = (low, start + 1)
    if low == 15 {
      guard first < offsets, bytes[first] >> 4 == 1, bytes[first] & 0x0F <= 3 else { return .null }
      let size = 1 << Int(bytes[first] & 0x0F)
      guard let long = integer(at: first + 1, size: size).flatMap({ Int(exactly: $0) }) else { return .null }
      (length, first) = (long, first + 1 + size)
    }
    // Of what follows, in the largest form.
    guard length <= bytes.count, first <= offsets else { return .null }
    switch bytes[start] >> 4 {
    case 0x4: return slice(first, length).map { .data(Array($0)) } ?? .null
    case 0x5:
      return slice(first, length).flatMap { String(validating: $0, as: UTF8.self) }.map { .string($0) } ?? .null
    case 0x6:
      guard let raw = slice(first, length * 2) else { return .null }
      let units = stride(from: raw.startIndex, to: raw.endIndex, by: 2).map { UInt16(raw[$0]) << 8 | UInt16(raw[$0 + 1]) }
      return .string(String(decoding: units, as: UTF16.self))
    case 0xA: return references(first, length).map { .array($0) } ?? .null
    case 0xD: return members(first, length)
    default: return .null
    }
  }

  private func slice(_ start: Int, _ length: Int) -> ArraySlice<UInt8>? {
    length <= offsets - start ? bytes[start..<(start + length)] : nil
  }

  private func references(_ start: Int, _ length: Int) -> [Int]? {
    guard let raw = slice(start, length * referenceSize) else { return nil }
    return (0..<length).compactMap { index in
      let first = raw.startIndex + index * referenceSize
      return Int(exactly: raw[first..<(first + referenceSize)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
  }

  private func members(_ start: Int, _ length: Int) -> Object {
    guard let keys = references(start, length), let values = references(start + length * referenceSize, length),
      keys.count == values.count
    else { return .null }
    var members: [String: Int] = [:]
    for (key, value) in zip(keys, values) {
      // A key that is a collection would lead back to here without an end.
      if case .string(let name) = text(key) { members[name] = value }
    }
    return .dictionary(members)
  }

  private func text(_ number: Int) -> Object {
    guard (0..<count).contains(number) else { return .null }
    let entry = offsets + number * offsetSize
    let place = bytes[entry..<(entry + offsetSize)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard let start = Int(exactly: place), start >= 8, start < offsets, [0x5, 0x6].contains(bytes[start] >> 4) else {
      return .null
    }
    return object(number)
  }
}
