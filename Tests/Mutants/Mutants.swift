import ChatClient
import ChatConformance
import Foundation
import UnifiedChat

/// A client that breaks one rule, and the cases that must notice.
struct Mutant: Sendable {
  /// As the specification numbers them.
  var id: String
  var breaks: String
  /// An adapter's name, or `ideal`.
  var base: String
  var cases: [String]
  /// What stands in the failure; "" where any failure is the one.
  var sign = ""
  var make: @Sendable (any ConformanceHarness) -> MutantHarness
}

extension Mutant {
  static let all: [Mutant] = [
    Mutant(id: "M01", breaks: "no dedupe of push and history", base: "ideal", cases: ["DEDUP-01", "RECV-03"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in ForgetsIdentity(adapter) })
    },
    Mutant(id: "M02", breaks: "new client id on each retry", base: "leancloud", cases: ["SEND-03", "SEND-11"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in NewClientIDs(inner: adapter) })
    },
    Mutant(id: "M03", breaks: "sorts by client time", base: "ideal", cases: ["ORDER-02"]) {
      MutantHarness(base: $0, wrap: { adapter, device in SortsByClientTime(inner: adapter, clock: device.clock) })
    },
    Mutant(id: "M04", breaks: "cursor by time only", base: "sendbird", cases: ["HIST-04", "TIME-06"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in CursorByTime(inner: adapter) })
    },
    Mutant(id: "M05", breaks: "inclusive cursors", base: "ideal", cases: ["HIST-01", "HIST-07"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in InclusiveCursors(inner: adapter) })
    },
    Mutant(id: "M06", breaks: "forgets gaps at reconnect", base: "ideal", cases: ["RECON-01", "DEDUP-01"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in Retold.forgetsGaps(adapter) })
    },
    Mutant(id: "M07", breaks: "applies the older edit", base: "leancloud", cases: ["EDIT-03"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in Retold.olderEditWins(adapter) })
    },
    Mutant(id: "M08", breaks: "recall only hides", base: "ideal", cases: ["DEL-01"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in Retold.recallHides(adapter) })
    },
    Mutant(id: "M09", breaks: "read mark may go back", base: "ideal", cases: ["RCPT-02"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in MarkGoesBack(adapter) })
    },
    Mutant(id: "M10", breaks: "counts own messages as unread", base: "ideal", cases: ["UNRD-03"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in CountsOwn(adapter) })
    },
    Mutant(id: "M11", breaks: "reconnects after a kick", base: "openim", cases: ["CONN-09"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in ReturnsAfterKick(adapter) })
    },
    Mutant(id: "M12", breaks: "asks the provider for each request", base: "openim", cases: ["AUTH-06"]) {
      MutantHarness(base: $0, wrap: { adapter, device in AsksAlways(inner: adapter, credentials: device.credentials) })
    },
    Mutant(id: "M13", breaks: "tells before it stores", base: "ideal", cases: ["RECV-01"], sign: "G6") {
      let early = EventHub()
      return MutantHarness(
        base: $0, wrap: { Retold.tellsFirst($0, early, $1.clock) }, listen: { _ in early })
    },
    Mutant(id: "M14", breaks: "a Double for numbers", base: "leancloud", cases: ["RECV-08"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in Retold.roundsNumbers(adapter) })
    },
    Mutant(id: "M15", breaks: "drops unknown message types", base: "leancloud", cases: ["RECV-06"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in Retold.dropsUnknown(adapter) })
    },
    Mutant(id: "M16", breaks: "cache file named by lower-cased user id", base: "ideal", cases: ["CACHE-02"]) {
      MutantHarness(base: $0, name: { $0.lowercased() })
    },
    Mutant(id: "M17", breaks: "an upgrade that is not one transaction", base: "ideal", cases: ["CACHE-04"]) {
      MutantHarness(
        base: $0,
        betweenStatements: { run in
          // Each statement is committed by itself; a refusal would only leave the upgrade whole.
          try? run("COMMIT")
          try? run("BEGIN IMMEDIATE")
        })
    },
    Mutant(id: "M18", breaks: "unsupported after sending", base: "ideal", cases: ["ERR-10"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in RefusesLate(inner: adapter) })
    },
    Mutant(id: "M19", breaks: "normalises text to NFC", base: "ideal", cases: ["UNICODE-05"]) {
      MutantHarness(
        base: $0, wrap: { adapter, _ in ChangesText(inner: adapter) { $0.precomposedStringWithCanonicalMapping } })
    },
    Mutant(id: "M20", breaks: "cuts at NUL", base: "ideal", cases: ["UNICODE-03"]) {
      MutantHarness(
        base: $0, wrap: { adapter, _ in ChangesText(inner: adapter) { String($0.prefix { $0 != "\u{0}" }) } })
    },
    Mutant(id: "M21", breaks: "second upload on resend", base: "leancloud", cases: ["FILE-03"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in UploadsAgain(inner: adapter) })
    },
    Mutant(id: "M22", breaks: "what was written is not known again", base: "ideal", cases: ["MIGR-03"]) {
      MutantHarness(base: $0, destination: { ForgetsWritten(inner: $0) })
    },
    Mutant(id: "M23", breaks: "report omits a lost field", base: "ideal", cases: ["MIGR-02"]) {
      MutantHarness(base: $0, destination: { LosesSilently(inner: $0) })
    },
    Mutant(id: "M24", breaks: "queue goes on after a retryable failure", base: "sendbird", cases: ["SEND-09"]) {
      MutantHarness(base: $0, wrap: { adapter, device in QueueGoesOn(inner: adapter, clock: device.clock) })
    },
    Mutant(id: "M25", breaks: "emits after disconnect", base: "ideal", cases: ["CONN-06"]) {
      MutantHarness(base: $0, listen: { SpeaksAfterDisconnect($0) })
    },
    Mutant(id: "M26", breaks: "settles pending by client id of any sender", base: "openim", cases: ["SEC-08"]) {
      MutantHarness(base: $0, wrap: { adapter, _ in SettlesByAnybody(adapter) })
    },
  ]
}
