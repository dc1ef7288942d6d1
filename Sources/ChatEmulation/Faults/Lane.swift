import ChatTransport

/// Where a frame comes from or goes to.
enum Origin: Hashable, Sendable {
  case connection(EmulatorConnectionID)
  case exchange(EmulatorExchangeID)
}

/// One direction of one link: frames in it keep their order, also when one is held.
struct LaneKey: Hashable, Sendable {
  var origin: Origin
  var direction: FaultRule.Direction
}

/// A step of the host that waits for its turn.
typealias HostStep = @Sendable (isolated EmulatorHost) -> Void

/// A lane that is held: what waits behind the held frame.
struct Lane {
  var isHeld = true
  var waiting: [HostStep] = []
}

/// What holds a lane until somebody lets it go.
enum LaneHold: Hashable, Sendable {
  case stall
  case gate(String)
}

extension EmulatorInput {
  var origin: Origin? {
    switch self {
    case .http(let id, _): .exchange(id)
    case .open(let id, _), .message(let id, _), .ping(let id), .closed(let id, _): .connection(id)
    case .timer: nil
    }
  }
}

extension EmulatorOutput {
  var target: Origin? {
    switch self {
    case .respond(let id, _): .exchange(id)
    case .accept(let id, _), .reject(let id, _), .send(let id, _), .close(let id, _), .cut(let id): .connection(id)
    case .setTimer, .cancelTimer: nil
    }
  }
}
