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
    let totals = Verdict.names.map { name -> JSONObject.Member in
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
    case .fail(let failure), .flaky(let failure): object["failure"] = Self.failure(failure)
    case .knownFailure(let failure, let issue):
      object["failure"] = Self.failure(failure)
      object["issue"] = .string(issue)
    case .unexpectedPass(let issue): object["issue"] = .string(issue)
    case .error(let text): object["error"] = .string(text)
    case .skip(let reason): object["skip"] = .string(reason.description)
    case .passDeclared(let differences):
      object["declared"] = .array(
        differences.map { ["name": .string($0.rawValue), "reason": .string($0.reason), "source": .string($0.source)] })
    case .pass: break
    }
    if !result.transcript.isEmpty { object["transcript"] = .array(result.transcript.map { .string($0) }) }
    return .object(object)
  }

  private static func failure(_ failure: CaseFailure) -> JSONValue {
    [
      "expectation": .string(failure.expected), "observed": .string(failure.observed), "at": .string(failure.place),
    ]
  }
}
