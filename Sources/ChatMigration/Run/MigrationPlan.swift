import ChatInterchange
import ChatJSON
import UnifiedChat

/// What a run would do (`Schemas/plan.schema.json`). Making it writes nothing, neither here nor there.
public struct MigrationPlan: Sendable, Hashable {
  public var source: VendorName
  public var destination: VendorName
  public var users = 0
  public var channels = 0
  public var channelsByKind: [String: Int] = [:]
  public var members = 0
  public var messages = 0
  /// Beside `messages`: what reactions become where that is wanted.
  public var reactionMessages = 0
  public var attachments = 0
  /// Of those attachments whose size is known.
  public var attachmentBytes: Int64 = 0
  /// What the destination will not keep as it is.
  public var losses: [CountedLoss] = []
  /// What of each field will be kept, kept elsewhere, degraded or dropped, as the report of a load tells it afterwards.
  public var fields: [FidelityReport.Field] = []
  /// What exceeds a limit of the destination and will be refused or mapped.
  public var overLimit: [CountedLoss] = []
  /// What the source could not read.
  public var unreadable = 0
  /// Envelopes of imports that are not believed.
  public var envelopes = 0
  /// Users whom the mapping would melt into one, at most a hundred ids of them: a run refuses to begin.
  public var collisions: [UserCollision] = []
  /// What stays in the archive, by the vendor's name of the list. Empty for a plan without an archive.
  public var notCarried: [VendorRowCount] = []
  /// What of the app the source does not read.
  public var notRead: [String] = []
  /// What the filter leaves out.
  public var leftOut = 0
  /// Writing requests to the destination.
  public var requests = 0
  /// Requests a second of the estimate.
  public var requestsPerSecond: Double

  /// How long the writing takes at that rate.
  public var estimate: Duration { .seconds(Double(requests) / max(requestsPerSecond, 0.001)) }

  init(source: VendorName, destination: VendorName, requestsPerSecond: Double) {
    self.source = source
    self.destination = destination
    self.requestsPerSecond = requestsPerSecond
  }

  public func json() -> JSONValue {
    var object = JSONObject()
    object["source"] = .string(source.rawValue)
    object["destination"] = .string(destination.rawValue)
    for (key, value) in [
      ("users", users), ("channels", channels), ("members", members), ("messages", messages),
      ("reactionMessages", reactionMessages), ("attachments", attachments), ("unreadable", unreadable), ("envelopes", envelopes), ("leftOut", leftOut),
      ("requests", requests),
    ] { object[key] = JSONValue(value) }
    object["attachmentBytes"] = .int(attachmentBytes)
    var kinds = JSONObject()
    for kind in channelsByKind.keys.sorted() { kinds[kind] = JSONValue(channelsByKind[kind] ?? 0) }
    object["channelsByKind"] = .object(kinds)
    object["fields"] = .array(fields.map { $0.json() })
    object["losses"] = .array(losses.map { $0.json() })
    object["overLimit"] = .array(overLimit.map { $0.json() })
    object["collisions"] = .array(
      collisions.map { collision in
        [
          "destination": .string(collision.destination.rawValue),
          "originals": .array(collision.originals.map { .string($0.rawValue) }),
        ]
      })
    object["notCarried"] = .array(notCarried.map { $0.json() })
    object["notRead"] = .array(notRead.map { .string($0) })
    object["requestsPerSecond"] = JSONValue(requestsPerSecond)
    object["estimatedSeconds"] = .int(estimate.components.seconds)
    return .object(object)
  }
}

extension CountedLoss {
  public func json() -> JSONValue {
    [
      "field": .string(loss.field), "treatment": .string(loss.treatment.rawValue),
      "explanation": .string(loss.explanation), "count": JSONValue(count),
      "examples": .array(examples.prefix(5).map { .string($0) }),
    ]
  }
}

