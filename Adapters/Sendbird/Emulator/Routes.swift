import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// One REST request, taken apart.
struct Call {
  var actor: Actor
  var query: SendbirdQuery
  var body: JSONObject
  var multipart: SendbirdMultipart?
  var headers: HTTPHeaders
  /// Of the pattern's braces, decoded.
  var parameters: [String: String] = [:]

  enum Actor {
    /// The Platform API's token.
    case admin
    case user(Person)
    case nobody
  }

  var isAdmin: Bool { if case .admin = actor { true } else { false } }
  var sessionUser: Person? { if case .user(let person) = actor { person } else { nil } }

  func parameter(_ name: String) -> String { parameters[name] ?? "" }

  /// A member of the body, or of the query where bodies have no place.
  func text(_ name: String) -> String? { body.text(name) ?? query[name] }

  func texts(_ name: String) -> [String] {
    if let list = body[name]?.array { return list.compactMap { $0.string ?? $0["user_id"]?.string } }
    return query.list(name)
  }

  func flag(_ name: String) -> Bool? { body.flag(name) ?? query.bool(name) }
  func number(_ name: String) -> Int64? { body.number(name) ?? query.int(name) }
}

enum Answer {
  case json(JSONObject)
  case bytes([UInt8], type: String)

  static let empty = Answer.json(JSONObject())
}

struct Route: Sendable {
  typealias Handler = @Sendable (SendbirdEmulator, Call) throws(SendbirdFault) -> Answer

  var method: String
  var pattern: [String]
  var handler: Handler?

  /// `handler` nil: an endpoint of the vendor that is not emulated; it answers the vendor's not-found.
  init(_ method: String, _ pattern: String, _ handler: Handler?) {
    self.method = method
    self.pattern = pattern.split(separator: "/").map(String.init)
    self.handler = handler
  }

  var name: String { "\(method) /\(pattern.joined(separator: "/"))" }

  func match(_ method: String, _ path: ArraySlice<String>) -> [String: String]? {
    guard method == self.method, path.count == pattern.count else { return nil }
    var parameters: [String: String] = [:]
    for (part, segment) in zip(pattern, path) {
      if part.hasPrefix("{") {
        parameters[String(part.dropFirst().dropLast())] = segment
      } else if part != segment {
        return nil
      }
    }
    return parameters
  }
}

extension SendbirdEmulator {
  static let routes: [Route] =
    userRoutes + friendRoutes + pushRoutes + channelRoutes + memberRoutes + messageRoutes + extraRoutes + botRoutes
    + moderationRoutes + announcementRoutes + platformRoutes + missingRoutes

  /// Places in `routes` by method, length and first word.
  private static let routeIndex: [String: [Int]] = {
    var index: [String: [Int]] = [:]
    for (place, route) in routes.enumerated() {
      index["\(route.method) \(route.pattern.count) \(route.pattern.first ?? "")", default: []].append(place)
    }
    return index
  }()

  static func route(_ method: String, _ path: ArraySlice<String>) -> (Route, [String: String])? {
    for place in routeIndex["\(method) \(path.count) \(path.first ?? "")"] ?? [] {
      if let parameters = routes[place].match(method, path) { return (routes[place], parameters) }
    }
    return nil
  }

  /// The path below `/v3`, with the client's second prefix `sdk` taken off.
  static func apiPath(_ target: SendbirdTarget) -> ArraySlice<String>? {
    guard target.path.first == "v3" else { return nil }
    let path = target.path.dropFirst()
    return path.first == "sdk" ? path.dropFirst() : path
  }

  func respond(to request: HTTPRequest) -> HTTPResponse {
    let target = SendbirdTarget(request.url)
    guard let path = Self.apiPath(target) else { return respondOutsideAPI(request, target) }
    do throws(SendbirdFault) {
      return try respond(to: request, target, path)
    } catch {
      return Self.response(error)
    }
  }

