import ChatCrypto
import ChatJSON
import ChatTransport
import LeanCloudWire

extension LeanCloudEmulator {
  func address(of file: FileRow) -> String { file.url ?? "\(baseURL)/files/\(file.key)" }

  func object(of file: FileRow) -> JSONObject {
    var object = JSONObject()
    object["objectId"] = .string(file.objectID)
    object["key"] = .string(file.key)
    object["name"] = .string(file.name)
    object["url"] = .string(address(of: file))
    object["mime_type"] = .string(file.mimeType)
    object["provider"] = .string(file.url == nil ? "emulator" : "external")
    object["bucket"] = .string("emulated")
    object["metaData"] = .object(file.metaData)
    object["createdAt"] = .string(LeanCloudID.iso(file.createdAt))
    object["updatedAt"] = .string(LeanCloudID.iso(file.createdAt))
    return object
  }

  func add(_ file: FileRow) {
    if files.updateValue(file, forKey: Key(file.objectID)) == nil { fileOrder.append(file.objectID) }
  }

  /// A file that lies elsewhere: only its address is kept.
  func registerFile(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let url = call.body["url"]?.string else { throw RESTError(code: 1, text: "url is required.") }
    let name = call.body["name"]?.string ?? call.parameters.first ?? "file"
    let file = FileRow(
      objectID: newObjectID(), key: "", name: name,
      mimeType: call.body["mime_type"]?.string ?? "application/octet-stream", url: url,
      metaData: call.body["metaData"]?.object ?? JSONObject(), createdAt: now)
    add(file)
    return .object(object(of: file))
  }

  func getFile(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let file = files[Key(call.parameters.first ?? "")] else { throw .notFound("Could not find file.") }
    return .object(object(of: file))
  }

  /// First step of an upload: where the bytes go.
  func fileToken(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let name = call.body["name"]?.string, !name.isEmpty else {
      throw RESTError(code: 122, text: "Invalid file name.")
    }
    let token = Base64.urlEncode(randomBytes(18))
    let key = call.body["key"]?.string ?? Hex.encode(randomBytes(16))
    let file = FileRow(
      objectID: newObjectID(), key: key, name: name,
      mimeType: call.body["mime_type"]?.string ?? "application/octet-stream",
      metaData: call.body["metaData"]?.object ?? JSONObject(), token: token, createdAt: now)
    files[Key(file.objectID)] = file
    filesByToken[Key(token)] = file.objectID
    return [
      "objectId": .string(file.objectID), "createdAt": .string(LeanCloudID.iso(now)), "token": .string(token),
      "url": .string(address(of: file)), "mime_type": .string(file.mimeType), "provider": "s3",
      "upload_url": .string("\(baseURL)/upload/\(token)"), "bucket": "emulated", "key": .string(key),
    ]
  }

  func uploadBytes(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let token = call.parameters.first, let id = filesByToken[Key(token)], var file = files[Key(id)] else {
      throw RESTError(status: 403, code: 403, text: "Unknown upload token.")
    }
    file.bytes = call.request.body
    file.metaData["size"] = .int(Int64(call.request.body.count))
    files[Key(id)] = file
    filesByKey[Key(file.key)] = file.objectID
    return .object([:])
  }

  /// Last step: without success the file is gone.
  func fileCallback(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let token = call.body["token"]?.string, let id = filesByToken.removeValue(forKey: Key(token)),
      var file = files[Key(id)]
    else { throw .notFound("Could not find file.") }
    guard call.body["result"]?.bool == true, file.bytes != nil else {
      files[Key(id)] = nil
      return .object([:])
    }
    file.token = nil
    files[Key(id)] = nil
    add(file)
    return .object([:])
  }

  func download(_ call: RESTCall) throws(RESTError) -> HTTPResponse {
    guard let id = filesByKey[Key(call.parameters.first ?? "")], let file = files[Key(id)], let bytes = file.bytes
    else {
      throw .notFound("No such file.")
    }
    return HTTPResponse(status: 200, headers: ["Content-Type": file.mimeType], body: bytes)
  }
}

extension LeanCloudEmulator {
  static func download(_ emulator: LeanCloudEmulator, _ call: RESTCall) throws(RESTError) -> HTTPResponse {
    try emulator.download(call)
  }
}
