import ChatCrypto
import ChatInterchange
import ChatJSON
import Foundation
import Testing
import UnifiedChat

@testable import OpenIMWire

@Suite("Frames as the vendor writes them")
struct OpenIMFrameTests {
  /// Written by Go's encoder, in the vendor's client and in its server.
  static let requestHex =
    "657f0301010c47656e6572616c577352657101ff80000106010d5265714964656e7469666965720104000105546f6b656e010c00010653656e64"
    + "4944010c00010b4f7065726174696f6e4944010c0001074d7367496e6372010c00010444617461010a00000025ff8001fe07d20205616c6963"
    + "6501036f70310107616c6963655f3101070a05616c69636500"
  static let definitionHex =
    "60ff83030101045265737001ff84000106010d5265714964656e74696669657201040001074d7367496e6372010c00010b4f7065726174696f6e"
    + "4944010c000107457272436f646501040001064572724d7367010c00010444617461010a000000"
  static let answers: [(String, OpenIMResponseFrame)] = [
    (
      "19ff8401fe07d20107616c6963655f3101036f70310302010200",
      OpenIMResponseFrame(operation: 1001, increment: "alice_1", operationID: "op1", data: [1, 2])
    ),
    ("07ff8401fe0fa400", OpenIMResponseFrame(operation: 2002)),
    (
      "28ff8401fe07d60107616c6963655f3201036f703201fe0a2c010d426c6f636b656442795065657200",
      OpenIMResponseFrame(
        operation: 1003, increment: "alice_2", operationID: "op2", code: 1302, message: "BlockedByPeer")
    ),
  ]

  @Test("a request in gob has the bytes of the vendor's client")
  func request() throws {
    let frame = OpenIMRequestFrame(
      operation: 1001, sender: "alice", operationID: "op1", increment: "alice_1",
      data: [0x0A, 0x05] + Array("alice".utf8))
    #expect(Hex.encode(OpenIMGob.encode(frame)) == Self.requestHex)
    #expect(try OpenIMGob.decodeRequest(try #require(Hex.decode(Self.requestHex))) == frame)
  }

  @Test("an answer in gob has the bytes of the vendor's server", arguments: answers)
  func answer(hex: String, frame: OpenIMResponseFrame) throws {
    #expect(Hex.encode(OpenIMGob.encode(frame)) == Self.definitionHex + hex)
    #expect(try OpenIMGob.decodeResponse(try #require(Hex.decode(Self.definitionHex + hex))) == frame)
  }

  @Test("integers of every size survive", arguments: [0, 1, 63, 64, 127, 128, -1, -128, 1 << 40, .max, .min] as [Int64])
  func integers(number: Int64) throws {
    let frame = OpenIMResponseFrame(operation: number, code: number)
    #expect(try OpenIMGob.decodeResponse(OpenIMGob.encode(frame)) == frame)
  }

  @Test("whatever is cut or changed, a frame is read or refused")
  func mutations() {
    let bytes = Hex.decode(Self.requestHex) ?? []
    for length in 0..<bytes.count { _ = try? OpenIMGob.decodeRequest(Array(bytes.prefix(length))) }
    var random = SystemRandomNumberGenerator()
    for place in bytes.indices {
      for value in [0, 1, 127, 128, 255, UInt8.random(in: .min ... .max, using: &random)] {
        var changed = bytes
        changed[place] = value
        _ = try? OpenIMGob.decodeRequest(changed)
        _ = try? OpenIMRequestFrame(json: changed)
      }
    }
  }

  @Test("a JSON answer has its members in the observed order, and null where nothing is said")
  func json() throws {
    let frame = OpenIMResponseFrame(operation: 1003, increment: "3", operationID: "o3", data: [1])
    let text = #"{"reqIdentifier":1003,"msgIncr":"3","operationID":"o3","errCode":0,"errMsg":"","data":"AQ=="}"#
    #expect(String(decoding: frame.jsonBytes(), as: UTF8.self) == text)
    #expect(try OpenIMResponseFrame(json: Array(text.utf8)) == frame)
    #expect(String(decoding: OpenIMResponseFrame(operation: 2002).jsonBytes(), as: UTF8.self).hasSuffix(#""data":null}"#))
  }

  @Test("compression is of the whole frame, and a bomb is refused")
  func compression() throws {
    let codec = OpenIMCodec(form: .gob, isCompressed: true)
    let frame = OpenIMRequestFrame(operation: 1001, sender: "a", operationID: "o", increment: "i", data: [1])
    #expect(try codec.decodeRequest(codec.encode(frame)) == frame)
    let bomb = try Gzip.compress([UInt8](repeating: 0, count: OpenIMCodec.maximumUnpacked + 1))
    #expect(throws: OpenIMFrameError.tooLarge(limit: OpenIMCodec.maximumUnpacked)) { try codec.decodeRequest(bomb) }
  }
}

