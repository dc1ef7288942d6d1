extension LeanCloudEmulator {
  var routes: RouteTable { Self.table }

  private static let table = RouteTable(
    routerRoutes + ["conversations", "chatrooms", "service-conversations"].flatMap(conversationRoutes)
      + ["conversations", "chatrooms"].flatMap(sharedRoutes) + memberRoutes + serviceRoutes + messageRoutes
      + clientRoutes
      + storageRoutes + fileRoutes)

  private static var routerRoutes: [Route] {
    [
      Route("GET", "2/route", .anybody, appRoute), Route("GET", "1/route", .anybody, appRoute),
      Route("GET", "v1/route", .anybody, realtimeRoute),
    ]
  }

  /// What the three kinds of conversations have in common.
  private static func conversationRoutes(_ kind: String) -> [Route] {
    let base = "1.2/rtm/\(kind)"
    return [
      Route("POST", base, .master, createConversation),
      Route("GET", base, .master, listConversations),
      Route("PUT", base + "/{id}", .master, updateConversation),
      Route("GET", base + "/{id}", .master, getConversation),
      Route("DELETE", base + "/{id}", .master, deleteConversation),
      Route("PUT", base + "/{id}/messages/{mid}", .master, isMetered: true, editMessage),
      Route("PUT", base + "/{id}/messages/{mid}/recall", .master, isMetered: true, recallMessage),
      Route("POST", base + "/{id}/temporary-silenceds", .master, addTemporarySilence),
      Route("DELETE", base + "/{id}/temporary-silenceds", .master, removeTemporarySilence),
      Route("POST", base + "/{id}/permanent-silenceds", .master, addSilence),
      Route("DELETE", base + "/{id}/permanent-silenceds", .master, removeSilence),
      Route("GET", base + "/{id}/permanent-silenceds", .master, listSilence),
      Route("POST", base + "/{id}/blacklists", .master, addBlocks),
      Route("DELETE", base + "/{id}/blacklists", .master, removeBlocks),
      Route("GET", base + "/{id}/blacklists", .master, listBlocks),
    ]
  }

  /// Conversations and chat rooms: messages to all, roles.
  private static func sharedRoutes(_ kind: String) -> [Route] {
    let base = "1.2/rtm/\(kind)/{id}"
    return [
      Route("POST", base + "/messages", .master, isMetered: true, sendMessage),
      Route("GET", base + "/messages", .app, isMetered: true, conversationMessages),
      Route("DELETE", base + "/messages/{mid}", .master, deleteMessage),
      Route("GET", base + "/members", .master, listMembers),
      Route("POST", base + "/member-infos", .master, setMemberInfo),
      Route("PUT", base + "/member-infos/{info}", .master, setMemberInfo),
      Route("DELETE", base + "/member-infos/{info}", .master, removeMemberInfo),
      Route("GET", base + "/member-infos", .master, listMemberInfos),
    ]
  }

  private static var memberRoutes: [Route] {
    let base = "1.2/rtm/conversations/{id}"
    return [
      Route("POST", base + "/members", .master, addMembers),
      Route("DELETE", base + "/members", .master, removeMembers),
      Route("POST", base + "/mutes", .master, addMutes),
      Route("DELETE", base + "/mutes", .master, removeMutes),
      Route("GET", base + "/mutes", .master, listMutes),
      Route("GET", "1.2/rtm/chatrooms/{id}/members/online-count", .master, onlineCount),
    ]
  }

  private static var serviceRoutes: [Route] {
    let base = "1.2/rtm/service-conversations/{id}"
    return [
      Route("POST", base + "/subscribers", .master, addSubscriber),
      Route("DELETE", base + "/subscribers/{client}", .master, removeSubscriber),
      Route("GET", base + "/subscribers", .master, listSubscribers),
      Route("GET", base + "/subscribers/count", .master, countSubscribers),
      Route("GET", base + "/subscribers/{client}/messages", .master, isMetered: true, subscriberMessages),
      Route("DELETE", base + "/subscribers/{client}/messages/{mid}", .master, deleteSubscriberMessage),
      Route("POST", base + "/messages", .master, isMetered: true, sendServiceMessage),
      Route("POST", base + "/broadcasts", .master, isMetered: true, broadcast),
      Route("POST", "1.2/rtm/broadcasts", .master, isMetered: true, broadcastToAll),
      Route("GET", "1.2/rtm/broadcasts", .master, listBroadcasts),
      Route("DELETE", "1.2/rtm/broadcasts/{mid}", .master, deleteBroadcast),
      Route("POST", "1.1/rtm/broadcast", .master, isMetered: true, broadcastToAll),
      Route("GET", "1.1/rtm/broadcast", .master, listBroadcasts),
      Route("DELETE", "1.1/rtm/broadcast", .master, deleteBroadcast),
      Route("POST", "1.1/rtm/broadcast/subscriber", .master, isMetered: true, broadcast11),
      Route("POST", "1.1/rtm/conversation/subscription", .master, subscribe11),
      Route("DELETE", "1.1/rtm/conversation/subscription", .master, unsubscribe11),
      Route("GET", "1.1/rtm/conversation/subscribers", .master, subscribers11),
      Route("GET", "1.1/rtm/conversation/subscribers/count", .master, countSubscribers11),
      Route("GET", "1.1/rtm/conversation/subscribed", .master, subscribed11),
    ]
  }

  private static var messageRoutes: [Route] {
    [
      Route("GET", "1.2/rtm/all-conversations", .master, listAllConversations),
      Route("GET", "1.2/rtm/messages", .master, isMetered: true, allMessages),
      Route("GET", "1.2/rtm/clients/{id}/messages", .master, isMetered: true, clientMessages),
      Route("POST", "1.1/rtm/messages", .master, isMetered: true, sendMessage11),
      Route("GET", "1.1/rtm/messages/history", .app, isMetered: true, history11),
      Route("GET", "1/rtm/messages/logs", .app, isMetered: true, history11),
      Route("GET", "1.1/rtm/messages/logs", .app, isMetered: true, history11),
      Route("DELETE", "1.1/rtm/messages/logs", .master, deleteLog11),
      Route("PUT", "1.1/rtm/messages/logs", .master, rewriteLog11),
      Route("POST", "1.1/rtm/patch/message", .master, patch11),
      Route("GET", "1.1/rtm/messages/unread/{client}", .app, unread11),
      Route("GET", "1.1/rtm/messages/unread/{client}/{conv}", .app, unread11),
    ]
  }

  private static var clientRoutes: [Route] {
    [
      Route("POST", "1.2/rtm/clients/check-online", .master, checkOnline),
      Route("POST", "1.1/rtm/online", .master, checkOnline),
      Route("GET", "1.2/rtm/clients/{id}/unread-count", .app, unreadCount),
      Route("POST", "1.2/rtm/clients/{id}/kick", .master, kickClient),
      Route("POST", "1.1/rtm/client/kick", .master, kickClient),
      Route("GET", "1.2/rtm/clients/sign", .app, signLogin), Route("POST", "1.1/rtm/sign", .app, signLogin),
      Route("GET", "1.2/rtm/stats", .master, stats),
      Route("GET", "1.1/rtm/notifications", .app, missedNotifications),
      Route("GET", "1.1/rtm/transient_group/onlines", .app, roomOnlines),
      Route("GET", "1.1/rtm/transient_group/members", .master, roomMembers11),
      Route("GET", "1.2/rtm/clients/{id}/service-conversations", .master, clientServices),
      Route("POST", "1.2/rtm/clients/{id}/blacklists", .master, blockConversation),
      Route("DELETE", "1.2/rtm/clients/{id}/blacklists", .master, unblockConversation),
      Route("GET", "1.2/rtm/clients/{id}/blacklists", .master, blockedConversations),
      Route("POST", "1.1/rtm/conversation/blacklist", .master, addTemporarySilence11),
      Route("DELETE", "1.1/rtm/conversation/blacklist", .master, removeTemporarySilence11),
    ]
  }

  private static var storageRoutes: [Route] {
    [
      Route("GET", "1.1/classes/{class}", .app, queryClass),
      Route("GET", "1.1/scan/classes/{class}", .master, scanClass),
      Route("GET", "1.1/classes/{class}/{id}", .app, getRow),
      Route("POST", "1.1/classes/{class}", .app, createRow),
      Route("PUT", "1.1/classes/{class}/{id}", .app, updateRow),
      Route("DELETE", "1.1/classes/{class}/{id}", .app, deleteRow),
      Route("GET", "1.1/users", .app, queryUsers), Route("POST", "1.1/users", .app, createUser),
      Route("GET", "1.1/users/{id}", .app, getUser), Route("PUT", "1.1/users/{id}", .app, updateUser),
      Route("DELETE", "1.1/users/{id}", .master, deleteUser),
      Route("POST", "1.1/login", .app, login),
      Route("POST", "1.1/installations", .app, createInstallation),
      Route("PUT", "1.1/installations/{id}", .app, updateInstallation),
      Route("POST", "1.1/users/friendshipRequests", .app, requestFriendship),
      Route("PUT", "1.1/users/friendshipRequests/{id}/accept", .app, acceptFriendship),
      Route("PUT", "1.1/users/friendshipRequests/{id}/decline", .app, declineFriendship),
      Route("POST", "1.1/users/{id}/friendship/{target}", .app, follow),
      Route("DELETE", "1.1/users/{id}/friendship/{target}", .app, unfollow),
      Route("GET", "1.1/users/{id}/followees", .app, followees),
      Route("GET", "1.1/users/{id}/followers", .app, followers),
      Route("GET", "1.1/date", .anybody, serverDate),
    ]
  }

  private static var fileRoutes: [Route] {
    [
      Route("POST", "1.1/files", .app, registerFile), Route("POST", "1.1/files/{name}", .app, registerFile),
      Route("GET", "1.1/files/{id}", .app, getFile), Route("POST", "1.1/fileTokens", .app, fileToken),
      Route("POST", "1.1/fileCallback", .app, fileCallback),
      Route("PUT", "upload/{token}", .anybody, uploadBytes), Route("POST", "upload/{token}", .anybody, uploadBytes),
      Route("GET", "files/{key}", .anybody, response: download),
      Route("GET", "files/{key}/{name}", .anybody, response: download),
    ]
  }
}
