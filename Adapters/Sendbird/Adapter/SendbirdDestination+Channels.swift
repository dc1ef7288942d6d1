import ChatInterchange
import ChatJSON
import SendbirdWire
import UnifiedChat

extension SendbirdDestination {
  public func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    let draft = ChannelForm(channel, members, superThreshold: superThreshold, admin.envelopes.key)
    do throws(ChatError) {
      return try await put(draft, members)
    } catch {
      switch error.kind {
      case .invalidArgument, .notFound, .tooLarge: return .refused(error)
      default: throw error
      }
    }
  }

  private func put(_ form: ChannelForm, _ members: [MemberRecord]) async throws(ChatError) -> PutOutcome<ChannelID> {
    do {
      let created = try await create(form, isDistinct: form.isDistinct)
      if created.id == form.url, created.isNew { return try await complete(form, members, isFresh: true) }
      if created.id == form.url { return try await adopt(form, members) }
      // The pair has a channel already. One that another original became is that one's; a stranger's is left alone.
      if form.record.channel.kind == .direct, created.isImported { return .existed(created.id) }
    } catch {
      guard error.kind == .conflict else { throw error }
      return try await adopt(form, members)
    }
    do { _ = try await create(form, isDistinct: false) } catch {
      guard error.kind == .conflict else { throw error }
      return try await adopt(form, members)
    }
    return try await complete(form, members, isFresh: true)
  }

  private func create(
    _ form: ChannelForm, isDistinct: Bool
  ) async throws(ChatError) -> (id: ChannelID, isNew: Bool, isImported: Bool) {
    var body = form.body
    // Without `strict`, members who do not exist are left out in silence.
    if !form.isOpen { (body["is_distinct"], body["strict"]) = (.bool(isDistinct), true) }
    let json = try await admin.call("POST", [form.isOpen ? "open_channels" : "group_channels"], body: body)
    guard let wire = SendbirdChannel(json) else { throw SendbirdAdapter.malformed(.writeDestination) }
    return (wire.url, json.flag("is_created") ?? true, SendbirdMapping.envelope(wire, .tool(admin.envelopes)).provenance != nil)
  }

  /// Goes on with the channel that an earlier run made. Clients may choose the id of a channel, too: what is there and
  /// does not say, signed, that it became of this original is somebody's own.
  public func resume(_ channel: ChannelID, of origin: Origin) { resumed[origin] = channel }

  private func adopt(
    _ form: ChannelForm, _ members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    let wanted = form.record.origin ?? Origin(vendor: vendor, id: form.record.channel.id.rawValue)
    let found = SendbirdChannel(try await admin.channel(form.url).json).flatMap {
      SendbirdMapping.envelope($0, .tool(admin.envelopes)).provenance?.origin
    }
    // Who writes the data of a channel, writes over the envelope.
    guard found == wanted || resumed[wanted] == form.url else {
      return .refused(
        ChatError(
          .conflict, operation: .writeDestination,
          detail: "a channel \(form.url.rawValue) is there that no import of this one made; "
            + "--trust-unsigned-envelopes goes on with one that an earlier version wrote"))
    }
    return try await complete(form, members, isFresh: false)
  }

  /// Members, roles and metadata that the first call could not carry, or that a killed run left out.
  private func complete(
    _ form: ChannelForm, _ members: [MemberRecord], isFresh: Bool
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    var present = Set(form.first)
    var guests: Set<UserID> = []
    if !isFresh {
      present = form.isOpen ? [] : try await admin.allMembers(of: form.url)
      var body = form.body
      for key in ["channel_url", "user_ids", "operator_ids", "operators", "is_super", "invitation_status"] {
        body[key] = nil
      }
      // What an earlier run noted of guests stays until one ends.
      let notes = try await notes(of: form.url).notes
      body["data"] = notes.importedAt == nil ? .string(form.data(guests: notes.guests)) : nil
      guests = Set(notes.guests).intersection(present).subtracting(form.people)
      _ = try await admin.call(
        "PUT", [form.isOpen ? "open_channels" : "group_channels", form.url.rawValue], body: body)
    }
    if !form.isOpen {
      try await invite(form.people.filter { !present.contains($0) }, to: form.url, form.invited)
      let late = isFresh ? form.operators.filter { !form.first.contains($0) } : form.operators
      try await makeOperators(late, of: form.url)
    }
    let metadata = form.record.channel.metadata
    if !metadata.isEmpty, SendbirdMapping.fits(metadata) {
      let sorted = metadata.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      let json = JSONObject(sorted.map { (key: $0.key, value: JSONValue.string($0.value)) })
      let path = [form.isOpen ? "open_channels" : "group_channels", form.url.rawValue, "metadata"]
      _ = try await admin.call("PUT", path, body: ["metadata": .object(json), "upsert": true])
    }
    places[form.url] = Place(
      isOpen: form.isOpen, isSuper: form.isSuper, members: present.union(form.people),
      guests: guests, isFresh: isFresh,
      rewinds: members.contains { ChannelForm.readTime($0) != nil })
    return isFresh ? .written(form.url) : .existed(form.url)
  }

  /// The channel as the import knows it, from its `data`.
  private func notes(
    of url: ChannelID
  ) async throws(ChatError) -> (record: ChannelRecord, notes: SendbirdChannelNotes) {
    let json = try await admin.channel(url).json
    guard let wire = SendbirdChannel(json),
      let found = try? SendbirdMapping.channelRecord(wire, raw: json, .tool(admin.envelopes))
    else { throw SendbirdAdapter.malformed(.writeDestination) }
    return (found.record, found.notes)
  }

  private func signing(_ url: ChannelID) -> EnvelopeSigning? {
    EnvelopeSigning(admin.envelopes.key, .channel(url.rawValue))
  }

  /// Written down before they come: whoever ends the import, now or after a crash, knows whom to send away.
  func noteGuests(_ users: [UserID], in url: ChannelID) async throws(ChatError) {
    var (record, notes) = try await notes(of: url)
    notes.guests = Set(notes.guests).union(users).sorted()
    let origin = record.origin ?? Origin(vendor: vendor, id: record.channel.id.rawValue)
    let data = SendbirdMapping.channelData(record, origin: origin, notes: notes, signing(url))
    _ = try await admin.call("PUT", ["group_channels", url.rawValue], body: ["data": .string(data)])
  }

  func invite(_ users: [UserID], to channel: ChannelID, _ invited: Set<UserID>) async throws(ChatError) {
    for start in stride(from: 0, to: users.count, by: SendbirdLimits.inviteBatch) {
      let part = users[start..<min(users.count, start + SendbirdLimits.inviteBatch)]
      var body: JSONObject = ["user_ids": .array(part.map { .string($0.rawValue) })]
      let waiting = part.filter { invited.contains($0) }
      if !waiting.isEmpty { body["invitation_status"] = ChannelForm.statuses(waiting) }
      _ = try await admin.call("POST", ["group_channels", channel.rawValue, "invite"], body: body)
    }
  }

  func remove(_ users: [UserID], from channel: ChannelID) async throws(ChatError) {
    for start in stride(from: 0, to: users.count, by: SendbirdLimits.inviteBatch) {
      let part = users[start..<min(users.count, start + SendbirdLimits.inviteBatch)]
      let body: JSONObject = ["user_ids": .array(part.map { .string($0.rawValue) })]
      _ = try await admin.call("PUT", ["group_channels", channel.rawValue, "leave"], body: body)
    }
  }

  private func makeOperators(_ users: [UserID], of channel: ChannelID) async throws(ChatError) {
    for start in stride(from: 0, to: users.count, by: SendbirdLimits.inviteBatch) {
      let part = users[start..<min(users.count, start + SendbirdLimits.inviteBatch)]
      let body: JSONObject = ["operator_ids": .array(part.map { .string($0.rawValue) })]
      _ = try await admin.call("POST", ["group_channels", channel.rawValue, "operators"], body: body)
    }
  }

  // MARK: The end

  /// Guests leave, and `data` notes what still differs from the original membership; then marks, mutes, freezes.
  public func finishChannel(
    _ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) {
    let (json, isOpen) = try await admin.channel(channel)
    let path = [isOpen ? "open_channels" : "group_channels", channel.rawValue]
    var notes = SendbirdChannelNotes(members: SendbirdChannelNotes.differing(members))
    if !isOpen {
      let own = Set(members.filter { [.joined, .invited].contains($0.member.state) }.map(\.member.user.id))
      let noted = Set(try await self.notes(of: channel).notes.guests)
      let guests = try await admin.allMembers(of: channel).intersection(noted).subtracting(own).sorted()
      try await remove(guests, from: channel)
      // Comings and goings take the flag away.
      let wasDistinct = original.channel.isDistinct || original.channel.kind == .direct
      if !noted.isEmpty, wasDistinct, json.flag("is_distinct") == false {
        _ = try await admin.call("PUT", path, body: ["is_distinct": true])
      }
      try await mark(channel, members)
      try await mute(channel, members)
    }
    // Server time after the marks: what is read later is read by somebody.
    notes.importedAt = try await admin.call("GET", path).number("ts") ?? json.number("ts")
    let origin = original.origin ?? Origin(vendor: vendor, id: original.channel.id.rawValue)
    let data = SendbirdMapping.channelData(original, origin: origin, notes: notes, signing(channel))
    _ = try await admin.call("PUT", path, body: ["data": .string(data)])
    if original.channel.isFrozen { _ = try await admin.call("PUT", path + ["freeze"], body: ["freeze": true]) }
    places[channel] = nil
  }

  private func mark(_ channel: ChannelID, _ members: [MemberRecord]) async throws(ChatError) {
    guard places[channel]?.rewinds == true else { return }
    for record in members where record.member.state == .joined {
      var body: JSONObject = ["user_id": .string(record.member.user.id.rawValue)]
      // Whoever has no mark of his own has read everything, as after any import.
      body["timestamp"] = ChannelForm.readTime(record).map { .int($0) }
      _ = try await admin.call("PUT", ["group_channels", channel.rawValue, "messages", "mark_as_read"], body: body)
    }
  }

  private func mute(_ channel: ChannelID, _ members: [MemberRecord]) async throws(ChatError) {
    let now = admin.rest.clock.now
    for record in members where record.member.isMuted && [.joined, .invited].contains(record.member.state) {
      var seconds: Int64 = -1
      if let end = record.member.mutedUntil {
        seconds = (end.milliseconds &- now.milliseconds) / 1000
        if seconds <= 0 { continue }
      }
      let body: JSONObject = ["user_id": .string(record.member.user.id.rawValue), "seconds": .int(seconds)]
      _ = try await admin.call("POST", ["group_channels", channel.rawValue, "mute"], body: body)
    }
  }
}

