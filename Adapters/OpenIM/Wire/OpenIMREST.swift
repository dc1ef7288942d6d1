import ChatCrypto
import ChatJSON
import UnifiedChat

/// The envelope of every REST answer, and of the gateway's handshake (reference §1.1).
public enum OpenIMREST {
  /// Status 200 in any case; without `data` where a call has nothing to say, and on every error.
  public static func success(_ data: JSONValue?) -> [UInt8] {
    var writer = JSONWriter(capacity: 512)
    writer.beginObject()
    writer.key("errCode")
    writer.write(0)
    writer.key("errMsg")
    writer.write("")
    writer.key("errDlt")
    writer.write("")
    if let data {
      writer.key("data")
      writer.write(data)
    }
    writer.endObject()
    return writer.bytes()
  }

  public static func failure(_ fault: OpenIMFault) -> [UInt8] {
    JSONValue.object([
      "errCode": .int(fault.code), "errMsg": .string(fault.message), "errDlt": .string(fault.detail),
    ]).bytes()
  }

  /// What an answer says.
  /// - Throws: the fault inside; nil is returned for bytes that are no such envelope.
  public static func data(of body: [UInt8]) throws(OpenIMFault) -> JSONValue? {
    guard let json = try? JSONValue(parsing: body, limits: OpenIMJSON.limits), let code = json["errCode"]?.int else { return nil }
    guard code == 0 else {
      throw OpenIMFault(
        code: code, message: json["errMsg"]?.string ?? "", detail: json["errDlt"]?.string ?? "")
    }
    return json["data"] ?? .object([:])
  }
}

/// The hash under which the object store knows a file: of the hex digests of its parts, joined by commas, also when
/// there is one part (reference §6.7).
public enum OpenIMUpload {
  public static func partDigests(of bytes: [UInt8], partSize: Int) -> [String] {
    stride(from: 0, to: bytes.count, by: max(1, partSize)).map { start in
      Hex.encode(Digest.md5(Array(bytes[start..<min(start + max(1, partSize), bytes.count)])))
    }
  }

  public static func hash(ofParts digests: [String]) -> String {
    Hex.encode(Digest.md5(Array(digests.joined(separator: ",").utf8)))
  }
}

/// What a profile of this vendor may say.
public enum OpenIMProfile {
  public static let rules = ProfileRules(
    needsAPIEndpoint: true,
    options: [
      "platformID": "the platform that this client logs in as, 1 to 11; 5 (web) when absent",
      "adminUserID": "the user of the admin secret; imAdmin when absent",
    ])

  public static let defaultAdmin = "imAdmin"
  /// What the server's own configuration ships; refused by servers in production.
  public static let defaultSecret = "openIM123"
}

public enum OpenIMJSON {
  /// Half of a surrogate pair, which some client cut off, becomes U+FFFD: an answer is not lost for it.
  public static let limits = JSONLimits(loneSurrogates: .replace)
}
