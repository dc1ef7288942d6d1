import ChatJSON
import UnifiedChat

/// `_lcfile` of a media message: `{"url", "objId", "metaData": {"name", "format", "size", "width", "height",
/// "duration"}}`. Only `url` is required; `duration` is in seconds. Our own members of `metaData` are `mime_type`,
/// `sha256`, `thumbnails` and `metadata`.
///
/// The unified attachment's `metadata` holds what has no field there: `_lctext` (the caption), `objId`, unknown members.
extension Attachment {
  private static let ownMembers: Set<String> = ["_lctext", "objId", "metaData", "members"]
  private static let knownMetaData: Set<String> = [
    "name", "size", "width", "height", "duration", "mime_type", "sha256", "thumbnails", "metadata",
  ]

  /// The metadata's members if it has the form that reading a message gives.
  private var vendorMetadata: JSONObject? {
    guard let metadata, let object = (try? JSONValue(parsing: metadata.text))?.object else { return nil }
    return object.keys.allSatisfy(Self.ownMembers.contains) ? object : nil
  }

  var leanCloudCaption: String? { vendorMetadata?["_lctext"]?.string }

  func leanCloudFile() -> JSONObject {
    let vendor = vendorMetadata
    var meta = vendor?["metaData"]?.object ?? JSONObject()
    meta["name"] = name.map { .string($0) }
    meta["size"] = size.map { .int($0) }
    meta["width"] = width.map { JSONValue($0) }
    meta["height"] = height.map { JSONValue($0) }
    meta["duration"] = durationMilliseconds.map { Self.seconds($0) }
    meta["mime_type"] = mimeType.map { .string($0) }
    meta["sha256"] = sha256.map { .string($0) }
    if !thumbnails.isEmpty { meta["thumbnails"] = .array(thumbnails.map(\.leanCloudJSON)) }
    if vendor == nil, let metadata { meta["metadata"] = .string(metadata.text) }
    var file = vendor?["members"]?.object ?? JSONObject()
    file["url"] = .string(url ?? "")
    file["objId"] = vendor?["objId"]
    if !meta.isEmpty { file["metaData"] = .object(meta) }
    return file
  }

  init(leanCloudFile file: JSONObject, caption: String?) {
    let meta = file["metaData"]?.object ?? JSONObject()
    // Examples of the REST guide put name and size directly into the file.
    func value(_ key: String) -> JSONValue? { meta[key] ?? file[key] }
    self.init(
      url: file["url"]?.string, name: value("name")?.string, size: value("size").flatMap(Self.whole),
      mimeType: meta["mime_type"]?.string ?? meta["format"]?.string.flatMap { $0.contains("/") ? $0 : nil },
      sha256: meta["sha256"]?.string, width: meta["width"].flatMap(Self.whole).flatMap { Int(exactly: $0) },
      height: meta["height"].flatMap(Self.whole).flatMap { Int(exactly: $0) },
      durationMilliseconds: meta["duration"].flatMap(Self.milliseconds),
      thumbnails: (meta["thumbnails"]?.array ?? []).compactMap { Thumbnail(leanCloudJSON: $0) })
    metadata = Self.metadata(file: file, meta: meta, caption: caption)
  }

  /// A count that some SDKs write as `1024.0`.
  private static func whole(_ value: JSONValue) -> Int64? {
    value.int ?? value.double.flatMap { Int64(exactly: $0) }
  }

  private static func milliseconds(_ value: JSONValue) -> Int64? {
    if let seconds = value.int {
      let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
      return overflow ? nil : product
    }
    return value.double.flatMap { Int64(exactly: ($0 * 1000).rounded()) }
  }

  private static func seconds(_ milliseconds: Int64) -> JSONValue {
    if milliseconds % 1000 == 0 { return .int(milliseconds / 1000) }
    let fraction = String(milliseconds.magnitude % 1000 + 1000).dropFirst()
    let text = "\(milliseconds < 0 ? "-" : "")\(milliseconds.magnitude / 1000).\(fraction)"
    return (try? JSONNumber(parsing: text)).map { .number($0) } ?? JSONValue(Double(milliseconds) / 1000)
  }

  private static func metadata(file: JSONObject, meta: JSONObject, caption: String?) -> JSONText? {
    if let own = meta["metadata"]?.string { return JSONText(unchecked: own) }
    var object = JSONObject()
    object["_lctext"] = caption.map { .string($0) }
    object["objId"] = file["objId"]
    let unknownMeta = meta.members.filter { !knownMetaData.contains($0.key) || !isUnderstood($0.key, $0.value) }
    if !unknownMeta.isEmpty { object["metaData"] = .object(JSONObject(unknownMeta)) }
    let unknown = file.members.filter {
      !["url", "objId", "metaData", "name", "size"].contains($0.key)
    }
    if !unknown.isEmpty { object["members"] = .object(JSONObject(unknown)) }
    return object.isEmpty ? nil : JSONText(unchecked: JSONValue.object(object).text())
  }

  /// Whether the value went into a field; what did not is kept as it came.
  private static func isUnderstood(_ key: String, _ value: JSONValue) -> Bool {
    switch key {
    case "name", "mime_type", "sha256", "metadata": value.string != nil
    case "size", "width", "height": whole(value) != nil
    case "duration": milliseconds(value) != nil
    default: true
    }
  }
}

extension Attachment.Thumbnail {
  fileprivate var leanCloudJSON: JSONValue {
    var object = JSONObject()
    object["url"] = .string(url)
    object["width"] = width.map { JSONValue($0) }
    object["height"] = height.map { JSONValue($0) }
    return .object(object)
  }

  fileprivate init?(leanCloudJSON json: JSONValue) {
    guard let url = json["url"]?.string else { return nil }
    self.init(
      url: url, width: json["width"]?.int.flatMap { Int(exactly: $0) },
      height: json["height"]?.int.flatMap { Int(exactly: $0) })
  }
}
