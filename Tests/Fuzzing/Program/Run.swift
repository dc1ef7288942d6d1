import ChatFuzzing
import Foundation

/// Whether the target keeps its laws on `bytes`; says it when not.
func keepsLaws(_ target: FuzzTarget, _ bytes: [UInt8]) -> Bool {
  do {
    try target.runHere(bytes)
    return true
  } catch {
    let hex = bytes.prefix(512).map { String($0, radix: 16) }.joined(separator: " ")
    let text = "\(target.name): \(error)\n  input (\(bytes.count) bytes, hex): \(hex)\n"
    FileHandle.standardError.write(Data(text.utf8))
    return false
  }
}
