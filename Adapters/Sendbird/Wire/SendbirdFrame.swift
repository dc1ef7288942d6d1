import ChatJSON

/// One frame of the realtime link: four ASCII capitals, then one JSON object, then a line feed.
///
/// A WebSocket text may hold several frames. Unknown commands are frames too: a client ignores them.
public struct SendbirdFrame: Sendable, Hashable {
  public var command: String
  public var payload: JSONObject

  public init(_ command: String, _ payload: JSONObject) {
    self.command = command
    self.payload = payload
  }

  /// The answer's link to its request; nil when it is absent or "".
  public var requestID: String? {
    guard let id = payload["req_id"]?.string, !id.isEmpty else { return nil }
    return id
  }

  /// With the line feed that ends a client's frame. Servers send it too; the official client accepts both.
  public var text: String { command + JSONValue.object(payload).text() + "\n" }

  /// The frames of one WebSocket text, in order. Pieces of four bytes or fewer are skipped, as the official client
  /// does; a piece that is no frame gives an error in its place and does not hide its neighbours.
  public static func parse(_ text: String) -> [Result<SendbirdFrame, SendbirdFrameError>] {
    text.utf8.split(separator: UInt8(ascii: "\n")).filter { $0.count > 4 }.map { piece in
      Result { () throws(SendbirdFrameError) in try SendbirdFrame(piece: Array(piece)) }
    }
  }

  private init(piece: [UInt8]) throws(SendbirdFrameError) {
    let name = piece.prefix(4)
    guard name.allSatisfy({ (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }) else { throw .command }
    command = String(decoding: name, as: UTF8.self)
    do {
      guard let object = try JSONValue(parsing: Array(piece.dropFirst(4)), limits: SendbirdJSON.limits).object else {
        throw SendbirdFrameError.payload
      }
      payload = object
    } catch { throw .payload }
  }
}

/// Why a piece of text is no frame.
public enum SendbirdFrameError: Error, Sendable, Hashable {
  /// The first four bytes are not capitals.
  case command
  /// What follows the command is not one JSON object.
  case payload
}

/// What events of a channel mean: `cat` of `SYEV`.
public enum SendbirdCategory {
  public static let joined: Int64 = 10000
  public static let left: Int64 = 10001
  public static let operatorsChanged: Int64 = 10002
  public static let invited: Int64 = 10020
  public static let invitationDeclined: Int64 = 10022
  public static let entered: Int64 = 10102
  public static let exited: Int64 = 10103
  public static let unmuted: Int64 = 10200
  public static let muted: Int64 = 10201
  public static let unbanned: Int64 = 10600
  public static let banned: Int64 = 10601
  public static let unfrozen: Int64 = 10700
  public static let frozen: Int64 = 10701
  public static let typingStarted: Int64 = 10900
  public static let typingEnded: Int64 = 10901
  public static let propertyChanged: Int64 = 11000
  public static let metadataChanged: Int64 = 11100
  public static let metacountersChanged: Int64 = 11200
  public static let pinsChanged: Int64 = 11300
  public static let deleted: Int64 = 12000
  public static let hidden: Int64 = 13000
  public static let unhidden: Int64 = 13001
  /// `cat` of `USEV`.
  public static let unblocked: Int64 = 20000
  public static let blocked: Int64 = 20001
}

public enum SendbirdJSON {
  /// Half of a surrogate pair, which some client cut off, becomes U+FFFD: a frame or a page is not lost for it.
  public static let limits = JSONLimits(loneSurrogates: .replace)
}
