import ChatCrypto
import ChatJSON

/// What a gateway frame asks for or answers (reference §2.4). The names of 1002 and 1005 differ between the vendor's
/// client and server; what is sent counts: 1002 carries ranges, 1005 lists.
public enum OpenIMOperation: Int64, Sendable, Hashable, CaseIterable {
  case newestSequences = 1001
  case pullRanges = 1002
  case send = 1003
  case pullSequences = 1005
  case readAndMaxSequences = 1006
  case lastMessages = 1007
  case push = 2001
  case kicked = 2002
  case logout = 2003
  case background = 2004
  case presence = 2005

  /// Calls, which the open server knows by number only and answers with a fault.
  public static let signal: Int64 = 1004
}

/// Client to server.
public struct OpenIMRequestFrame: Sendable, Hashable {
  /// `reqIdentifier`, kept as the number so that an unknown one can be named.
  public var operation: Int64
  /// The vendor's client leaves it empty.
  public var token: String
  public var sender: String
  public var operationID: String
  /// Echoed by the answer: the only key between both.
  public var increment: String
  /// A protobuf message.
  public var data: [UInt8]

  public init(
    operation: Int64, token: String = "", sender: String, operationID: String, increment: String, data: [UInt8]
  ) {
    self.operation = operation
    self.token = token
    self.sender = sender
    self.operationID = operationID
    self.increment = increment
    self.data = data
  }
}

/// Server to client: an answer, or (with an empty `increment`) a push.
public struct OpenIMResponseFrame: Sendable, Hashable {
  public var operation: Int64
  public var increment: String
  public var operationID: String
  public var code: Int64
  public var message: String
  public var data: [UInt8]

  public init(
    operation: Int64, increment: String = "", operationID: String = "", code: Int64 = 0, message: String = "",
    data: [UInt8] = []
  ) {
    self.operation = operation
    self.increment = increment
    self.operationID = operationID
    self.code = code
    self.message = message
    self.data = data
  }
}

/// Why bytes are no frame.
public enum OpenIMFrameError: Error, Sendable, Hashable {
  case malformed(String)
  case tooLarge(limit: Int)
}

extension OpenIMRequestFrame {
  /// Members in the order of the vendor's struct.
  public func jsonBytes() -> [UInt8] {
    var writer = JSONWriter(capacity: data.count * 2 + 256)
    writer.beginObject()
    writer.key("reqIdentifier")
    writer.write(operation)
    writer.key("token")
    writer.write(token)
    writer.key("sendID")
    writer.write(sender)
    writer.key("operationID")
    writer.write(operationID)
    writer.key("msgIncr")
    writer.write(increment)
    writer.key("data")
    writer.write(Base64.encode(data))
    writer.endObject()
    return writer.bytes()
  }

  /// Go's reader takes absent and null members as zero; so do we.
  public init(json bytes: [UInt8]) throws(OpenIMFrameError) {
    let reader = try OpenIMJSONFrame(bytes)
    self.init(
      operation: try reader.int("reqIdentifier"), token: try reader.string("token"),
      sender: try reader.string("sendID"), operationID: try reader.string("operationID"),
      increment: try reader.string("msgIncr"), data: try reader.bytes("data"))
  }
}

extension OpenIMResponseFrame {
  /// Members in the order observed; `data` is a string even when it is empty, as the server writes it.
  public func jsonBytes() -> [UInt8] {
    var writer = JSONWriter(capacity: data.count * 2 + 256)
    writer.beginObject()
    writer.key("reqIdentifier")
    writer.write(operation)
    writer.key("msgIncr")
    writer.write(increment)
    writer.key("operationID")
    writer.write(operationID)
    writer.key("errCode")
    writer.write(code)
    writer.key("errMsg")
    writer.write(message)
    writer.key("data")
    if data.isEmpty { writer.writeNull() } else { writer.write(Base64.encode(data)) }
    writer.endObject()
    return writer.bytes()
  }

  public init(json bytes: [UInt8]) throws(OpenIMFrameError) {
    let reader = try OpenIMJSONFrame(bytes)
    self.init(
      operation: try reader.int("reqIdentifier"), increment: try reader.string("msgIncr"),
      operationID: try reader.string("operationID"), code: try reader.int("errCode"),
      message: try reader.string("errMsg"), data: try reader.bytes("data"))
  }
}

/// The members of a JSON envelope, with Go's leniency for what is absent and none for wrong types.
private struct OpenIMJSONFrame {
  let object: JSONObject

  init(_ bytes: [UInt8]) throws(OpenIMFrameError) {
    guard let object = (try? JSONValue(parsing: bytes, limits: OpenIMJSON.limits))?.object else { throw .malformed("not a JSON object") }
    self.object = object
  }

  func int(_ key: String) throws(OpenIMFrameError) -> Int64 {
    guard let value = object[key], !value.isNull else { return 0 }
    guard let number = value.int else { throw .malformed("\(key) is no integer") }
    return number
  }

  func string(_ key: String) throws(OpenIMFrameError) -> String {
    guard let value = object[key], !value.isNull else { return "" }
    guard let text = value.string else { throw .malformed("\(key) is no string") }
    return text
  }

  func bytes(_ key: String) throws(OpenIMFrameError) -> [UInt8] {
    guard let bytes = Base64.decode(try string(key)) else { throw .malformed("\(key) is no base64") }
    return bytes
  }
}

/// How the frames of one connection are written: the query of its URL decides (reference §2.1).
public struct OpenIMCodec: Sendable, Hashable {
  public enum Form: String, Sendable, Hashable { case gob = "go", json = "js" }

  public var form: Form
  public var isCompressed: Bool

  public init(form: Form, isCompressed: Bool) {
    self.form = form
    self.isCompressed = isCompressed
  }

  /// What an uncompressed frame may hold; a compressed one that unpacks to more is refused.
  public static let maximumUnpacked = 16 << 20

  public func encode(_ frame: OpenIMResponseFrame) -> [UInt8] {
    pack(form == .json ? frame.jsonBytes() : OpenIMGob.encode(frame))
  }

  public func encode(_ frame: OpenIMRequestFrame) -> [UInt8] {
    pack(form == .json ? frame.jsonBytes() : OpenIMGob.encode(frame))
  }

  public func decodeRequest(_ bytes: [UInt8]) throws(OpenIMFrameError) -> OpenIMRequestFrame {
    let plain = try unpack(bytes)
    return form == .json ? try OpenIMRequestFrame(json: plain) : try OpenIMGob.decodeRequest(plain)
  }

  public func decodeResponse(_ bytes: [UInt8]) throws(OpenIMFrameError) -> OpenIMResponseFrame {
    let plain = try unpack(bytes)
    return form == .json ? try OpenIMResponseFrame(json: plain) : try OpenIMGob.decodeResponse(plain)
  }

  private func pack(_ bytes: [UInt8]) -> [UInt8] {
    // Compression fails only for want of memory; the frame then goes out as it is and the peer refuses it.
    isCompressed ? ((try? Gzip.compress(bytes)) ?? bytes) : bytes
  }

  private func unpack(_ bytes: [UInt8]) throws(OpenIMFrameError) -> [UInt8] {
    guard isCompressed else { return bytes }
    do { return try Gzip.decompress(bytes, limit: Self.maximumUnpacked) } catch {
      if case .tooLarge(let limit) = error { throw .tooLarge(limit: limit) }
      throw .malformed("not gzip")
    }
  }
}
