import ChatCrypto
import ChatJSON
import ChatTransport
import OpenIMWire

/// Stored files, and uploads on their way (reference §6.7).
struct OpenIMObjectStore {
  struct File {
    var bytes: [UInt8]
    var mimeType: String
  }

  struct Upload {
    var name: String
    var hash: String
    var contentType: String
    var partSize: Int64
    var parts: Int64
    var owner: String
  }

  /// Bytes by content hash, so that equal files are held once.
  var blobs: [String: File] = [:]
  /// Hash by name.
  var names: [OpenIMKey: String] = [:]
  var uploads: [String: Upload] = [:]
  /// Parts that have arrived, by upload and number.
  var parts: [String: [Int64: [UInt8]]] = [:]
  /// Forms that may be sent, by id, with the bytes once they are there.
  var forms: [String: Form] = [:]

  struct Form {
    var name: String
    var contentType: String
    var size: Int64
    var bytes: [UInt8]?
  }
}

extension OpenIMEmulator {
  /// The place of the presigned URLs: a part of this emulator, not of the vendor's server.
  static let storePath = "/emulated-store/"
  private static let minimumPart: Int64 = 5 << 20
  private static let maximumPart: Int64 = 5 << 30
  private static let maximumParts: Int64 = 10_000

  static let objectHandlers: [String: Handler] = [
    "/object/part_limit": { _, _, _ in
      ["minPartSize": .int(minimumPart), "maxPartSize": .int(maximumPart), "maxNumSize": .int(maximumParts)]
    },
    "/object/part_size": { _, call, _ in ["size": .int(try partSize(of: call.int("size")))] },
    "/object/initiate_multipart_upload": { emulator, call, step in try emulator.initiate(call, &step) },
    "/object/auth_sign": { emulator, call, _ in try emulator.sign(call) },
    "/object/complete_multipart_upload": { emulator, call, _ in try emulator.complete(call) },
    "/object/access_url": { emulator, call, step in
      let name = try call.needed("name")
      guard emulator.objects.names[OpenIMKey(name)] != nil else { throw OpenIMFault(.notFound) }
      return [
        "url": .string(emulator.objectURL(name, call.host)), "expireTime": .int(step.now + 86_400_000),
      ]
    },
  ]

  private static func partSize(of size: Int64) throws(OpenIMFault) -> Int64 {
    guard size > 0 else { throw OpenIMFault(.arguments, "size must be greater than 0") }
    if size <= minimumPart * maximumParts { return minimumPart }
    return (size - 1) / maximumParts + 1
  }

  func objectURL(_ name: String, _ host: String) -> String { "\(host)/object/\(Self.escape(name))" }

