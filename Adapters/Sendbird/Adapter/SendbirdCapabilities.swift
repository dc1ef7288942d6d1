import UnifiedChat

/// What Sendbird v3 can do. Sources: the rows of the conformance table, which name them.
public enum SendbirdCapabilities {
  public static let all = CapabilitySet(
    Dictionary(uniqueKeysWithValues: native.map { ($0, CapabilityLevel.native) })
      .merging(emulated.map { ($0.key, .emulated($0.value)) }) { $1 })

  static let native: [Capability] = [
    .connectionResume, .connectionMultiDevice, .connectionKickReason, .authToken, .authTokenRenewal, .presenceQuery,
    .pushRegister,
    .channelDirect, .channelGroup, .channelGroupDistinct, .channelOpen, .channelQuery, .channelCustomData,
    .channelMetadataKeys, .channelHide, .channelNotificationLevel, .channelFreeze, .channelDelete,
    .memberList, .memberInviteAcceptance, .memberRemove, .memberRoles, .memberMute, .memberBan, .userBlock,
    .messageMention, .messageThread, .messageClientID, .messageEdit, .messageRecall, .messageReaction,
    .receiptDelivered, .receiptRead, .receiptGroupReaders, .unreadChannel, .unreadTotal, .unreadMention,
    .unreadSendClears, .typing,
    .historyBackward, .historyForward, .historyChangelog, .historyClear, .fileUpload, .fileByURL, .searchServer,
    .sourceReadAll, .destinationTime, .destinationSender, .destinationIdempotent,
  ]

  static let emulated: [Capability: String] = [
    .messageQuote: "the quoted message stands in the envelope of `data`",
    .messageMerge: "a readable list, with the messages in the envelope of `data`",
    .messageIdempotentSend: "look before resend",
    .unreadMarkAt: "the vendor marks up to now: the frame is held back while newer messages exist",
    .messageLocalExtension: "in the cache of this device",
    .messageDeleteForMe: "hidden on this device",
    .channelPin: "on this device",
    .searchLocal: "full-text search over the cache",
  ]
}
