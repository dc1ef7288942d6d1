import ChatInterchange
import ChatJSON
import SendbirdWire
import UnifiedChat

extension SendbirdDestination {
  public func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    let place = try await place(channel)
    var outcomes: [PutOutcome<MessageID>?] = messages.map(Self.refusal)
    // A channel that this run did not make may hold some of them.
    if !place.isFresh { try await fill(&outcomes, messages, channel, place, asExisting: true) }
    let open = messages.indices.filter { outcomes[$0] == nil }
    guard !open.isEmpty else { return outcomes.compactMap(\.self) }
    for part in parts(open, messages, place) {
      try await admitSenders(part.compactMap { messages[$0].message.sender }, channel)
      let body: JSONObject = [
        "messages": .array(part.map { .object(item(messages[$0], in: channel)) }), "update_read_ts": false,
        "rewind_read_ts": .bool(place.rewinds),
      ]
      _ = try await admin.call("POST", ["migration", channel.rawValue], body: body)
    }
    // The answer is empty: the ids are read back, which also proves that the messages are there.
    try await fill(&outcomes, messages, channel, place, asExisting: false)
    return outcomes.map { outcome in
      outcome
        ?? .refused(
          ChatError(.server, operation: .writeDestination, detail: "accepted, but not there when read back"))
    }
  }

  private static func refusal(_ record: MessageRecord) -> PutOutcome<MessageID>? {
    guard record.message.createdAt.milliseconds >= 0 else {
      return .refused(
        ChatError(.invalidArgument(field: "createdAt"), operation: .writeDestination, detail: "times before 1970"))
    }
    return nil
  }

  /// The message as the service takes it, signed for the place that it gets.
  func form(_ record: MessageRecord, in channel: ChannelID) -> SendbirdForm {
    let message = record.message
    let place = SendbirdMapping.place(
      channel: channel, sender: message.sender, time: message.createdAt.milliseconds)
    return SendbirdForm(
      message, purpose: .migration(Self.origin(record)), EnvelopeSigning(admin.envelopes.key, place))
  }

  static func origin(_ record: MessageRecord) -> Origin {
    record.origin
      ?? Origin(vendor: SendbirdErrors.vendor, id: record.message.id?.rawValue ?? "", channel: record.message.channel)
  }

  /// One entry of the migration call.
  private func item(_ record: MessageRecord, in channel: ChannelID) -> JSONObject {
    let origin = Self.origin(record)
    let form = form(record, in: channel)
    var item: JSONObject = [
      "message_type": .string(form.type), "timestamp": .int(record.message.createdAt.milliseconds),
      "dedup_id": .string("\(origin.vendor)/\(origin.id)"),
    ]
    if let sender = record.message.sender { item["user_id"] = .string(sender.rawValue) }
    if !form.customType.isEmpty { item["custom_type"] = .string(form.customType) }
    if !form.mentions.users.isEmpty {
      item["mentioned_user_ids"] = .array(form.mentions.users.map { .string($0.rawValue) })
    }
    if let file = form.file {
      item["url"] = .string(file.url)
      item["file_name"] = .string(file.name)
      item["file_size"] = .int(file.size)
      item["file_type"] = .string(file.type)
      item["custom_field"] = .string(form.data)
      if !file.thumbnails.isEmpty { item["thumbnails"] = file.thumbnailJSON }
    } else {
      item["message"] = .string(form.text)
      item["data"] = .string(form.data)
    }
    return item
  }

  /// Seats of an ordinary group, or of a super group.
  private static func seats(_ place: Place) -> Int {
    place.isSuper ? SendbirdLimits.superGroupMembers : SendbirdLimits.groupMembers
  }

  /// Runs of messages whose senders find a seat at the same time.
  private func parts(_ open: [Int], _ messages: [MessageRecord], _ place: Place) -> [[Int]] {
    guard !place.isOpen else { return [open] }
    let own = place.members.subtracting(place.guests)
    let seats = max(1, Self.seats(place) - own.count)
    var parts: [[Int]] = []
    var part: [Int] = []
    var strangers: Set<UserID> = []
    for index in open {
      if let sender = messages[index].message.sender, !own.contains(sender), !strangers.contains(sender) {
        if strangers.count == seats {
          parts.append(part)
          (part, strangers) = ([], [])
        }
        strangers.insert(sender)
      }
      part.append(index)
    }
    return parts + [part]
  }

  /// A sender must be a member. Who is none becomes a guest, and gives his seat to another one when all are taken.
  private func admitSenders(_ senders: [UserID], _ channel: ChannelID) async throws(ChatError) {
    let place = try await self.place(channel)
    guard !place.isOpen else { return }
    let wanted = Set(senders)
    let strangers = wanted.subtracting(place.members).sorted()
    guard !strangers.isEmpty else { return }
    let missing = place.members.count + strangers.count - Self.seats(place)
    if missing > 0 {
      let leaving = Array(place.guests.subtracting(wanted).sorted().prefix(missing))
      try await remove(leaving, from: channel)
      places[channel]?.members.subtract(leaving)
      places[channel]?.guests.subtract(leaving)
    }
    try await noteGuests(strangers, in: channel)
    try await invite(strangers, to: channel, [])
    places[channel]?.members.formUnion(strangers)
    places[channel]?.guests.formUnion(strangers)
  }

  /// Finds the messages that are there by their origin, within the span of times of those that are looked for.
  private func fill(
    _ outcomes: inout [PutOutcome<MessageID>?], _ messages: [MessageRecord], _ channel: ChannelID, _ place: Place,
    asExisting: Bool
  ) async throws(ChatError) {
    var wanted: [Origin: Int] = [:]
    for index in messages.indices where outcomes[index] == nil { wanted[Self.origin(messages[index])] = index }
    let times = wanted.values.map { messages[$0].message.createdAt.milliseconds }
    guard let from = times.min(), let to = times.max() else { return }
    var position: MessagePosition? = MessagePosition(major: from, minor: 0, tail: "")
    var walk = PageWalk()
    while let after = position, !wanted.isEmpty {
      try walk.advance(to: after.description, .writeDestination)
      let page = try await admin.messages(in: channel, isOpen: place.isOpen, after: after, includingRemoved: false)
      for json in page {
        guard let found = existing(json, in: channel), let index = wanted[found.origin],
          // Believed without a signature, an envelope may be a member's: written now, and not at another time.
          json.number("created_at") == messages[index].message.createdAt.milliseconds
        else { continue }
        wanted[found.origin] = nil
        outcomes[index] = asExisting ? .existed(found.id) : .written(found.id)
      }
      let last = page.last.flatMap(SendbirdAdmin.position)
      position = page.count >= SendbirdLimits.messagePage && (last?.major ?? .max) <= to ? last : nil
    }
  }
}
