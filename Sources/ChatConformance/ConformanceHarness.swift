import ChatClient
import UnifiedChat

/// Where the cases run.
public enum ConformanceTarget: String, Sendable, Hashable, CaseIterable {
  /// Without a wire.
  case ideal
  /// The adapter's own emulator, without sockets, on a virtual clock.
  case inproc
  /// The emulator on 127.0.0.1.
  case loopback
  /// The vendor's service, or a self-hosted server.
  case live
}

/// Somebody who can connect.
public struct TestUser: Sendable, Hashable {
  public var id: UserID
  public var credential: Credential

  public init(id: UserID, credential: Credential) {
    self.id = id
    self.credential = credential
  }
}

/// What one adapter is made with.
public struct TestDevice: Sendable {
  /// Names one device among several of a user.
  public var name: String
  public var clock: any ChatClock
  public var credentials: (any CredentialProvider)?
  /// Logs in in the way that ends another login of the same user, where the vendor has such a way.
  public var isExclusive: Bool
  /// Speaks in frames of JSON where the vendor has several forms, so that a fault can change what is in them.
  public var usesJSON: Bool
  /// Gets every line that the adapter writes, at the most verbose level.
  public var log: (@Sendable (Profile.LogLevel, String) -> Void)?

  public init(
    name: String, clock: any ChatClock, credentials: (any CredentialProvider)? = nil, isExclusive: Bool = false,
    usesJSON: Bool = false,
    log: (@Sendable (Profile.LogLevel, String) -> Void)? = nil
  ) {
    self.name = name
    self.clock = clock
    self.credentials = credentials
    self.isExclusive = isExclusive
    self.usesJSON = usesJSON
    self.log = log
  }
}

/// What an adapter brings to be tested, and nothing more. One harness is one fresh service: each case gets its own.
public protocol ConformanceHarness: Sendable {
  var target: ConformanceTarget { get }
  /// What the adapter declares.
  var capabilities: CapabilitySet { get }
  /// Where the vendor differs from the model without a capability that says so.
  var differences: Set<DeclaredDifference> { get }
  /// Numbers by name: `text.characters` where a text is counted, or `frame.bytes` where all of a frame is;
  /// `channel.frame.bytes` where a channel's data goes by such a frame; `user.bytes`, `page.history`, `file.bytes`,
  /// `group.members`, `signature.seconds`.
  var limits: [String: Int64] { get }
  /// Where the parts of a pushed message stand in its frame, as JSON Pointers; `{channel}` stands for its channel.
  var paths: [String: String] { get }
  /// Changes that make a pushed text message an odd one, by name: JSON Pointers as in `paths`, and values as JSON; a key
  /// that begins with `~` is a piece of the frame's text, and the value what stands in its place.
  var odd: [String: [String: String]] { get }
  /// Codes with which the service refuses a send for good, and the names of their kinds.
  var codes: [Int: String] { get }
  /// A body of a request's answer with an error inside, and its code; nil where clients ask by frames.
  var errorBody: (text: String, code: String)? { get }
  /// Cases that find nothing to look at here, by id, and why: reports print it. A case that gives up on its way and does
  /// not stand here fails.
  var declaredSkips: [String: String] { get }
  /// What an app's server signs with; nil where nothing is signed.
  var signingSecret: String? { get }
  var clock: any ChatClock { get }
  /// A source of client ids, so that a run can be repeated.
  var seed: UInt64 { get }

  /// Registers a user where the vendor demands it. `name` is unique within the harness.
  func makeUser(_ name: String) async throws -> TestUser
  /// What an app's token server answers for an existing user.
  func issueCredential(for user: UserID) async throws -> Credential
  func makeAdapter(_ device: TestDevice) async throws -> any ChatAdapter
  func makeSource() async throws -> any ChatSource
  func makeDestination() async throws -> any ChatDestination
  /// nil where the service cannot be made to lie.
  var faults: (any FaultControl)? { get }
  /// nil where there are none.
  var acts: (any VendorActs)? { get }
  /// An adapter whose service shows such a certificate, on every port. The hook is `tls`.
  func makeAdapter(_ device: TestDevice, facing certificate: BadCertificate) async throws -> any ChatAdapter
  /// Lets what is under way go on without moving the clock.
  func settle() async
  /// Moves time forward (virtual), or lets it pass (real).
  func pass(_ duration: Duration) async
  /// Sockets and requests that are still open, one line each.
  func leftovers() async -> [String]
  /// Calls of the adapter that the service does not have, one line each.
  func unexpectedCalls() async -> [String]
  /// The frames of this service so far, readable and without secrets, at most so many lines.
  func transcript(limit: Int) async -> [String]
  /// Changes how a client is made: for harnesses that break the client on purpose.
  func adjust(_ options: inout ChatOptions)
  /// Runs between the statements that upgrade a cache, with a way to run further ones: for harnesses that break the
  /// upgrade on purpose.
  var betweenStatements: (@Sendable (_ run: (String) throws(ChatError) -> Void) -> Void)? { get }
  /// Where the events of a client are read from: the client, but for harnesses that break it on purpose.
  func listening(to chat: Chat) -> any ChatListening
  /// Removes what this harness made.
  func cleanUp() async
}

