import ChatInterchange
import SendbirdWire
import Testing
import UnifiedChat

private struct OwnCase: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var origin: Origin
  var key: EnvelopeKey?
  /// Whose metadata it is found in.
  var user: UserID = "ana"
  var finding: EnvelopeFinding?
  var isPlaceholder = false
  var tellsOrigin = false
}

private let right = EnvelopeKey(adminSecret: "right")
private let ana = Origin(vendor: "sendbird", id: "ana")
private let stranger = Origin(vendor: "openim", id: "u7")

private let cases = [
  OwnCase(testDescription: "his own, unsigned", origin: ana),
  OwnCase(testDescription: "his own, signed by an import", origin: ana, key: right, isPlaceholder: true),
  OwnCase(
    testDescription: "his own, signed with another secret", origin: ana, key: EnvelopeKey(adminSecret: "wrong"),
    finding: .otherSignature),
  OwnCase(
    testDescription: "a signed one of somebody else's metadata", origin: ana, key: right, user: "bob",
    finding: .otherSignature),
  OwnCase(testDescription: "another vendor's, unsigned", origin: stranger, finding: .unsigned),
  OwnCase(
    testDescription: "another vendor's, signed by an import", origin: stranger, key: right, isPlaceholder: true,
    tellsOrigin: true),
]

@Suite("Envelopes in the metadata of Sendbird's users")
struct SendbirdOwnEnvelopeTests {
  @Test("a signature is judged before whose the envelope is; one without is the user's own alone", arguments: cases)
  fileprivate func judged(_ own: OwnCase) {
    let data = JSONText(unchecked: #"{"k":1}"#)
    let written = UserRecord(user: User(id: "ana", name: "Ana", customData: data), isPlaceholder: true)
    let form = SendbirdUserForm(written, origin: own.origin, own.key)
    let wire = SendbirdUser(id: own.user, nickname: "Ana", metadata: form.metadata)
    let (record, finding) = SendbirdMapping.userRecord(wire, raw: nil, .tool(EnvelopeReader(key: right)))
    #expect(finding == own.finding)
    #expect(record.origin == (own.tellsOrigin ? own.origin : nil))
    #expect(record.isPlaceholder == own.isPlaceholder)
    // What is not believed is data like any other.
    #expect((record.user.customData == data) == (own.finding == nil))
    #expect(record.user.customData != nil)
  }
}
