import ChatConformance
import ChatInterchange
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("The ideal service loses nothing in either direction")
struct IdealTests {
  /// One leg: everything from `source` into `destination`, verified.
  func move(
    _ source: any ChatSource, to destination: any ChatDestination, readBack: any ChatSource, _ archive: String
  ) async throws -> FidelityReport {
    try await MigrationRun(
      source: source, archive: archive, destination: destination, readBack: readBack, clock: LeapingClock()
    ).run()
  }

  @Test("what goes in comes back, through two archives, with a digest that is equal each time")
  func thereAndBack() async throws {
    let folder = try Folder()
    let first = MemoryService(vendor: "old")
    SampleChats.fill(first)
    let service = IdealService(clock: LeapingClock())
    let there = try await move(
      first, to: IdealDestination(service: service), readBack: IdealSource(service: service), folder.file("there"))
    #expect(there.isPerfect, "\(there.sentence) \(there.verification?.channels.flatMap(\.examples) ?? [])")
    #expect(there.verification?.channels.allSatisfy(\.digestsAreEqual) == true)

    let last = MemoryService(vendor: "old")
    let back = try await move(IdealSource(service: service), to: last, readBack: last, folder.file("back"))
    #expect(back.isPerfect, "\(back.sentence) \(back.verification?.channels.flatMap(\.examples) ?? [])")
    #expect(carried(first) == carried(last))
  }

  /// Everything that is compared, channel by channel and in order, whatever ids the way has given.
  func carried(_ service: MemoryService) -> [String] {
    service.state.withLock { state in
      state.channels.map { channel in
        let messages = channel.messages.map { record in
          var message = record.message
          message.replyTo = nil
          message.content = message.content.mappingAttachments {
            var attachment = $0
            (attachment.sha256, attachment.size) = (nil, nil)
            return attachment
          }
          return CarriedForm.message(message).map { "\($0.key)=\($0.value.text())" }.sorted().joined(separator: ";")
        }
        return "\(channel.record.channel.name ?? "") \(messages.joined(separator: "\n"))"
      }.sorted()
    }
  }
}
