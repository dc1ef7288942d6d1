import ChatTransport
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// One thread that serves one port: accepts, reads and parses, and finishes what writers could not send at once.
///
/// `poll` and not `epoll`: it is the same on every platform, and an emulator has few connections.
final class SocketLoop {
  /// How long a connection that we ended may keep sending.
  private static let drainTime = Duration.seconds(2)
  private static let sweepTime = Duration.milliseconds(50)
  /// How long a client that has ended its half may wait for an answer.
  private static let answerTime = Duration.seconds(60)

  private let mailbox: SocketMailbox
  private let service: SocketService
  private let settings: SocketServerSettings
  private let address: String
  private let port: UInt16
  private let onStop: @Sendable () -> Void

  private var listener: Int32
  private var peers: [UInt64: SocketPeer] = [:]
  /// The places of `poll`: 0 the mailbox, 1 the listener, then one for each peer in the order of `serials`.
  private var places: [pollfd] = []
  private var serials: [UInt64] = []
  private var placeOf: [UInt64: Int] = [:]
  /// Peers for which something is due some time.
  private var timed: Set<UInt64> = []
  /// When those were looked at last.
  private var sweptAt = ContinuousClock.now
  /// Bytes that each peer holds of what has not come to its end, where it holds any, and their sum.
  private var held: [UInt64: Int] = [:]
  private var heldBytes = 0
  private var lastSerial: UInt64 = 0
  private var work: [HostWork] = []
  /// Set when the process has no descriptor left for a new connection.
  private var acceptsAgainAt: ContinuousClock.Instant?
  private var wantsListener = true
  private var isStopping = false

  init(
    listener: Int32, address: String, port: UInt16, mailbox: SocketMailbox, service: SocketService,
    settings: SocketServerSettings, onStop: @escaping @Sendable () -> Void
  ) {
    self.listener = listener
    self.address = address
    self.port = port
    self.mailbox = mailbox
    self.service = service
    self.settings = settings
    self.onStop = onStop
    places = [mailbox.readingEnd, listener].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
  }

  /// Runs until `.stop`; blocks its thread.
  func run() {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    defer { buffer.deallocate() }
    while !isStopping {
      turn(buffer)
      closeOverdue()
      if !work.isEmpty {
        service.deliver(work)
        work = []
      }
    }
    for serial in Array(peers.keys) { close(serial, abruptly: false) }
    if listener >= 0 { SystemSocket.close(listener, abruptly: false) }
    if !work.isEmpty { service.deliver(work) }
    mailbox.close()
    onStop()
  }

  private func turn(_ buffer: UnsafeMutableRawBufferPointer) {
    places[1].fd = acceptsAgainAt == nil && peers.count < settings.connectionLimit ? listener : -1
    guard poll(&places, nfds_t(places.count), timeout) > 0 else { return }
    // Peers are looked at before the mailbox and the listener, which change the places.
    var index = places.count - 1
    while index >= 2 {
      let events = places[index].revents
      if events != 0 { attend(serials[index - 2], events, buffer) }
      index = min(index, places.count) - 1
    }
    if places[1].revents != 0 { acceptAll() }
    if places[0].revents != 0 { mailbox.take().forEach(handle) }
  }

  private var timeout: Int32 { timed.isEmpty && acceptsAgainAt == nil ? -1 : 100 }

  private func handle(_ command: SocketCommand) {
    switch command {
    case .attend(let serial):
      guard let peer = peers[serial] else { return }
      peer.parse(service, &work)
      // The beginning of a request may have waited behind the one that was answered.
      peer.noteArrival(at: .now)
      settle(serial, peer)
    case .accepting(let accepts): setAccepting(accepts)
    case .stop: isStopping = true
    }
  }

  /// A server that refuses connections has no listening socket: the system answers for it.
  private func setAccepting(_ accepts: Bool) {
    wantsListener = accepts
    if !accepts, listener >= 0 {
      SystemSocket.close(listener, abruptly: false)
      listener = -1
    } else if accepts, listener < 0 {
      listenAgain()
    }
  }

  /// Somebody else may have the port just now: tried until it is ours.
  private func listenAgain() {
    if let again = try? SystemSocket.listen(address: address, port: port) {
      listener = again.descriptor
    } else {
      acceptsAgainAt = .now + .milliseconds(100)
    }
  }