  static func escape(_ name: String) -> String {
    var text = ""
    for byte in name.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default: text += "%" + Hex.encode([byte]).uppercased()
      }
    }
    return text
  }

  // MARK: Uploading

  private func initiate(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let name = try call.needed("name")
    let size = call.int("size")
    let owner = call.caller?.userID ?? ""
    try needOwnName(name, call)
    guard size > 0 else { throw OpenIMFault(.arguments, "size must be greater than 0") }
    guard call.int("partSize") == (try Self.partSize(of: size)) else {
      throw OpenIMFault(.arguments, "part size is invalid")
    }
    let hash = call.string("hash").lowercased()
    guard Hex.decode(hash)?.count == 16 else { throw OpenIMFault(.arguments, "hash is invalid") }
    let parts = (size - 1) / call.int("partSize") + 1
    let wanted = call.int("maxParts")
    guard wanted >= 0, wanted <= parts else { throw OpenIMFault(.arguments, "max parts is invalid") }
    if objects.blobs[hash] != nil {
      objects.names[OpenIMKey(name)] = hash
      return ["url": .string(objectURL(name, call.host)), "upload": .null]
    }
    let id = step.context.hex(32)
    objects.uploads[id] = OpenIMObjectStore.Upload(
      name: name, hash: hash, contentType: call.string("contentType"), partSize: call.int("partSize"),
      parts: parts, owner: owner)
    return [
      "url": "",
      "upload": [
        "uploadID": .string(id), "partSize": .int(call.int("partSize")),
        "expireTime": .int(step.now + 86_400_000), "sign": signature(id, Array(1...max(1, wanted)), call.host),
      ],
    ]
  }

  private func signature(_ id: String, _ numbers: [Int64], _ host: String) -> JSONValue {
    let parts = numbers.map { number -> JSONValue in
      [
        "partNumber": .int(number), "url": .string("\(host)\(Self.storePath)\(id)/\(number)"),
        "query": .null, "header": .null,
      ]
    }
    return ["url": "", "query": .null, "header": .null, "parts": .array(parts)]
  }

  private func upload(_ call: OpenIMCall) throws(OpenIMFault) -> (id: String, upload: OpenIMObjectStore.Upload) {
    let id = try call.needed("uploadID")
    guard let upload = objects.uploads[id] else {
      throw OpenIMFault(code: 1701, message: "FileUploadedExpiredError", detail: "")
    }
    return (id, upload)
  }

  private func sign(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let (id, upload) = try upload(call)
    let numbers = (call.body["partNumbers"]?.array ?? []).compactMap(\.int)
    guard !numbers.isEmpty, numbers.allSatisfy({ (1...upload.parts).contains($0) }) else {
      throw OpenIMFault(.arguments, "partNumbers is invalid")
    }
    return signature(id, numbers, call.host)
  }

  private func complete(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let (id, upload) = try upload(call)
    let digests = call.strings("parts")
    let arrived = objects.parts[id] ?? [:]
    guard digests.count == Int(upload.parts), OpenIMUpload.hash(ofParts: digests) == upload.hash else {
      throw OpenIMFault(.arguments, "md5 mismatching")
    }
    var bytes: [UInt8] = []
    for (index, digest) in digests.enumerated() {
      guard let part = arrived[Int64(index) + 1], Hex.encode(Digest.md5(part)) == digest else {
        throw OpenIMFault(.arguments, "part \(index + 1) is missing or differs")
      }
      bytes += part
    }
    let name = call.string("name").isEmpty ? upload.name : call.string("name")
    objects.blobs[upload.hash] = OpenIMObjectStore.File(bytes: bytes, mimeType: upload.contentType)
    objects.names[OpenIMKey(name)] = upload.hash
    objects.uploads[id] = nil
    objects.parts[id] = nil
    return ["url": .string(objectURL(name, call.host))]
  }

  // MARK: The store itself

  /// PUT of a part, GET of a blob.
  func storeRequest(_ request: HTTPRequest, _ url: OpenIMURL) -> HTTPResponse {
    let parts = url.path.dropFirst(Self.storePath.utf8.count).split(separator: "/").map(String.init)
    if request.method == "POST", parts.count == 2, parts[0] == "form" { return storeForm(parts[1], request) }
    if request.method == "GET", parts.count == 2, parts[0] == "blob", let file = objects.blobs[parts[1]] {
      let type = file.mimeType.isEmpty ? "application/octet-stream" : file.mimeType
      return HTTPResponse(status: 200, headers: ["Content-Type": type], body: file.bytes)
    }
    guard request.method == "PUT", parts.count == 2, let number = Int64(parts[1]),
      let upload = objects.uploads[parts[0]], (1...upload.parts).contains(number),
      Int64(request.body.count) <= upload.partSize
    else { return HTTPResponse(status: 404, body: Array("NoSuchUpload".utf8)) }
    objects.parts[parts[0], default: [:]][number] = request.body
    return HTTPResponse(status: 200, headers: ["ETag": "\"\(Hex.encode(Digest.md5(request.body)))\""])
  }

  /// Without a token, by way of a presigned URL.
  func download(_ url: OpenIMURL) -> HTTPResponse {
    count("GET /object/{name}")
    let name = String(url.path.dropFirst("/object/".utf8.count))
    guard let hash = objects.names[OpenIMKey(name)], objects.blobs[hash] != nil else {
      return HTTPResponse(status: 404, headers: ["Content-Type": "text/plain"], body: Array("not found".utf8))
    }
    return HTTPResponse(status: 302, headers: ["Location": "\(baseURL)\(Self.storePath)blob/\(hash)"])
  }
}
