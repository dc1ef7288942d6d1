import UnifiedChat

// What can be refused without asking anybody, checked once for all vendors.

extension MessageDraft {
  /// - Throws: `.invalidArgument` with the field; `.unsupported` for what the vendor has not.
  func check(_ capabilities: CapabilitySet) throws(ChatError) {
    func refuse(_ field: String, _ why: String) -> ChatError {
      ChatError(.invalidArgument(field: field), operation: .send, detail: why)
    }
    switch content {
    case .text(let text), .markdown(let text):
      // An empty text beside a payload of the app says something.
      guard !text.isEmpty || customData != nil else { throw refuse("text", "an empty text says nothing") }
    case .image(let attachment), .audio(let attachment), .video(let attachment), .file(let attachment):
      guard attachment.url != nil || attachment.source != nil else {
        throw refuse("attachment", "neither a URL nor bytes to upload")
      }
      try capabilities.require(attachment.source == nil ? .fileByURL : .fileUpload, for: .send)
    case .location(let location):
      guard (-90...90).contains(location.latitude) else { throw refuse("latitude", "from -90 to 90") }
      guard (-180...180).contains(location.longitude) else { throw refuse("longitude", "from -180 to 180") }
    case .merged(_, let messages):
      guard !messages.isEmpty else { throw refuse("messages", "nothing to forward") }
      try capabilities.require(.messageMerge, for: .send)
    case .system, .recalled, .unknown: throw refuse("content", "a \(content.kindName) message cannot be sent")
    case .card, .sticker, .custom: break
    }
    if !mentions.isEmpty { try capabilities.require(.messageMention, for: .send) }
    if replyTo != nil { try capabilities.require(.messageQuote, for: .send) }
    if threadParent != nil { try capabilities.require(.messageThread, for: .send) }
    if isTransient { try capabilities.require(.messageTransient, for: .send) }
    try checkDocuments()
  }

  /// What a message of this device alone may be. It meets no vendor, so that none of its limits counts.
  func checkLocal() throws(ChatError) {
    func refuse(_ field: String, _ why: String) -> ChatError {
      ChatError(.invalidArgument(field: field), operation: .cache, detail: why)
    }
    switch content {
    case .text(""), .markdown(""):
      guard customData != nil else { throw refuse("text", "an empty text says nothing") }
    case .image(let attachment), .audio(let attachment), .video(let attachment), .file(let attachment):
      guard attachment.url != nil, attachment.source == nil else {
        throw refuse("attachment", "nothing is uploaded for it: name the file by its url")
      }
    case .recalled, .unknown: throw refuse("content", "a \(content.kindName) message cannot be written")
    case .text, .markdown, .location, .merged, .system, .card, .sticker, .custom: break
    }
    guard !isTransient else { throw refuse("isTransient", "it is stored, or nothing") }
    guard threadParent == nil else { throw refuse("threadParent", "it stands in the main list") }
    try checkDocuments()
  }

  private func checkDocuments() throws(ChatError) {
    var documents: [(String, JSONText)] = []
    if case .custom(let data) = content { documents.append(("content", data)) }
    if case .sticker(let data) = content { documents.append(("content", data)) }
    if let customData { documents.append(("customData", customData)) }
    for (field, document) in documents {
      do throws(ChatError) { _ = try JSONText(document.text) } catch {
        throw ChatError(.invalidArgument(field: field), operation: .send, detail: "not one JSON document")
      }
    }
  }
}

enum Arguments {
  static func limit(_ limit: Int, _ operation: ChatError.Operation) throws(ChatError) {
    guard limit >= 1 else {
      throw ChatError(.invalidArgument(field: "limit"), operation: operation, detail: "at least 1")
    }
  }

  static func id(_ channel: ChannelID, _ operation: ChatError.Operation) throws(ChatError) {
    guard !channel.rawValue.isEmpty else {
      throw ChatError(.invalidArgument(field: "channel"), operation: operation, detail: "a channel id is needed")
    }
  }

  static func users(_ users: [UserID], _ operation: ChatError.Operation) throws(ChatError) {
    guard !users.isEmpty, users.allSatisfy({ !$0.rawValue.isEmpty }) else {
      throw ChatError(.invalidArgument(field: "users"), operation: operation, detail: "at least one user id, none empty")
    }
  }

  /// Members once each, without the creator.
  static func channel(_ draft: ChannelDraft, owner: UserID?) throws(ChatError) -> ChannelDraft {
    func refuse(_ field: String, _ why: String) -> ChatError {
      ChatError(.invalidArgument(field: field), operation: .createChannel, detail: why)
    }
    var draft = draft
    var seen: Set<UserID> = owner.map { [$0] } ?? []
    draft.members = draft.members.filter { seen.insert($0).inserted }
    guard draft.members.allSatisfy({ !$0.rawValue.isEmpty }) else { throw refuse("members", "a user id is empty") }
    switch draft.kind {
    case .direct:
      guard draft.members.count == 1 else { throw refuse("members", "a direct channel has exactly one other member") }
    case .service, .unknown: throw refuse("kind", "such a channel is made by the service")
    case .group, .open, .temporary: break
    }
    return draft
  }
}
