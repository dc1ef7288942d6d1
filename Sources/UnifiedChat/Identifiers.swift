/// An id that means nothing but itself: compared byte by byte, never trimmed, folded or normalised.
///
/// Two ids that differ only in Unicode normalisation are two ids, which `String` would call equal.
public protocol OpaqueID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible, ExpressibleByStringLiteral {
  var rawValue: String { get }
  init(_ rawValue: String)
}

extension OpaqueID {
  public static func == (left: Self, right: Self) -> Bool {
    left.rawValue.utf8.elementsEqual(right.rawValue.utf8)
  }

  /// By bytes.
  public static func < (left: Self, right: Self) -> Bool {
    left.rawValue.utf8.lexicographicallyPrecedes(right.rawValue.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    var text = rawValue
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }

  public init(stringLiteral value: String) { self.init(value) }
  public init(from decoder: any Decoder) throws { self.init(try decoder.singleValueContainer().decode(String.self)) }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rawValue)
  }

  public var description: String { rawValue }
}

/// A user, as the app and the vendor name them.
public struct UserID: OpaqueID {
  public let rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// A channel, as the vendor names it (an adapter may derive it where the vendor has no object).
public struct ChannelID: OpaqueID {
  public let rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// A committed message, as the vendor names it. Unique within its channel.
public struct MessageID: OpaqueID {
  public let rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// What travels with a send and is its idempotency key wherever the vendor allows. Normally equal to the `LocalID`;
/// an adapter may change it on a resend where the vendor demands, keeping the link.
public struct ClientMessageID: OpaqueID {
  public let rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// Made once per outgoing message before anything is stored or sent, and never changed: the key of the outbox.
public struct LocalID: OpaqueID {
  public let rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// A vendor's short name in configuration, reports and registries, lower case: for example `example`.
public struct VendorName: OpaqueID {
  public let rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// Where a reading stopped. Opaque to all but who made it, resumable after a restart, safe to store.
public struct Cursor: OpaqueID {
  public let rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// The next page of one query. Opaque and short-lived.
public struct PageToken: OpaqueID {
  public let rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
}
