import UnifiedChat

/// One lie of a service, in neutral words. A harness maps it to its emulator's control interface.
public struct FaultRule: Sendable, Hashable, CustomStringConvertible {
  public enum Phase: String, Sendable, Hashable, CaseIterable {
    /// The frame was read, nothing was done.
    case received
    /// The change is stored, the answer is not yet on its way.
    case afterCommit
    /// A push is about to leave for one session.
    case beforePush
  }

  public enum Action: Sendable, Hashable {
    /// Nothing goes out.
    case drop
    /// The link of that user is cut without a close frame.
    case closeSocket
    /// The operation is refused with the vendor's code for this kind.
    case fail(ChatError.Kind)
    /// The same frame goes out so many times.
    case duplicate(Int)
    /// So many frames are held and go out in reverse.
    case reorder(Int)
  }

  /// auth, send, push, history, channelCreate, member, edit, recall, read, typing, file.
  public var operation: String
  public var user: UserID?
  public var channel: ChannelID?
  /// Fires from the n-th match on, from 1.
  public var nth: Int
  public var times: Int
  public var phase: Phase
  public var action: Action

  public init(
    _ operation: String, user: UserID? = nil, channel: ChannelID? = nil, nth: Int = 1, times: Int = 1,
    phase: Phase = .received, action: Action
  ) {
    self.operation = operation
    self.user = user
    self.channel = channel
    self.nth = nth
    self.times = times
    self.phase = phase
    self.action = action
  }

  public var description: String { "\(action) at the \(nth). \(operation) (\(phase.rawValue))" }
}