/// How an original channel is created at Sendbird.
struct ChannelForm: Sendable {
  let record: ChannelRecord
  let url: ChannelID
  let isOpen: Bool
  let isDistinct: Bool
  let isSuper: Bool
  /// Joined and invited members, operators first.
  let people: [UserID]
  let operators: [UserID]
  let invited: Set<UserID>
  /// Those who fit into the first call.
  let first: [UserID]
  let body: JSONObject
  private let differing: JSONObject
  private let signing: EnvelopeSigning?

  init(_ record: ChannelRecord, _ members: [MemberRecord], superThreshold: Int, _ key: EnvelopeKey?) {
    self.record = record
    url = SendbirdMapping.channelURL(for: record.channel.id)
    signing = EnvelopeSigning(key, .channel(url.rawValue))
    isOpen = record.channel.kind == .open
    let present = members.map(\.member).filter { $0.state == .joined || $0.state == .invited }
    let leaders = present.filter { $0.role == .admin || $0.role == .owner }.map(\.user.id)
    let leading = Set(leaders)
    operators = leaders
    people = leaders + present.map(\.user.id).filter { !leading.contains($0) }
    invited = Set(present.filter { $0.state == .invited }.map(\.user.id))
    first = isOpen ? [] : Array(people.prefix(SendbirdLimits.inviteBatch))
    isSuper = !isOpen && people.count > superThreshold
    isDistinct = !isOpen && !isSuper && !people.isEmpty && (record.channel.isDistinct || record.channel.kind == .direct)
    differing = SendbirdChannelNotes.differing(members)
    var body: JSONObject = [
      "channel_url": .string(url.rawValue),
      "name": .string(Self.cut(record.channel.name ?? "", SendbirdLimits.nameLength)),
      "data": .string(Self.data(record, differing, guests: [], signing)),
    ]
    let cover = record.channel.coverURL ?? ""
    body["cover_url"] = .string(cover.unicodeScalars.count <= SendbirdLimits.urlLength ? cover : "")
    if isOpen {
      body["operator_ids"] = .array(leaders.prefix(SendbirdLimits.inviteBatch).map { .string($0.rawValue) })
    } else {
      body["user_ids"] = .array(first.map { .string($0.rawValue) })
      body["operator_ids"] = .array(leaders.filter(Set(first).contains).map { .string($0.rawValue) })
      body["is_super"] = .bool(isSuper)
      let waiting = first.filter(invited.contains)
      if !waiting.isEmpty { body["invitation_status"] = Self.statuses(waiting) }
    }
    self.body = body
  }

  /// The text for `data`.
  func data(guests: [UserID]) -> String { Self.data(record, differing, guests: guests, signing) }

  private static func data(
    _ record: ChannelRecord, _ differing: JSONObject, guests: [UserID], _ signing: EnvelopeSigning?
  ) -> String {
    SendbirdMapping.channelData(
      record, origin: record.origin ?? Origin(vendor: SendbirdErrors.vendor, id: record.channel.id.rawValue),
      notes: SendbirdChannelNotes(members: differing, guests: guests), signing)
  }

  static func statuses(_ users: some Sequence<UserID>) -> JSONValue {
    .object(JSONObject(users.map { (key: $0.rawValue, value: JSONValue.string("invited_by_non_friend")) }))
  }

  /// The time up to which a member has read, where the original's positions are times.
  static func readTime(_ record: MemberRecord) -> Int64? {
    guard let position = record.member.readPosition, position.minor != 0 || !position.tail.isEmpty, position.major > 0
    else { return nil }
    return position.major
  }

  private static func cut(_ text: String, _ count: Int) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.prefix(count)))
  }
}
