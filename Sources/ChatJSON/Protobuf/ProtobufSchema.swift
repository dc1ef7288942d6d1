/// The messages of a protobuf protocol, and the transcoder between their bytes and JSON values.
///
/// Made from field tables whose format `Schemas/README.md` describes. Immutable: make it once and share it.
public struct ProtobufSchema: Sendable {
  var messages: [Message] = []
  var messageIndex: [ByteKey: Int] = [:]
  var enums: [Enumeration] = []

  /// Of one table.
  /// - Throws: `.protobuf(.table)` and the like, with the path in the table.
  public init(table: JSONValue) throws(JSONError) { try self.init(tables: [table]) }

  /// Of several tables whose names are one space: a table may refer to the messages of another. The path of an error
  /// begins with the table's index if there are several.
  public init(tables: [JSONValue]) throws(JSONError) {
    var loader = ProtobufTableLoader()
    self = try loader.load(tables)
  }

  /// Of a table that is checked in as Swift. It is a part of the program, compared with its file by a test, so a
  /// fault in it stops the program.
  public init(generated text: String) {
    do {
      try self.init(table: JSONValue(parsing: text))
    } catch {
      preconditionFailure("the generated field table is faulty: \(error)")
    }
  }

  public var messageNames: [String] { messages.map(\.name) }

  /// The reserved member that keeps what the table does not know.
  public static let unknownMember = "@unknown"

  /// Messages nest at most so deep, whatever the limits say: the depth that protobuf's own libraries allow.
  public static let deepestMessage = 100

  struct Message: Sendable {
    var name: String
    var fields: [Field]
    /// Position in `fields` by field number.
    var byNumber: [UInt32: Int]
    var byName: [ByteKey: Int]
  }

  /// A class, because a copy of its parts with each field that is read or written would cost more than the field.
  final class Field: Sendable {
    let name: String
    let number: UInt32
    let type: FieldType
    let label: Label
    let isPacked: Bool
    let oneof: String?

    init(name: String, number: UInt32, type: FieldType, label: Label, isPacked: Bool, oneof: String?) {
      self.name = name
      self.number = number
      self.type = type
      self.label = label
      self.isPacked = isPacked
      self.oneof = oneof
    }

    /// A zero and an absent one are the same.
    var hasImplicitPresence: Bool { label == .implicit }
  }

  enum Label: Sendable { case implicit, optional, required, repeated }

  indirect enum FieldType: Sendable {
    case scalar(Scalar)
    case enumeration(Int, asNumber: Bool)
    case message(Int, asJSON: Bool)
    case map(key: Scalar, value: FieldType)
  }

  enum Scalar: Sendable, Hashable {
    case int32, int64, uint32, uint64, sint32, sint64, fixed32, fixed64, sfixed32, sfixed64, bool, float, double
    case string(TextForm)
    case bytes(BytesForm)
  }

  enum TextForm: Sendable { case text, json }
  enum BytesForm: Sendable { case base64, utf8, json }

  struct Enumeration: Sendable {
    var numbers: [ByteKey: Int32]
    var names: [Int32: String]
  }
}

/// How the transcoder treats what both sides may see differently.
public struct ProtobufOptions: Sendable, Hashable {
  /// Whether decoding writes the zero values of fields without presence, and empty lists and maps.
  public var emitDefaults: Bool
  /// Whether a `required` field that is absent is an error, in both directions.
  public var checkRequired: Bool
  /// What encoding does with a member that the table does not know: an error, or nothing.
  public var unknownMembers: UnknownMembers
  public var limits: JSONLimits

  public enum UnknownMembers: Sendable, Hashable { case reject, ignore }

  public init(
    emitDefaults: Bool = false, checkRequired: Bool = true, unknownMembers: UnknownMembers = .reject,
    limits: JSONLimits = JSONLimits()
  ) {
    self.emitDefaults = emitDefaults
    self.checkRequired = checkRequired
    self.unknownMembers = unknownMembers
    self.limits = limits
  }
}

enum WireType: UInt8 {
  case varint = 0
  case fixed64 = 1
  case lengthDelimited = 2
  case startGroup = 3
  case endGroup = 4
  case fixed32 = 5
}

extension ProtobufSchema.Scalar {
  var wireType: WireType {
    switch self {
    case .int32, .int64, .uint32, .uint64, .sint32, .sint64, .bool: .varint
    case .fixed32, .sfixed32, .float: .fixed32
    case .fixed64, .sfixed64, .double: .fixed64
    case .string, .bytes: .lengthDelimited
    }
  }
}

extension ProtobufSchema.FieldType {
  var wireType: WireType {
    switch self {
    case .scalar(let scalar): scalar.wireType
    case .enumeration: .varint
    case .message, .map: .lengthDelimited
    }
  }

  /// Whether several values of it may share one length-delimited record.
  var isPackable: Bool { wireType != .lengthDelimited }
}
