import Testing

@testable import UnifiedChat

@Suite("A secret prints as redacted")
struct HoldsSecretTests {
  static let secret = "s3cr3t-value"

  @Test("in strings, inside other values, in dumps and mirrors")
  func printing() {
    let profile = Profile.Credentials(token: .literal(Self.secret), admin: .environment("ADMIN"))
    let values: [any Sendable] = [
      Credential.token(Self.secret), SecretReference.literal(Self.secret), profile,
      SignedOperation(signature: Self.secret, timestamp: 1, nonce: "n"),
      AdapterEnvironment(appKey: Self.secret, adminSecret: Self.secret, device: "phone"),
    ]
    for value in values {
      var dumped = ""
      dump(value, to: &dumped)
      let texts = ["\(value)", String(reflecting: value), String(describing: [value]), "\(Optional(value) as Any)", dumped]
      for text in texts { #expect(!text.contains(Self.secret)) }
    }
    #expect("\(Credential.token(Self.secret))" == "token ‹redacted›")
    #expect("\(SecretReference.literal(Self.secret))" == "literal ‹redacted›")
    #expect("\(SecretReference.environment("ADMIN"))" == "environment variable ADMIN")
  }

  @Test("a credential that is compared is the one that was given")
  func equality() {
    #expect(Credential.token("a") == .token("a"))
    #expect(Credential.token("a") != .token("b"))
  }
}

@Suite("A walk through pages comes to its end")
struct PageWalkTests {
  @Test("a token that comes again, next or later, is an error; others are not")
  func repeated() throws {
    for tokens in [["", ""], ["", "a", "a"], ["", "a", "b", "a"]] {
      var walk = PageWalk()
      for token in tokens.dropLast() { try walk.advance(to: token, .listChannels) }
      let error = #expect(throws: ChatError.self) { try walk.advance(to: tokens[tokens.count - 1], .listChannels) }
      #expect(error?.kind == .protocolViolation)
      #expect(error?.operation == .listChannels)
    }
    var walk = PageWalk()
    // Two forms of one letter are two tokens.
    for token in ["", "1", "2", "\u{e9}", "e\u{301}"] { try walk.advance(to: token, .listChannels) }
  }
  @Test("a list that leads on to new pages without end is left after so many")
  func endless() throws {
    var walk = PageWalk(mostPages: 5)
    for number in 0..<5 { try walk.advance(to: "\(number)", .listChannels) }
    let error = #expect(throws: ChatError.self) { try walk.advance(to: "5", .listChannels) }
    #expect(error?.kind == .protocolViolation)
    #expect(error?.detail == "the server's list does not end after 5 pages")
  }

  @Test("a token too long to be kept is refused")
  func long() throws {
    var walk = PageWalk()
    try walk.advance(to: String(repeating: "x", count: 65_536), .listChannels)
    let error = #expect(throws: ChatError.self) { try walk.advance(to: String(repeating: "x", count: 65_537), .listChannels) }
    #expect(error?.kind == .protocolViolation)
  }
}
