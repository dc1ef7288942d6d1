/// Rows under a head, columns as wide as their widest cell; numbers to the right.
struct Table {
  var head: [String]
  var rows: [[String]] = []

  var text: String {
    let columns = head.indices.map { column in
      ([head] + rows).map { column < $0.count ? $0[column].displayWidth : 0 }.max() ?? 0
    }
    let lines = [head] + [columns.map { String(repeating: "-", count: $0) }] + rows
    return lines.map { row in
      row.indices.map { column in
        let cell = row[column]
        let padding = String(repeating: " ", count: max(0, columns[column] - cell.displayWidth))
        return Int(cell.filter { $0 != "," }) != nil && row != head ? padding + cell : cell + padding
      }.joined(separator: "  ").trimmingTrailingSpaces
    }.joined(separator: "\n")
  }
}

extension String {
  /// Columns on a terminal: East Asian wide characters take two.
  var displayWidth: Int {
    unicodeScalars.reduce(0) { $0 + ((0x1100...0x115F ~= $1.value || 0x2E80...0xFFDC ~= $1.value) ? 2 : 1) }
  }

  var trimmingTrailingSpaces: String {
    var text = self[...]
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
