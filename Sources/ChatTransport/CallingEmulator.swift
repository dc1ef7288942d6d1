/// One request that an emulated server makes of another server: a webhook.
public struct EmulatorCall: Sendable, Hashable {
  /// Chosen by the machine; the answer comes back under it.
  public var id: UInt64
  public var request: HTTPRequest

  public init(id: UInt64, request: HTTPRequest) {
    self.id = id
    self.request = request
  }
}

/// An emulator whose server calls others. It says what it wants to ask; the host asks, and brings the answer as one
/// more input, so that the machine itself stays free of sockets.
public protocol CallingEmulator: VendorEmulator {
  /// The calls that the inputs so far caused and that were not taken yet, in order.
  mutating func takeCalls() -> [EmulatorCall]

  /// `response` is nil when the other server could not be reached, or said nothing in the request's time.
  mutating func handleAnswer(
    to call: UInt64, _ response: HTTPResponse?, context: inout EmulatorContext
  ) -> [EmulatorOutput]
}
