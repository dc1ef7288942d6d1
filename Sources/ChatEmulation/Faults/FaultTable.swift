import ChatJSON
import ChatTransport

/// The rules of a host with their counters.
struct FaultTable {
  /// A rule's action on one frame.
  struct Hit {
    var rule: UInt64
    var action: FaultRule.Action
  }

  private(set) var rules: [FaultRuleStatus] = []
  private var lastID: UInt64 = 0
  /// Own, so that a rule leaves the machine's randomness as it was.
  private var random: EmulatorRandom

  init(seed: UInt64) { random = EmulatorRandom(seed: seed ^ 0xFA17) }

  var isEmpty: Bool { rules.isEmpty }

  mutating func add(_ rule: FaultRule) -> UInt64 {
    lastID += 1
    rules.append(FaultRuleStatus(id: lastID, rule: rule, matches: 0, hits: 0, failure: nil))
    return lastID
  }

  mutating func remove(_ id: UInt64) -> Bool {
    guard let index = rules.firstIndex(where: { $0.id == id }) else { return false }
    rules.remove(at: index)
    return true
  }

  mutating func removeAll() { rules = [] }

  mutating func fail(_ id: UInt64, _ reason: String) {
    guard let index = rules.firstIndex(where: { $0.id == id }) else { return }
    rules[index].failure = reason
  }

  /// The actions of the rules that fire, counting the match for each.
  mutating func hits(
    _ operation: EmulatorOperation, _ direction: FaultRule.Direction, _ phases: Set<FaultRule.Phase>,
    content: () -> JSONValue?
  ) -> [Hit] {
    var hits: [Hit] = []
    for index in rules.indices {
      let rule = rules[index].rule
      guard rule.direction == direction, phases.contains(rule.phase), rule.match.matches(operation, content) else {
        continue
      }
      rules[index].matches += 1
      guard fires(rules[index]) else { continue }
      rules[index].hits += 1
      hits += rule.actions.map { Hit(rule: rules[index].id, action: $0) }
      if rule.actions.contains(where: \.isTerminal) { break }
    }
    return hits
  }

  private mutating func fires(_ status: FaultRuleStatus) -> Bool {
    let rule = status.rule
    if let nth = rule.nth, status.matches != nth { return false }
    if let from = rule.from, status.matches < from { return false }
    if let every = rule.every, every > 0, !status.matches.isMultiple(of: every) { return false }
    if let times = rule.times, status.hits >= times { return false }
    if let probability = rule.probability { return Double.random(in: 0..<1, using: &random) < probability }
    return true
  }

  mutating func jitter(upTo limit: Duration) -> Duration {
    let milliseconds = limit.wholeMilliseconds
    return milliseconds > 0 ? .milliseconds(Int64.random(in: 0...milliseconds, using: &random)) : .zero
  }

  mutating func shuffle<Item>(_ items: inout [Item]) { items.shuffle(using: &random) }
}

extension FaultRule.Match {
  /// True for a frame of this meaning; `content` is asked only when values are to be compared.
  func matches(_ found: EmulatorOperation, _ content: () -> JSONValue?) -> Bool {
    guard operation == nil || Self.same(operation, found.name), user == nil || Self.same(user, found.user),
      channel == nil || Self.same(channel, found.channel), clientID == nil || Self.same(clientID, found.clientID),
      vendorName == nil || Self.same(vendorName, found.vendorName)
    else { return false }
    if values.isEmpty { return true }
    guard let json = content() else { return false }
    return values.allSatisfy { json[pointer: $0.key] == $0.value }
  }

  private static func same(_ wanted: String?, _ found: String?) -> Bool {
    guard let wanted, let found else { return false }
    return wanted.utf8.elementsEqual(found.utf8)
  }
}

/// The JSON of a frame or body, with what stands before it.
struct FramedJSON {
  /// A command word before the JSON, as some vendors write it.
  var prefix: String
  var value: JSONValue

  init?(_ text: String) {
    guard let start = text.utf8.firstIndex(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[") }) else {
      return nil
    }
    let word = text[..<start]
    guard word.utf8.allSatisfy({ (48...57).contains($0) || (65...90).contains($0) }) else { return nil }
    guard let value = try? JSONValue(parsing: String(text[start...])) else { return nil }
    prefix = String(word)
    self.value = value
  }

  init?(_ bytes: [UInt8]) {
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    self.init(text)
  }

  var text: String { prefix + value.text() }
}

extension FramedJSON {
  /// With these places set; nil when a place does not exist.
  func patched(_ changes: [String: JSONValue?]) -> FramedJSON? {
    var patched = self
    return patched.value.apply(changes) ? patched : nil
  }
}

extension JSONValue {
  /// Sets or removes values at JSON Pointers; false when a place does not exist.
  mutating func apply(_ changes: [String: JSONValue?]) -> Bool {
    for (pointer, value) in changes.sorted(by: { $0.key < $1.key }) {
      guard set(value, at: pointer) else { return false }
    }
    return true
  }
}
