import ChatCrypto
import ChatJSON
import ChatTransport
import OpenIMWire

/// Uploads by one form, as browsers send it (reference §6.7).
extension OpenIMEmulator {
  static let formHandlers: [String: Handler] = [
    "/object/initiate_form_data": { emulator, call, step in try emulator.initiateForm(call, &step) },
    "/object/complete_form_data": { emulator, call, _ in try emulator.completeForm(call) },
  ]

  /// Users write under their own id.
  func needOwnName(_ name: String, _ call: OpenIMCall) throws(OpenIMFault) {
    let owner = call.caller?.userID ?? ""
    guard call.caller?.isAdmin == true || name.utf8.starts(with: "\(owner)/".utf8) else {
      throw OpenIMFault(.noPermission, "name must start with \(owner)/")
    }
  }

  private func initiateForm(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let name = try call.needed("name")
    try needOwnName(name, call)
    guard call.int("size") > 0 else { throw OpenIMFault(.arguments, "size must be greater than 0") }
    let id = step.context.hex(32)
    objects.forms[id] = OpenIMObjectStore.Form(
      name: name, contentType: call.string("contentType"), size: call.int("size"))
    return [
      "id": .string(id), "url": .string("\(call.host)\(Self.storePath)form/\(id)"), "file": "file", "header": [],
      "formData": .object(["key": .string(name)]), "expires": .int(step.now + 86_400_000), "successCodes": [200],
    ]
  }

  private func completeForm(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let id = try call.needed("id")
    guard let form = objects.forms[id], let bytes = form.bytes else {
      throw OpenIMFault(code: 1701, message: "FileUploadedExpiredError")
    }
    let hash = OpenIMUpload.hash(ofParts: [Hex.encode(Digest.md5(bytes))])
    objects.blobs[hash] = OpenIMObjectStore.File(bytes: bytes, mimeType: form.contentType)
    objects.names[OpenIMKey(form.name)] = hash
    objects.forms[id] = nil
    return ["url": .string(objectURL(form.name, call.host))]
  }

  /// The store takes the bytes of the form's member `file`.
  func storeForm(_ id: String, _ request: HTTPRequest) -> HTTPResponse {
    guard let form = objects.forms[id],
      let file = OpenIMForm.member("file", of: request.body, type: request.headers["Content-Type"] ?? ""),
      Int64(file.count) == form.size
    else { return HTTPResponse(status: 400, body: Array("EntityTooLarge".utf8)) }
    objects.forms[id]?.bytes = file
    return HTTPResponse(status: 200)
  }
}

/// `multipart/form-data`, as far as one member of it goes.
enum OpenIMForm {
  static func member(_ name: String, of body: [UInt8], type: String) -> [UInt8]? {
    guard type.hasPrefix("multipart/form-data"), let place = type.range(of: "boundary=") else { return nil }
    let boundary = type[place.upperBound...].prefix { $0 != ";" }.filter { $0 != "\"" }
    guard !boundary.isEmpty else { return nil }
    let mark = Array("--\(boundary)".utf8)
    let starts = positions(of: mark, in: body)
    // Marks such as `---` may overlap.
    for (start, end) in zip(starts, starts.dropFirst()) where start + mark.count <= end {
      let part = body[(start + mark.count)..<end]
      guard let gap = positions(of: Array("\r\n\r\n".utf8), in: Array(part)).first else { continue }
      let head = String(decoding: part.prefix(gap), as: UTF8.self)
      guard head.contains("name=\"\(name)\"") else { continue }
      // What stands between the empty line and the line break before the next mark.
      return Array(part.dropFirst(gap + 4).dropLast(2))
    }
    return nil
  }

  private static func positions(of needle: [UInt8], in bytes: [UInt8]) -> [Int] {
    guard bytes.count >= needle.count, let first = needle.first else { return [] }
    return (0...(bytes.count - needle.count)).filter { start in
      bytes[start] == first && bytes[start..<(start + needle.count)].elementsEqual(needle)
    }
  }
}
