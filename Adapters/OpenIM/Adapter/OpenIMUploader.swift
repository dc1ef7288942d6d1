import ChatCrypto
import ChatJSON
import ChatTransport
import OpenIMWire
import UnifiedChat

/// Uploads in parts, as the vendor's client does it (reference §6.7). Bytes that the store has already, under
/// whatever name, are not sent again.
struct OpenIMUploader: Sendable {
  let rest: OpenIMRESTClient
  let call: @Sendable (_ path: String, _ body: JSONValue) async throws(ChatError) -> JSONValue

  init(
    rest: OpenIMRESTClient,
    call: @escaping @Sendable (_ path: String, _ body: JSONValue) async throws(ChatError) -> JSONValue
  ) {
    self.rest = rest
    self.call = call
  }

  /// The characters that names in URLs carry without trouble.
  static func safeName(_ name: String) -> String {
    let safe = String(
      String.UnicodeScalarView(
        name.unicodeScalars.map { scalar in
          scalar.isASCII && !scalar.properties.isAlphabetic && scalar.properties.numericType == nil
            && !["-", "_", "."].contains(scalar) ? "_" : scalar
        }))
    return safe.isEmpty || safe == "." || safe == ".." ? "file" : safe
  }

  /// Where a file goes, and as what.
  struct Target: Sendable {
    var name: String
    var mimeType: String
    var cause: String
  }

  /// An upload that ended before its last part: the server keeps what has arrived until it forgets the upload.
  struct Broken: Sendable {
    var id: String
    var target: Target
    var partSize: Int
    var finished: Int
  }

