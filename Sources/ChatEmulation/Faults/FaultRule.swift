import ChatJSON
import ChatTransport

/// One lie that an emulator tells: what it is about, when, and what happens. Neutral, so that one case serves every
/// vendor.
public struct FaultRule: Sendable, Hashable {
  public enum Direction: String, Sendable, Hashable, CaseIterable {
    /// From a client.
    case inbound = "in"
    /// To a client.
    case outbound = "out"
  }

  /// Which frames and requests. What is nil matches everything; ids compare byte by byte.
  public struct Match: Sendable, Hashable {
    /// A neutral operation name of `EmulatorOperation`.
    public var operation: String?
    /// Nil: as the phase implies.
    public var direction: Direction?
    public var user: String?
    public var channel: String?
    public var clientID: String?
    /// The vendor's own name of the frame or request.
    public var vendorName: String?
    /// Values at JSON Pointers of the frame's or body's JSON.
    public var values: [String: JSONValue]

    public init(
      _ operation: String? = nil, direction: Direction? = nil, user: String? = nil, channel: String? = nil,
      clientID: String? = nil, vendorName: String? = nil, values: [String: JSONValue] = [:]
    ) {
      self.operation = operation
      self.direction = direction
      self.user = user
      self.channel = channel
      self.clientID = clientID
      self.vendorName = vendorName
      self.values = values
    }
  }

  /// When, in the life of one frame. A host sees the ends of this line and not what happens inside the machine:
  /// `received`, `authorised` and `beforeCommit` are one moment, before the machine handles the input; `afterCommit`
  /// and `beforeReply` are one, after it did and before anything leaves, and act on what goes to the sender.
  public enum Phase: String, Sendable, Hashable, CaseIterable {
    case received, authorised, beforeCommit, afterCommit, beforeReply, afterReply
    case beforeFanout, beforePush, afterPush
  }

  public enum Action: Sendable, Hashable {
    /// Holds this frame, and all later ones of its link in its direction, for a time of the emulator's clock; up to
    /// `jitter` more, seeded.
    case delay(Duration, jitter: Duration = .zero)
    case drop
    /// Sends or handles it `times` more, `gap` apart.
    case duplicate(times: Int = 1, gap: Duration = .zero)
    /// Collects `window` frames that match and lets them go in reverse order, or shuffled by the seed.
    case reorder(window: Int, shuffled: Bool = false)
    /// The vendor's own refusal; only where the emulator knows one.
    case fail(EmulatorFailure)
    /// Answers a request or an upgrade in the emulator's place, or instead of its answer.
    case http(HTTPResponse)
    /// Keeps this many bytes of a response's body, or of a frame's payload.
    case truncateBody(Int)
    case closeSocket(Ending)
    /// Holds this frame and all later ones of its link in its direction until `resume`.
    case stall
  
    case patch([String: JSONValue?])
    /// What `EmulatorAction` does, to the user of the frame.
    case act(UserAction)
    /// Sends this frame to the link before going on.
    case raw(WebSocketMessage)
    /// Cuts the frame into fragments of these sizes, the rest in a last one; sockets only.
    case fragment([Int])
    /// Sends the frame with one of its bytes changed; sockets only. Offset 0 is the frame's first header byte.
    case corrupt(offset: Int, xor: UInt8)
    /// Holds as `stall` does, until the gate of this name is opened.
    case gate(String)
  }

  public enum Ending: Sendable, Hashable {
    /// Without a close frame; a reset on a socket.
    case abrupt
    case clean(code: UInt16, reason: String = "")
    /// No more bytes to the client, but its bytes are still read; sockets only.
    case halfClose
  }

  public enum UserAction: String, Sendable, Hashable, CaseIterable {
    case kick, kickByAdmin, expireCredential, revokeCredential, disableUser, goaway

    /// The same, done at once to `user`.
    public func action(for user: String) -> EmulatorAction {
      switch self {
      case .kick: .kick(user: user)
      case .kickByAdmin: .kickByAdmin(user: user)
      case .expireCredential: .expireCredential(user: user)
      case .revokeCredential: .revokeCredential(user: user)
      case .disableUser: .disableUser(user: user)
      case .goaway: .goaway(user: user)
      }
    }
  }

