import ChatJSON

/// One WebSocket at the emulator's side; never reused within a run.
public struct EmulatorConnectionID: Sendable, Hashable, Comparable {
  public let number: UInt64
  public init(_ number: UInt64) { self.number = number }
  public static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// One HTTP exchange at the emulator's side.
public struct EmulatorExchangeID: Sendable, Hashable {
  public let number: UInt64
  public init(_ number: UInt64) { self.number = number }
}

/// What happens to an emulator. Each is handled to its end before the next.
public enum EmulatorInput: Sendable {
  /// `url` is absolute, with the host that the client used, so that answers can name it.
  case http(EmulatorExchangeID, HTTPRequest)
  /// An upgrade request; answered by `.accept` or `.reject` in the same call.
  case open(EmulatorConnectionID, WebSocketRequest)
  case message(EmulatorConnectionID, WebSocketMessage)
  /// A control ping arrived; the host has answered it with a pong already.
  case ping(EmulatorConnectionID)
  case closed(EmulatorConnectionID, WebSocketClose)
  /// A timer set by `.setTimer` is due.
  case timer(String)
}

/// What an emulator does. The host carries these out in order.
public enum EmulatorOutput: Sendable {
  case respond(EmulatorExchangeID, HTTPResponse)
  case accept(EmulatorConnectionID, subprotocol: String?)
  case reject(EmulatorConnectionID, HTTPResponse)
  case send(EmulatorConnectionID, WebSocketMessage)
  /// A close frame, then the end of the link.
  case close(EmulatorConnectionID, WebSocketClose)
  /// The end of the link without a close frame.
  case cut(EmulatorConnectionID)
  /// Fires `.timer(name)` at `dueAt` (ms since 1970 on the emulator's clock); the same name again moves it.
  case setTimer(String, dueAt: Int64)
  case cancelTimer(String)
}

/// What the world looks like at one input.
public struct EmulatorContext: Sendable {
  /// Server time, ms since 1970.
  public var now: Int64
  /// Seeded: the only source of ids and jitter.
  public var random: EmulatorRandom

  public init(now: Int64, random: EmulatorRandom) {
    self.now = now
    self.random = random
  }
}

/// SplitMix64: small, seedable, the same on every platform.
public struct EmulatorRandom: RandomNumberGenerator, Sendable {
  public var state: UInt64
  public init(seed: UInt64) { state = seed }

  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

/// What one frame or request means, so that a fault rule and a journal entry are the same for every vendor.
public struct EmulatorOperation: Sendable, Hashable {
  /// A neutral name: auth, resume, send, ack, push, edit, recall, read, delivered, typing, history, channelQuery,
  /// channelCreate, member, changelog, file, ping, other.
  public var name: String
  public var user: String?
  public var channel: String?
  public var clientID: String?
  /// The vendor's own name, for the journal: a command, an opcode, or `GET /path/{pattern}`.
  public var vendorName: String

  public init(
    _ name: String, vendorName: String, user: String? = nil, channel: String? = nil, clientID: String? = nil
  ) {
    self.name = name
    self.vendorName = vendorName
    self.user = user
    self.channel = channel
    self.clientID = clientID
  }
}

/// How an emulator is set up. The same for every vendor; what a vendor adds goes into `settings`.
public struct EmulatorOptions: Sendable {
  public var seed: UInt64
  /// Real: page sizes, rates and lengths as the vendor enforces them. Off: none, for bulk loads.
  public var limits: Limits
  /// Open: any user and token is let in.
  public var openAuthentication: Bool
  /// User id to token; such users exist from the start.
  public var users: [(id: String, token: String)]
  public var applicationID: String
  /// The secret of the admin API: API token, server secret or master key.
  public var adminSecret: String
  /// Where clients reach this emulator, for answers that name it: `http://127.0.0.1:7001`.
  public var baseURL: String
  /// Vendor switches by name; an unknown name or value is refused by the emulator's factory.
  public var settings: [String: JSONValue]

  public enum Limits: String, Sendable, CaseIterable { case real, off }

  public init(
    seed: UInt64 = 1, limits: Limits = .real, openAuthentication: Bool = false,
    users: [(id: String, token: String)] = [], applicationID: String = "emulated-app",
    adminSecret: String = "emulated-secret", baseURL: String = "http://127.0.0.1", settings: [String: JSONValue] = [:]
  ) {
    self.seed = seed
    self.limits = limits
    self.openAuthentication = openAuthentication
    self.users = users
    self.applicationID = applicationID
    self.adminSecret = adminSecret
    self.baseURL = baseURL
    self.settings = settings
  }
}

/// Calls made to one endpoint or command of the vendor, for the coverage table.
public struct EmulatorCoverage: Sendable, Hashable {
  public var endpoint: String
  public var isImplemented: Bool
  public var calls: Int