@Suite("Bodies as the vendor writes them")
struct OpenIMBodyTests {
  /// Base64 of `data`; answers are a real server's, requests those of the reference.
  static let vectors: [(OpenIMBody, JSONValue, String)] = [
    (
      .newestSequencesAnswer, ["maxSeqs": ["sg_g1": 2, "si_alice_bob": 3, "n_alice_bob": 1]],
      "CgkKBXNnX2cxEAIKEAoMc2lfYWxpY2VfYm9iEAMKDwoLbl9hbGljZV9ib2IQAQ=="
    ),
    (
      .pullRangesRequest,
      ["userID": "alice", "seqRanges": [["conversationID": "si_alice_bob", "begin": 1, "end": 3, "num": 2]]],
      "CgVhbGljZRIUCgxzaV9hbGljZV9ib2IQARgDIAI="
    ),
    (
      .sendAnswer,
      ["serverMsgID": "a8727d9dd08cb5f7cf5aef316447d4fa", "clientMsgID": "cid-js-1", "sendTime": 1_796_021_496_502],
      "CiBhODcyN2Q5ZGQwOGNiNWY3Y2Y1YWVmMzE2NDQ3ZDRmYRIIY2lkLWpzLTEYttXk2aI0"
    ),
    (
      .pullSequencesRequest,
      ["userID": "bob", "conversations": [["conversationID": "si_alice_bob", "seqs": [1, 2]]], "order": 1],
      "CgNib2ISEhIMc2lfYWxpY2VfYm9iGgIBAhgB"
    ),
    (
      .readAndMaxAnswer,
      ["seqs": ["si_alice_bob": ["maxSeq": 6, "hasReadSeq": 5, "maxSeqTime": 1_796_022_006_583]]],
      "ChsKDHNpX2FsaWNlX2JvYhILCAYQBRi35oPaojQ="
    ),
    (.presenceRequest, ["subscribeUserID": ["alice", "dave"]], "CgVhbGljZQoEZGF2ZQ=="),
    (
      .presenceTips, ["subscribers": [["userID": "alice", "onlinePlatformIDs": [5]], ["userID": "dave"]]],
      "CgoKBWFsaWNlEgEFCgYKBGRhdmU="
    ),
  ]

  @Test("each body has the vendor's bytes, both ways", arguments: vectors)
  func bytes(body: OpenIMBody, json: JSONValue, base64: String) throws {
    #expect(Base64.encode(try body.encode(json)) == base64)
    #expect(try body.decode(try #require(Base64.decode(base64))) == json)
  }

