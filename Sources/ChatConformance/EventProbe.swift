import Synchronization
import UnifiedChat

/// Everything that one subscriber is told, kept in order.
final class EventProbe: Sendable {
  private let collector: Collector
  private let task: Task<Void, Never>

  init(_ source: some ChatListening) {
    let events = source.events()
    let collected = Collector()
    collector = collected
    task = Task { for await event in events { collected.append(event) } }
  }

  private final class Collector: Sendable {
    let events = Mutex<[ChatEvent]>([])
    func append(_ event: ChatEvent) { events.withLock { $0.append(event) } }
  }

  deinit { task.cancel() }

  var events: [ChatEvent] { collector.events.withLock { $0 } }

  /// Received messages of a channel, in the order told.
  func received(in channel: ChannelID) -> [Message] {
    events.compactMap { event in
      if case .messageReceived(let message) = event.kind, message.channel == channel { message } else { nil }
    }
  }

  func sent(in channel: ChannelID) -> [Message] {
    events.compactMap { event in
      if case .messageSent(let message) = event.kind, message.channel == channel { message } else { nil }
    }
  }

  var connectionStates: [ConnectionState] {
    events.compactMap { if case .connectionChanged(let state) = $0.kind { state } else { nil } }
  }

  func count(_ matches: (ChatEvent.Kind) -> Bool) -> Int { events.count { matches($0.kind) } }
}
