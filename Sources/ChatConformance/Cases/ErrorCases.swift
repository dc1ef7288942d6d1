import UnifiedChat

extension ConformanceSuite {
  static let error: [ConformanceCase] = [
    ConformanceCase("ERR-10", "An absent capability throws before the network.", .s1) { context in
      // Not connected: whatever reached for the network would throw `network`, not `unsupported`.
      let user = try await context.user("alice")
      let adapter = try await context.harness.makeAdapter(device: "\(user.id)-bare")
      let declared = context.harness.capabilities
      for (capability, call) in refusals(adapter) where !declared.has(capability) {
        try await context.expectError("unsupported(\(capability.rawValue))", call) { $0 == .unsupported(capability) }
      }
    },
    ConformanceCase("ERR-11", "Errors speak.", .s3) { context in
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      let error = try await context.expectError("notFound") {
        _ = try await chat.channel("no-such-channel")
      } where: {
        if case .permission = $0 { true } else { $0 == .notFound || $0 == .invalidArgument(field: "channel") }
      }
      let text = "\(error)"
      try context.expect(text.contains(error.operation.rawValue), "the operation in the text", observed: text)
      try context.expect(text.contains(error.kind.name), "the kind in the text", observed: text)
      if case .token(let token) = user.credential {
        try context.expect(!text.contains(token), "no secret in the text")
      }
    },
  ]

  /// One call for each capability that is asked for by a call of its own.
  private static func refusals(
    _ adapter: any ChatAdapter
  ) -> [(Capability, @Sendable () async throws -> Void)] {
    let id = ChannelID("c")
    let user = UserID("u")
    let message = Message(
      channel: id, id: "m", sender: user, position: MessagePosition(sequence: 1),
      createdAt: Timestamp(milliseconds: 0), content: .text("x"))
    return [
      (.pushRegister, { try await adapter.registerPush(token: "t") }),
      (.presenceQuery, { _ = try await adapter.presence(of: [user]) }),
      (.presenceSubscribe, { try await adapter.subscribePresence(of: [user]) }),
      (.userBlock, { try await adapter.block(user) }),
      (.channelMetadataKeys, { try await adapter.setMetadata(["k": "v"], of: id) }),
      (.channelDelete, { try await adapter.deleteChannel(id) }),
      (.channelFreeze, { try await adapter.setFrozen(true, id) }),
      (.channelNotificationLevel, { try await adapter.setNotificationLevel(.all, of: id) }),
      (.memberInviteAcceptance, { try await adapter.answerInvitation(to: id, accept: true) }),
      (.memberList, { _ = try await adapter.members(of: id, limit: 1, page: nil) }),
      (.memberRemove, { try await adapter.removeMembers([user], from: id) }),
      (.memberRoles, { try await adapter.setRole(.admin, of: user, in: id) }),
      (.memberMute, { try await adapter.mute(user, in: id, for: nil) }),
      (.memberBan, { try await adapter.ban(user, from: id, for: nil) }),
      (.typing, { try await adapter.setTyping(true, in: id) }),
      (.fileUpload, {
        _ = try await adapter.upload(Attachment(source: .bytes([1])), for: id, progress: nil)
      }),
      (.historyChangelog, { _ = try await adapter.changes(in: id, since: nil) }),
      (.historyClear, { try await adapter.clearHistory(of: id) }),
      (.messageEdit, { _ = try await adapter.edit(message, to: .text("y")) }),
      (.messageRecall, { _ = try await adapter.recall(message) }),
      (.messageReaction, { _ = try await adapter.addReaction("k", to: message) }),
      (.messageThread, { _ = try await adapter.thread(under: message, .newest(1)) }),
      (.searchServer, { _ = try await adapter.search("x", in: nil, limit: 1, page: nil) }),
    ]
  }
}
