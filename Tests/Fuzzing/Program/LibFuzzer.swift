#if FUZZING
  import ChatFuzzing
  import Foundation

  /// libFuzzer's own driver: chooses inputs by the coverage that the compiler's instrumentation reports.
  @_silgen_name("LLVMFuzzerRunDriver")
  private func runDriver(
    _ count: UnsafeMutablePointer<Int32>, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
  ) -> Int32

  enum LibFuzzer {
    // Set once before the driver starts, on the only thread.
    nonisolated(unsafe) private static var target: FuzzTarget?

    static func run(_ target: FuzzTarget, _ arguments: [String]) -> Int32 {
      self.target = target
      if let corpus = arguments.first(where: { !$0.hasPrefix("-") }) { plant(target.seeds, in: corpus) }
      // libFuzzer keeps the array for as long as the process lives.
      let list = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: arguments.count + 2)
      list.initialize(repeating: nil, count: arguments.count + 2)
      for (index, text) in (["fuzz " + target.name] + arguments).enumerated() { list[index] = strdup(text) }
      var count = Int32(arguments.count + 1)
      var start: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = list
      return runDriver(&count, &start) { bytes, length in LibFuzzer.test(bytes, length) }
    }

    /// libFuzzer begins with what lies in the folder of its corpus.
    private static func plant(_ seeds: [[UInt8]], in folder: String) {
      try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      for (index, seed) in seeds.enumerated() {
        _ = FileManager.default.createFile(atPath: "\(folder)/seed-\(index)", contents: Data(seed))
      }
    }

    private static func test(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
      guard let target else { return 0 }
      let input = Array(UnsafeBufferPointer(start: bytes, count: count))
      do { try target.run(input) } catch {
        report(target, error, input)
        // libFuzzer keeps the input of a process that dies.
        abort()
      }
      return 0
    }
  }
#endif
