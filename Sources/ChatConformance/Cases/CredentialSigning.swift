import ChatClient
import ChatCrypto
import UnifiedChat

// Signatures, for vendors that sign, and push tokens.
extension ConformanceSuite {
  static let signing: [ConformanceCase] = [
    ConformanceCase(
      "AUTH-08", "A failed signature concerns what was signed.", .s1, needs: [.authSignature], hooks: ["setting.signature"]
    ) { context in
      try await context.perform(.setting("signature"))
      let user = try await context.user("alice")
      let other = try await context.user("bob")
      let wrong = try await context.device(user, "wrong", credentials: context.signer(key: "not-the-key"))
      let probe = context.probe(wrong)
      try await context.expectErrorInTime("authentication") {
        _ = try await wrong.connect(as: user.id, credential: user.credential)
      } where: {
        $0 == .authentication
      }
      try await context.eventually("refused is told") { probe.connectionStates.count >= 2 }
      try context.expectEqual(probe.connectionStates, [.connecting, .refused(.credentialInvalid)], "the trace")
      // Right when the session is opened, wrong when a channel is made.
      let half = try await context.online(user, "half", credentials: context.signer(key: nil, wrongAfter: 1))
      try await context.expectErrorInTime("authentication") {
        _ = try await half.createChannel(ChannelDraft(kind: .group, members: [other.id], name: "unsigned"))
      } where: {
        $0 == .authentication
      }
      try context.expectEqual(await half.state, .connected, "the connection stands")
    },
    ConformanceCase(
      "AUTH-09", "The signature callback gets exactly the vendor's inputs.", .s1, needs: [.authSignature],
      hooks: ["setting.signature"], tags: [.wire]
    ) { context in
      try await context.perform(.setting("signature"))
      var users: [TestUser] = []
      for name in ["zoe", "ann", "bob"] { users.append(try await context.user(name)) }
      let signer = context.signer()
      let chat = try await context.online(users[0], credentials: signer)
      let channel = try await chat.createChannel(
        ChannelDraft(kind: .group, members: [users[2].id, users[1].id], name: "signed"))
      let more = try await context.user("carl")
      try await chat.invite([more.id], to: channel.id)
      if context.has(.memberRemove) { try await chat.removeMembers([more.id], from: channel.id) }
      try await context.say(chat, channel.id, ["signed"])
      try context.expect(signer.signed >= 3, "signatures for opening, making and adding", observed: "\(signer.signed)")
      try context.expectEqual(await chat.state, .connected, "the state")
    },
    ConformanceCase(
      "AUTH-10", "A skewed client clock gives one clear refusal or none.", .s2, needs: [.authSignature],
      hooks: ["setting.signature"]
    ) { context in
      try await context.perform(.setting("signature"))
      let user = try await context.user("alice")
      let chat = try await context.device(user, credentials: context.signer(ahead: .seconds(7 * 3600)))
      try context.clock(of: chat).setOffset(.seconds(7 * 3600))
      let mark = await context.mark()
      do {
        _ = try await context.whileTimePasses { try await chat.connect(as: user.id, credential: user.credential) }
      } catch let error as ChatError {
        try context.expectEqual(error.kind, .authentication, "the refusal")
        try context.expectEqual(await chat.state, .refused(.credentialInvalid), "the state")
        try await context.pass(.seconds(120), step: .seconds(10))
        let opened = try await context.requests(since: mark).count { $0.kind == "open" }
        try context.expect(opened <= 1, "one attempt", observed: "\(opened)")
      }
    },
    ConformanceCase("CONN-19", "A push token is registered once, and a reconnect registers nothing anew.", .s1,
      needs: [.pushRegister], hooks: ["closeSocket", "journal"]
    ) { context in
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      let probe = context.probe(chat)
      try await context.whileTimePasses { try await chat.registerPush(token: "push-token-of-alice") }
      let mark = await context.mark()
      try await context.perform(.cut(user.id))
      try await context.comesBack(chat, probe)
      try await context.quiet()
      let again = try await context.requests(since: mark).filter {
        String(decoding: $0.bytes, as: UTF8.self).contains("push-token-of-alice")
      }
      try context.expectEqual(again.count, 0, "registrations after the reconnect")
      try await context.whileTimePasses { try await chat.unregisterPush(token: "push-token-of-alice") }
    },
  ]
}

extension CaseContext {
  /// The app's server as one that signs. With `wrongAfter`, later signatures are wrong.
  func signer(key: String? = nil, wrongAfter: Int? = nil, ahead: Duration = .zero) -> Signer {
    Signer(
      key: key ?? harness.signingSecret ?? "", wrongAfter: wrongAfter, clock: harness.clock, ahead: ahead,
      inSeconds: harness.limits["signature.seconds"] == 1)
  }
}

/// Signs in the plain way: what is to be signed, the time and a nonce, joined by colons.
final class Signer: CredentialProvider {
  private let key: String
  private let wrongAfter: Int?
  private let clock: any ChatClock
  private let ahead: Duration
  private let inSeconds: Bool
  private let count = Counter()

  init(key: String, wrongAfter: Int?, clock: any ChatClock, ahead: Duration, inSeconds: Bool) {
    self.key = key
    self.wrongAfter = wrongAfter
    self.clock = clock
    self.ahead = ahead
    self.inSeconds = inSeconds
  }

  /// How often something was signed.
  var signed: Int { count.value }

  func credential(for user: UserID) async throws -> Credential { .none }

  func sign(_ operation: String, fields: [String], for user: UserID) async throws -> SignedOperation? {
    count.add()
    let milliseconds = (clock.now + ahead).milliseconds
    let timestamp = inSeconds ? milliseconds / 1000 : milliseconds
    let nonce = "nonce\(count.value)"
    var parts = fields + [String(timestamp), nonce]
    switch operation {
    // The names that end the signed text, and the one place where the nonce comes first.
    case "invite", "kick", "join": parts.append(operation)
    case "history": parts = fields + [nonce, String(timestamp)]
    default: break
    }
    let isWrong = wrongAfter.map { count.value > $0 } ?? false
    let text = parts.joined(separator: ":") + (isWrong ? "wrong" : "")
    let signature = Hex.encode(HMAC.sha1(key: Array(key.utf8), message: Array(text.utf8)))
    return SignedOperation(signature: signature, timestamp: timestamp, nonce: nonce)
  }
}
