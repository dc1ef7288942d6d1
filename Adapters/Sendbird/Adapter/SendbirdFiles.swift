import ChatCrypto
import ChatJSON
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

  /// - Parameter wantsThumbnail: false where a file is to stay what it was elsewhere.
  static func form(
    _ attachment: Attachment, bytes: [UInt8], channel: ChannelID, wantsThumbnail: Bool = false
  ) -> SendbirdMultipart {
    var form = SendbirdMultipart([
      .init(
        name: "file", fileName: attachment.name ?? "file", mimeType: attachment.mimeType ?? "application/octet-stream",
        bytes: bytes),
      .init(name: "channel_url", bytes: Array(channel.rawValue.utf8)),
    ])
    // The server makes thumbnails of pictures, of the sizes that are asked for.
    if wantsThumbnail, attachment.mimeType?.hasPrefix("image/") == true, attachment.thumbnails.isEmpty {
      let side = thumbnailSide
      form.parts.append(.init(name: "thumbnail1", bytes: Array("\(side),\(side)".utf8)))
    }
    return form
  }

  /// Pixels that a thumbnail is wide and high at most.
  private static let thumbnailSide = 320

  /// The attachment as the server keeps it: where, whether only with a key, and with the thumbnails that it made.
  static func uploaded(_ attachment: Attachment, _ answer: JSONObject) throws(ChatError) -> Attachment {
    guard let url = answer.text("url") else { throw SendbirdAdapter.malformed(.upload) }
    var uploaded = attachment
    uploaded.url = url
    uploaded.source = nil
    uploaded.metadata = SendbirdFile.protecting(attachment.metadata, answer.flag("require_auth") ?? false)
    guard attachment.thumbnails.isEmpty else { return uploaded }
    uploaded.thumbnails = answer.list("thumbnails").compactMap { item in
      guard let thumbnail = item.object, let url = thumbnail.text("url") else { return nil }
      return Attachment.Thumbnail(
        url: url, width: thumbnail.number("width").flatMap { Int(exactly: $0) },
        height: thumbnail.number("height").flatMap { Int(exactly: $0) })
    }
    return uploaded
  }

  /// A digest of the bytes, so that it cannot occur in them but by intent, which harms the sender alone.
  static func boundary(_ bytes: [UInt8]) -> String { "unifiedchat-" + Hex.encode(Digest.sha256(bytes)) }
}
