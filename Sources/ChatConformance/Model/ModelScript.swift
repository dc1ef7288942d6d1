import UnifiedChat

/// What random clients do, one after the other. A script is data, so that a short one can be kept as a test.
public struct ModelScript: Sendable, Hashable, CustomStringConvertible {
  public enum Step: Sendable, Hashable {
    /// Stores a message to be sent; `number` is its text.
    case send(client: Int, channel: Int, number: Int)
    /// Changes the text of an earlier message of the same client.
    case edit(client: Int, number: Int, to: Int)
    case recall(client: Int, number: Int)
    case read(client: Int, channel: Int)
    case suspend(client: Int)
    case resume(client: Int)
    /// The service cuts the link.
    case cut(client: Int)
    /// The app ends as a killed process does and starts again.
    case kill(client: Int)
    /// The answer to the client's next send is lost after it was stored.
    case loseAnswer(client: Int)
    case pass(milliseconds: Int)
  }

  public var clients: Int
  public var channels: Int
  public var steps: [Step]

  public init(clients: Int, channels: Int, steps: [Step]) {
    self.clients = clients
    self.channels = channels
    self.steps = steps
  }

  /// Seeded; the same seed gives the same script.
  public static func random(steps count: Int, clients: Int = 3, channels: Int = 2, seed: UInt64) -> ModelScript {
    var dice = Dice(seed: seed)
    var steps: [Step] = []
    var sent: [(client: Int, number: Int)] = []
    for number in 0..<max(0, count) {
      let client = Int.random(in: 0..<max(1, clients), using: &dice)
      let channel = Int.random(in: 0..<max(1, channels), using: &dice)
      let mine = sent.filter { $0.client == client }
      switch Int.random(in: 0..<100, using: &dice) {
      case 0..<46:
        steps.append(.send(client: client, channel: channel, number: number))
        sent.append((client, number))
      case 46..<54:
        if let target = mine.randomElement(using: &dice) {
          steps.append(.edit(client: client, number: target.number, to: number))
        }
      case 54..<60:
        if let target = mine.randomElement(using: &dice) {
          steps.append(.recall(client: client, number: target.number))
        }
      case 60..<68: steps.append(.read(client: client, channel: channel))
      case 68..<75: steps.append(.suspend(client: client))
      case 75..<84: steps.append(.resume(client: client))
      case 84..<88: steps.append(.cut(client: client))
      case 88..<90: steps.append(.kill(client: client))
      case 90..<94: steps.append(.loseAnswer(client: client))
      default: steps.append(.pass(milliseconds: Int.random(in: 1...3000, using: &dice)))
      }
    }
    return ModelScript(clients: clients, channels: channels, steps: steps)
  }

  /// As Swift, to be pasted into a test.
  public var description: String {
    let lines = steps.map { "    .\($0)," }
    return "ModelScript(\n  clients: \(clients), channels: \(channels),\n  steps: [\n" + lines.joined(separator: "\n")
      + "\n  ])"
  }
}

/// What a run of a script showed that the contract does not allow.
public struct ModelDivergence: Error, Sendable, Hashable, CustomStringConvertible {
  /// The shortest script that was found to show it.
  public var script: ModelScript
  public var what: String

  public var description: String { "\(what)\n\(script)" }
}
