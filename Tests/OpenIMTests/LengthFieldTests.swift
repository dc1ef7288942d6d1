import ChatCrypto
import OpenIMWire
import Testing

@Suite("A length in gob beyond what is there is refused by name, and no room is made for it")
struct GobLengthTests {
  /// A frame of which one number is another: where it stands in `OpenIMFrameTests.requestHex`, as bytes of the frame.
  struct Place: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var offset: Int
  }

  /// Of the request that the vendor's client writes: the definition is 0x65 bytes long, the value 0x25.
  static let places = [
    Place(testDescription: "of the definition", offset: 0), Place(testDescription: "of the type's name", offset: 5),
    Place(testDescription: "number of fields", offset: 0x17), Place(testDescription: "of a field's name", offset: 0x19),
    Place(testDescription: "of the value", offset: 0x66), Place(testDescription: "of the sender", offset: 0x6E),
    Place(testDescription: "of the operation id", offset: 0x75), Place(testDescription: "of the data", offset: 0x83),
  ]

  /// As gob writes it: how many bytes follow, negated, then the number.
  static let lengths: [[UInt8]] = [
    [0xFC, 0x40, 0, 0, 0], [0xFC, 0x80, 0, 0, 0], [0xFB, 1, 0, 0, 0, 0], [0xF8, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    [0xF8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
  ]

  @Test("wherever it stands", arguments: places, lengths)
  func refused(_ place: Place, _ length: [UInt8]) throws {
    let frame = try #require(Hex.decode(OpenIMFrameTests.requestHex))
    let original = Int(frame[place.offset])
    #expect(original > 0 && original <= frame.count)
    var bytes = frame
    bytes.replaceSubrange(place.offset...place.offset, with: length)
    for read in [{ _ = try OpenIMGob.decodeRequest($0) }, { _ = try OpenIMGob.decodeResponse($0) }] as [([UInt8]) throws -> Void] {
      #expect {
        try read(bytes)
      } throws: { error in
        guard case .malformed(let reason)? = error as? OpenIMFrameError else { return false }
        return reason.hasPrefix("gob: ")
      }
    }
  }
}