  /// The URL under which `bytes` can be read. An empty file is refused by the vendor.
  ///
  /// - Parameter broken: an earlier try of the same bytes, whose parts are not sent again; when the server does not
  ///   know it any more, all are.
  func upload(
    _ bytes: [UInt8], to target: Target, after broken: Broken? = nil,
    _ progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)?,
    onBreak: @Sendable (Broken) async -> Void = { _ in }
  ) async throws(ChatError) -> String {
    guard !bytes.isEmpty else {
      throw ChatError(.invalidArgument(field: "attachment"), operation: .upload, detail: "the store takes no empty file")
    }
    if let broken {
      let digests = OpenIMUpload.partDigests(of: bytes, partSize: broken.partSize)
      do { return try await finish(broken, bytes, digests, .null, progress, onBreak) } catch {
        guard error.vendor?.code == "1701" else { throw error }
      }
    }
    return try await start(bytes, target, progress, onBreak)
  }

  private func start(
    _ bytes: [UInt8], _ target: Target, _ progress: (@Sendable (Int64, Int64) -> Void)?,
    _ onBreak: @Sendable (Broken) async -> Void
  ) async throws(ChatError) -> String {
    let partSize = try await partSize(for: bytes.count)
    let digests = OpenIMUpload.partDigests(of: bytes, partSize: partSize)
    let data = try await call(
      "/object/initiate_multipart_upload",
      [
        "hash": .string(OpenIMUpload.hash(ofParts: digests)), "size": JSONValue(bytes.count),
        "partSize": JSONValue(partSize), "maxParts": JSONValue(min(20, digests.count)),
        "cause": .string(target.cause), "name": .string(target.name), "contentType": .string(target.mimeType),
      ])
    guard let upload = data["upload"], let id = upload["uploadID"]?.string else {
      guard let url = data["url"]?.nonEmptyString else { throw Self.unexpected }
      progress?(Int64(bytes.count), Int64(bytes.count))
      return url
    }
    let begun = Broken(id: id, target: target, partSize: partSize, finished: 0)
    return try await finish(begun, bytes, digests, upload["sign"] ?? .null, progress, onBreak)
  }

  private func finish(
    _ begun: Broken, _ bytes: [UInt8], _ digests: [String], _ sign: JSONValue,
    _ progress: (@Sendable (Int64, Int64) -> Void)?, _ onBreak: @Sendable (Broken) async -> Void
  ) async throws(ChatError) -> String {
    var state = begun
    do throws(ChatError) {
      try await putParts(bytes, count: digests.count, &state, sign, progress)
      let done = try await call(
        "/object/complete_multipart_upload",
        [
          "uploadID": .string(state.id), "parts": .array(digests.map { .string($0) }),
          "name": .string(state.target.name), "contentType": .string(state.target.mimeType),
          "cause": .string(state.target.cause),
        ])
      guard let url = done["url"]?.nonEmptyString else { throw Self.unexpected }
      return url
    } catch {
      // What the server itself refuses it would refuse again.
      if error.vendor?.code == nil { await onBreak(state) }
      throw error
    }
  }

  private static let unexpected = ChatError(
    .protocolViolation, operation: .upload, detail: "the object store's answer names neither URL nor upload")

  private func partSize(for size: Int) async throws(ChatError) -> Int {
    let limits = try await call("/object/part_limit", [:])
    guard let least = limits["minPartSize"]?.int.flatMap({ Int(exactly: $0) }), least > 0,
      let most = limits["maxNumSize"]?.int.flatMap({ Int(exactly: $0) }), most > 0
    else { throw Self.unexpected }
    let (whole, overflow) = least.multipliedReportingOverflow(by: most)
    return overflow || size <= whole ? least : (size - 1) / most + 1
  }

  /// Signatures come for twenty parts at most; the others are asked for as their turn comes.
  private func putParts(
    _ bytes: [UInt8], count: Int, _ state: inout Broken, _ firstSign: JSONValue,
    _ progress: (@Sendable (Int64, Int64) -> Void)?
  ) async throws(ChatError) {
    var sign = firstSign
    let total = Int64(bytes.count)
    let partSize = state.partSize
    while state.finished < count {
      let number = state.finished + 1
      var part = Self.part(number, in: sign)
      if part == nil {
        let numbers = (number...min(count, number + 19)).map { JSONValue($0) }
        sign = try await call("/object/auth_sign", ["uploadID": .string(state.id), "partNumbers": .array(numbers)])
        part = Self.part(number, in: sign)
      }
      guard let part else { throw Self.unexpected }
      let start = (number - 1) * partSize
      let piece = Array(bytes[start..<min(bytes.count, start + partSize)])
      try await put(piece, to: part, sign)
      state.finished = number
      progress?(Int64(start + piece.count), total)
    }
  }

  private static func part(_ number: Int, in sign: JSONValue) -> JSONValue? {
    sign["parts"]?.array?.first { $0["partNumber"]?.int == Int64(number) }
  }

  private func put(_ bytes: [UInt8], to part: JSONValue, _ sign: JSONValue) async throws(ChatError) {
    guard let base = part["url"]?.nonEmptyString ?? sign["url"]?.nonEmptyString else { throw Self.unexpected }
    let query = Self.pairs(sign["query"]) + Self.pairs(part["query"])
    var request = HTTPRequest("PUT", base + Self.joined(query, to: base), body: bytes, timeout: rest.timeout * 6)
    for (name, value) in Self.pairs(sign["header"]) + Self.pairs(part["header"]) { request.headers[name] = value }
    let response: HTTPResponse
    do { response = try await rest.http.send(request) } catch { throw ChatError(error, for: .upload) }
    guard (200..<400).contains(response.status) else {
      throw ChatError(
        .server, operation: .upload, retry: .after(.seconds(1)),
        vendor: ChatError.VendorFault(vendor: "openim", httpStatus: response.status), detail: "the store refused a part")
    }
  }

  private static func pairs(_ list: JSONValue?) -> [(String, String)] {
    (list?.array ?? []).flatMap { item in
      (item["values"]?.array ?? []).compactMap(\.string).map { (item["key"]?.string ?? "", $0) }
    }
  }

  private static func joined(_ query: [(String, String)], to base: String) -> String {
    guard !query.isEmpty else { return "" }
    let text = query.map { "\(OpenIMQuery.escape($0))=\(OpenIMQuery.escape($1))" }.joined(separator: "&")
    return (base.contains("?") ? "&" : "?") + text
  }
}

enum OpenIMQuery {
  /// Everything but the unreserved characters of RFC 3986.
  static func escape(_ text: String) -> String {
    var escaped = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        escaped.unicodeScalars.append(Unicode.Scalar(byte))
      default: escaped += "%" + Hex.encode([byte]).uppercased()
      }
    }
    return escaped
  }
}
