import ChatJSON
import UnifiedChat

/// Reads the members of one object with errors that name the place.
struct RecordReader {
  let object: JSONObject
  let base: String

  init(_ json: JSONValue, path: String) throws(RecordError) {
    guard let object = json.object else { throw RecordError(path: path, reason: "must be an object") }
    self.object = object
    base = path
  }

  func path(_ key: String) -> String { base + "/" + key }

  private func mismatch(_ key: String, _ expected: String) -> RecordError {
    RecordError(path: path(key), reason: object[key] == nil ? "missing \(expected)" : "must be \(expected)")
  }

  /// nil for an absent member and for null.
  private func present(_ key: String) -> JSONValue? {
    guard let value = object[key], !value.isNull else { return nil }
    return value
  }

  func string(_ key: String) throws(RecordError) -> String {
    guard let value = object[key]?.string else { throw mismatch(key, "a string") }
    return value
  }

  func nonEmpty(_ key: String) throws(RecordError) -> String {
    let value = try string(key)
    guard !value.isEmpty else { throw RecordError(path: path(key), reason: "must not be empty") }
    return value
  }

  func int(_ key: String) throws(RecordError) -> Int64 {
    guard let value = object[key]?.int else { throw mismatch(key, "an integer") }
    return value
  }

  func double(_ key: String) throws(RecordError) -> Double {
    guard let value = object[key]?.double else { throw mismatch(key, "a number") }
    return value
  }

  func optionalString(_ key: String) throws(RecordError) -> String? {
    try present(key) == nil ? nil : string(key)
  }

  func optionalInt(_ key: String) throws(RecordError) -> Int64? { try present(key) == nil ? nil : int(key) }

  func optionalBool(_ key: String) throws(RecordError) -> Bool? {
    guard let value = present(key) else { return nil }
    guard let bool = value.bool else { throw mismatch(key, "true or false") }
    return bool
  }

  func optionalTime(_ key: String) throws(RecordError) -> Timestamp? {
    try optionalInt(key).map { Timestamp(milliseconds: $0) }
  }

  func optionalText(_ key: String) throws(RecordError) -> JSONText? {
    try optionalString(key).map { JSONText(unchecked: $0) }
  }

  func optionalPosition(_ key: String) throws(RecordError) -> MessagePosition? {
    guard let text = try optionalString(key) else { return nil }
    guard let position = MessagePosition(text) else { throw mismatch(key, "a position (major/minor/tail)") }
    return position
  }

  func optionalObject(_ key: String) throws(RecordError) -> RecordReader? {
    guard let value = present(key) else { return nil }
    return try RecordReader(value, path: path(key))
  }

  func optionalArray(_ key: String) throws(RecordError) -> [JSONValue] {
    guard let value = present(key) else { return [] }
    guard let array = value.array else { throw mismatch(key, "an array") }
    return array
  }

  func users(_ key: String) throws(RecordError) -> [UserID] {
    var users: [UserID] = []
    for (index, value) in try optionalArray(key).enumerated() {
      guard let id = value.string else {
        throw RecordError(path: "\(path(key))/\(index)", reason: "must be a string")
      }
      users.append(UserID(id))
    }
    return users
  }

  func origin() throws(RecordError) -> Origin? {
    guard let reader = try optionalObject("origin") else { return nil }
    return Origin(
      vendor: VendorName(try reader.nonEmpty("vendor")), id: try reader.nonEmpty("id"),
      channel: try reader.optionalString("channel").map { ChannelID($0) })
  }
}

extension Origin {
  public func json() -> JSONValue {
    var object = JSONObject()
    object["vendor"] = .string(vendor.rawValue)
    object["id"] = .string(id)
    object["channel"] = channel.map { .string($0.rawValue) }
    return .object(object)
  }
}

extension User {
  func write(to object: inout JSONObject) {
    object["id"] = .string(id.rawValue)
    object["name"] = name.map { .string($0) }
    object["avatarURL"] = avatarURL.map { .string($0) }
    object["customData"] = customData.map { .string($0.text) }
  }

  init(_ reader: RecordReader) throws(RecordError) {
    self.init(
      id: UserID(try reader.nonEmpty("id")), name: try reader.optionalString("name"),
      avatarURL: try reader.optionalString("avatarURL"), customData: try reader.optionalText("customData"))
  }
}

extension ChannelKind {
  /// `direct`, `group`, `open`, `service`, `temporary`; `unknown:` and the vendor's own name for others.
  public var recordName: String {
    switch self {
    case .direct: "direct"
    case .group: "group"
    case .open: "open"
    case .service: "service"
    case .temporary: "temporary"
    case .unknown(let name): "unknown:" + name
    }
  }

  public init(recordName: String) {
    switch recordName {
    case "direct": self = .direct
    case "group": self = .group
    case "open": self = .open
    case "service": self = .service
    case "temporary": self = .temporary
    default: self = .unknown(recordName.hasPrefix("unknown:") ? String(recordName.dropFirst(8)) : recordName)
    }
  }
}

extension MemberRole {
  public var recordName: String {
    switch self {
    case .owner: "owner"
    case .admin: "admin"
    case .member: "member"
    case .unknown(let name): "unknown:" + name
    }
  }

  public init(recordName: String) {
    switch recordName {
    case "owner": self = .owner
    case "admin": self = .admin
    case "member": self = .member
    default: self = .unknown(recordName.hasPrefix("unknown:") ? String(recordName.dropFirst(8)) : recordName)
    }
  }
}