  public var match: Match
  public var phase: Phase
  /// In this order; the first drop or closeSocket ends the chain, for later rules too.
  public var actions: [Action]
  /// Fires on this match only, counted from 1.
  public var nth: Int?
  /// Fires from this match on, counted from 1.
  public var from: Int?
  /// Fires on every so many matches.
  public var every: Int?
  /// Fires at most this often; nil without end.
  public var times: Int?
  /// Fires with this probability (0…1), seeded.
  public var probability: Double?
  /// Not having fired is a mistake of the case that set it.
  public var mustFire: Bool

  public init(
    _ match: Match, at phase: Phase = .received, do actions: Action..., nth: Int? = nil, from: Int? = nil,
    every: Int? = nil, times: Int? = 1, probability: Double? = nil, mustFire: Bool = true
  ) {
    self.match = match
    self.phase = phase
    self.actions = actions
    self.nth = nth
    self.from = from
    self.every = every
    self.times = times
    self.probability = probability
    self.mustFire = mustFire
  }

  /// Which way the frames go that this rule is about.
  public var direction: Direction {
    if let direction = match.direction { return direction }
    if match.operation == "push" || match.operation == "ack" { return .outbound }
    switch phase {
    case .beforeFanout, .beforePush, .afterPush: return .outbound
    default: return .inbound
    }
  }
}

extension FaultRule.Action {
  /// The name in JSON and in errors.
  var name: String {
    switch self {
    case .delay: "delay"
    case .drop: "drop"
    case .duplicate: "duplicate"
    case .reorder: "reorder"
    case .fail: "fail"
    case .http: "http"
    case .truncateBody: "truncateBody"
    case .closeSocket(.halfClose): "halfClose"
    case .closeSocket: "closeSocket"
    case .stall: "stall"
    case .patch: "patch"
    case .act(let action): action.rawValue
    case .raw: "raw"
    case .fragment: "fragment"
    case .corrupt: "corrupt"
    case .gate: "gate"
    }
  }

  /// True where only a socket can do it.
  var needsSocket: Bool {
    switch self {
    case .fragment, .corrupt, .closeSocket(.halfClose): true
    default: false
    }
  }

  var isTerminal: Bool {
    switch self {
    case .drop, .closeSocket(.abrupt), .closeSocket(.clean): true
    default: false
    }
  }
}

/// One frame or request that passed through an emulator.
public struct JournalEntry: Sendable, Hashable {
  public enum Kind: String, Sendable, Hashable { case http, open, accept, reject, text, binary, ping, close }

  /// Counts from 1 and never repeats in a run.
  public var index: UInt64
  /// The emulator's clock, ms since 1970.
  public var time: Int64
  /// The WebSocket, where it is one.
  public var connection: EmulatorConnectionID?
  /// The HTTP exchange, where it is one.
  public var exchange: EmulatorExchangeID?
  public var direction: FaultRule.Direction
  public var kind: Kind
  public var operation: EmulatorOperation
  /// Bytes of the body or payload.
  public var size: Int
  /// The status of a response.
  public var status: Int?
  /// The rules that fired on it.
  public var rules: [UInt64]
  /// Body or payload, where the journal keeps them.
  public var bytes: [UInt8]?
}

/// What a host keeps of the frames that pass.
public struct JournalSettings: Sendable, Hashable {
  /// The newest entries that are kept; 0 keeps none.
  public var limit: Int
  /// Bodies and payloads are kept too: tokens and texts are among them.
  public var keepsBytes: Bool

  public init(limit: Int, keepsBytes: Bool = false) {
    self.limit = limit
    self.keepsBytes = keepsBytes
  }

  public static let off = JournalSettings(limit: 0)
  public static let on = JournalSettings(limit: 10_000)
}

/// A rule as it stands in a host.
public struct FaultRuleStatus: Sendable, Hashable {
  public var id: UInt64
  public var rule: FaultRule
  /// Frames that matched, and how often it fired.
  public var matches: Int
  public var hits: Int
  /// An action that could not be done on a frame it fired on, and why.
  public var failure: String?

  /// True for a rule that had to fire and did not, or could not do what it says.
  public var isMissed: Bool { failure != nil || rule.mustFire && hits == 0 }
}

/// Why a control call was refused.
public enum EmulatorControlError: Error, Sendable, Hashable, CustomStringConvertible {
  /// This emulator, or its transport, can't do it: a case that needs it is skipped.
  case noHook(String)
  case notFound(String)
  case invalid(String)
  case emulator(EmulatorError)

  public var description: String {
    switch self {
    case .noHook(let name): "no hook: \(name)"
    case .notFound(let what): "not found: \(what)"
    case .invalid(let what): "invalid: \(what)"
    case .emulator(let error): error.description
    }
  }
}
