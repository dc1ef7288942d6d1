import ChatTransport
import LeanCloudWire

/// One login on one socket.
struct Session: Sendable {
  var peer: String
  var tag: String?
  var deviceID: String?
  var installation: String?
  var token: String
  /// What the client said that it can do; see `Feature`.
  var bitmap: Int64
  /// A client of the 2014 model: peers and groups in place of conversations.
  var isFirstModel: Bool
  /// Peers whose coming and going is told (2014 model).
  var watched: Set<Key> = []
  /// The chat room that this login is in.
  var room: String?
  /// What the others are told when this login drops without a word.
  var wills: [Will] = []

  struct Will: Sendable {
    var conversation: String
    var id: String
    var data: String
    var isBinary: Bool
  }

  enum Feature: Int64 {
    case patch = 1
    case temporary = 2
    case bindDevice = 4
    case ackTransient = 8
    case notifications = 16
    case partialResults = 32
    case groupReceipts = 64
    case omitPeer = 128
  }

  func has(_ feature: Feature) -> Bool { bitmap & feature.rawValue != 0 }
}

/// One socket with its logins.
final class Connection {
  let id: EmulatorConnectionID
  let codec: LeanCloudCodec
  /// In the order of their opening.
  var sessions: [Session] = []
  /// Commands without `peerId` mean this one.
  var firstPeer: String?
  var lastActivity: Int64

  init(id: EmulatorConnectionID, codec: LeanCloudCodec, now: Int64) {
    self.id = id
    self.codec = codec
    lastActivity = now
  }

  func index(of peer: String) -> Int? {
    let key = Key(peer)
    return sessions.firstIndex { Key($0.peer) == key }
  }
}

/// What is left of a login when its socket drops: enough to reopen it.
struct IssuedToken: Sendable {
  var peer: String
  var tag: String?
  var deviceID: String?
  var expiresAt: Int64
  /// The chat room to rejoin, and until when.
  var room: String?
  var roomUntil: Int64 = 0
}
