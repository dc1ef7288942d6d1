import ChatCache

extension Chat {
  /// The cache under this client, for tests that make its disk full or look behind it.
  package var openCache: LocalCache? { cache }
}
