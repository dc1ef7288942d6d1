import ChatJSON

/// The protobuf messages inside frames, as JSON values and back.
public enum OpenIMBody: String, Sendable, CaseIterable {
  case messageData = "MsgData"
  case sendAnswer = "SendMsgResp"
  case newestSequencesRequest = "GetMaxSeqReq"
  case newestSequencesAnswer = "GetMaxSeqResp"
  case pullRangesRequest = "PullMessageBySeqsReq"
  case pullRangesAnswer = "PullMessageBySeqsResp"
  case push = "PushMessages"
  case pullSequencesRequest = "GetSeqMessageReq"
  case pullSequencesAnswer = "GetSeqMessageResp"
  case readAndMaxRequest = "GetConversationsHasReadAndMaxSeqReq"
  case readAndMaxAnswer = "GetConversationsHasReadAndMaxSeqResp"
  case lastMessagesRequest = "GetLastMessageReq"
  case lastMessagesAnswer = "GetLastMessageResp"
  case backgroundRequest = "SetAppBackgroundStatusReq"
  case logoutRequest = "DelUserPushTokenReq"
  case presenceRequest = "SubUserOnlineStatus"
  case presenceTips = "SubUserOnlineStatusTips"

  /// Members that the table does not know are an error of ours, so a value from elsewhere must be cut to it first.
  public func encode(_ value: JSONValue) throws(JSONError) -> [UInt8] {
    try OpenIMGatewayFields.schema.encode(rawValue, value)
  }

  public func decode(_ bytes: [UInt8]) throws(JSONError) -> JSONValue {
    try OpenIMGatewayFields.schema.decode(rawValue, from: bytes)
  }
}

extension OpenIMOperation {
  public var request: OpenIMBody? {
    switch self {
    case .newestSequences: .newestSequencesRequest
    case .pullRanges: .pullRangesRequest
    case .send: .messageData
    case .pullSequences: .pullSequencesRequest
    case .readAndMaxSequences: .readAndMaxRequest
    case .lastMessages: .lastMessagesRequest
    case .logout: .logoutRequest
    case .background: .backgroundRequest
    case .presence: .presenceRequest
    case .push, .kicked: nil
    }
  }

  /// Of an answer, or of what the server sends by itself; nil: empty.
  public var answer: OpenIMBody? {
    switch self {
    case .newestSequences: .newestSequencesAnswer
    case .pullRanges: .pullRangesAnswer
    case .send: .sendAnswer
    case .pullSequences: .pullSequencesAnswer
    case .readAndMaxSequences: .readAndMaxAnswer
    case .lastMessages: .lastMessagesAnswer
    case .push: .push
    case .presence: .presenceTips
    case .logout, .background, .kicked: nil
    }
  }
}
