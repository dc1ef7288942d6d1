import ChatJSON
import UnifiedChat

/// One lie of a service, in neutral words. A harness maps it to its emulator's control interface.
public struct FaultRule: Sendable, Hashable, CustomStringConvertible {
  public enum Phase: String, Sendable, Hashable, CaseIterable {
    /// The frame was read, nothing was done.
    case received
    /// The change is stored, the answer is not yet on its way.
    case afterCommit
    /// As `afterCommit`, for what is done to the answer.
    case beforeReply
    /// A push is about to leave for one session.
    case beforePush
  }

  public enum Action: Sendable, Hashable {
    /// Nothing goes out.
    case drop
    /// The link of that user is cut without a close frame.
    case closeSocket
    /// The operation is refused with the vendor's code for this kind.
    case fail(ChatError.Kind)
    /// The operation is refused with this code.
    case refuse(code: Int)
    /// The same frame goes out so many times.
    case duplicate(Int)
    /// So many frames are held and go out in reverse.
    case reorder(Int)
    /// The frame, and what is behind it on its link, waits so long.
    case delay(Duration)
    /// Answers in the service's place.
    case http(status: Int, headers: [String: String] = [:], body: [UInt8] = [])
    /// Keeps so many bytes of a body.
    case truncateBody(Int)
    /// Sets or removes values at JSON Pointers of the frame or body.
    case patch([String: JSONValue?])
    /// The frame, and all behind it on its link, waits until `ServiceAction.resume`.
    case stall
    /// What the service does to the user of the frame.
    case act(UserFault)
    /// A message in fragments of these sizes; sockets only.
    case fragment([Int])
    /// This text goes out before the frame.
    case raw(String)
    /// These bytes go out before the frame.
    case rawBytes([UInt8])
    /// The byte at this place of the frame, its header included, has its highest bit turned; sockets only.
    case corrupt(offset: Int)
  }

  /// What a service does to one user.
  public enum UserFault: String, Sendable, Hashable, CaseIterable {
    case kick, kickByAdmin, expireCredential, revokeCredential, disableUser, goaway
  }

  /// auth, resume, send, push, history, channelCreate, channelQuery, member, edit, recall, read, delivered, typing,
  /// changelog, file, ping; `any` for every frame.
  public var operation: String
  public var user: UserID?
  public var channel: ChannelID?
  /// Fires from the n-th match on, from 1.
  public var nth: Int
  /// Fires at most so often; nil without end.
  public var times: Int?
  public var phase: Phase
  public var action: Action
  /// Not having fired is a failure of the case.
  public var mustFire: Bool

  public init(
    _ operation: String, user: UserID? = nil, channel: ChannelID? = nil, nth: Int = 1, times: Int? = 1,
    phase: Phase = .received, action: Action, mustFire: Bool = true
  ) {
    self.operation = operation
    self.user = user
    self.channel = channel
    self.nth = nth
    self.times = times
    self.phase = phase
    self.action = action
    self.mustFire = mustFire
  }

  public var description: String { "\(action) at the \(nth). \(operation) (\(phase.rawValue))" }

  /// The canonical names of the hooks that the rule uses.
  var hooks: [String] {
    let name =
      switch action {
      case .drop: "drop"
      case .closeSocket: "closeSocket"
      case .fail, .refuse: "fail"
      case .duplicate: "duplicate"
      case .reorder: "reorder"
      case .delay: "delay"
      case .http: "http"
      case .truncateBody: "truncateBody"
      case .patch: "patch"
      case .stall: "stall"
      case .act(let fault): fault.rawValue
      case .fragment: "fragment"
      case .raw, .rawBytes: "raw"
      case .corrupt: "corrupt"
      }
    switch phase {
    case .afterCommit: return [name, "afterCommit"]
    case .beforeReply: return [name, "beforeReply"]
    case .received, .beforePush: return [name]
    }
  }
}

/// What a case does to a service at once.
public enum ServiceAction: Sendable, Hashable {
  case user(UserFault, UserID)
  /// Cuts the links of a user without a close frame.
  case cut(UserID)
  /// Closes them with this code.
  case close(UserID, code: UInt16)
  /// Ends the service's half of them: it says no more and still hears. The hook is `halfClose`.
  case halfClose(UserID)
  /// Holds every frame from and to a user.
  case stall(UserID)
  case resume(UserID)
  /// No new link is accepted; open ones stay.
  case refuseConnections(Bool)
  /// Cuts every link and starts again with the same state.
  case restart
  /// Switches a setting of the service on, by its neutral name; every link is cut.
  case setting(String)
  /// The service's clock runs so far ahead (or behind).
  case skew(Duration)

  public typealias UserFault = FaultRule.UserFault

  /// The canonical name of what the target needs for it.
  public var hook: String {
    switch self {
    case .user(let fault, _): fault.rawValue
    case .cut: "closeSocket"
    case .close: "closeSocket"
    case .halfClose: "halfClose"
    case .stall, .resume: "stall"
    case .refuseConnections: "refuseConnections"
    case .restart: "restart"
    case .setting(let name): "setting.\(name)"
    case .skew: "clock.server"
    }
  }
}

/// One frame or request that passed, in neutral words.
public struct WireEntry: Sendable, Hashable {
  /// Counts up in a run.
  public var index: UInt64
  /// On the service's clock.
  public var time: Timestamp
  public var isFromClient: Bool
  /// `http`, `open`, `message`, `ping`, `close`.
  public var kind: String
  public var operation: String
  public var user: UserID?
  public var channel: ChannelID?
  public var status: Int?
  public var size: Int
  /// Body or payload.
  public var bytes: [UInt8]
  /// A frame of text, not a binary one.
  public var isText: Bool

  public init(
    index: UInt64, time: Timestamp, isFromClient: Bool, kind: String, operation: String, user: UserID?, channel: ChannelID?,
    status: Int?, size: Int, bytes: [UInt8], isText: Bool = false
  ) {
    self.index = index
    self.time = time
    self.isFromClient = isFromClient
    self.kind = kind
    self.operation = operation
    self.user = user
    self.channel = channel
    self.status = status
    self.size = size
    self.bytes = bytes
    self.isText = isText
  }
}
