import ChatConformance
import ChatEmulation
import Synchronization
import UnifiedChat

/// The suite's neutral faults as rules of an emulator.
final class EmulatorFaults: FaultControl {
  private let host: EmulatorHost
  private let rules = Mutex<[UInt64: ChatConformance.FaultRule]>([:])

  let hooks: Set<String> = ["closeSocket", "afterCommit", "drop", "fail", "duplicate", "reorder"]

  init(host: EmulatorHost) { self.host = host }

  func inject(_ rule: ChatConformance.FaultRule) async throws {
    let id = try await host.control.add(Self.emulated(rule))
    rules.withLock { $0[id] = rule }
  }

  func removeRules() async -> [ChatConformance.FaultRule] {
    let missed = await host.control.missedRules().map(\.id)
    await host.control.removeRules()
    return rules.withLock { rules in
      let silent = missed.compactMap { rules[$0] }
      rules = [:]
      return silent
    }
  }

  private static func emulated(_ rule: ChatConformance.FaultRule) -> ChatEmulation.FaultRule {
    let match = ChatEmulation.FaultRule.Match(
      rule.operation, user: rule.user?.rawValue, channel: rule.channel?.rawValue)
    let phase: ChatEmulation.FaultRule.Phase =
      switch rule.phase {
      case .received: .received
      case .afterCommit: .afterCommit
      case .beforePush: .beforePush
      }
    let action: ChatEmulation.FaultRule.Action =
      switch rule.action {
      case .drop: .drop
      case .closeSocket: .closeSocket(.abrupt)
      case .fail(let kind): .fail(.init(kind.name))
      case .duplicate(let count): .duplicate(times: count - 1)
      case .reorder(let window): .reorder(window: window)
      }
    return ChatEmulation.FaultRule(
      match, at: phase, do: action, from: rule.nth, times: rule.times)
  }
}
