/// How requests and answers print: the line, sizes and harmless fields, never a secret or a body, whoever prints them
/// and however (strings, dumps, failed expectations).

extension HTTPHeaders: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String {
    "[" + Redaction.headers(self).fields.map { "\($0.name): \($0.value)" }.joined(separator: ", ") + "]"
  }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)]()) }
}

extension HTTPHeaders.Field: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { HTTPHeaders([self]).description }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)]()) }
}

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "\(method) \(Redaction.url(url)) \(headers) \(body.count) B" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)]()) }
}

extension HTTPResponse: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "\(status) \(headers) \(body.count) B" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)]()) }
}

extension WebSocketRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "\(Redaction.url(url)) \(headers)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)]()) }
}

extension EmulatorOptions: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "options of \(applicationID), \(users.count) users, limits \(limits)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)]()) }
}
