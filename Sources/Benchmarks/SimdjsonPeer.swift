import CBenchmarkPeers

/// simdjson into the same Swift value, the strings copied out of its buffer.
final class SimdjsonPeer {
  struct Failure: Error { var code: Int32 }

  private let parser = peer_simdjson_new()

  static var isAvailable: Bool { peer_simdjson_available() }

  deinit { peer_simdjson_free(parser) }

  /// The document with the bytes behind it that simdjson may read.
  static func padded(_ bytes: [UInt8]) -> [UInt8] {
    bytes + [UInt8](repeating: 0, count: peer_simdjson_padding())
  }

  func message(_ padded: [UInt8], count: Int) throws -> SampleMessage {
    var message = peer_message()
    let code = peer_simdjson_message(parser, padded, count, padded.count, &message)
    guard code == 0 else { throw Failure(code: code) }
    return SampleMessage(message)
  }

  func array(_ padded: [UInt8], count: Int) throws -> [SampleMessage] {
    var messages: [SampleMessage] = []
    let code = withUnsafeMutablePointer(to: &messages) { target in
      peer_simdjson_array(
        parser, padded, count, padded.count,
        { context, message in
          guard let context, let message else { return }
          context.assumingMemoryBound(to: [SampleMessage].self).pointee.append(SampleMessage(message.pointee))
        }, target)
    }
    guard code == 0 else { throw Failure(code: code) }
    return messages
  }
}

extension SampleMessage {
  init(_ peer: peer_message) {
    let shared = peer.mentions
    let all = [shared.0, shared.1, shared.2, shared.3, shared.4, shared.5, shared.6, shared.7]
    self.init(
      msgId: peer.message_id, channelId: peer.channel_id.string, clientId: peer.client_id.string,
      type: peer.type.string, text: peer.text.string, customType: peer.custom_type.string,
      sender: Sender(userId: peer.sender_id.string, nickname: peer.sender_name.string, url: peer.sender_url.string),
      mentions: peer.mention_count == 0 ? [] : all.prefix(peer.mention_count).map(\.string), silent: peer.silent,
      createdAt: peer.created_at,
      updatedAt: peer.updated_at)
  }
}

extension peer_text {
  var string: String {
    let (source, length) = (start, count)
    return String(unsafeUninitializedCapacity: length) { buffer in
      guard let source, let target = buffer.baseAddress else { return 0 }
      UnsafeMutableRawPointer(target).copyMemory(from: source, byteCount: length)
      return length
    }
  }
}
