import Testing
import UnifiedChat

@testable import ChatCache

@Suite("Texts that differ in their Unicode form alone")
struct UnicodeFormTests {
  private static let (decomposed, composed) = ("cafe\u{301}", "caf\u{E9}")

  @Test("an edit from one form to the other is told and kept")
  func edit() throws {
    let cache = try makeCache()
    let before = text(Self.decomposed, 1)
    var after = before
    after.content = .text(Self.composed)
    after.editedAt = Timestamp(milliseconds: 9)
    let changes = try cache.write { session throws(ChatError) in
      [try session.merge(before), try session.merge(after), try session.merge(after)]
    }
    guard case .updated(let told) = changes[1], case .text(let words) = told.content else {
      Issue.record("the edit was not told")
      return
    }
    #expect(Array(words.utf8) == Array(Self.composed.utf8))
    #expect(changes[2] == .unchanged)
    #expect(try cache.texts().map { Array($0.utf8) } == [Array(Self.composed.utf8)])
  }

  @Test("a member's name that changes its form changes the member")
  func member() throws {
    let cache = try makeCache()
    var member = Member(user: User(id: "bob"))
    member.user.name = Self.decomposed
    var renamed = member
    renamed.user.name = Self.composed
    let changes = try cache.write { session throws(ChatError) in
      [
        try session.merge(member, in: "c"), try session.merge(renamed, in: "c"), try session.merge(renamed, in: "c"),
      ]
    }
    #expect(changes == [true, true, false])
  }
}
