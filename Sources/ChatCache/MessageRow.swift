import ChatInterchange
import ChatJSON
import UnifiedChat

/// A message as it stands in the table.
struct MessageRow {
  enum Visibility: String { case visible, hidden, duplicate }

  var row: Int64
  var message: Message
  var visibility: Visibility

  /// Rows stand in the order of time: each millisecond has so many.
  static let rowsPerMillisecond: Int64 = 1 << 20

  /// The rows of messages that were made at `time`; times before 1970 and after 2100 share the first and the last.
  static func rows(at time: Timestamp) -> ClosedRange<Int64> {
    let first = min(max(time.milliseconds, 0), 1 << 42) * rowsPerMillisecond
    return first...first + rowsPerMillisecond - 1
  }

  static func holds(_ row: Int64, _ time: Timestamp) -> Bool { rows(at: time).contains(row) }

  static let columns = """
    row, payload, local_id, local_order, state, error, local_extension, visibility, id, client_id, sender, major, minor,
    tail
    """
  static let columnCount: Int32 = 14

  /// The record payload holds what the vendor holds; the other columns hold what this device adds.
  init(_ row: Row) throws(ChatError) {
    self.row = row.int(0)
    do throws(RecordError) {
      message = try Message(json: Self.parse(row.bytes(1)))
    } catch {
      throw ChatError(.storage(.corrupt), operation: .cache, detail: "message row \(row.int(0)): \(error)")
    }
    message.localID = row.optionalText(2).map { LocalID($0) }
    message.localOrder = row.optionalInt(3)
    message.state = Self.state(row.text(4), error: row.optionalText(5))
    message.localExtension = row.optionalText(6).map { JSONText(unchecked: $0) }
    visibility = Visibility(rawValue: row.text(7)) ?? .visible
  }

  private static func parse(_ bytes: [UInt8]) throws(RecordError) -> JSONValue {
    do { return try JSONValue(parsing: bytes) } catch {
      throw RecordError(path: "", reason: "\(error)")
    }
  }

  private static func state(_ name: String, error: String?) -> MessageState {
    switch name {
    case "pending": .pending
    case "unknown": .unknown
    case "failed": .failed(ChatError(storedText: error ?? ""))
    default: .sent
    }
  }
}

extension MessageState {
  /// The value of column `state`. Cancelled messages are not kept.
  var stored: String {
    switch self {
    case .pending: "pending"
    case .unknown: "unknown"
    case .failed: "failed"
    case .sent, .cancelled: "sent"
    }
  }

  var storedError: String? { if case .failed(let error) = self { error.storedText() } else { nil } }
}

extension Message {
  /// Whether it counts as unread for those who did not write it.
  public var isCountable: Bool {
    switch content {
    case .system, .recalled: false
    default: sender != nil
    }
  }
}

extension Message {
  /// Put into the cache by `insertLocal`: it has a `localID`, neither id nor position, nor a client id as what was sent
  /// to those online only has, and is `.sent`, since nothing of it is to be sent.
  public var isLocalOnly: Bool {
    id == nil && position == nil && clientMessageID == nil && localID != nil && state == .sent
  }
}

extension MessagePosition {
  /// Below and above every position of a vendor: the ends of ranges.
  public static let lowest = MessagePosition(major: .min, minor: .min, tail: "")
  public static let highest = MessagePosition(major: .max, minor: .max, tail: "\u{10FFFF}")

  var values: [SQLValue] { [.int(major), .int(minor), .text(tail)] }

  static func values(_ position: MessagePosition?) -> [SQLValue] { position?.values ?? [.null, .null, .null] }

  /// Three columns from `first` on; nil when they are NULL.
  init?(_ row: Row, from first: Int32) {
    guard !row.isNull(first) else { return nil }
    self.init(major: row.int(first), minor: row.int(first + 1), tail: row.text(first + 2))
  }
}