extension ConformanceHarness {
  public func adjust(_ options: inout ChatOptions) {}
  public var betweenStatements: (@Sendable (_ run: (String) throws(ChatError) -> Void) -> Void)? { nil }
  public func listening(to chat: Chat) -> any ChatListening { chat }
  public var differences: Set<DeclaredDifference> { [] }
  public var declaredSkips: [String: String] { [:] }
  public var limits: [String: Int64] { [:] }
  public var paths: [String: String] { [:] }
  public var odd: [String: [String: String]] { [:] }
  public var codes: [Int: String] { [:] }
  public var errorBody: (text: String, code: String)? { nil }
  public var signingSecret: String? { nil }
  public var acts: (any VendorActs)? { nil }
  public func makeAdapter(_ device: TestDevice, facing certificate: BadCertificate) async throws -> any ChatAdapter {
    throw NoHook("tls")
  }
  public func leftovers() async -> [String] { [] }
  public func unexpectedCalls() async -> [String] { [] }
  public func transcript(limit: Int) async -> [String] { [] }

  /// A device on the harness' own clock.
  public func makeAdapter(device: String) async throws -> any ChatAdapter {
    try await makeAdapter(TestDevice(name: device, clock: clock))
  }
}

/// What a vendor's service, its dashboard and its own calls can do, and no call of the contract.
public protocol VendorActs: Sendable {
  /// The service says these texts to each reader, in a channel in which nobody else may speak.
  /// - Returns: the channel's id where it is known; else the readers are told of it.
  func announce(_ texts: [String], to readers: [UserID]) async throws -> ChannelID?

  /// From now on nobody comes into a channel but who asks and is let in.
  func closeDoor(of channel: ChannelID, by owner: any ChatAdapter) async throws
  func askToJoin(_ channel: ChannelID, _ text: String, by user: any ChatAdapter) async throws
  /// Requests that nobody has answered, as one who may answer them sees them.
  func openRequests(seenBy user: any ChatAdapter) async throws -> [(user: UserID, channel: ChannelID, text: String)]
  func answer(_ user: UserID, _ channel: ChannelID, accept: Bool, by manager: any ChatAdapter) async throws

  /// In how many forms the vendor's export files come; 0 where it has none.
  var exportForms: Int { get }
  /// Parts of messages that exports do not have, by the names of `comparison`.
  var absentFromExports: Set<String> { get }
  /// Writes what the vendor's export has of everything into a folder, and reads it from there.
  func export(to folder: String, form: Int) async throws -> any ChatSource
}

/// Why a certificate is no good.
public enum BadCertificate: String, Sendable, Hashable, CaseIterable {
  /// Nobody vouches for it.
  case selfSigned
  /// Vouched for, and another host's.
  case otherHost
  /// Vouched for, and ended.
  case expired
}

/// The fault interface in neutral words.
public protocol FaultControl: Sendable {
  /// What this target can do; a case that needs another hook is skipped with `noHook`.
  var hooks: Set<String> { get }
  func inject(_ rule: FaultRule) async throws
  /// Removes all rules and returns those that had to fire and did not.
  func removeRules() async -> [FaultRule]
  func perform(_ action: ServiceAction) async throws
  /// What passed after entry `index`, oldest first. The hook is `journal`.
  func wire(since index: UInt64) async -> [WireEntry]
  /// Open sockets of a user. The hook is `journal`.
  func sockets(of user: UserID) async -> Int
}
