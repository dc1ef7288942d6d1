#if FUZZING
  import ChatFuzzing
  import Foundation

  // libFuzzer has the main function. It chooses inputs by the coverage that the compiler's instrumentation reports.

  /// What the environment variable FUZZ_TARGET names.
  private let target: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["FUZZ_TARGET"] ?? ""
    guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
      FileHandle.standardError.write(Data("fuzz: FUZZ_TARGET names no target\n".utf8))
      exit(2)
    }
    return target
  }()

  /// Once, before the first input: writes the seeds to the folder of the corpus, with which libFuzzer begins.
  @_cdecl("LLVMFuzzerInitialize")
  public func fuzzerStarts(
    _ count: UnsafeMutablePointer<Int32>, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>
  ) -> Int32 {
    guard let corpus = ProcessInfo.processInfo.environment["FUZZ_CORPUS"] else { return 0 }
    try? FileManager.default.createDirectory(atPath: corpus, withIntermediateDirectories: true)
    for (index, seed) in target.seeds.enumerated() {
      _ = FileManager.default.createFile(atPath: "\(corpus)/seed-\(index)", contents: Data(seed))
    }
    return 0
  }

  @_cdecl("LLVMFuzzerTestOneInput")
  public func fuzzerTries(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let input = Array(UnsafeBufferPointer(start: bytes, count: count))
    // libFuzzer keeps the input of a process that dies.
    if !keepsLaws(target, input) { abort() }
    return 0
  }
#endif