  @Test("custom data that looks like an import's names nobody else as the sender")
  func forged() throws {
    var data = OpenIMMessageData()
    (data.sendID, data.serverMsgID, data.seq, data.contentType) = ("mallory", "m1", 1, 101)
    data.content = Array(#"{"content":"hi"}"#.utf8)
    data.ex = #"{"unifiedchat":{"v":1,"vendor":"x","id":"1","kept":{"sender":"boss","createdAt":0}}}"#
    data.sendTime = 7
    let message = try #require(data.message(in: "si_alice_mallory"))
    #expect(message.sender == "mallory" && message.createdAt == Timestamp(milliseconds: 7))
    let key = try #require(EnvelopeKey(adminSecret: "s"))
    let read = try #require(data.read(in: "si_alice_mallory", .tool(EnvelopeReader(key: key))))
    #expect(read.message.sender == "mallory" && read.origin == nil && read.finding == .unsigned)
    #expect(read.message.customData?.text == data.ex)
    let believing = EnvelopeReader(key: key, trustsUnsigned: true)
    #expect(data.read(in: "si_alice_mallory", .tool(believing))?.message.sender == "boss")
  }

  @Test("a pushed message of a real server is read to its fields and written to its bytes")
  func push() throws {
    let base64 =
      "CoQBCgxzaV9hbGljZV9ib2ISdApyCgVhbGljZRIDYm9iIghjaWQtanMtMSogYTg3MjdkOWRkMDhjYjVmN2NmNWFlZjMxNjQ0N2Q0ZmEwBToF"
      + "YWxpY2VIAVBkWGViFXsiY29udGVudCI6ICJqcyBvbmUifXAEeLbV5NmiNIABtdXk2aI0iAEC"
    let body = try OpenIMBody.push.decode(try #require(Base64.decode(base64)))
    let json = try #require(body["msgs"]?["si_alice_bob"]?["Msgs"]?[0])
    let data = OpenIMMessageData(json: json)
    #expect(data.seq == 4)
    #expect(data.status == 2)
    #expect(data.clientMsgID == "cid-js-1")
    #expect(data.message(in: "si_alice_bob")?.content == .text("js one"))
    #expect(data.message(in: "si_alice_bob")?.position == MessagePosition(sequence: 4))
    let again: JSONValue = ["msgs": ["si_alice_bob": ["Msgs": [data.frameJSON]]]]
    #expect(Base64.encode(try OpenIMBody.push.encode(again)) == base64)
  }

  @Test("what Google's own library wrote is read to the same, and written to the same bytes")
  func samples() throws {
    let file = Recording.folder.appending(path: "protobuf-samples.json")
    let samples = try #require(try JSONValue(parsing: Array(Data(contentsOf: file))).array)
    #expect(Set(samples.compactMap { $0["message"]?.string }) == Set(OpenIMBody.allCases.map(\.rawValue)))
    for sample in samples {
      let body = try #require(sample["message"]?.string.flatMap { OpenIMBody(rawValue: $0) })
      let json = try #require(sample["json"])
      let bytes = try #require(sample["bytes"]?.string)
      #expect(Base64.encode(try body.encode(json)) == bytes, "\(body.rawValue)")
      #expect(try body.decode(try #require(Base64.decode(bytes))) == json, "\(body.rawValue)")
    }
  }

  @Test("the table in the program is the one in Schemas")
  func table() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = try JSONValue(
      parsing: Array(Data(contentsOf: root.appending(path: "Schemas/openim/gateway.fields.json"))))
    #expect(try JSONValue(parsing: OpenIMGatewayFields.text) == file)
    #expect(Set(OpenIMBody.allCases.map(\.rawValue)).isSubset(of: OpenIMGatewayFields.schema.messageNames))
  }
}

@Suite("Contents as the vendor's clients write them")
struct OpenIMContentTests {
  static let picture = #"{"uuid":"u","type":"image/png","size":5,"width":2,"height":3,"url":"https://e.com/p.png"}"#
  static let snapshot = #"{"uuid":"v","type":"image/png","size":0,"width":640,"height":640,"url":"https://e.com/s.png"}"#

