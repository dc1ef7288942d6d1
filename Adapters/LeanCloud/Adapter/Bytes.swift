import Foundation
import UnifiedChat

/// The bytes of an attachment that is not uploaded yet.
enum LeanCloudBytes {
  static func of(_ attachment: Attachment) throws(ChatError) -> [UInt8] {
    switch attachment.source {
    case .bytes(let bytes): return bytes
    case .path(let path):
      do { return Array(try Data(contentsOf: URL(filePath: path), options: .mappedIfSafe)) } catch {
        throw ChatError(.storage(.denied), operation: .upload, detail: "the file to upload cannot be read")
      }
    case nil:
      throw ChatError(.invalidArgument(field: "source"), operation: .upload, detail: "the attachment has no bytes")
    }
  }
}
