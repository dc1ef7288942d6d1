import Foundation
import Testing
import UnifiedChat

@testable import ChatCache

@Suite("The words of a recalled message")
struct QuoteTests {
  private let quoted = QuotedMessage(id: "m1", sender: "bob", senderName: "Bob", content: .text("regretted"))
  private let tombstone = MessageContent.recalled(by: "bob", at: Timestamp(milliseconds: 5000))

  private func reply(_ sequence: Int64, to id: MessageID = "m1") -> Message {
    var reply = text("reply \(sequence)", sequence, by: "carol")
    reply.replyTo = Reply(id: id, quoted: quoted)
    return reply
  }

  private func recalled(_ sequence: Int64 = 1) -> Message {
    var message = text("", sequence)
    message.content = tombstone
    return message
  }

  @Test("leave every quote of it, whatever comes first", arguments: [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
  func orders(_ order: [Int]) throws {
    let cache = try makeCache()
    let steps = [text("regretted", 1), reply(2), recalled()]
    for step in order { try cache.write { session throws(ChatError) in _ = try session.merge(steps[step]) } }
    let kept = try cache.read { session throws(ChatError) in try session.message("m2", in: "c") }
    #expect(kept?.content == .text("reply 2"))
    #expect(kept?.replyTo?.quoted?.content == tombstone)
    #expect(kept?.replyTo?.quoted?.senderName == "Bob")
  }

  @Test("leave what is still to be sent, and what is told of it, once")
  func waiting() throws {
    let cache = try makeCache()
    let draft = MessageDraft(.text("waiting"), replyTo: Reply(id: "m1", quoted: quoted))
    let change = try cache.write { session throws(ChatError) in
      _ = try session.merge(text("regretted", 1))
      _ = try session.merge(reply(2))
      _ = try session.merge(reply(3, to: "m9"))
      _ = try session.enqueue(
        OutboxEntry(localID: "l", channel: "c", clientMessageID: "l", draft: draft, createdAt: Timestamp(milliseconds: 4000)))
      return try session.merge(recalled())
    }
    guard case .recalled(_, _, let replies) = change else { throw ChatError.cancelled(.cache) }
    #expect(replies.map(\.content) == [.text("reply 2"), .text("waiting")])
    let (entry, again, other) = try cache.write { session throws(ChatError) in
      (try session.outboxEntry("l"), try session.merge(recalled()), try session.message("m3", in: "c"))
    }
    #expect(entry?.draft.replyTo?.quoted?.content == tombstone && entry?.draft.content == .text("waiting"))
    #expect(again == .unchanged)
    #expect(other?.replyTo?.quoted?.content == .text("regretted"))
  }

  @Test("an id that stands in the text of others takes nothing from them")
  func mentioned() throws {
    let cache = try makeCache()
    var mentioning = text(#"say "m1" again"#, 2)
    mentioning.replyTo = Reply(id: "m0", quoted: QuotedMessage(id: "m0", content: .text("kept")))
    let told = mentioning
    try cache.write { session throws(ChatError) in
      for message in [text("regretted", 1), told, recalled()] { _ = try session.merge(message) }
    }
    #expect(try cache.read { session throws(ChatError) in try session.message("m2", in: "c") }?.replyTo == told.replyTo)
  }

  @Test("are found by what answers, without reading a channel")
  func plan() throws {
    let plan = try makeCache().read { session throws(ChatError) in try session.planOfAnswers() }
    #expect(plan.count == 1 && plan[0].contains("messages_answers"))
  }

  @Test("bring no answer back that the user hid, nor a second copy of one: no search finds it", arguments: ["hidden", "copy"])
  func outOfSight(_ way: String) throws {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      _ = try session.merge(text("regretted", 1))
      var answer = reply(3)
      answer.clientMessageID = "c"
      _ = try session.merge(answer)
      if way == "hidden" {
        _ = try session.hide("m3", in: "c")
      } else {
        var first = answer
        (first.id, first.position) = ("m2", position(2))
        _ = try session.merge(first)
      }
      _ = try session.merge(recalled())
    }
    #expect(try cache.found("reply") == (way == "hidden" ? [] : ["reply 3"]))
    let (shown, kept) = try cache.read { session throws(ChatError) in
      (try session.message("m3", in: "c"), try session.row(of: "m3", in: "c")?.message.replyTo?.quoted?.content)
    }
    #expect(shown == nil && kept == tombstone)
    #expect(try cache.integrity() == "ok" && cache.takeErased() && !cache.takeErased())
  }

  @Test("go from a second copy too that the service stored, whether its place is told or not", arguments: [true, false])
  func copies(_ isPlaced: Bool) throws {
    let cache = try makeCache()
    let (change, kept) = try cache.write { session throws(ChatError) in
      for number in [1, 2] as [Int64] { _ = try session.merge(text("regretted", number, client: "c")) }
      var gone = text("", 2, client: "c")
      gone.content = tombstone
      if !isPlaced { gone.position = try session.position(of: "m2", in: "c") }
      return (try session.merge(gone), try session.row(of: "m2", in: "c"))
    }
    #expect(change == .unchanged && kept?.visibility == .duplicate && kept?.message.content == tombstone)
    #expect(try cache.texts() == ["regretted"] && cache.takeErased())
    #expect(try cache.read { session throws(ChatError) in try session.copies(of: text("regretted", 1, client: "c")) }.map(\.isRecalled) == [true])
  }
}
