import ChatInterchange
import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// Everything that an application holds, read by the Platform API. What an import kept beside its items comes back as
/// it was, with `origin`.
public actor SendbirdSource: ChatSource {
  public nonisolated var vendor: VendorName { SendbirdErrors.vendor }
  public nonisolated var capabilities: CapabilitySet { SendbirdCapabilities.all }

  private let admin: SendbirdAdmin
  private let profile: Profile
  /// What members and messages need to know of their channel; the last few.
  private var places: [ChannelID: Place] = [:]
  private static let placeLimit = 256

  private struct Place {
    var isOpen: Bool
    var isImported: Bool
    var notes: SendbirdChannelNotes
  }

  public init(profile: Profile, environment: AdapterEnvironment, transports: Transports) throws(ChatError) {
    self.profile = profile
    admin = try SendbirdAdmin(
      profile: profile, environment: environment, transports: transports, operation: .readSource)
  }

  public func check() async throws(ChatError) -> SourceCheck {
    var query = SendbirdQuery()
    query.add("limit", 1)
    _ = try await admin.call("GET", ["users"], query: query)
    _ = try await admin.call("GET", ["group_channels"], query: query)
    return SourceCheck(
      notes: ["the Platform API tells no totals", "its rates depend on the plan: 10 requests a second on a free trial"])
  }

  // MARK: Users

  public func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    var query = SendbirdQuery()
    query.add("limit", Int64(SendbirdLimits.page))
    query.add("active_mode", "all")
    let json = try await page(["users"], query, token: cursor?.rawValue ?? "")
    var page = SourcePage<UserRecord>(items: [], next: Self.cursor("", json))
    for value in json.list("users") {
      guard let raw = value.object, let wire = SendbirdUser(raw) else {
        page.unreadable.append(Self.unreadable("user", value, "no user_id"))
        continue
      }
      var (record, finding) = SendbirdMapping.userRecord(
        wire, raw: Self.withoutSecrets(raw), .tool(admin.envelopes))
      record.user.presence = nil
      if let finding { page.unreadable.append(UnreadableRecord(envelopeOf: "user", id: wire.id.rawValue, finding)) }
      page.items.append(record)
    }
    return page
  }

  private static func withoutSecrets(_ user: JSONObject) -> JSONObject {
    user.without(["access_token", "session_tokens"])
  }

  /// Tokens do not live long. A list whose token is too old is read from its start again, which is harmless.
  private func page(_ path: [String], _ query: SendbirdQuery, token: String) async throws(ChatError) -> JSONObject {
    var own = query
    own.add("token", token)
    do { return try await admin.call("GET", path, query: own) } catch {
      guard !token.isEmpty, let code = error.vendor?.code, ["400109", "400111"].contains(code) else { throw error }
    }
    return try await admin.call("GET", path, query: query)
  }

  private static func cursor(_ prefix: String, _ json: JSONObject) -> Cursor? {
    guard let next = json.text("next"), !next.isEmpty else { return nil }
    return Cursor(prefix + next)
  }

  private static func unreadable(
    _ kind: String, _ value: JSONValue, _ reason: String, id: String? = nil, channel: ChannelID? = nil
  ) -> UnreadableRecord {
    UnreadableRecord(kind: kind, id: id, channel: channel, reason: reason, raw: JSONText(unchecked: value.text()))
  }

  // MARK: Channels

  /// Group channels, then open ones.
  public func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    let text = cursor?.rawValue ?? "g:"
    let isOpen = text.hasPrefix("o:")
    var query = SendbirdQuery()
    query.add("limit", Int64(SendbirdLimits.page))
    query.add("show_metadata", true)
    query.add("show_frozen", true)
    if !isOpen {
      query.add("show_empty", true)
      query.add("order", "chronological")
    }
    let json = try await page([isOpen ? "open_channels" : "group_channels"], query, token: String(text.dropFirst(2)))
    var page = SourcePage<ChannelRecord>(items: [], next: Self.cursor(isOpen ? "o:" : "g:", json))
    if page.next == nil, !isOpen { page.next = "o:" }
    for value in json.list("channels") {
      do {
        guard var raw = value.object, let wire = SendbirdChannel(raw) else {
          throw RecordError(path: "/channel_url", reason: "missing")
        }
        // Of the moment, or of whoever reads.
        raw = raw.without(["last_message", "ts", "members"])
        let (record, notes, finding) = try SendbirdMapping.channelRecord(wire, raw: raw, .tool(admin.envelopes))
        if let finding {
          page.unreadable.append(UnreadableRecord(envelopeOf: "channel", id: wire.url.rawValue, finding))
        }
        remember(wire.url, Place(isOpen: wire.group == nil, isImported: record.origin != nil, notes: notes))
        page.items.append(record)
      } catch {
        page.unreadable.append(Self.unreadable("channel", value, "\(error)", id: value["channel_url"]?.string))
      }
    }
    return page
  }

  private func remember(_ id: ChannelID, _ place: Place) {
    if places.count >= Self.placeLimit { places = [:] }
    places[id] = place
  }

  private func place(_ id: ChannelID) async throws(ChatError) -> Place {
    if let place = places[id] { return place }
    let (json, isOpen) = try await admin.channel(id)
    var place = Place(isOpen: isOpen, isImported: false, notes: SendbirdChannelNotes())
    if let wire = SendbirdChannel(json),
      let (record, notes, _) = try? SendbirdMapping.channelRecord(wire, raw: json, .tool(admin.envelopes))
    {
      place.isImported = record.origin != nil
      place.notes = notes
    }
    remember(id, place)
    return place
  }

  // MARK: Members

  /// Users who are members only because an import made them so are left out; those whom only the import remembers
  /// come last.
  public func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord>
  {
    if cursor == nil { places[channel] = nil }
    let place = try await place(channel)
    guard !place.isOpen else { return SourcePage(items: [], next: nil) }
    let (members, next) = try await admin.members(of: channel, token: cursor?.rawValue ?? "")
    var page = SourcePage<MemberRecord>(items: [], next: next.isEmpty ? nil : Cursor(next))
    let guests = Set(place.notes.guests)
    for raw in members {
      do {
        guard let wire = SendbirdMember(raw) else { throw RecordError(path: "/user_id", reason: "missing") }
        if guests.contains(wire.user.id) { continue }
        var record = try SendbirdMapping.memberRecord(
          wire, channel: channel, notes: place.notes, isImported: place.isImported)
        record.raw = JSONText(unchecked: JSONValue.object(raw).text())
        page.items.append(record)
      } catch {
        page.unreadable.append(
          Self.unreadable("member", .object(raw), "\(error)", id: raw.text("user_id"), channel: channel))
      }
    }
    if page.next == nil {
      do { page.items += try SendbirdMapping.absentMembers(place.notes, channel: channel, present: []) } catch {
        page.unreadable.append(UnreadableRecord(kind: "member", channel: channel, reason: "\(error)"))
      }
    }
    return page
  }

  // MARK: Messages

  public func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<
    MessageRecord
  > {
    let place = try await place(channel)
    var position: MessagePosition?
    if let cursor {
      guard let stored = MessagePosition(cursor.rawValue) else {
        throw ChatError(.invalidArgument(field: "cursor"), operation: .readSource, detail: "no cursor of this vendor")
      }
      position = stored
    }
    let found = try await admin.messages(in: channel, isOpen: place.isOpen, after: position, includingRemoved: true)
    var page = SourcePage<MessageRecord>(items: [], next: nil)
    for raw in found {
      do {
        guard let wire = SendbirdMessage(raw) else { throw RecordError(path: "/message_id", reason: "missing") }
        let (record, finding) = try SendbirdMapping.record(wire, raw: raw, .tool(admin.envelopes))
        page.items.append(record)
        if let finding {
          page.unreadable.append(
            UnreadableRecord(envelopeOf: "message", id: record.message.id?.rawValue, channel: channel, finding))
        }
      } catch {
        page.unreadable.append(
          Self.unreadable(
            "message", .object(raw), "\(error)", id: raw.number("message_id").map(String.init), channel: channel))
      }
    }
    // The list has no has-more: a page that is not full is the last one.
    if found.count >= SendbirdLimits.messagePage {
      page.next = found.last.flatMap(SendbirdAdmin.position).map { Cursor($0.description) }
    }
    return page
  }

  public func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    guard let url = attachment.url else {
      throw ChatError(.invalidArgument(field: "url"), operation: .download, detail: "the attachment has no URL")
    }
    let needsKey = SendbirdFile.isProtected(attachment) && SendbirdProfile.isOwn(url, profile)
    let headers: HTTPHeaders = needsKey ? ["Api-Token": admin.token] : [:]
    var rest = try await admin.rest.download(url, limit: .max, headers: headers)[...]
    while !rest.isEmpty {
      try await sink(Array(rest.prefix(1 << 20)))
      rest = rest.dropFirst(1 << 20)
    }
  }
}