/// Walks through a source or an archive and counts.
struct Planner {
  let destination: any ChatDestination
  let users: UserMapping
  let progress: ProgressReporter
  private let form: DestinationForm
  private var plan: MigrationPlan
  private var losses = LoadTally()
  private var over = LoadTally()
  /// Ids at the destination of users who were met.
  private var known: [UserID: UserID] = [:]
  /// How many messages have each field.
  private var present: [String: Int] = [:]
  /// Messages that reactions of the present channel become.
  private var reactionMessages = 0

  /// Where nobody tells a rate.
  static let assumedRate = 20.0
  /// Beyond this the memory of users is let go and filled again.
  private static let knownCapacity = 50_000

  init(
    source: VendorName, destination: any ChatDestination, users: UserMapping, rules: LoadRules,
    requestsPerSecond: Double?, progress: ProgressReporter
  ) {
    self.destination = destination
    self.users = users
    self.progress = progress
    form = DestinationForm(vendor: source, rules: rules)
    plan = MigrationPlan(
      source: source, destination: destination.vendor, requestsPerSecond: requestsPerSecond ?? Self.assumedRate)
  }

  mutating func finish() -> MigrationPlan {
    let users = min(Loader.userBatch, max(1, destination.limits.usersPerRequest ?? Loader.userBatch))
    plan.requests += (plan.users + users - 1) / users + 2 * plan.channels + plan.attachments
    plan.losses = losses.sorted
    plan.overLimit = over.sorted
    plan.fields = FidelityReport.Field.sorted(FidelityReport.Field.all(of: plan.losses, present: present))
    return plan
  }

  mutating func add(collisions: [UserCollision]) { plan.collisions = collisions }

  mutating func add(unreadable: Int, envelopes: Int) {
    plan.unreadable += unreadable
    plan.envelopes += envelopes
  }

  mutating func add(notCarried: [VendorRowCount], notRead: [String]) {
    plan.notCarried = notCarried
    plan.notRead = notRead
  }

  mutating func add(_ records: [UnreadableRecord]) {
    let envelopes = records.count(where: \.isEnvelope)
    add(unreadable: records.count - envelopes, envelopes: envelopes)
  }

  mutating func add(_ record: UserRecord) {
    guard form.rules.filter.admits(record.user.id) else { return plan.leftOut += 1 }
    plan.users += 1
    let id = record.user.id
    let place = places(of: [id])[id] ?? id
    let found = destination.losses(of: .user(form.user(record, id: place)))
    note(found, id.rawValue)
    let wanted = users.rule?.apply(to: id) ?? id
    if let limit = destination.limits.userIDBytes, wanted.rawValue.utf8.count > limit, users.explicit[id] == nil {
      over.add(.mappedUser, of: id.rawValue)
    } else if place != id, !found.contains(where: { $0.field == Loss.mappedUser.field }) {
      losses.add(.mappedUser, of: id.rawValue)
    }
  }

  /// Whether the channel is wanted at all.
  func admits(_ channel: ChannelID) -> Bool { form.rules.filter.admits(channel) }

  mutating func add(_ record: ChannelRecord, members everybody: [MemberRecord]) {
    let members = everybody.filter { form.rules.filter.admits($0.member.user.id) }
    let id = record.channel.id.rawValue
    plan.channels += 1
    plan.members += members.count
    plan.channelsByKind[record.channel.kind.recordName, default: 0] += 1
    let people = [record.channel.createdBy, record.channel.peer].compactMap(\.self) + members.map(\.member.user.id)
    let users = places(of: people)
    note(destination.losses(of: .channel(form.channel(record, asGroup: false, users: users))), id)
    for member in members {
      note(
        destination.losses(of: .member(form.member(member, users: users))), "\(id)/\(member.member.user.id)")
    }
    if let limit = destination.limits.membersPerChannel, members.count > limit {
      over.add(.tooMany("channel.members", limit, "members"), of: id)
    }
  }

