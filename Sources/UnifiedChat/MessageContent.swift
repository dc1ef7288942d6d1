/// What a message says. Every case that a vendor has; what none of them names stays `unknown`, byte for byte.
public indirect enum MessageContent: Sendable, Hashable {
  case text(String)
  case markdown(String)
  case image(Attachment)
  case audio(Attachment)
  case video(Attachment)
  case file(Attachment)
  case location(Location)
  /// A user's card.
  case card(UserID, name: String?, avatarURL: String?)
  /// A sticker or emoji of a set.
  case sticker(JSONText)
  /// An app's own payload.
  case custom(JSONText)
  /// Several messages forwarded as one.
  case merged(title: String, messages: [QuotedMessage])
  /// A notice of the service, for example that somebody joined.
  case system(SystemNotice)
  /// A tombstone: taken back for everybody.
  case recalled(by: UserID?, at: Timestamp?)
  /// A kind that this version does not know, as it came.
  case unknown(kind: String, raw: JSONText)
}

extension MessageContent {
  /// The name of the case in records, reports and filters.
  public var kindName: String {
    switch self {
    case .text: "text"
    case .markdown: "markdown"
    case .image: "image"
    case .audio: "audio"
    case .video: "video"
    case .file: "file"
    case .location: "location"
    case .card: "card"
    case .sticker: "sticker"
    case .custom: "custom"
    case .merged: "merged"
    case .system: "system"
    case .recalled: "recalled"
    case .unknown: "unknown"
    }
  }

  /// The attachment of an image, audio, video or file.
  public var attachment: Attachment? {
    get {
      switch self {
      case .image(let attachment), .audio(let attachment), .video(let attachment), .file(let attachment): attachment
      default: nil
      }
    }
    set {
      guard let newValue else { return }
      switch self {
      case .image: self = .image(newValue)
      case .audio: self = .audio(newValue)
      case .video: self = .video(newValue)
      case .file: self = .file(newValue)
      default: break
      }
    }
  }

  /// What a reader would search for; nil where there are no words.
  public var searchableText: String? {
    switch self {
    case .text(let text), .markdown(let text): text
    case .file(let attachment): attachment.name
    case .location(let location): location.name
    case .merged(let title, _): title
    default: nil
    }
  }
}

/// A file of a message. A URL is data, never identity: it may be signed and expire.
public struct Attachment: Sendable, Hashable {
  /// nil until uploaded.
  public var url: String?
  public var name: String?
  /// Bytes.
  public var size: Int64?
  public var mimeType: String?
  /// 64 lower-case hex digits.
  public var sha256: String?
  /// Pixels.
  public var width: Int?
  public var height: Int?
  /// Of audio and video, milliseconds.
  public var durationMilliseconds: Int64?
  public var thumbnails: [Thumbnail]
  /// One JSON object of the vendor or the app that came with the file.
  public var metadata: JSONText?
  /// Not yet uploaded bytes; never on a wire, never in a record.
  public var source: AttachmentSource?

  public struct Thumbnail: Sendable, Hashable {
    public var url: String
    public var width: Int?
    public var height: Int?
    public init(url: String, width: Int? = nil, height: Int? = nil) {
      self.url = url
      self.width = width
      self.height = height
    }
  }

  public init(
    url: String? = nil, name: String? = nil, size: Int64? = nil, mimeType: String? = nil, sha256: String? = nil,
    width: Int? = nil, height: Int? = nil, durationMilliseconds: Int64? = nil, thumbnails: [Thumbnail] = [],
    metadata: JSONText? = nil, source: AttachmentSource? = nil
  ) {
    self.url = url
    self.name = name
    self.size = size
    self.mimeType = mimeType
    self.sha256 = sha256
    self.width = width
    self.height = height
    self.durationMilliseconds = durationMilliseconds
    self.thumbnails = thumbnails
    self.metadata = metadata
    self.source = source
  }
}

/// Where the bytes of an attachment are before it is uploaded.
public enum AttachmentSource: Sendable, Hashable {
  case bytes([UInt8])
  case path(String)
}

public struct Location: Sendable, Hashable {
  /// Degrees, WGS 84.
  public var latitude: Double
  public var longitude: Double
  public var name: String?

  public init(latitude: Double, longitude: Double, name: String? = nil) {
    self.latitude = latitude
    self.longitude = longitude
    self.name = name
  }
}

/// The copy of a message inside another one.
public struct QuotedMessage: Sendable, Hashable {
  public var id: MessageID?
  public var sender: UserID?
  public var senderName: String?
  public var createdAt: Timestamp?
  public var content: MessageContent

  public init(
    id: MessageID? = nil, sender: UserID? = nil, senderName: String? = nil, createdAt: Timestamp? = nil,
    content: MessageContent
  ) {
    self.id = id
    self.sender = sender
    self.senderName = senderName
    self.createdAt = createdAt
    self.content = content
  }
}

/// A notice of the service inside the history.
public struct SystemNotice: Sendable, Hashable {
  /// A neutral name: `memberJoined`, `memberLeft`, `channelCreated`, `channelChanged`, `action`, `other`.
  public var kind: String
  /// Who did it, and to whom.
  public var actor: UserID?
  public var subjects: [UserID]
  public var text: String?
  /// The vendor's own form, as it came.
  public var raw: JSONText?

  public init(kind: String, actor: UserID? = nil, subjects: [UserID] = [], text: String? = nil, raw: JSONText? = nil) {
    self.kind = kind
    self.actor = actor
    self.subjects = subjects
    self.text = text
    self.raw = raw
  }
}