  public init(endpoint: String, isImplemented: Bool, calls: Int) {
    self.endpoint = endpoint
    self.isImplemented = isImplemented
    self.calls = calls
  }
}

/// What a test or the control interface does to a live emulator, neutral names.
public enum EmulatorAction: Sendable, Hashable {
  /// A newer login of the same kind excludes this one, as the vendor does it.
  case kick(user: String)
  case kickByAdmin(user: String)
  case expireCredential(user: String)
  case revokeCredential(user: String)
  case disableUser(user: String)
  case goaway(user: String)
}

/// A refusal that a test asks for, in neutral words.
public struct EmulatorFailure: Sendable, Hashable {
  /// A kind of `ChatError`: permission, notFound, rateLimited, server …
  public var kind: String
  /// The vendor's own code, where the test wants a certain one.
  public var code: Int?
  /// Which of several forms of a refusal, from 1, where the vendor has more than one.
  public var shape: Int?

  public init(_ kind: String, code: Int? = nil, shape: Int? = nil) {
    self.kind = kind
    self.code = code
    self.shape = shape
  }
}

/// A vendor's server as a deterministic machine: no sockets, no clock, no tasks. Given the same options and the same
/// inputs at the same times it gives the same outputs.
public protocol VendorEmulator: SendableMetatype {
  /// The vendor's short name, as in a configuration profile.
  static var vendor: String { get }

  /// - Throws: `EmulatorError` that names the wrong option.
  init(options: EmulatorOptions) throws(EmulatorError)

  /// Where clients reach this emulator; set by the host once its port is known.
  var baseURL: String { get set }

  mutating func handle(_ input: EmulatorInput, context: inout EmulatorContext) -> [EmulatorOutput]

  /// What an input means, without handling it; for fault rules and the journal.
  func operation(of input: EmulatorInput) -> EmulatorOperation
  /// What an outgoing frame or response means.
  func operation(of output: EmulatorOutput) -> EmulatorOperation

  /// - Throws: `.unsupported` where the vendor has no such thing.
  mutating func perform(_ action: EmulatorAction, context: inout EmulatorContext) throws(EmulatorError)
    -> [EmulatorOutput]

  /// The answer that refuses `input` in the vendor's own words, without handling it; nil where the vendor can't refuse
  /// this input in this way.
  func refusal(of input: EmulatorInput, as failure: EmulatorFailure) -> [EmulatorOutput]?

  /// The JSON of a frame that is not plain JSON (binary, base64 or compressed inside), for fault rules; nil where the
  /// text itself is JSON, or JSON after a command word.
  func content(of message: WebSocketMessage, on connection: EmulatorConnectionID, isInbound: Bool) -> JSONValue?
  /// A frame like `message` with another content, as `content(of:on:isInbound:)` gave it.
  func message(
    _ content: JSONValue, like message: WebSocketMessage, on connection: EmulatorConnectionID, isInbound: Bool
  ) -> WebSocketMessage?

  /// Adds neutral records (`Schemas/records.schema.json`, one a call) to the state, as an import by the vendor would.
  mutating func load(_ record: JSONValue, context: inout EmulatorContext) throws(EmulatorError)

  /// The truth, as neutral records in loading order.
  func records() -> [JSONValue]

  var coverage: [EmulatorCoverage] { get }

  /// The whole state, and back. A restored machine behaves as the one that was saved; its connections are gone.
  func snapshot() -> JSONValue
  mutating func restore(_ snapshot: JSONValue) throws(EmulatorError)
}

extension VendorEmulator {
  public func refusal(of input: EmulatorInput, as failure: EmulatorFailure) -> [EmulatorOutput]? { nil }

  public func content(
    of message: WebSocketMessage, on connection: EmulatorConnectionID, isInbound: Bool
  ) -> JSONValue? { nil }

  public func message(
    _ content: JSONValue, like message: WebSocketMessage, on connection: EmulatorConnectionID, isInbound: Bool
  ) -> WebSocketMessage? { nil }
}

public struct EmulatorError: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Kind: Sendable, Hashable { case invalidOption, invalidRecord, unsupported, invalidSnapshot }
  public var kind: Kind
  /// What, where, and the mend, in one line.
  public var description: String

  public init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}

/// A vendor's emulator by name, so that hosts need not know its type.
public struct EmulatorFactory: Sendable {
  public let vendor: String
  public let make: @Sendable (EmulatorOptions) throws(EmulatorError) -> any VendorEmulator

  public init<E: VendorEmulator>(_ type: E.Type) {
    vendor = type.vendor
    make = { (options) throws(EmulatorError) in try E(options: options) }
  }
}

/// Both clients, as an adapter gets them.
public struct Transports: Sendable {
  public var http: any HTTPClient
  public var webSocket: any WebSocketClient

  public init(http: any HTTPClient, webSocket: any WebSocketClient) {
    self.http = http
    self.webSocket = webSocket
  }
}
