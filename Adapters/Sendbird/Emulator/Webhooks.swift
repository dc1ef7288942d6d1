import ChatCrypto
import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// What the vendor tells an app's own server (reference §3.9). A URL must be one of this machine.
struct SendbirdWebhooks: Sendable {
  /// "" for none.
  var url = ""
  /// Categories that are told; nil: all.
  var categories: Set<Category>?

  /// What comes after `group_channel:` or `open_channel:`.
  enum Category: String, Sendable, CaseIterable {
    case create, changed, remove, invite, join, leave, enter, exit
    case declineInvite = "decline_invite"
    case freezeUnfreeze = "freeze_unfreeze"
    case messageSend = "message_send"
    case messageUpdate = "message_update"
    case messageDelete = "message_delete"
    case messageRead = "message_read"

    /// What a system event means; nil for those that are not told.
    init?(event: Int64) {
      switch event {
      case SendbirdCategory.joined: self = .join
      case SendbirdCategory.left: self = .leave
      case SendbirdCategory.invited: self = .invite
      case SendbirdCategory.invitationDeclined: self = .declineInvite
      case SendbirdCategory.entered: self = .enter
      case SendbirdCategory.exited: self = .exit
      case SendbirdCategory.propertyChanged, SendbirdCategory.metadataChanged: self = .changed
      case SendbirdCategory.frozen, SendbirdCategory.unfrozen: self = .freezeUnfreeze
      case SendbirdCategory.deleted: self = .remove
      default: return nil
      }
    }
  }

  /// The server gives up after so many tries, each of at most so long.
  static let tries = 3
  static let timeout: Duration = .seconds(5)

  /// Every member is named up to this number; a super group's could be a hundred thousand.
  static let namedMembers = 100
}

/// A call that was made and not answered well yet.
struct SendbirdPendingCall {
  var request: HTTPRequest
  var tries: Int
}

extension SendbirdEmulator: CallingEmulator {
  public func takeCalls() -> [EmulatorCall] {
    defer { waitingCalls = [] }
    return waitingCalls
  }

  /// Nothing waits for the app's server: its answer decides only whether it is told again.
  public func handleAnswer(
    to call: UInt64, _ response: HTTPResponse?, context: inout EmulatorContext
  ) -> [EmulatorOutput] {
    guard let pending = pendingCalls.removeValue(forKey: call) else { return [] }
    let isTaken = response.map { (200..<300).contains($0.status) } ?? false
    if !isTaken, pending.tries < SendbirdWebhooks.tries { send(pending.request, tries: pending.tries + 1) }
    return []
  }

  /// Calls a server of this machine; a call that fails is made again until `SendbirdWebhooks.tries`.
  func send(_ request: HTTPRequest, tries: Int) {
    lastCall &+= 1
    pendingCalls[lastCall] = SendbirdPendingCall(request: request, tries: tries)
    waitingCalls.append(EmulatorCall(id: lastCall, request: request))
  }

  // MARK: What is told

  /// A system event, as far as it is one that the app's server hears of.
  func tellWebhook(event: Int64, in room: Room, _ data: JSONObject) {
    guard let category = SendbirdWebhooks.Category(event: event) else { return }
    tellWebhook(category, in: room, data)
  }

  func tellWebhook(_ category: SendbirdWebhooks.Category, in room: Room, message: StoredMessage) {
    guard tells(category) else { return }
    var more = JSONObject()
    if let sender = message.sender { more["sender"] = .object(json(of: sender).json) }
    more["type"] = .string(message.type)
    more["custom_type"] = .string(message.customType)
    more["silent"] = .bool(message.isSilent)
    more["mention_type"] = .string(message.mentionType)
    more["mentioned_users"] = .array(message.mentions.compactMap { people[$0] }.map { .object(json(of: $0).json) })
    var payload: JSONObject = [
      "message_id": .int(message.id), "custom_type": .string(message.customType),
      "created_at": .int(message.createdAt), "data": .string(message.data),
    ]
    if let file = message.file {
      payload["url"] = .string(file.url)
      payload["filename"] = .string(file.name)
      payload["content_type"] = .string(file.type)
      payload["content_size"] = .int(file.size)
    } else {
      payload["message"] = .string(message.text)
      payload["translations"] = .object(message.translations)
    }
    if message.updatedAt > 0 { payload["updated_at"] = .int(message.updatedAt) }
    more["payload"] = .object(payload)
    tellWebhook(category, in: room, more)
  }

  func tellWebhook(_ category: SendbirdWebhooks.Category, in room: Room, _ more: JSONObject) {
    guard tells(category) else { return }
    count("webhook \(category.rawValue)", isImplemented: true)
    var body: JSONObject = [
      "category": .string("\(room.isOpen ? "open" : "group")_channel:\(category.rawValue)"),
      "created_at": .int(now), "app_id": .string(options.applicationID), "channel": .object(webhookView(of: room)),
    ]
    if !room.isOpen { body["members"] = .array(webhookMembers(of: room)) }
    body.fill(from: more)
    let bytes = JSONValue.object(body).bytes()
    // Keyed with the application's own token.
    let signature = Hex.encode(HMAC.sha256(key: Array(options.adminSecret.utf8), message: bytes))
    send(
      HTTPRequest(
        "POST", webhooks.url,
        headers: ["Content-Type": "application/json", "x-sendbird-signature": signature, "User-Agent": "SendBird"],
        body: bytes, timeout: SendbirdWebhooks.timeout), tries: 1)
  }

  private func tells(_ category: SendbirdWebhooks.Category) -> Bool {
    !webhooks.url.isEmpty && webhooks.categories?.contains(category) ?? true
  }

  private func webhookView(of room: Room) -> JSONObject {
    var view: JSONObject = [
      "channel_url": .string(room.url.rawValue), "name": .string(room.name), "custom_type": .string(room.customType),
      "data": .string(room.data),
    ]
    guard !room.isOpen else { return view }
    view["is_distinct"] = .bool(room.isDistinct)
    view["is_public"] = .bool(room.isPublic)
    view["is_super"] = .bool(room.isSuper)
    view["is_ephemeral"] = .bool(room.isEphemeral)
    view["is_discoverable"] = .bool(room.isDiscoverable)
    return view
  }

  private func webhookMembers(of room: Room) -> [JSONValue] {
    guard room.members.count <= SendbirdWebhooks.namedMembers else { return [] }
    return room.members.values.sorted { $0.person.order < $1.person.order }.map { member in
      var json = json(of: member.person).json
      json["is_online"] = .bool(connectionsByUser[member.person.id] != nil)
      json["is_active"] = .bool(member.person.isActive)
      json["state"] = .string(member.state)
      json["unread_message_count"] = .int(shownUnread(member, in: room))
      return .object(json)
    }
  }
}
