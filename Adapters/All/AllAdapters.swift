import ChatTransport
import LeanCloudAdapter
import LeanCloudEmulator
import OpenIMAdapter
import OpenIMEmulator
import SendbirdAdapter
import SendbirdEmulator
import UnifiedChat

/// The one file that names every vendor.
public enum AllAdapters {
  /// Every vendor's adapter, source and destination, over `transports` (the platform's own by default).
  public static func registry(transports: Transports = .system()) -> AdapterRegistry {
    AdapterRegistry([
      SendbirdVendor.entry(transports: transports),
      OpenIMVendor.entry(transports: transports),
      LeanCloudVendor.entry(transports: transports),
    ])
  }

  /// Every vendor's emulator.
  public static let emulators: [EmulatorFactory] = [
    EmulatorFactory(SendbirdEmulator.self), EmulatorFactory(OpenIMEmulator.self),
    EmulatorFactory(LeanCloudEmulator.self),
  ]

  /// The emulator of `vendor`, or nil.
  public static func emulator(for vendor: String) -> EmulatorFactory? { emulators.first { $0.vendor == vendor } }
}
