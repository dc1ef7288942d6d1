import ChatTransport
import Dispatch
import Foundation

/// How `EmulatorServer.run` serves one vendor.
public struct EmulatorRunSettings: Sendable {
  public var address: String
  /// 0 takes a free one.
  public var port: UInt16
  /// The control interface's own port on 127.0.0.1; nil: none, 0: a free one.
  public var controlPort: UInt16?
  public var clock: EmulatorClock
  /// Where the state is kept between runs; nil: nowhere.
  public var dataDirectory: String?
  /// Neutral JSON Lines, loaded at the start; a state that was kept is loaded first.
  public var recordFiles: [String]
  public var printsCoverage: Bool
  public var journal: JournalSettings
  /// Host names and web pages that are served beside those of this machine.
  public var access: EmulatorAccess

  public init(
    address: String = "127.0.0.1", port: UInt16 = 0, controlPort: UInt16? = nil, clock: EmulatorClock = .real,
    dataDirectory: String? = nil, recordFiles: [String] = [], printsCoverage: Bool = false,
    journal: JournalSettings = .off, access: EmulatorAccess = EmulatorAccess()
  ) {
    self.address = address
    self.port = port
    self.controlPort = controlPort
    self.clock = clock
    self.dataDirectory = dataDirectory
    self.recordFiles = recordFiles
    self.printsCoverage = printsCoverage
    self.journal = journal
    self.access = access
  }
}

extension EmulatorServer {
  /// What `run` has to say, one call a line: the caller decides how it looks.
  public enum RunEvent: Sendable {
    case warning(String)
    case restored(file: String)
    case loaded(file: String, records: Int)
    /// Ready for clients. The token opens the control interface and is to be shown once.
    case listening(baseURL: String, control: (baseURL: String, token: String)?)
    case saved(file: String)
    case coverage(String)
  }

  /// Serves one vendor until SIGINT or SIGTERM, or until the task is cancelled; then saves and stops.
  /// - Throws: `EmulatorError` for a wrong option, `EmulatorServerError` for a port, `RecordFileError` for a wrong
  ///   line, `EmulatorStoreError` for an unreadable state. Each describes itself in one line.
  public static func run(
    _ factory: EmulatorFactory, options: EmulatorOptions, settings: EmulatorRunSettings,
    report: @escaping @Sendable (RunEvent) -> Void
  ) async throws {
    if !isLoopback(settings.address) {
      report(.warning("listening on \(settings.address): other machines can reach this emulator and its data"))
    }
    SystemSocket.raiseDescriptorLimit()
    let host = try EmulatorHost(factory, options: options, clock: settings.clock, journal: settings.journal)
    let store = try settings.dataDirectory.map { try EmulatorStore(host, directory: $0) }
    if let store, try await store.load() { report(.restored(file: store.file)) }
    // The port is taken before a long load, so that a wrong one shows at once; clients come after it is told.
    let server = try await EmulatorServer(
      host, address: settings.address, port: settings.port, access: settings.access)
    var control: ControlServer?
    if let port = settings.controlPort { control = try ControlServer(host.control, port: port) }
    for file in settings.recordFiles { report(.loaded(file: file, records: try await host.load(contentsOf: file))) }
    try await store?.save()
    report(.listening(baseURL: server.baseURL, control: control.map { ($0.baseURL, $0.token) }))

    let saving = store.map { store in
      Task { await store.keepSaving { report(.warning($0.description)) } }
    }
    await StopSignal().wait()
    saving?.cancel()
    await server.stop()
    await control?.stop()
    if let store {
      try await store.save()
      report(.saved(file: store.file))
    }
    if settings.printsCoverage { report(.coverage(await host.coverage.table())) }
  }
}

/// The wish of a person or of the system that this program ends.
struct StopSignal {
  /// Returns at SIGINT, SIGTERM or the task's cancellation.
  func wait() async {
    let asked = OneShot<Void>()
    let sources = [SIGINT, SIGTERM].map { number in
      // Without this the default action ends the process before the source sees the signal.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { asked.fulfil(()) }
      source.resume()
      return source
    }
    await asked.wait(cancelled: ())
    for source in sources { source.cancel() }
    // A second wish ends the process at once.
    for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
  }
}
