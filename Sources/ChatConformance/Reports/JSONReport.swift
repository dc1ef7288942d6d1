import ChatJSON
import UnifiedChat

/// A run as JSON (`Schemas/conformance-report.schema.json`), members in a fixed order so that two runs can be compared.
public enum JSONReport {
  public static func make(_ reports: [AdapterReport], seed: UInt64, started: Timestamp, milliseconds: Int64) -> JSONValue {
    [
      "format": 1,
      "suite": [
        "version": .string(ConformanceSuite.version), "cases": .int(Int64(ConformanceSuite.cases.count)),
        "seed": .string(String(seed)),
      ],
      "started": .string(started.description), "duration_ms": .int(milliseconds),
      "adapters": .array(reports.map(adapter)),
    ]
  }

  private static func adapter(_ report: AdapterReport) -> JSONValue {
    let capabilities = Capability.allCases.map { capability -> JSONObject.Member in
      var level: JSONObject = ["level": .string(report.capabilities[capability].name)]
      if case .emulated(let how) = report.capabilities[capability] { level["how"] = .string(how) }
      return (capability.rawValue, .object(level))
    }
    let totals = ["pass", "fail", "error", "skip"].map { name -> JSONObject.Member in
      (name, .int(Int64(report.count(name))))
    }
    return [
      "name": .string(report.adapter), "target": .string(report.target.rawValue),
      "capabilities": .object(JSONObject(capabilities)), "totals": .object(JSONObject(totals)),
      "cases": .array(report.results.map(result)),
    ]
  }

  private static func result(_ result: CaseResult) -> JSONValue {
    var object: JSONObject = [
      "id": .string(result.id), "title": .string(result.title), "severity": .string(result.severity.rawValue),
      "verdict": .string(result.verdict.name), "duration_ms": .int(result.milliseconds),
      "replay": .string(result.replay),
    ]
    switch result.verdict {
    case .fail(let failure):
      object["failure"] = [
        "expectation": .string(failure.expected), "observed": .string(failure.observed),
        "at": .string(failure.place),
      ]
    case .error(let text): object["error"] = .string(text)
    case .skip(let reason): object["skip"] = .string(reason.description)
    case .pass: break
    }
    return .object(object)
  }
}
