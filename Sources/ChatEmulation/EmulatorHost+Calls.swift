import ChatTransport

/// Calls of the emulated server to other servers.
extension EmulatorHost {
  /// Through what webhooks are sent; the platform's own client when none was set.
  public func setCaller(_ client: any HTTPClient) { caller = client }

  /// Sends what the machine wants to ask, and brings it each answer when it is there.
  func startCalls() {
    let calls = withContext { machine, _ -> [EmulatorCall] in
      guard var calling = machine as? any CallingEmulator else { return [] }
      defer { machine = calling }
      return calling.takeCalls()
    }
    guard !calls.isEmpty else { return }
    let client = caller ?? Transports.system().http
    let number = machineNumber
    for call in calls {
      // Ends with its answer or the request's own timeout.
      Task { [weak self] in
        let response = try? await client.send(call.request)
        await self?.bringAnswer(to: call.id, of: number, response)
      }
    }
  }

  private func bringAnswer(to call: UInt64, of number: Int, _ response: HTTPResponse?) {
    guard number == machineNumber else { return }
    changes &+= 1
    let outputs = withContext { machine, context -> [EmulatorOutput] in
      guard var calling = machine as? any CallingEmulator else { return [] }
      defer { machine = calling }
      return calling.handleAnswer(to: call, response, context: &context)
    }
    deliver(outputs)
    settleEnded()
    startCalls()
  }
}
