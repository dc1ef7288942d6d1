import ChatCache
import UnifiedChat

// Receipts are told to those who are online, and to nobody later: after a lost link the marks of others are read from
// the list of members.

extension Chat {
  /// Asks for the marks of others where they can have moved: where the newest own message is not known to be read by
  /// all. Of a group only where the vendor tells who reads there, and no more than `memberPages` pages.
  /// - Throws: what reading members throws; not to be let read them is no error.
  func learnMarks(in channel: ChannelID) async throws(ChatError) {
    let vendor = try await vendorCapabilities()
    let tellsRead = vendor.has(.receiptRead)
    guard vendor.has(.memberList), tellsRead || vendor.has(.receiptDelivered) else { return }
    let mark = tellsRead ? \Member.readPosition : \Member.deliveredPosition
    let inGroups = vendor.has(.receiptGroupReaders)
    let canHaveMoved = try opened(.listMembers).read { session throws(ChatError) in
      try session.awaits(mark, in: channel, inGroups: inGroups)
    }
    guard canHaveMoved else { return }
    var token: PageToken?
    for _ in 0..<Self.memberPages {
      let page: Page<Member>
      do throws(ChatError) { page = try await ask(await adapter.members(of: channel, limit: 100, page: token)) } catch {
        switch error.kind {
        case .notFound, .permission, .unsupported, .invalidArgument: return
        default: throw error
        }
      }
      try learn(page.items, of: channel, isWhole: token == nil && page.next == nil, .catchUp)
      guard let next = page.next, next != token else { return }
      token = next
    }
  }

  private static let memberPages = 5

  /// Stores members as the server has them now, and tells the marks that moved meanwhile.
  func learn(
    _ members: [Member], of channel: ChannelID, isWhole: Bool, _ source: ChatEvent.Source
  ) throws(ChatError) {
    let moved = try opened(.listMembers).write { session throws(ChatError) in
      let moved = try session.raiseMarks(of: members, in: channel)
      if isWhole {
        try session.replaceMembers(members, of: channel)
      } else {
        for member in members { _ = try session.merge(member, in: channel) }
      }
      return moved
    }
    for kind in moved { publish(kind, source) }
  }
}

extension CacheSession {
  /// Whether some other member is not known to have come to the newest own message.
  fileprivate func awaits(
    _ mark: KeyPath<Member, MessagePosition?>, in channel: ChannelID, inGroups: Bool
  ) throws(ChatError) -> Bool {
    switch try channelKey(channel)?.kind {
    case .direct: break
    case .group where inGroups: break
    default: return false
    }
    guard let own = try newestOwnPosition(in: channel) else { return false }
    let others = try members(of: channel).filter { $0.user.id != owner }
    return others.isEmpty || others.contains { ($0[keyPath: mark] ?? .lowest) < own }
  }

  /// Stores the marks and returns those that moved. A mark of others is told where something own was written, whether
  /// it comes up to that or not: elsewhere nobody waits for it.
  fileprivate func raiseMarks(of members: [Member], in channel: ChannelID) throws(ChatError) -> [ChatEvent.Kind] {
    let own = try newestOwnPosition(in: channel)
    var moved: [ChatEvent.Kind] = []
    for member in members {
      let isOwner = member.user.id == owner
      if let read = member.readPosition {
        let kinds = try apply(.readChanged(channel, member.user.id, read))
        if isOwner || own != nil { moved += kinds }
      }
      if !isOwner, let delivered = member.deliveredPosition {
        let kinds = try apply(.deliveredChanged(channel, member.user.id, delivered))
        if own != nil { moved += kinds }
      }
    }
    return moved
  }
}