  /// Messages of one channel; `isLast` when no more of it follow.
  mutating func add(_ everything: [MessageRecord]) {
    let records = everything.filter { form.rules.admits($0.message) }
    plan.leftOut += everything.count - records.count
    plan.messages += records.count
    for record in records {
      let id = record.message.id?.rawValue ?? ""
      let users = places(of: record.message.namedUsers)
      let written = form.message(record, users: users)
      note(destination.losses(of: .message(written)), id)
      for field in MessageField.allCases where field.isCompared && written.message.value(of: field) != nil {
        present["message.\(field.rawValue)", default: 0] += 1
      }
      if form.isPutInWords(record.message) { losses.add(.noticeInWords, of: id) }
      if form.rules.rewritesMentions, form.rewrites(record.message, users: users) {
        losses.add(.rewrittenMention, of: id)
      }
      let reactions = form.reactions(of: record, users: users).count
      if reactions > 0 { losses.add(.reactionMessages, of: id) }
      reactionMessages += reactions
      for attachment in record.message.content.attachments {
        plan.attachments += 1
        plan.attachmentBytes += attachment.size ?? 0
        if let limit = destination.limits.attachmentBytes, let size = attachment.size, size > limit {
          over.add(.tooMany("message.content.attachment", Int(clamping: limit), "bytes"), of: id)
        }
      }
      if let limit = destination.limits.textBytes, let text = record.message.content.text, text.utf8.count > limit {
        over.add(.tooMany("message.content.text", limit, "bytes"), of: id)
      }
    }
    progress.add(everything.count)
  }

  /// What of links is lost because of the order in which messages are written, as far as the archive tells it.
  /// - Parameters: messages that are written in one go, their places in the channel, and those of what they answer.
  mutating func addAstray(_ records: [MessageRecord], at places: [Int64], _ ordinals: [MessageID: Int64]) {
    let beside = destination.limits.takesAnyOrder ? Set(records.compactMap(\.message.id)) : []
    for (record, place) in zip(records, places) where form.rules.admits(record.message) {
      guard let id = record.message.id else { continue }
      let there = record.message.targets.filter { target in
        ordinals[target].map { $0 < place } == true || target != id && beside.contains(target)
      }
      let astray = record.message.astray(Dictionary(there.map { ($0, $0) }, uniquingKeysWith: { one, _ in one }))
      for loss in astray { losses.add(loss, of: id.rawValue) }
    }
  }

  mutating func endChannel(messages: Int) {
    let batch = max(1, min(destination.limits.batch, destination.limits.messagesPerRequest ?? .max))
    plan.requests += (messages + reactionMessages + batch - 1) / batch
    plan.reactionMessages += reactionMessages
    reactionMessages = 0
  }

  /// Ids at the destination that are not the own ones, as long as nobody else has them.
  private mutating func places(of ids: [UserID]) -> [UserID: UserID] {
    guard users.rule != nil || !users.explicit.isEmpty || destination.limits.userIDBytes != nil else { return [:] }
    var changed: [UserID: UserID] = [:]
    for id in ids where changed[id] == nil {
      let place = known[id] ?? users.candidates(for: id, limits: destination.limits).first ?? id
      if known[id] == nil {
        if known.count >= Self.knownCapacity { known = [:] }
        known[id] = place
      }
      if place != id { changed[id] = place }
    }
    return changed
  }

  private mutating func note(_ found: [Loss], _ id: String) { for loss in found { losses.add(loss, of: id) } }
}

extension LoadTally {
  fileprivate var sorted: [CountedLoss] {
    losses.values.sorted {
      ($0.loss.field, $0.loss.treatment.rawValue, $0.loss.explanation)
        < ($1.loss.field, $1.loss.treatment.rawValue, $1.loss.explanation)
    }
  }
}

extension Loss {
  fileprivate static func tooMany(_ field: String, _ limit: Int, _ unit: String) -> Loss {
    Loss(field: field, treatment: .dropped, explanation: "more than the destination's \(limit) \(unit)")
  }
}

extension MessageContent {
  fileprivate var text: String? {
    switch self {
    case .text(let text), .markdown(let text): text
    default: nil
    }
  }
}
