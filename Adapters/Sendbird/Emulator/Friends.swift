import ChatJSON
import SendbirdWire
import UnifiedChat

// Friends of a user, their changelog, and the keys by which they are discovered.
extension SendbirdEmulator {
  static let friendRoutes: [Route] = [
    Route("GET", "users/{user}/friends") { (e, c) throws(SendbirdFault) in try e.listFriends(c) },
    Route("POST", "users/{user}/friends") { (e, c) throws(SendbirdFault) in try e.addFriends(c) },
    Route("DELETE", "users/{user}/friends") { (e, c) throws(SendbirdFault) in try e.removeFriends(c) },
    Route("GET", "users/{user}/friends/changelogs") { (e, c) throws(SendbirdFault) in try e.friendChanges(c) },
    Route("PUT", "users/{user}/friend_discoveries") { (e, c) throws(SendbirdFault) in try e.addDiscoveries(c) },
    Route("DELETE", "users/{user}/friend_discoveries") { (e, c) throws(SendbirdFault) in try e.removeDiscoveries(c) },
    Route("GET", "users/{user}/allow_friend_discovery") { (e, c) throws(SendbirdFault) in
      .json(["allow_friend_discovery": .bool(try e.ownPerson(c).allowsDiscovery)])
    },
    Route("PUT", "users/{user}/allow_friend_discovery") { (e, c) throws(SendbirdFault) in
      let person = try e.ownPerson(c)
      person.allowsDiscovery = c.flag("allow_friend_discovery") ?? person.allowsDiscovery
      return .json(["allow_friend_discovery": .bool(person.allowsDiscovery)])
    },
  ]

  /// With the key by which `owner` found each, and the name that goes with it.
  private func json(_ friends: some Sequence<Person>, of owner: Person) -> JSONValue {
    .array(
      friends.map { friend in
        var json = json(of: friend).json
        if let key = friend.discoveryKeys.compactMap(\.string).first(where: { owner.discoveries[$0] != nil }) {
          json["friend_discovery_key"] = .string(key)
          json["friend_name"] = owner.discoveries[key]
        }
        return .object(json)
      })
  }

  private func listFriends(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let (page, next) = try page(person.friends.compactMap { people[$0] }, call, limit: try pageLimit(call)) {
      $0.id.rawValue
    }
    return .json(["users": json(page, of: person), "next": .string(next)])
  }

  private func addFriends(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    var added: [Person] = []
    for id in call.texts("user_ids") { added.append(try self.person(id)) }
    for friend in added where !person.friends.contains(friend.id) {
      person.friends.append(friend.id)
      person.friendChanges.append((newChange(), friend.id))
    }
    return .json(["users": json(added, of: person)])
  }

  private func removeFriends(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    for id in call.texts("user_ids").map({ UserID($0) }) where person.friends.contains(id) {
      person.friends.removeAll { $0 == id }
      person.friendChanges.append((newChange(), id))
    }
    return .empty
  }

  /// Each friend that came, changed or went since the token, once, as he stands now.
  private func friendChanges(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    var since: Int64 = 0
    if let token = call.query["token"], !token.isEmpty {
      guard let number = Int64(token), (0...changeNumber).contains(number) else {
        throw SendbirdFault(400111, "Invalid token.")
      }
      since = number
    }
    let changes = person.friendChanges.filter { $0.number > since }.prefix(SendbirdLimits.page)
    let last = changes.last?.number ?? since
    var seen: Set<UserID> = []
    let users = changes.map(\.user).filter { seen.insert($0).inserted }
    return .json([
      "updated": json(users.filter(person.friends.contains).compactMap { people[$0] }, of: person),
      "deleted": .array(users.filter { !person.friends.contains($0) }.map { .string($0.rawValue) }),
      "has_more": .bool(person.friendChanges.contains { $0.number > last }), "next": .string(String(last)),
    ])
  }

  /// Whoever bears one of the keys, and allows it, becomes a friend; `USEV` 20900 tells.
  private func addDiscoveries(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    for item in call.body.list("friend_discoveries") {
      guard let key = item["friend_discovery_key"]?.string else {
        throw SendbirdFault(400105, "friend_discovery_key is missing.")
      }
      person.discoveries[key] = .string(item["friend_name"]?.string ?? "")
    }
    let found = peopleInOrder.filter { other in
      other !== person && other.allowsDiscovery && !person.friends.contains(other.id)
        && other.discoveryKeys.contains { $0.string.map { person.discoveries[$0] != nil } ?? false }
    }
    for friend in found {
      person.friends.append(friend.id)
      person.friendChanges.append((newChange(), friend.id))
    }
    if !found.isEmpty {
      let data: JSONObject = ["friend_discoveries": json(found, of: person)]
      push(SendbirdFrame("USEV", ["cat": 20900, "ts": .int(now), "data": .object(data)]), to: person)
    }
    return .json(["users": json(found, of: person)])
  }

  private func removeDiscoveries(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    for key in call.texts("friend_discovery_keys") { person.discoveries[key] = nil }
    return .empty
  }
}
