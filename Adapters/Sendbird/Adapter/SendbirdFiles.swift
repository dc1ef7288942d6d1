import ChatCrypto
import Foundation
import SendbirdWire
import UnifiedChat

enum SendbirdFiles {
  static func bytes(of attachment: Attachment) throws(ChatError) -> [UInt8] {
    switch attachment.source {
    case .bytes(let bytes): return bytes
    case .path(let path):
      guard let data = FileManager.default.contents(atPath: path) else {
        throw ChatError(.invalidArgument(field: "source"), operation: .upload, detail: "the file cannot be read")
      }
      return Array(data)
    case nil:
      throw ChatError(.invalidArgument(field: "source"), operation: .upload, detail: "there are no bytes to send")
    }
  }

  static func form(_ attachment: Attachment, bytes: [UInt8], channel: ChannelID) -> SendbirdMultipart {
    SendbirdMultipart([
      .init(
        name: "file", fileName: attachment.name ?? "file", mimeType: attachment.mimeType ?? "application/octet-stream",
        bytes: bytes),
      .init(name: "channel_url", bytes: Array(channel.rawValue.utf8)),
    ])
  }

  /// A digest of the bytes, so that it cannot occur in them but by intent, which harms the sender alone.
  static func boundary(_ bytes: [UInt8]) -> String { "unifiedchat-" + Hex.encode(Digest.sha256(bytes)) }
}
