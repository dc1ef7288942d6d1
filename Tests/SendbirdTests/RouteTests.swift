import ChatEmulation
import ChatJSON
import ChatTransport
import Foundation
import SendbirdEmulator
import SendbirdWire
import Testing

@Suite("Every endpoint of the Sendbird emulator")
struct SendbirdRouteTests {
  private static func isAPI(_ entry: EmulatorCoverage) -> Bool {
    entry.isImplemented && ["GET", "PUT", "POST", "DELETE"].contains { entry.endpoint.hasPrefix($0 + " ") }
  }

  /// `GET /users/{}/metadata`: how a part is called is each side's own affair.
  private static func plain(_ call: String) -> String {
    call.replacing(/\{[^}]*\}/, with: "{}")
  }

  @Test("it has a schema of its answer and, where it takes a body, of that; and the schemas describe nothing else")
  func schemas() async throws {
    let routes = Set(await (try Lab()).host.coverage.filter(Self.isAPI).map { Self.plain($0.endpoint) })
    #expect(routes.count > 200)
    let described = Dictionary(grouping: SendbirdSchemas.calls, by: Self.plain)
    #expect(routes.subtracting(described.keys).sorted() == [])
    #expect(Set(described.keys).subtracting(routes).sorted() == [])
    for (_, calls) in described { #expect(calls.count == 1, "\(calls)") }
    // Uploads are forms.
    let forms: Set<String> = ["POST /storage/file", "POST /storage/profile_image"]
    for call in SendbirdSchemas.calls {
      let rules = SendbirdSchemas.byCall[call] ?? []
      #expect(rules.contains { $0["response"] != nil }, "\(call) has no schema of its answer")
      let takesBody = call.hasPrefix("POST ") || call.hasPrefix("PUT ")
      #expect(!takesBody || forms.contains(call) || rules.contains { $0["request"] != nil }, "\(call): body")
    }
  }

  @Test("it is called once and answers as its schema says, which holds against answers that are spoilt")
  func tour() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob", "cleo", "dan")
    let keys = ["ana": await (try lab.logIn("ana")).key, "bob": await (try lab.logIn("bob")).key]
    var kept: [String: String] = [:]
    for stop in TourStop.all {
      var path = String(stop.call.split(separator: " ", maxSplits: 1)[1])
      for (name, value) in kept { path = path.replacing("<\(name)>", with: value) }
      let method = String(stop.call.prefix { $0 != " " })
      let who = stop.user.flatMap { keys[$0] }.map { Lab.Who.key($0) } ?? .admin
      let (status, json) = try await lab.rest(method, path, stop.body, as: who)
      #expect(json["code"]?.int == stop.code && (status == 200) == (stop.code == nil), "\(stop.call): \(json.text().prefix(200))")
      if let keeps = stop.keeps {
        kept[keeps.name] = json[keeps.member]?.string ?? json[keeps.member]?.int.map { String($0) }
      }
      if stop.code == nil { expectStrict(try #require(SendbirdSchemas.call(method, "/v3/\(path)")), json) }
    }
    for path in ["storage/file", "storage/profile_image"] { try await upload(path, lab, try #require(keys["ana"])) }
    let never = await lab.host.coverage.filter { Self.isAPI($0) && $0.calls == 0 }.map(\.endpoint)
    #expect(never == [])
  }

  /// A schema that takes anything is none: without a member, or with one of another type, an answer is refused.
  private func expectStrict(_ call: String, _ json: JSONValue) {
    func isRefused(_ value: JSONValue) -> Bool {
      !SendbirdSchemas.problems(call, request: nil, response: value).isEmpty
    }
    #expect(isRefused(["surprise": ["of": [1]]]), "\(call) takes any object")
    guard let object = json.object, !object.isEmpty else { return }
    for (name, _) in object {
      var spoilt = object
      spoilt[name] = [["neither": "this"], -7]
      if isRefused(.object(spoilt)) { return }
    }
    Issue.record("\(call) takes its members with any type")
  }

  private func upload(_ path: String, _ lab: Lab, _ key: String) async throws {
    let form = SendbirdMultipart([
      .init(name: "file", fileName: "a.txt", mimeType: "text/plain", bytes: Array("words".utf8)),
      .init(name: "thumbnail1", bytes: Array("100,50".utf8)),
    ])
    var request = HTTPRequest("POST", "http://sendbird.test/v3/\(path)", body: form.encode(boundary: "Boundary"))
    request.headers["Content-Type"] = "multipart/form-data; boundary=Boundary"
    request.headers["Session-Key"] = key
    let answer = try JSONValue(parsing: try await lab.host.transports.http.send(request).body)
    #expect(SendbirdSchemas.problems("POST /\(path)", request: nil, response: answer) == [])
  }
}
