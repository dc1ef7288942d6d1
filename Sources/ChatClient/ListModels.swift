#if canImport(Observation)
  import Observation
  import UnifiedChat

  /// The messages of a channel for a view. A list in SwiftUI:
  ///
  /// ```swift
  /// struct Room: View {
  ///   @State var model: MessageListModel
  ///   var body: some View {
  ///     List(model.items) { item in
  ///       Text(item.message.content.searchableText ?? "").opacity(item.message.id == nil ? 0.5 : 1)
  ///     }
  ///     .refreshable { await model.loadOlder() }
  ///     .task { await model.follow() }
  ///   }
  /// }
  /// ```
  @MainActor @Observable
  public final class MessageListModel {
    public private(set) var items: [MessageItem] = []
    public private(set) var hasOlder = false
    public private(set) var hasNewer = false
    public private(set) var isLoaded = false
    public private(set) var typing: Set<UserID> = []
    /// What the last reading or step could not do.
    public private(set) var problem: ChatError?
    @ObservationIgnored public let collection: MessageCollection

    public init(_ collection: MessageCollection) { self.collection = collection }

    /// Shows every change until the task is cancelled or the collection is closed.
    public func follow() async {
      for await update in collection.updates {
        let now = update.snapshot
        // Only what changed, so that only views that show it are drawn again.
        if items != now.items { items = now.items }
        if hasOlder != now.hasOlder { hasOlder = now.hasOlder }
        if hasNewer != now.hasNewer { hasNewer = now.hasNewer }
        if isLoaded != now.isLoaded { isLoaded = now.isLoaded }
        if typing != now.typing { typing = now.typing }
        if problem != now.problem { problem = now.problem }
      }
    }

    public func loadOlder() async { await attempt { () throws(ChatError) in try await self.collection.loadOlder() } }
    public func loadNewer() async { await attempt { () throws(ChatError) in try await self.collection.loadNewer() } }

    private func attempt(_ step: () async throws(ChatError) -> Int) async {
      do throws(ChatError) {
        _ = try await step()
        problem = nil
      } catch {
        problem = error
      }
    }
  }

  /// The channels of a user for a view.
  @MainActor @Observable
  public final class ChannelListModel {
    public private(set) var items: [Channel] = []
    public private(set) var hasMore = false
    public private(set) var isLoaded = false
    /// Of all channels that are not silenced: the number of a badge.
    public private(set) var unread = UnreadCount.unknown
    public private(set) var typing: [ChannelID: Set<UserID>] = [:]
    public private(set) var problem: ChatError?
    @ObservationIgnored public let collection: ChannelCollection

    public init(_ collection: ChannelCollection) { self.collection = collection }

    /// Shows every change until the task is cancelled or the collection is closed.
    public func follow() async {
      for await update in collection.updates {
        let now = update.snapshot
        if items != now.items { items = now.items }
        if hasMore != now.hasMore { hasMore = now.hasMore }
        if isLoaded != now.isLoaded { isLoaded = now.isLoaded }
        if unread != now.unread { unread = now.unread }
        if typing != now.typing { typing = now.typing }
        if problem != now.problem { problem = now.problem }
      }
    }

    public func loadMore() async {
      do throws(ChatError) {
        try await collection.loadMore()
        problem = nil
      } catch {
        problem = error
      }
    }
  }
#endif
