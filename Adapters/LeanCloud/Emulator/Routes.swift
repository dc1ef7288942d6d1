extension LeanCloudEmulator {
  var routes: RouteTable { Self.table }

  // A constant of functions without state.
  nonisolated(unsafe) private static let table = RouteTable(
    routerRoutes + conversationRoutes("conversations") + conversationRoutes("chatrooms")
      + conversationRoutes("service-conversations") + messageRoutes + clientRoutes + storageRoutes + fileRoutes)

  private static var routerRoutes: [Route] {
    [
      Route("GET", "2/route", .anybody, appRoute), Route("GET", "1/route", .anybody, appRoute),
      Route("GET", "v1/route", .anybody, realtimeRoute),
    ]
  }

  private static func conversationRoutes(_ kind: String) -> [Route] {
    let base = "1.2/rtm/\(kind)"
    return [
      Route("POST", base, .master, createConversation),
      Route("GET", base, .master, listConversations),
      Route("PUT", base + "/{id}", .master, updateConversation),
      Route("GET", base + "/{id}", .master, getConversation),
      Route("DELETE", base + "/{id}", .master, deleteConversation),
      Route("POST", base + "/{id}/members", .master, addMembers),
      Route("DELETE", base + "/{id}/members", .master, removeMembers),
      Route("GET", base + "/{id}/members", .master, listMembers),
      Route("GET", base + "/{id}/members/online-count", .master, onlineCount),
      Route("POST", base + "/{id}/mutes", .master, addMutes),
      Route("DELETE", base + "/{id}/mutes", .master, removeMutes),
      Route("GET", base + "/{id}/mutes", .master, listMutes),
      Route("POST", base + "/{id}/messages", .master, isMetered: true, sendMessage),
      Route("GET", base + "/{id}/messages", .app, isMetered: true, conversationMessages),
      Route("PUT", base + "/{id}/messages/{mid}", .master, isMetered: true, editMessage),
      Route("PUT", base + "/{id}/messages/{mid}/recall", .master, isMetered: true, recallMessage),
      Route("DELETE", base + "/{id}/messages/{mid}", .master, deleteMessage),
      Route("POST", base + "/{id}/temporary-silenceds", .master, addTemporarySilence),
      Route("DELETE", base + "/{id}/temporary-silenceds", .master, removeTemporarySilence),
      Route("POST", base + "/{id}/permanent-silenceds", .master, addSilence),
      Route("DELETE", base + "/{id}/permanent-silenceds", .master, removeSilence),
      Route("GET", base + "/{id}/permanent-silenceds", .master, listSilence),
      Route("POST", base + "/{id}/blacklists", .master, addBlocks),
      Route("DELETE", base + "/{id}/blacklists", .master, removeBlocks),
      Route("GET", base + "/{id}/blacklists", .master, listBlocks),
      Route("POST", base + "/{id}/member-infos", .master, setMemberInfo),
      Route("PUT", base + "/{id}/member-infos/{info}", .master, setMemberInfo),
      Route("DELETE", base + "/{id}/member-infos/{info}", .master, removeMemberInfo),
      Route("GET", base + "/{id}/member-infos", .master, listMemberInfos),
      Route("POST", base + "/{id}/subscribers", .master, addSubscriber),
      Route("DELETE", base + "/{id}/subscribers/{client}", .master, removeSubscriber),
      Route("GET", base + "/{id}/subscribers", .master, listSubscribers),
      Route("GET", base + "/{id}/subscribers/count", .master, countSubscribers),
      Route("POST", base + "/{id}/broadcasts", .master, isMetered: true, sendMessage),
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
      Route("POST", "1.1/login", .app, login),
      Route("GET", "1.1/date", .anybody, serverDate),
    ]
  }

  private static var fileRoutes: [Route] {
    [
      Route("POST", "1.1/files", .app, registerFile), Route("POST", "1.1/files/{name}", .app, registerFile),
      Route("GET", "1.1/files/{id}", .app, getFile), Route("POST", "1.1/fileTokens", .app, fileToken),
      Route("POST", "1.1/fileCallback", .app, fileCallback),
      Route("PUT", "upload/{token}", .anybody, uploadBytes), Route("POST", "upload/{token}", .anybody, uploadBytes),
      Route("GET", "files/{key}", .anybody, response: download), Route("GET", "files/{key}/{name}", .anybody, response: download),
    ]
  }
}
