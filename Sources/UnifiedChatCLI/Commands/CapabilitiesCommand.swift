import AllAdapters
import ChatClient
import ChatJSON
import UnifiedChat

/// `unifiedchat capabilities`
enum CapabilitiesCommand {
  static let command = Command(
    name: "capabilities", summary: "what each vendor can do: native, emulated (how) or absent",
    options: [.flag("markdown", "print the table of the README"), Command.json],
    examples: ["unifiedchat capabilities --markdown"], run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    let columns = self.columns()
    if invocation.json {
      Standard.line(json(columns).text())
    } else if invocation.has("markdown") {
      Standard.line(markdown(columns))
    } else {
      var table = Table(head: ["capability"] + columns.map(\.name))
      for capability in Capability.allCases {
        table.rows.append([capability.rawValue] + columns.map { $0.set[capability].name })
      }
      Standard.line(table.text)
    }
    return .success
  }

  /// One column for each vendor and model: what an app can do, with what the client adds.
  private static func columns() -> [(name: String, set: CapabilitySet)] {
    AllAdapters.registry().entries.flatMap { entry in
      // The usual model stands under the vendor's own name.
      entry.capabilities.filter { $0.key.isEmpty || $0.value != entry.capabilities[""] }
        .sorted { $0.key < $1.key }.map { model, set in
        (name: model.isEmpty ? entry.vendor.rawValue : "\(entry.vendor) (\(model))", set: ClientCapabilities.effective(set))
      }
    }
  }

  private static func markdown(_ columns: [(name: String, set: CapabilitySet)]) -> String {
    var lines = ["| capability | meaning | " + columns.map(\.name).joined(separator: " | ") + " |"]
    lines.append("|---|---|" + String(repeating: "---|", count: columns.count))
    for capability in Capability.allCases {
      let cells = columns.map { column in
        switch column.set[capability] {
        case .native: "native"
        case .emulated(let how): "emulated: \(how)"
        case .absent: "–"
        }
      }
      lines.append("| `\(capability.rawValue)` | \(capability.meaning) | " + cells.joined(separator: " | ") + " |")
    }
    return lines.joined(separator: "\n")
  }

  private static func json(_ columns: [(name: String, set: CapabilitySet)]) -> JSONValue {
    .object(
      JSONObject(
        columns.map { column in
          let members = Capability.allCases.map { capability -> JSONObject.Member in
            var level: JSONObject = ["level": .string(column.set[capability].name)]
            if case .emulated(let how) = column.set[capability] { level["how"] = .string(how) }
            return (capability.rawValue, .object(level))
          }
          return (column.name, .object(JSONObject(members)))
        }))
  }
}
