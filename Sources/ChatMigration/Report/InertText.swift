extension String {
  /// As a terminal may show it: ids, names and reasons come from services and files, and must neither move the cursor
  /// nor change a title, break a line or turn the text around.
  public var inert: String {
    guard unicodeScalars.contains(where: Self.isActive) else { return self }
    return String(String.UnicodeScalarView(unicodeScalars.map { Self.isActive($0) ? " " : $0 }))
  }

  private static func isActive(_ scalar: Unicode.Scalar) -> Bool {
    // All of ASCII that is shown, at once.
    if (0x20...0x7E).contains(scalar.value) { return false }
    switch scalar.value {
    // Marks and overrides of direction, which make a text look like another; separators of lines.
    case 0x202A...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0x061C, 0x2028, 0x2029: return true
    default: return scalar.properties.generalCategory == .control
    }
  }
}
