import ChatMigration
import UnifiedChat

extension CaseContext {
  /// Moves everything of a service in memory to here, and reads it back.
  func movedIn(_ service: IdealService, _ archive: String) async throws -> FidelityReport {
    let run = MigrationRun(
      source: IdealSource(service: service), archive: file(archive), destination: try await harness.makeDestination(),
      readBack: try await harness.makeSource(), clock: harness.clock)
    return try await whileTimePasses(within: .seconds(3600), step: .seconds(1)) { try await run.run() }
  }

  /// Moves everything from here into a service in memory, and reads it back.
  func movedOut(to service: IdealService, _ archive: String) async throws -> FidelityReport {
    let run = MigrationRun(
      source: try await harness.makeSource(), archive: file(archive), destination: IdealDestination(service: service),
      readBack: IdealSource(service: service), clock: harness.clock)
    return try await whileTimePasses(within: .seconds(3600), step: .seconds(1)) { try await run.run() }
  }

  /// The id here of a channel that was migrated.
  func migrated(_ original: ChannelID) async throws -> ChannelID {
    try need(await migratedChannel(original), "channel \(original)").id
  }

  /// The channel here that came from `original`; nil when there is none.
  func migratedChannel(_ original: ChannelID) async throws -> Channel? {
    let source = try await harness.makeSource()
    var cursor: Cursor?
    repeat {
      let after = cursor
      let page = try await whileTimePasses { try await source.channels(after: after) }
      for record in page.items where (record.origin?.id ?? record.channel.id.rawValue) == original.rawValue {
        return record.channel
      }
      cursor = page.next
    } while cursor != nil
    return nil
  }
}
