import ChatJSON
import OpenIMWire
import UnifiedChat

/// Single chats whose messages vanish some time after they were read (`channel.burnDuration`). Reached by
/// `chat.vendorAdapter(as: (any OpenIMPrivateChats).self)`.
///
/// The server keeps the setting and marks the messages; deleting them is every client's own work. This one deletes, for
/// its user, what is read while it runs, and what it finds read when a history is asked for.
public protocol OpenIMPrivateChats: Sendable {
  /// Whole seconds after reading; nil for messages that stay. Holds for both, for what is sent from now on.
  /// - Throws: `.permission` for a group, `.invalidArgument` for less than a second.
  func setBurning(after duration: Duration?, of channel: ChannelID) async throws(ChatError)
  func burning(of channel: ChannelID) async throws(ChatError) -> Duration?
}

/// A message that is to vanish once it was read.
struct OpenIMBurnable: Sendable {
  var id: MessageID
  var seconds: Int64
  /// Read by the other one, not by this user.
  var isMine: Bool
  /// Its time runs.
  var isDue = false
}

extension OpenIMAdapter: OpenIMPrivateChats {
  public func setBurning(after duration: Duration?, of channel: ChannelID) async throws(ChatError) {
    let seconds = duration?.components.seconds
    if let seconds, seconds < 1 {
      throw ChatError(.invalidArgument(field: "duration"), operation: .updateChannel, detail: "a second at least")
    }
    guard OpenIMConversationID.groupID(of: channel.rawValue) == nil else {
      throw ChatError(.permission(), operation: .updateChannel, detail: "only single chats are private")
    }
    _ = try peer(of: channel, .updateChannel)
    var changes: JSONObject = ["isPrivateChat": .bool(seconds != nil)]
    changes["burnDuration"] = .int(seconds ?? 0)
    try await setConversation(channel, changes, for: .updateChannel)
    burning[channel] = seconds
  }

  public func burning(of channel: ChannelID) async throws(ChatError) -> Duration? {
    _ = try await self.channel(channel)
    return burning[channel].map { .seconds($0) }
  }

  /// What the user's record of a single chat says.
  func learnBurning(_ record: JSONValue, of channel: ChannelID) {
    let seconds = record["burnDuration"]?.int ?? 0
    burning[channel] = record["isPrivateChat"]?.bool == true && seconds > 0 ? seconds : nil
  }

  /// Marks an outgoing message as the vendor's client does.
  func markBurning(_ data: inout OpenIMMessageData, in channel: ChannelID) {
    guard let seconds = burning[channel] else { return }
    var options = data.options ?? [:]
    options["notPrivate"] = false
    data.options = options
    let info: JSONValue = [
      "isPrivateChat": true, "burnDuration": .int(seconds), "hasReadTime": 0, "isEncryption": false,
      "inEncryptStatus": false,
    ]
    data.attachedInfo = info.text()
  }

  // MARK: Vanishing

  /// Remembers what is to vanish; what was read already does so now.
  func noteBurnable(_ data: OpenIMMessageData, in channel: ChannelID) {
    guard !data.attachedInfo.isEmpty, data.seq > 0, !data.isPlaceholder, !data.serverMsgID.isEmpty,
      data.contentType != OpenIMNotice.revoked, let info = try? JSONValue(parsing: data.attachedInfo),
      info["isPrivateChat"]?.bool == true, let seconds = info["burnDuration"]?.int, seconds > 0
    else { return }
    // Every history shows it again until it has vanished.
    guard burnable[channel]?[data.seq]?.isDue != true else { return }
    let isMine = userID.map { data.sendID.utf8.elementsEqual($0.rawValue.utf8) } ?? false
    let entry = OpenIMBurnable(id: MessageID(data.serverMsgID), seconds: seconds, isMine: isMine)
    burnable[channel, default: [:]][data.seq] = entry
    if data.isRead { burn(in: channel, upTo: data.seq, mine: isMine, only: data.seq) }
  }

  /// The reader has come to `seq`: mine are read by the other one, others by this user.
  func burn(in channel: ChannelID, upTo seq: Int64, mine: Bool, only: Int64? = nil) {
    var due: [Int64: [Int64: MessageID]] = [:]
    for (number, entry) in burnable[channel] ?? [:]
    where number <= seq && entry.isMine == mine && !entry.isDue && (only == nil || only == number) {
      due[entry.seconds, default: [:]][number] = entry.id
      burnable[channel]?[number]?.isDue = true
    }
    for (seconds, messages) in due {
      lastBurn &+= 1
      let number = lastBurn
      burns[number] = Task { [clock] in
        guard (try? await clock.sleep(for: .seconds(seconds))) != nil, !Task.isCancelled else { return }
        await self.vanish(messages, from: channel, number)
      }
    }
  }

  private func vanish(_ messages: [Int64: MessageID], from channel: ChannelID, _ number: UInt64) async {
    burns[number] = nil
    guard let userID else { return }
    let body: JSONValue = [
      "userID": .string(userID.rawValue), "conversationID": .string(channel.rawValue),
      "seqs": .array(messages.keys.sorted().map { .int($0) }),
      "deleteSyncOpt": ["IsSyncSelf": true, "IsSyncOther": false],
    ]
    // When it fails, the next history shows them as read, and they are tried again.
    let isDone = (try? await call("/msg/delete_msgs", body, for: .deleteMessage)) != nil
    for seq in messages.keys { burnable[channel]?[seq] = nil }
    guard isDone else { return }
    for (_, id) in messages.sorted(by: { $0.key < $1.key }) { tell(.messageHidden(channel, id), .local) }
  }

  func stopBurning() {
    for task in burns.values { task.cancel() }
    burns = [:]
    burnable = [:]
  }
}
