import UnifiedChat

/// What each model of the vendor can do. A capability that is not named is absent.
///
/// - Source: conformance model §2, columns LC and LC1. Named there and not served: `channel.changelog`,
///   `history.changelog` and `source.delta`, since no call of the service tells changes of one channel since a time (a
///   reconnect replays edits by itself); what needs only this device (`channel.hide`, `channel.pin`,
///   `message.deleteForMe`, `message.localExtension`, `search.local`) is added by the client.
public enum LeanCloudCapabilities {
  public static let conversation = CapabilitySet([
    .connectionResume: .native,
    .connectionMultiDevice: .native,
    .connectionKickReason: .native,
    .authTokenRenewal: .emulated("reopened without the session token"),
    .authSignature: .native,
    .presenceQuery: .native,
    .pushRegister: .native,

    .channelDirect: .native,
    .channelGroup: .native,
    .channelGroupDistinct: .native,
    .channelOpen: .native,
    .channelService: .native,
    .channelTemporary: .native,
    .channelQuery: .native,
    .channelCustomData: .native,
    .channelMetadataKeys: .native,
    .channelNotificationLevel: .native,

    .memberList: .native,
    .memberRemove: .native,
    .memberRoles: .native,
    .memberOwnerRole: .native,
    .memberMute: .native,
    .memberBan: .native,

    .messageMention: .native,
    .messageQuote: .emulated("in the attributes of the message"),
    .messageMerge: .emulated("in the attributes of the message"),
    .messageClientID: .emulated("in the acknowledgement; history does not tell it"),
    .messageIdempotentSend: .native,
    .messageEdit: .native,
    .messageRecall: .native,
    .messageRecallTombstone: .native,
    .messageTransient: .native,

    .receiptDelivered: .native,
    .receiptRead: .native,
    .unreadChannel: .native,
    .unreadMarkAt: .native,
    .unreadMention: .native,
    .typing: .emulated("a transient message of a reserved type"),

    .historyBackward: .native,
    .historyForward: .native,
    .fileUpload: .native,
    .fileByURL: .native,

    .sourceReadAll: .native,
    .destinationSender: .native,
    .destinationIdempotent: .emulated("a ledger and reading back"),
  ])

  public static let session = CapabilitySet([
    .connectionMultiDevice: .native,
    .authSignature: .native,
    .presenceQuery: .native,
    .presenceSubscribe: .native,
    .channelDirect: .emulated("a pair of peers; the service has no object for it"),
    .channelGroup: .native,
    .channelOpen: .native,
    .memberRemove: .native,
    .messageTransient: .native,
    .receiptDelivered: .native,
    .typing: .emulated("a transient message of a reserved type"),
    .historyBackward: .emulated("over REST"),
    .sourceReadAll: .emulated("groups over REST; pairs by whoever knows the peers"),
  ])
}
