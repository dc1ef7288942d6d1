import ChatJSON
import UnifiedChat

extension FidelityReport {
  public func json() -> JSONValue {
    var object = JSONObject()
    object["tool"] = .string(tool)
    object["createdAt"] = .int(createdAt.milliseconds)
    object["source"] = source()
    object["destination"] = ["vendor": .string(destination.rawValue)]
    object["written"] = [
      "users": JSONValue(load.users), "channels": JSONValue(load.channels), "messages": JSONValue(load.messages),
      "refused": JSONValue(load.refused), "skipped": JSONValue(load.skipped),
      "late": JSONValue(load.late),
    ]
    object["fields"] = .array(fields.map { $0.json() })
    object["verification"] = verification?.json()
    object["exceptions"] = .array(exceptions.map { $0.json() })
    object["unreadable"] = .array(unreadable.map { $0.reportJSON() })
    object["notCarried"] = .array(notCarried.map { $0.json() })
    object["notRead"] = .array(notRead.map { .string($0) })
    object["envelopes"] = .array(envelopes.map { $0.reportJSON() })
    object["notCompared"] = .array(
      CarriedForm.notCompared.map { ["field": .string($0.field), "reason": .string($0.reason)] })
    object["perfect"] = .bool(isPerfect)
    object["sentence"] = .string(sentence)
    return .object(object)
  }

  private func source() -> JSONValue {
    var object = JSONObject()
    object["vendor"] = .string(archive.vendor.rawValue)
    object["app"] = archive.app.map { .string($0) }
    object["archive"] = .string(archive.id)
    object["digest"] = archiveDigest.map { .string($0) }
    object["users"] = JSONValue(archiveCounts.users)
    object["channels"] = JSONValue(archiveCounts.channels)
    object["members"] = JSONValue(archiveCounts.members)
    object["messages"] = JSONValue(archiveCounts.messages)
    object["files"] = JSONValue(archiveCounts.files)
    object["fileBytes"] = .int(archiveCounts.fileBytes)
    object["unreadable"] = JSONValue(archiveCounts.unreadable)
    object["envelopes"] = JSONValue(archiveCounts.envelopes)
    return .object(object)
  }
}

extension FidelityReport.Field {
  func json() -> JSONValue {
    var object = JSONObject()
    object["field"] = .string(field)
    object["present"] = present.map { JSONValue($0) }
    object["kept"] = kept.map { JSONValue($0) }
    object["keptElsewhere"] = JSONValue(keptElsewhere)
    object["degraded"] = JSONValue(degraded)
    object["dropped"] = JSONValue(dropped)
    object["undeclared"] = undeclared.map { JSONValue($0) }
    object["explanations"] = .array(explanations.map { .string($0) })
    object["examples"] = .array(examples.map { .string($0) })
    return .object(object)
  }
}

extension LoadException {
  func json() -> JSONValue {
    ["kind": .string(kind), "outcome": .string(outcome.rawValue), "id": .string(id), "reason": .string(reason)]
  }
}

extension UnreadableRecord {
  /// Without the raw form, which may hold what people wrote.
  func reportJSON() -> JSONValue {
    var object = JSONObject()
    object["kind"] = .string(kind)
    object["id"] = id.map { .string($0) }
    object["channel"] = channel.map { .string($0.rawValue) }
    object["reason"] = .string(reason)
    return .object(object)
  }
}

extension VerifyResult {
  public func json() -> JSONValue {
    var object = JSONObject()
    object["equal"] = .bool(isEqual)
    object["users"] = JSONValue(users)
    object["usersFound"] = JSONValue(usersFound)
    object["userProblems"] = JSONValue(userProblems)
    object["userExamples"] = .array(userExamples.map { $0.json() })
    object["envelopes"] = JSONValue(envelopes)
    object["envelopeExamples"] = .array(envelopeExamples.map { $0.json() })
    object["totals"] = totals.json(withName: false)
    var signs = JSONObject()
    for sign in VerifySign.allCases { signs[sign.rawValue] = JSONValue(channelCounts[sign] ?? 0) }
    object["signs"] = .object(signs)
    object["channels"] = .array(channels.map { $0.json(withName: true) })
    object["sentence"] = .string(sentence)
    return .object(object)
  }
}

extension ChannelVerification {
  func json(withName: Bool) -> JSONValue {
    var object = JSONObject()
    if withName {
      object["channel"] = .string(channel.rawValue)
      object["destination"] = destination.map { .string($0.rawValue) }
      object["sign"] = .string(sign.rawValue)
    }
    for (key, value) in [
      ("expected", expected), ("found", found), ("missing", missing), ("doubled", doubled), ("extra", extra),
      ("notices", notices), ("different", different), ("outOfOrder", outOfOrder), ("unverified", unverified),
      ("excepted", excepted), ("memberProblems", memberProblems), ("channelProblems", channelProblems),
    ] { object[key] = JSONValue(value) }
    if withName {
      object["expectedDigest"] = expectedDigest.map { .string($0) }
      object["actualDigest"] = actualDigest.map { .string($0) }
      object["failure"] = failure.map { .string($0) }
      object["examples"] = .array(examples.map { $0.json() })
    }
    return .object(object)
  }
}

extension VerifyFinding {
  func json() -> JSONValue {
    ["kind": .string(kind), "sign": .string(sign.rawValue), "id": .string(id), "what": .string(what)]
  }
}