  private func respond(
    to request: HTTPRequest, _ target: SendbirdTarget, _ path: ArraySlice<String>
  ) throws(SendbirdFault) -> HTTPResponse {
    guard let (route, parameters) = Self.route(request.method, path) else {
      count("\(request.method) /\(path.first ?? "")/…", isImplemented: false)
      throw SendbirdFault(400404, "The requested URL was not found.")
    }
    count(route.name, isImplemented: route.handler != nil)
    guard let handler = route.handler else { throw SendbirdFault(400404, "The requested URL was not found.") }
    var call = try call(request, target)
    call.parameters = parameters
    // A group is not found below the paths of open channels, nor the other way round.
    if let kind = path.first, kind == "group_channels" || kind == "open_channels" { call.parameters["ct"] = kind }
    if route.pattern.last != "session_key" { try requireActor(call) }
    if isOverRate(route.name, limit: settings.maxRequestsPerSecond) { return Self.tooManyRequests(rate(route.name)) }
    try BodyTypes.check(call.body, isMessage: route.pattern.contains("messages"))
    return rated(Self.response(try handler(self, call)), route.name)
  }

  private func call(_ request: HTTPRequest, _ target: SendbirdTarget) throws(SendbirdFault) -> Call {
    var call = Call(actor: .nobody, query: target.query, body: JSONObject(), headers: request.headers)
    if let token = request.headers["Api-Token"] {
      guard Key(token) == Key(options.adminSecret) || options.openAuthentication else {
        throw SendbirdFault(400401, "Invalid API token.")
      }
      call.actor = .admin
    } else if let key = request.headers["Session-Key"] {
      call.actor = .user(try person(ofSession: Key(key)))
    }
    guard !request.body.isEmpty else { return call }
    let type = request.headers["Content-Type"] ?? ""
    if type.hasPrefix("multipart/") {
      guard let multipart = SendbirdMultipart(parsing: request.body, contentType: type) else {
        throw SendbirdFault(400403, "Malformed multipart body.")
      }
      call.multipart = multipart
      call.body = BodyTypes.body(of: multipart)
    } else {
      guard let body = try? JSONValue(parsing: request.body), let object = body.object else {
        throw SendbirdFault(400403, "Invalid JSON body.")
      }
      call.body = object
    }
    return call
  }

  private func requireActor(_ call: Call) throws(SendbirdFault) {
    if case .nobody = call.actor { throw SendbirdFault(400401, "Invalid API token.") }
  }

  /// `GET /` is what the official client sends first; `/files/…` are the uploads.
  private func respondOutsideAPI(_ request: HTTPRequest, _ target: SendbirdTarget) -> HTTPResponse {
    if request.method == "GET", target.path.first == "files", target.path.count >= 2, let file = files[target.path[1]] {
      guard !file.isProtected || mayDownload(request, target.query) else {
        return Self.response(SendbirdFault(400108, "Not authorized.", httpStatus: 403))
      }
      return HTTPResponse(status: 200, headers: ["Content-Type": file.type], body: file.bytes)
    }
    if target.path.isEmpty { return Self.response(.empty) }
    return Self.response(SendbirdFault(400404, "The requested URL was not found.", httpStatus: 404))
  }

  /// By the `ekey` of a good session as `auth`, or by the application's own token.
  private func mayDownload(_ request: HTTPRequest, _ query: SendbirdQuery) -> Bool {
    if let token = request.headers["Api-Token"] {
      return Key(token) == Key(options.adminSecret) || options.openAuthentication
    }
    guard let key = query["auth"] else { return false }
    return (try? person(ofSession: Key(Self.mirrored(key)))) != nil
  }

  /// The key for files that belongs to a session key, and the other way round.
  static func mirrored(_ key: String) -> String { String(key.reversed()) }

  static func response(_ answer: Answer) -> HTTPResponse {
    switch answer {
    case .json(let json):
      HTTPResponse(
        status: 200, headers: ["Content-Type": "application/json"], body: JSONValue.object(json).bytes())
    case .bytes(let bytes, let type): HTTPResponse(status: 200, headers: ["Content-Type": type], body: bytes)
    }
  }

  static func response(_ fault: SendbirdFault) -> HTTPResponse {
    HTTPResponse(
      status: fault.httpStatus, headers: ["Content-Type": "application/json"],
      body: JSONValue.object(fault.json).bytes())
  }

  // MARK: Coverage

  func count(_ endpoint: String, isImplemented: Bool) {
    calls[(isImplemented ? "+" : "-") + endpoint, default: 0] += 1
  }

  public var coverage: [EmulatorCoverage] {
    var all: [String: Int] = [:]
    for route in Self.routes { all[(route.handler == nil ? "-" : "+") + route.name] = 0 }
    for command in Self.commands { all["+WS \(command)"] = 0 }
    all["+WS login"] = 0
    for (name, count) in calls { all[name] = count }
    return all.sorted { $0.key.dropFirst() < $1.key.dropFirst() }.map {
      EmulatorCoverage(endpoint: String($0.key.dropFirst()), isImplemented: $0.key.first == "+", calls: $0.value)
    }
  }

