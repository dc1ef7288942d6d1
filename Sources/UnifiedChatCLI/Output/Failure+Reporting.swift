import ChatEmulation
import ChatJSON
import ChatMigration
import ChatSamples
import ChatTransport
import Foundation
import UnifiedChat

extension Failure {
  /// Any error as one line with the code that tells which side failed.
  init(reporting error: any Error) {
    switch error {
    case let failure as Failure: self = failure
    // Ids of a service or a file may stand in it.
    case let error as ChatError: self.init(Self.code(error), "\(error)".inert)
    case let error as SeedError: self.init(.configuration, "\(error)")
    case let error as EmulatorError: self.init(.configuration, "\(error)")
    case let error as EmulatorServerError: self.init(.configuration, "\(error)")
    case is CancellationError: self.init(.interrupted, "interrupted; what was confirmed is kept, run it again to go on")
    default: self.init(.configuration, error.localizedDescription.inert)
    }
  }

  private static func code(_ error: ChatError) -> ExitCode {
    // An input file that is not there, or may not be read.
    if case .storage(.denied) = error.kind, error.operation == .plan { return .configuration }
    if case .storage = error.kind { return .storage }
    if error.kind == .cancelled { return .interrupted }
    switch error.operation {
    case .configuration: return .configuration
    case .writeDestination: return .destination
    case .archive, .cache: return .storage
    case .verify: return .different
    case .plan: return .configuration
    default: return .source
    }
  }
}
