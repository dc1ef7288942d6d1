import ChatJSON
import SendbirdWire
import UnifiedChat

/// Lists of texts by key, beside a message.
enum MetaArrays {
  /// `{"key": text, "value": [text…]}`
  static func isGood(_ item: JSONValue) -> Bool {
    guard item["key"]?.string?.isEmpty == false else { return false }
    return item["value"]?.array?.allSatisfy { $0.string != nil } ?? (item["value"] == nil)
  }

  /// `{array:[{key,value}], mode:"add"|"remove", upsert}`. A key without values is removed whole.
  static func changed(
    _ arrays: [SendbirdMetaArray], by change: JSONObject
  ) throws(SendbirdFault) -> [SendbirdMetaArray] {
    let removes = change.text("mode") == "remove"
    var arrays = arrays
    for item in change.list("array") {
      guard isGood(item), let key = item["key"]?.string else {
        throw SendbirdFault(900029, "An array needs a key and a list of texts.")
      }
      let values = item.object?.texts("value") ?? []
      if let place = arrays.firstIndex(where: { Key($0.key) == Key(key) }) {
        if removes, values.isEmpty {
          arrays.remove(at: place)
        } else if removes {
          arrays[place].values.removeAll { value in values.contains { Key($0) == Key(value) } }
        } else {
          arrays[place].values += values
        }
      } else if !removes {
        arrays.append(SendbirdMetaArray(key: key, values: values))
      }
    }
    return arrays
  }
}