  // MARK: Lookups that every handler needs

  func room(_ call: Call) throws(SendbirdFault) -> Room {
    guard let room = rooms[ChannelID(call.parameter("url"))] else { throw SendbirdFault(400201, "Channel not found.") }
    let isOpen = call.parameter("ct") == "open_channels"
    guard call.parameters["ct"] == nil || room.isOpen == isOpen else {
      throw SendbirdFault(400201, "Channel not found.")
    }
    return room
  }

  /// A group channel of which the session's user is a member; the Platform API may see any.
  func memberRoom(_ call: Call) throws(SendbirdFault) -> (Room, Membership?) {
    let room = try room(call)
    guard let person = call.sessionUser else { return (room, nil) }
    if room.isOpen { return (room, nil) }
    guard let membership = room.members[person.id] else {
      if room.isPublic { return (room, nil) }
      throw SendbirdFault(400108, "Not authorized. User is not a member of the channel.")
    }
    return (room, membership)
  }

  func person(_ id: String) throws(SendbirdFault) -> Person {
    guard let person = people[UserID(id)] else { throw SendbirdFault(400201, "User not found.") }
    return person
  }

  /// The user of the path; a session may only name itself.
  func ownPerson(_ call: Call) throws(SendbirdFault) -> Person {
    let person = try person(call.parameter("user"))
    if let own = call.sessionUser, own !== person { throw SendbirdFault(400108, "Not authorized.") }
    return person
  }

  /// The session's user, or the one that the Platform API names.
  func actingPerson(_ call: Call, _ key: String = "user_id") throws(SendbirdFault) -> Person {
    if let own = call.sessionUser { return own }
    guard let id = call.text(key) else { throw SendbirdFault(400105, "\(key) is missing.") }
    return try person(id)
  }

  /// Only an operator, or the Platform API.
  func requireOperator(_ call: Call, in room: Room) throws(SendbirdFault) {
    guard let person = call.sessionUser else { return }
    guard room.operators.contains(person.id) else { throw SendbirdFault(400108, "Not authorized. Operators only.") }
  }

  func pageLimit(_ call: Call, default standard: Int = 10, max most: Int = SendbirdLimits.page) throws(SendbirdFault)
    -> Int
  {
    guard let text = call.query["limit"] else { return standard }
    guard let limit = Int(text), limit > 0 else { throw SendbirdFault(400113, "limit must be positive.") }
    if limit > most {
      if hasRealLimits { throw SendbirdFault(400113, "limit must be at most \(most).") }
      return limit
    }
    return limit
  }

  /// One page of `items` after the one that `token` names by its key; keys ascend by bytes.
  func page<Item>(
    _ items: [Item], _ call: Call, limit: Int, key: (Item) -> String
  ) throws(SendbirdFault) -> (items: [Item], next: String) {
    let token = call.query["token"] ?? ""
    var start = 0
    if !token.isEmpty {
      guard let last = ListToken.read(token) else { throw SendbirdFault(400111, "Invalid token.") }
      guard let place = items.firstIndex(where: { Key(key($0)) == Key(last.key) }) else {
        start = min(last.index, items.count)
        return cut(items, from: start, limit, key)
      }
      start = place + 1
    }
    return cut(items, from: start, limit, key)
  }

  private func cut<Item>(_ items: [Item], from start: Int, _ limit: Int, _ key: (Item) -> String) -> ([Item], String) {
    let end = min(items.count, start + limit)
    let page = Array(items[min(start, end)..<end])
    guard end < items.count, let last = page.last else { return (page, "") }
    return (page, ListToken.write(key: key(last), index: end))
  }
}

/// The place and the key of the last item of a page. Opaque to clients.
enum ListToken {
  static func write(key: String, index: Int) -> String {
    PercentCoding.encode("\(index)|\(key)").replacing("%", with: "~")
  }

  static func read(_ token: String) -> (key: String, index: Int)? {
    let parts = PercentCoding.decode(token.replacing("~", with: "%")).split(
      separator: "|", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let index = Int(parts[0]), index >= 0 else { return nil }
    return (String(parts[1]), index)
  }
}
