import ChatTransport

/// A few lines of life for each emulator: users, a channel, messages, a socket.
enum EmulatorSeeds {
  /// Lets any request in, at every vendor.
  static let headers: HTTPHeaders = [
    "Api-Token": "admin", "X-LC-Id": "app", "X-LC-Key": "admin,master", "operationID": "o", "token": "admintok",
    "Content-Type": "application/json",
  ]

  static func of(_ vendor: String) -> [String] {
    switch vendor {
    case "sendbird": sendbird
    case "openim": openIM
    default: leanCloud
    }
  }

  private static let sendbird = [
    """
    POST /v3/users {"user_id":"bob","nickname":"B","profile_url":""}
    POST /v3/group_channels {"user_ids":["alice","bob"],"is_distinct":true,"name":"pair","channel_url":"chan1"}
    POST /v3/group_channels/chan1/messages {"message_type":"MESG","user_id":"alice","message":"hi","created_at":1700000000000}
    GET /v3/group_channels/chan1/messages?message_ts=0&prev_limit=0&next_limit=20&include=true
    GET /v3/users/alice/my_group_channels?limit=10&order=latest_last_message
    PUT /v3/group_channels/chan1/metadata {"metadata":{"k":"v"}}
    """,
    """
    POST /v3/group_channels {"user_ids":["alice","bob"],"channel_url":"chan1"}
    POST /v3/open_channels {"channel_url":"open1"}
    ~/?p=JS&pv=9&sv=3.1.33&ai=app&user_id=alice&access_token=tok&active=1
    >PING{"id":1,"active":1}
    >MESG{"req_id":"r","channel_url":"chan1","message":"hi","data":"","custom_type":"","mention_type":"users"}
    >READ{"req_id":"s","channel_url":"chan1"}
    >TPST{"channel_url":"chan1","time":1}
    >ENTR{"req_id":"t","channel_url":"open1"}
    GET /v3/users/alice/my_group_channels/changelogs?change_ts=0
    !
    """,
  ]

  private static let openIM = [
    """
    POST /auth/get_admin_token {"secret":"admin","userID":"imAdmin"}
    POST /user/user_register {"users":[{"userID":"bob","nickname":"B"}]}
    POST /group/create_group {"ownerUserID":"alice","memberUserIDs":["bob"],"groupInfo":{"groupID":"g1","groupName":"n","groupType":2}}
    POST /msg/send_msg {"sendID":"alice","recvID":"bob","contentType":101,"sessionType":1,"content":{"content":"hi"}}
    POST /conversation/get_all_conversations {"ownerUserID":"alice"}
    POST /msg/pull_msg_by_seq {"userID":"alice","seqRanges":[{"conversationID":"si_alice_bob","begin":1,"end":9,"num":9}]}
    """,
    """
    ~/?sendID=alice&token=tok&platformID=5&operationID=o&sdkType=js&isMsgResp=true&isBackground=false
    <{"reqIdentifier":1001,"token":"","sendID":"alice","operationID":"o","msgIncr":"1","data":"CgVhbGljZQ=="}
    <{"reqIdentifier":1003,"token":"","sendID":"alice","operationID":"o","msgIncr":"2","data":"CgVhbGljZRIDYm9iIgJjMUgBUABYZWIOeyJjb250ZW50IjoiIn0="}
    <{"reqIdentifier":1002,"token":"","sendID":"alice","operationID":"o","msgIncr":"3","data":"CgVhbGljZQ=="}
    >{"type":"ping"}
    !
    """,
  ]

  /// Ids of an emulator depend on its seed alone.
  private static let leanCloud = [
    """
    POST /1.2/rtm/conversations {"name":"n","m":["alice","bob"],"unique":true}
    POST /1.1/classes/_Conversation {"m":["alice","bob"],"tr":false}
    GET /1.1/classes/_Conversation?where=%7B%22m%22%3A%22alice%22%7D&limit=10&order=-lm
    POST /1.2/rtm/conversations/c15c0289ec2d0a9167ec8e65/messages {"from_client":"alice","message":"hi"}
    GET /1.2/rtm/messages?limit=20&reversed=true&max_ts=9999999999999
    POST /1.1/users {"username":"u","password":"p"}
    GET /1.1/date
    """,
    """
    ~/ lc.json.3
    >{"cmd":"session","op":"open","appId":"app","peerId":"alice","i":1,"ua":"x","deviceToken":"d"}
    >{"cmd":"conv","op":"start","appId":"app","peerId":"alice","i":2,"m":["alice","bob"],"unique":true}
    >{"cmd":"direct","appId":"app","peerId":"alice","i":3,"cid":"0bc942ee9086c171b9b501d1","msg":"{}","r":true}
    >{"cmd":"logs","appId":"app","peerId":"alice","i":4,"cid":"0bc942ee9086c171b9b501d1","l":20}
    >{"cmd":"conv","op":"query","appId":"app","peerId":"alice","i":5,"where":{"data":"{\\"m\\":\\"alice\\"}"}}
    >{}
    !
    """,
  ]
}