  private func acceptAll() {
    do {
      while listener >= 0, peers.count < settings.connectionLimit,
        let descriptor = try SystemSocket.accept(listener)
      {
        lastSerial &+= 1
        let writer = SocketWriter(serial: lastSerial, descriptor: descriptor, mailbox: mailbox)
        peers[lastSerial] = SocketPeer(descriptor: descriptor, writer: writer, settings: settings)
        placeOf[lastSerial] = places.count
        serials.append(lastSerial)
        places.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
      }
    } catch {
      acceptsAgainAt = .now + .milliseconds(100)
    }
  }

  private func attend(_ serial: UInt64, _ events: Int16, _ buffer: UnsafeMutableRawBufferPointer) {
    guard let peer = peers[serial] else { return }
    if events & Int16(POLLIN | POLLHUP | POLLERR) != 0 {
      switch SystemSocket.read(peer.descriptor, into: buffer) {
      case .bytes(let count):
        peer.received(UnsafeRawBufferPointer(rebasing: buffer[..<count]), service, &work)
        guard mayHold(serial, peer.heldBytes) else { return close(serial, abruptly: true) }
        peer.noteArrival(at: .now)
      case .nothing: break
      case .end:
        // A request that came with the end, behind one that was answered just now.
        peer.parse(service, &work)
        let isGone = events & Int16(POLLHUP | POLLERR) != 0
        guard !isGone, peer.ended(deadline: .now + Self.answerTime) else { return close(serial, abruptly: false) }
      }
    }
    settle(serial, peer)
  }

  /// Sends what waits and sets what to wait for next; ends what is to be ended.
  private func settle(_ serial: UInt64, _ peer: SocketPeer) {
    // No more bytes will come to wake the parser for the requests that wait behind the one just answered.
    if peer.hasEnded { peer.parse(service, &work) }
    let (wantsWrite, unread, moved, end) = peer.writer.flush()
    if wantsWrite || moved { peer.noteSending(waits: wantsWrite, moved: moved, at: .now) }
    switch end {
    case .reset: return close(serial, abruptly: true)
    case .none where peer.hasEnded && !wantsWrite && !peer.writer.awaitsAnswer(), .afterFlush where peer.hasEnded:
      return close(serial, abruptly: false)
    case .afterFlush where peer.deadline == nil:
      if let link = peer.openLink { work.append(.closed(link.id, WebSocketClose())) }
      peer.writer.halfClose()
      peer.drain(until: .now + Self.drainTime)
    default: break
    }
    if peer.due != nil { timed.insert(serial) } else if !timed.isEmpty { timed.remove(serial) }
    if !held.isEmpty { _ = mayHold(serial, peer.heldBytes) }
    guard let place = placeOf[serial] else { return }
    places[place].events = Int16((peer.wantsRead(unread: unread) ? POLLIN : 0) | (wantsWrite ? POLLOUT : 0))
  }

  /// True while all unfinished input together stays in its bounds.
  private func mayHold(_ serial: UInt64, _ count: Int) -> Bool {
    let before = held[serial] ?? 0
    if before != count { held[serial] = count > 0 ? count : nil }
    heldBytes += count - before
    return heldBytes <= settings.inputLimit || count <= before
  }

  private func closeOverdue() {
    if timed.isEmpty, acceptsAgainAt == nil { return }
    let now = ContinuousClock.now
    if let time = acceptsAgainAt, time <= now {
      acceptsAgainAt = nil
      if wantsListener, listener < 0 { listenAgain() }
    }
    // There may be thousands; being late by this much harms nobody.
    guard now - sweptAt >= Self.sweepTime else { return }
    sweptAt = now
    for serial in timed {
      guard let peer = peers[serial], let due = peer.due, due <= now else { continue }
      if peer.refuseOverdue(at: now) { settle(serial, peer) } else { close(serial, abruptly: !peer.isDraining) }
    }
  }

  private func close(_ serial: UInt64, abruptly: Bool) {
    guard let peer = peers.removeValue(forKey: serial), let place = placeOf.removeValue(forKey: serial) else { return }
    timed.remove(serial)
    heldBytes -= held.removeValue(forKey: serial) ?? 0
    if let link = peer.openLink { work.append(.closed(link.id, WebSocketClose())) }
    peer.writer.close(abruptly: abruptly)
    let last = places.count - 1
    places.swapAt(place, last)
    serials.swapAt(place - 2, last - 2)
    places.removeLast()
    serials.removeLast()
    if place < last { placeOf[serials[place - 2]] = place }
  }
}
