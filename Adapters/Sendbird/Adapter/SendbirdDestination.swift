import ChatInterchange
import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// Writes history by the Platform API: users and channels, then messages by the migration call, a hundred at a time,
/// with their own times and senders.
///
/// Writing again is harmless: users and channels are completed, messages are known by their `dedup_id`.
public actor SendbirdDestination: ChatDestination {
  public nonisolated var vendor: VendorName { SendbirdErrors.vendor }
  public nonisolated var capabilities: CapabilitySet { SendbirdCapabilities.all }
  public nonisolated let limits: DestinationLimits
  public nonisolated var signingKey: String? { admin.envelopes.key?.fingerprint }

  let admin: SendbirdAdmin
  /// Members above which a channel becomes a super group.
  let superThreshold: Int
  /// What is known of channels that this run has touched.
  var places: [ChannelID: Place] = [:]

  struct Place {
    var isOpen: Bool
    var isSuper: Bool
    var members: Set<UserID>
    /// Those of `members` whom only this import made members, because a sender must be one. They leave again.
    var guests: Set<UserID> = []
    /// Made by this run: nothing can be in it but what this run writes.
    var isFresh: Bool
    /// Some members have read marks of their own, so receipts are moved back before history arrives.
    var rewinds: Bool
  }

  /// Made by earlier runs, as their ledger says.
  var resumed: [Origin: ChannelID] = [:]

  public init(profile: Profile, environment: AdapterEnvironment, transports: Transports) throws(ChatError) {
    admin = try SendbirdAdmin(
      profile: profile, environment: environment, transports: transports, operation: .writeDestination)
    superThreshold = try Self.threshold(profile.options["superGroupThreshold"])
    limits = DestinationLimits(
      batch: SendbirdLimits.migrationBatch, usersPerRequest: 1, parallelChannels: 4, textBytes: nil,
      membersPerChannel: SendbirdLimits.superGroupMembers, userIDBytes: nil,
      attachmentBytes: SendbirdLimits.uploadMiB << 20, takesAnyOrder: true)
  }

  private static func threshold(_ option: JSONText?) throws(ChatError) -> Int {
    // One seat stays free for senders who are no members.
    guard let option else { return SendbirdLimits.groupMembers - 1 }
    guard let number = Int(option.text), number >= 0 else {
      throw ChatError(
        .invalidArgument(field: "options.superGroupThreshold"), operation: .configuration, detail: "must be an integer")
    }
    return number
  }

  // MARK: Losses

  public nonisolated func losses(of record: Record) -> [Loss] { SendbirdLosses.of(record, admin.envelopes.key) }

  // MARK: Users

  public func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    let admin = self.admin
    let width = 8
    // One task a lane; a lane's failure that is not of one user ends the batch.
    let lanes = await withTaskGroup(of: [(Int, Result<PutOutcome<UserID>, ChatError>)].self) { group in
      for lane in 0..<min(width, users.count) {
        group.addTask {
          var results: [(Int, Result<PutOutcome<UserID>, ChatError>)] = []
          for index in stride(from: lane, to: users.count, by: width) {
            let result = await Self.put(users[index], admin)
            results.append((index, result))
            if case .failure = result { break }
          }
          return results
        }
      }
      var all: [(Int, Result<PutOutcome<UserID>, ChatError>)] = []
      for await results in group { all += results }
      return all
    }
    var outcomes: [PutOutcome<UserID>] = []
    for (_, result) in lanes.sorted(by: { $0.0 < $1.0 }) { outcomes.append(try result.get()) }
    return outcomes
  }

  private static func put(_ record: UserRecord, _ admin: SendbirdAdmin) async -> Result<PutOutcome<UserID>, ChatError> {
    do throws(ChatError) { return .success(try await write(record, admin)) } catch {
      switch error.kind {
      case .invalidArgument, .permission, .tooLarge, .conflict: return .success(.refused(error))
      default: return .failure(error)
      }
    }
  }

  private static func write(_ record: UserRecord, _ admin: SendbirdAdmin) async throws(ChatError) -> PutOutcome<UserID>
  {
    let id = record.user.id
    let form = SendbirdUserForm(record, origin: record.origin, admin.envelopes.key)
    let body: JSONObject = [
      "user_id": .string(id.rawValue), "nickname": .string(form.nickname), "profile_url": .string(form.profileURL),
      "metadata": .object(form.metadata),
    ]
    do {
      _ = try await admin.call("POST", ["users"], body: body)
      return .written(id)
    } catch {
      guard error.kind == .conflict else { throw error }
    }
    let path = ["users", id.rawValue]
    guard let known = SendbirdUser(try await admin.call("GET", path)) else {
      throw SendbirdAdapter.malformed(.writeDestination)
    }
    if known.nickname != form.nickname || known.profileURL != form.profileURL {
      _ = try await admin.call(
        "PUT", path, body: ["nickname": .string(form.nickname), "profile_url": .string(form.profileURL)])
    }
    var metadata = known.metadata
    for (key, value) in form.metadata { metadata[key] = value }
    if metadata != known.metadata {
      let body: JSONObject = ["metadata": .object(form.metadata), "upsert": true]
      _ = try await admin.call("PUT", path + ["metadata"], body: body)
    }
    return .existed(id)
  }

  // MARK: Attachments

  public func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment {
    let form = SendbirdFiles.form(attachment, bytes: bytes, channel: channel)
    let json = try await admin.upload(["storage", "file"], form, boundary: SendbirdFiles.boundary(bytes))
    return try SendbirdFiles.uploaded(attachment, json)
  }

  // MARK: What is there

  public func existing(
    in channel: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<ExistingMessage> {
    let isOpen = try await place(channel).isOpen
    let found = try await admin.messages(
      in: channel, isOpen: isOpen, after: cursor.flatMap { MessagePosition($0.rawValue) }, includingRemoved: false)
    let items = found.compactMap { existing($0, in: channel) }
    let next = found.count >= SendbirdLimits.messagePage ? found.last.flatMap(SendbirdAdmin.position) : nil
    return SourcePage(items: items, next: next.map { Cursor($0.description) })
  }

  func existing(_ json: JSONObject, in channel: ChannelID) -> ExistingMessage? {
    guard let wire = SendbirdMessage(json) else { return nil }
    let place = SendbirdMapping.place(channel: channel, sender: wire.user?.id, time: wire.createdAt)
    let (provenance, _, _) = Provenance.unwrap(wire.data, by: admin.envelopes, at: place)
    return provenance.map { ExistingMessage(origin: $0.origin, id: MessageID(String(wire.id))) }
  }

  func place(_ channel: ChannelID) async throws(ChatError) -> Place {
    if let place = places[channel] { return place }
    let (json, isOpen) = try await admin.channel(channel)
    let members = isOpen ? [] : try await admin.allMembers(of: channel)
    let place = Place(
      isOpen: isOpen, isSuper: json.flag("is_super") ?? false, members: members, isFresh: false, rewinds: false)
    // Another call may have learned more meanwhile.
    if let known = places[channel] { return known }
    places[channel] = place
    return place
  }
}