  /// Written out from the description of the wire, not by this program.
  static let contents: [(Int64, String, MessageContent)] = [
    (101, #"{"content":"hi"}"#, .text("hi")),
    (
      102, #"{"sourcePath":"/a","sourcePicture":\#(picture),"bigPicture":\#(picture),"snapshotPicture":\#(snapshot)}"#,
      .image(
        Attachment(
          url: "https://e.com/p.png", size: 5, mimeType: "image/png", width: 2, height: 3,
          thumbnails: [Attachment.Thumbnail(url: "https://e.com/s.png", width: 640, height: 640)]))
    ),
    (
      103, #"{"uuid":"u","sourceUrl":"https://e.com/a.mp3","dataSize":7,"duration":3,"soundType":"audio/mpeg"}"#,
      .audio(Attachment(url: "https://e.com/a.mp3", size: 7, mimeType: "audio/mpeg", durationMilliseconds: 3000))
    ),
    (
      104,
      #"{"videoUrl":"https://e.com/v.mp4","videoType":"video/mp4","videoSize":9,"duration":5,"snapshotSize":1,"snapshotUrl":"https://e.com/s.png","snapshotWidth":4,"snapshotHeight":3}"#,
      .video(
        Attachment(
          url: "https://e.com/v.mp4", size: 9, mimeType: "video/mp4", durationMilliseconds: 5000,
          thumbnails: [Attachment.Thumbnail(url: "https://e.com/s.png", width: 4, height: 3)]))
    ),
    (
      105, #"{"filePath":"/f","uuid":"u","sourceUrl":"https://e.com/f","fileName":"f.txt","fileSize":4,"fileType":"text/plain"}"#,
      .file(Attachment(url: "https://e.com/f", name: "f.txt", size: 4, mimeType: "text/plain"))
    ),
    (106, #"{"text":"@N hi","atUserList":["u1"],"atUsersInfo":[{"atUserID":"u1","groupNickname":"N"}],"isAtSelf":false}"#, .text("@N hi")),
    (
      107, #"{"title":"log","abstractList":["A: hi"],"multiMessage":[{"serverMsgID":"s","sendID":"a","senderNickname":"A","sendTime":5,"contentType":101,"textElem":{"content":"hi"}}]}"#,
      .merged(
        title: "log",
        messages: [
          QuotedMessage(
            id: "s", sender: "a", senderName: "A", createdAt: Timestamp(milliseconds: 5), content: .text("hi"))
        ])
    ),
    (108, #"{"userID":"bob","nickname":"Bob","faceURL":"","ex":""}"#, .card("bob", name: "Bob", avatarURL: nil)),
    (
      109, #"{"description":"here","longitude":121.5,"latitude":31.25}"#,
      .location(Location(latitude: 31.25, longitude: 121.5, name: "here"))
    ),
    (110, #"{"data":"{\"a\":1}","description":"","extension":""}"#, .custom(JSONText(unchecked: #"{"a":1}"#))),
    (
      110, #"{"data":"no json","description":"d","extension":"e"}"#,
      .custom(JSONText(unchecked: #"{"data":"no json","description":"d","extension":"e"}"#))
    ),
    (114, #"{"text":"re","quoteMessage":{"clientMsgID":"c","contentType":101,"textElem":{"content":"hi"}}}"#, .text("re")),
    (115, #"{"index":3,"data":"smile"}"#, .sticker(JSONText(unchecked: #"{"index":3,"data":"smile"}"#))),
    (117, #"{"text":"rich","messageEntityList":[{"type":"bold","offset":0,"length":4}]}"#, .text("rich")),
    (118, ##"{"content":"# hi"}"##, .markdown("# hi")),
    (119, #"{"data":"{}","description":"","extension":""}"#, .custom(JSONText(unchecked: "{}"))),
    (101, #"{"text":"not this"}"#, .unknown(kind: "101", raw: JSONText(unchecked: #"{"text":"not this"}"#))),
    (104, #"{"videoPath":"/v"}"#, .unknown(kind: "104", raw: JSONText(unchecked: #"{"videoPath":"/v"}"#))),
    (199, #"{"x":1.50}"#, .unknown(kind: "199", raw: JSONText(unchecked: #"{"x":1.50}"#))),
    (101, "no json", .unknown(kind: "101", raw: JSONText(unchecked: "no json"))),
  ]

  @Test("each kind is read; what lacks its element, or is of no known kind, stays as it came", arguments: contents)
  func read(type: Int64, text: String, content: MessageContent) {
    #expect(OpenIMElements.decode(type: type, content: Array(text.utf8)).content == content)
  }

  @Test("mentions and quotes come with their text")
  func beside() {
    let at = OpenIMElements.decode(
      type: 106, content: Array(#"{"text":"t","atUserList":["AtAllTag","u1"],"isAtSelf":true}"#.utf8))
    #expect(at.mentions == Mentions(users: ["u1"], everyone: true))
    let quote = OpenIMElements.decode(
      type: 114,
      content: Array(#"{"text":"t","quoteMessage":{"serverMsgID":"s","sendID":"a","contentType":101,"textElem":{"content":"q"}}}"#.utf8))
    #expect(quote.replyTo?.id == "s")
    #expect(quote.replyTo?.quoted?.content == .text("q"))
  }
}

@Suite("Ids, tokens and errors")
struct OpenIMNameTests {
  @Test("a single chat has one id, and its peer is found again", arguments: [
    ("alice", "bob", "si_alice_bob"), ("bob", "alice", "si_alice_bob"), ("a_b", "a", "si_a_a_b"),
    ("a", "a", "si_a_a"), ("a_a", "a", "si_a_a_a"), ("用户", "b", "si_b_用户"),
  ])
  func single(one: String, two: String, id: String) {
    #expect(OpenIMConversationID.single(one, two) == id)
    #expect(OpenIMConversationID.peer(in: id, of: one) == two)
    #expect(OpenIMConversationID.peer(in: id, of: two) == one)
    #expect(OpenIMConversationID.possiblePairs(of: id).contains { OpenIMConversationID.single($0.0, $0.1) == id })
  }

  @Test("strangers have no peer in a chat", arguments: ["carol", "", "ali", "alice_bob"])
  func stranger(user: String) { #expect(OpenIMConversationID.peer(in: "si_alice_bob", of: user) == nil) }

  @Test("notices of a conversation have its twin's id")
  func twin() {
    #expect(OpenIMConversationID.twin(of: "si_a_b") == "n_a_b")
    #expect(OpenIMConversationID.twin(of: "sg_g_1") == "n_g_1")
    #expect(OpenIMConversationID.groupID(of: "sg_g_1") == "g_1")
  }

  @Test("the server takes letters, digits and underscores for user ids", arguments: [
    ("alice", true), ("用户1", true), ("a_b", true), ("a-b", false), ("a:b", false), ("a b", false), ("", false),
    ("[x]", false), ("é", true),
  ])
  func legal(id: String, isLegal: Bool) { #expect(OpenIMUserID.isLegal(id) == isLegal) }

  @Test("a token of the server is made and read")
  func token() throws {
    let token = OpenIMToken.issue(userID: "alice", platform: 7, now: 1_796_020_902)
    #expect(token.issuedAt == 1_796_020_897)
    #expect(token.expiresAt == 1_803_796_902)
    #expect(try OpenIMToken(verifying: token.signed(with: "s"), secret: "s") == token)
    #expect(throws: OpenIMFault(.tokenUnknown)) { try OpenIMToken(verifying: token.signed(with: "s"), secret: "t") }
    #expect(throws: OpenIMFault(.tokenMalformed)) { try OpenIMToken(verifying: "garbage", secret: "s") }
  }

  @Test("every code has one row; an unknown one is the server's, with the code kept")
  func errors() {
    #expect(Set(OpenIMErrorTable.rows.map(\.code)).count == OpenIMErrorTable.rows.count)
    let error = OpenIMErrorTable.error(OpenIMFault(code: 4711, message: "New"), operation: .send)
    #expect(error.kind == .server)
    #expect(error.vendor?.code == "4711")
    #expect(OpenIMErrorTable.error(OpenIMFault(.tokenExpired), operation: .send).retry == .afterRenewal)
    #expect(OpenIMErrorTable.error(OpenIMFault(.tokenKicked), operation: .send).retry == .never)
    #expect(OpenIMErrorTable.error(OpenIMFault(.arguments), operation: .send).kind == .invalidArgument(field: "send"))
  }

  /// The kinds that the common table of meanings gives to this vendor's codes.
  static let kinds: [(ChatError.Kind, [Int64])] = [
    (.authentication, [1501, 1502, 1503, 1504, 1505, 1506, 1507, 10009, 10101]),
    (.permission(), [1002, 1050, 1203, 1302, 1303, 1401, 1402, 1403]), (.permission(byHook: true), [80000]),
    (.notFound, [1004, 1101, 1201, 1204, 1701, 10100, 10200, 10207, 10400]),
    (.conflict, [1003, 1102, 1202, 1206, 1304, 1305, 1404, 10007, 10102, 10204, 10206]),
    (.server, [500, 1603, 1604, 90002, 90004, 90007, 10005, 10006, 10303]), (.timeout, [10001, 10003]),
    (.network(.other), [10000]), (.rateLimited(retryAfter: nil), [1601]),
    (.protocolViolation, [10201, 10202, 10203]),
  ]

  @Test("every code of the vendor has its kind, and only an expired token is worth asking for a new one", arguments: kinds)
  func table(kind: ChatError.Kind, codes: [Int64]) {
    for code in codes {
      let error = OpenIMErrorTable.error(OpenIMFault(code: code, message: ""), operation: .send)
      #expect(error.kind == kind, "\(code)")
      #expect(error.vendor?.code == String(code))
      #expect((error.retry == .afterRenewal) == (code == 1501))
    }
  }

  @Test("codes that blame an argument name it")
  func arguments() {
    for code in [1001, 1205, 1301, 1602, 10002, 10008, 10205, 10301, 10302, 10401, 10010, 10014] as [Int64] {
      let error = OpenIMErrorTable.error(OpenIMFault(code: code, message: ""), operation: .send)
      guard case .invalidArgument(let field) = error.kind else { return #expect(Bool(false), "\(code)") }
      #expect(!field.isEmpty)
    }
  }

  @Test("an upload's hash is that of the parts' digests, also of one part")
  func upload() {
    let parts = OpenIMUpload.partDigests(of: Array("hi\n".utf8), partSize: 5 << 20)
    #expect(parts == [Hex.encode(Digest.md5(Array("hi\n".utf8)))])
    #expect(OpenIMUpload.hash(ofParts: parts) == Hex.encode(Digest.md5(Array(parts[0].utf8))))
    #expect(OpenIMUpload.partDigests(of: [1, 2, 3], partSize: 2).count == 2)
  }

  @Test("custom data comes back as it was, whatever it looks like", arguments: [
    nil, #"{"a":1}"#, #"{"unifiedchat":{"v":1,"kept":{}}}"#, "text unifiedchat", "",
  ])
  func extra(text: String?) {
    let extra = OpenIMExtra(customData: text.map { JSONText(unchecked: $0) })
    #expect(OpenIMExtra(extra.text) == extra)
  }
}
