import ChatEmulation
import ChatJSON
import Testing

@Suite("Invitations to Sendbird's groups")
struct SendbirdInvitationTests {
  /// bob's friend is ana; cleo is none.
  private func lab(settings: [String: JSONValue] = [:]) async throws -> Lab {
    let lab = try Lab(settings: settings)
    try await lab.makeUsers("ana", "bob", "cleo", "dan")
    try await lab.rest("POST", "users/bob/friends", ["user_ids": ["ana"]])
    return lab
  }

  private func count(_ lab: Lab, _ state: String) async throws -> Int64? {
    try await lab.rest("GET", "users/bob/group_channel_count?state=\(state)").json["group_channel_count"]?.int
  }

  private func mine(_ lab: Lab, _ filter: String) async throws -> [String] {
    let json = try await lab.rest("GET", "users/bob/my_group_channels?show_empty=true&member_state_filter=\(filter)").json
    return (json["channels"]?.array ?? []).compactMap { $0["channel_url"]?.string }.sorted()
  }

  private func makeRoom(_ lab: Lab, _ url: String, by inviter: String, _ more: JSONObject = JSONObject()) async throws {
    var body: JSONObject = [
      "user_ids": [.string(inviter), "bob"], "channel_url": .string(url), "inviter_id": .string(inviter),
    ]
    for (name, value) in more { body[name] = value }
    try await lab.rest("POST", "group_channels", .object(body))
  }

  @Test("who accepts nothing by himself is invited by a friend or by none, which lists and counts tell apart")
  func preference() async throws {
    let lab = try await lab()
    try await makeRoom(lab, "before", by: "ana")
    try await lab.rest("PUT", "users/bob/channel_invitation_preference", ["auto_accept": false])
    #expect(try await lab.rest("GET", "users/bob/channel_invitation_preference").json == ["auto_accept": false])
    try await makeRoom(lab, "by-friend", by: "ana")
    try await makeRoom(lab, "by-other", by: "cleo")
    #expect(try await mine(lab, "all") == ["before", "by-friend", "by-other"])
    #expect(try await mine(lab, "joined_only") == ["before"])
    #expect(try await mine(lab, "invited_only") == ["by-friend", "by-other"])
    #expect(try await mine(lab, "invited_by_friend") == ["by-friend"])
    #expect(try await mine(lab, "invited_by_non_friend") == ["by-other"])
    #expect(try await count(lab, "all") == 3)
    #expect(try await count(lab, "joined") == 1)
    #expect(try await count(lab, "invited") == 2)
    #expect(try await count(lab, "invited_by_friend") == 1)
    #expect(try await count(lab, "invited_by_non_friend") == 1)
    #expect(try await lab.rest("GET", "users/bob/group_channel_count?state=left").json["code"]?.int == 400111)
    // Both look alike as members.
    for url in ["by-friend", "by-other"] {
      #expect(try await lab.rest("GET", "group_channels/\(url)/members/bob").json == ["is_member": false, "state": "invited"])
    }
    try await lab.rest("PUT", "group_channels/by-friend/accept", ["user_id": "bob"])
    try await lab.rest("PUT", "group_channels/by-other/decline", ["user_id": "bob"])
    #expect(try await mine(lab, "joined_only") == ["before", "by-friend"])
    #expect(try await count(lab, "invited_by_friend") == 0)
    #expect(try await count(lab, "invited_by_non_friend") == 0)
    try await lab.rest("PUT", "users/bob/channel_invitation_preference", ["auto_accept": true])
    try await makeRoom(lab, "after", by: "cleo")
    #expect(try await mine(lab, "joined_only") == ["after", "before", "by-friend"])
    #expect(try await lab.rest("PUT", "users/bob/channel_invitation_preference", [:]).json["code"]?.int == 400105)
  }

  @Test("the status of a call comes before the user's preference and the application's, in both of its spellings")
  func statuses() async throws {
    let forms: [JSONValue] = [
      ["bob": "invited_by_friend", "dan": "joined"], ["bob: invited_by_friend", "dan: joined"],
    ]
    for (number, form) in forms.enumerated() {
      for setting in [true, false] {
        let lab = try await lab(settings: ["autoAcceptInvitations": .bool(setting)])
        try await makeRoom(lab, "room-\(number)", by: "cleo", ["invitation_status": form])
        let invitation: JSONValue = ["user_ids": ["dan"], "invitation_status": form]
        try await lab.rest("POST", "group_channels/room-\(number)/invite", invitation)
        #expect(try await mine(lab, "invited_by_friend") == ["room-\(number)"])
        #expect(
          try await lab.rest("GET", "group_channels/room-\(number)/members/dan").json == ["is_member": true, "state": "joined"])
      }
    }
  }

  @Test("members' lists tell invitations by friends from others")
  func members() async throws {
    let lab = try await lab()
    let states: JSONValue = ["bob": "invited_by_friend", "dan": "invited_by_non_friend"]
    try await makeRoom(lab, "room", by: "ana", ["user_ids": ["ana", "bob", "dan"], "invitation_status": states])
    func found(_ filter: String) async throws -> [String] {
      let json = try await lab.rest("GET", "group_channels/room/members?member_state_filter=\(filter)").json
      return (json["members"]?.array ?? []).compactMap { $0["user_id"]?.string }
    }
    #expect(try await found("joined_only") == ["ana"])
    #expect(try await found("invited_only") == ["bob", "dan"])
    #expect(try await found("invited_by_friend") == ["bob"])
    #expect(try await found("invited_by_non_friend") == ["dan"])
  }

  @Test("a channel may be hidden from who comes in, until a message shows it or for good")
  func hidden() async throws {
    let lab = try await lab()
    let hidings: JSONValue = ["bob": "hidden_allow_auto_unhide", "dan": "hidden_prevent_auto_unhide"]
    try await makeRoom(lab, "room", by: "ana", ["user_ids": ["ana", "bob", "dan"], "hidden_status": hidings])
    func shown(_ user: String) async throws -> Int? {
      try await lab.rest("GET", "users/\(user)/my_group_channels?show_empty=true").json["channels"]?.array?.count
    }
    #expect(try await (shown("ana"), shown("bob"), shown("dan")) == (1, 0, 0))
    try await lab.rest(
      "POST", "group_channels/room/messages", ["message_type": "MESG", "user_id": "ana", "message": "hello"])
    #expect(try await (shown("ana"), shown("bob"), shown("dan")) == (1, 1, 0))
  }

  @Test("open invitations survive a snapshot as what they are")
  func snapshot() async throws {
    let lab = try await lab()
    try await lab.rest("PUT", "users/bob/channel_invitation_preference", ["auto_accept": false])
    try await makeRoom(lab, "by-friend", by: "ana")
    try await makeRoom(lab, "by-other", by: "cleo")
    let control = EmulatorControl(lab.host)
    let saved = await control.snapshot()
    try await control.restore(saved)
    #expect(await control.snapshot() == saved)
    #expect(try await mine(lab, "invited_by_friend") == ["by-friend"])
    #expect(try await mine(lab, "invited_by_non_friend") == ["by-other"])
  }
}
