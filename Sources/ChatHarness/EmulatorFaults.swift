import ChatConformance
import ChatEmulation
import ChatJSON
import ChatTransport
import Synchronization
import UnifiedChat

/// The suite's neutral faults as rules and acts of an emulator.
final class EmulatorFaults: FaultControl {
  private let host: EmulatorHost
  private let rules = Mutex<[UInt64: ChatConformance.FaultRule]>([:])

  let hooks: Set<String>

  /// Neutral names of settings, and what they are to this vendor: JSON objects.
  private let settings: [String: String]

  init(host: EmulatorHost, isOnSockets: Bool, settings: [String: String]) {
    self.host = host
    self.settings = settings
    var hooks: Set<String> = [
      "closeSocket", "afterCommit", "beforeReply", "drop", "fail", "duplicate", "reorder", "delay", "http", "truncateBody", "patch",
      "stall", "raw", "kick", "kickByAdmin", "expireCredential", "revokeCredential", "disableUser", "goaway",
      "refuseConnections", "restart", "clock.server", "journal",
    ]
    if isOnSockets { hooks.formUnion(["fragment", "corrupt", "halfClose"]) } else { hooks.insert("virtualTime") }
    if isOnSockets, OpenSSLServer.isAvailable { hooks.insert("tls") }
    self.hooks = hooks.union(settings.keys.map { "setting.\($0)" })
  }

  func inject(_ rule: ChatConformance.FaultRule) async throws {
    do throws(EmulatorControlError) {
      let id = try await host.control.add(Self.emulated(rule))
      rules.withLock { $0[id] = rule }
    } catch { throw Self.neutral(error) }
  }

  func removeRules() async -> [ChatConformance.FaultRule] {
    let missed = await host.control.missedRules().map(\.id)
    await host.control.removeRules()
    return rules.withLock { rules in
      let silent = missed.compactMap { rules[$0] }.filter(\.mustFire)
      rules = [:]
      return silent
    }
  }

  func perform(_ action: ServiceAction) async throws {
    let control = host.control
    do throws(EmulatorControlError) {
      switch action {
      case .user(let fault, let user): try await control.perform(Self.act(fault).action(for: user.rawValue))
      case .cut(let user): try await control.act(.end(.abrupt), on: user.rawValue)
      case .close(let user, let code): try await control.act(.end(.clean(code: code)), on: user.rawValue)
      case .halfClose(let user): try await control.act(.end(.halfClose), on: user.rawValue)
      case .stall(let user): try await control.act(.stall(), on: user.rawValue)
      case .resume(let user): try await control.act(.resume, on: user.rawValue)
      case .refuseConnections(let refuses): await control.refuseConnections(refuses)
      case .restart: try await control.restart(keepingState: true)
      case .skew(let skew): await control.setSkew(skew)
      case .setting(let name):
        guard let text = settings[name], let members = (try? JSONValue(parsing: text))?.object?.members else {
          throw EmulatorControlError.noHook(action.hook)
        }
        try await control.apply(settings: Dictionary(members.map { ($0.key, $0.value) }) { first, _ in first })
      }
    } catch { throw Self.neutral(error) }
  }

  private static func neutral(_ error: EmulatorControlError) -> any Error {
    switch error {
    case .noHook(let name): NoHook(name)
    case .emulator(let fault) where fault.kind == .unsupported: NoHook(fault.description)
    default: error
    }
  }

  // MARK: The wire

  func wire(since index: UInt64) async -> [WireEntry] {
    await host.control.journal(since: index).map { entry in
      WireEntry(
        index: entry.index, time: Timestamp(milliseconds: entry.time), isFromClient: entry.direction == .inbound, kind: Self.kind(entry.kind),
        operation: entry.operation.name, user: entry.operation.user.map { UserID($0) },
        channel: entry.operation.channel.map { ChannelID($0) }, status: entry.status, size: entry.size,
        bytes: entry.bytes ?? [], isText: entry.kind == .text)
    }
  }

  private static func kind(_ kind: JournalEntry.Kind) -> String {
    switch kind {
    case .http: "http"
    case .open: "open"
    case .text, .binary: "message"
    case .ping: "ping"
    case .accept, .reject, .close: "close"
    }
  }

  func sockets(of user: UserID) async -> Int { await host.control.sessions(of: user.rawValue).count }

  // MARK: Rules

  private static func act(_ fault: ChatConformance.FaultRule.UserFault) -> ChatEmulation.FaultRule.UserAction {
    switch fault {
    case .kick: .kick
    case .kickByAdmin: .kickByAdmin
    case .expireCredential: .expireCredential
    case .revokeCredential: .revokeCredential
    case .disableUser: .disableUser
    case .goaway: .goaway
    }
  }

  private static func emulated(_ rule: ChatConformance.FaultRule) -> ChatEmulation.FaultRule {
    let match = ChatEmulation.FaultRule.Match(
      rule.operation == "any" ? nil : rule.operation, user: rule.user?.rawValue, channel: rule.channel?.rawValue)
    let phase: ChatEmulation.FaultRule.Phase =
      switch rule.phase {
      case .received: .received
      case .afterCommit: .afterCommit
      case .beforeReply: .beforeReply
      case .beforePush: .beforePush
      }
    return ChatEmulation.FaultRule(
      match, at: phase, do: action(rule.action), from: rule.nth, times: rule.times, mustFire: rule.mustFire)
  }

  private static func action(_ action: ChatConformance.FaultRule.Action) -> ChatEmulation.FaultRule.Action {
    switch action {
    case .drop: .drop
    case .closeSocket: .closeSocket(.abrupt)
    case .fail(let kind): .fail(.init(kind.name))
    case .refuse(let code): .fail(.init("server", code: code))
    case .duplicate(let count): .duplicate(times: count - 1)
    case .reorder(let window): .reorder(window: window)
    case .delay(let time): .delay(time)
    case .http(let status, let headers, let body):
      .http(
        HTTPResponse(
          status: status, headers: HTTPHeaders(headers.sorted { $0.key < $1.key }.map { HTTPHeaders.Field($0.key, $0.value) }), body: body))
    case .truncateBody(let count): .truncateBody(count)
    case .patch(let changes): .patch(changes)
    case .stall: .stall
    case .act(let fault): .act(act(fault))
    case .fragment(let sizes): .fragment(sizes)
    case .raw(let text): .raw(.text(text))
    case .rawBytes(let bytes): .raw(.binary(bytes))
    case .corrupt(let offset): .corrupt(offset: offset, xor: 0x80)
    }
  }
}
