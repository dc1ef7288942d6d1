import UnifiedChat

extension Chat {
  /// The adapter as its own type, or as a protocol of its vendor, for what the contract does not have; nil where the
  /// vendor is another one. What is done through it passes by the cache and the outbox.
  public nonisolated func vendorAdapter<Face>(as type: Face.Type) -> Face? { adapter as? Face }
}
