"""Writes protobuf-samples.json: bodies of the gateway as Google's own protobuf library writes them.

The messages are declared here a second time, from the wire reference and not from Schemas/openim, so that a slip in one
of both declarations makes the test fail.

Usage: protobuf_samples.py > protobuf-samples.json   (needs the package `protobuf`)
"""

import base64
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

# name: number type; a star is a list, {T} a map from texts to T.
DECLARATIONS = """
MsgData 1 sendID s, 2 recvID s, 3 groupID s, 4 clientMsgID s, 5 serverMsgID s, 6 senderPlatformID i32, 7 senderNickname s, 8 senderFaceURL s, 9 sessionType i32, 10 msgFrom i32, 11 contentType i32, 12 content bytes, 14 seq i64, 15 sendTime i64, 16 createTime i64, 17 status i32, 18 isRead bool, 19 options {bool}, 20 offlinePushInfo OfflinePushInfo, 21 atUserIDList *s, 22 attachedInfo s, 23 ex s
OfflinePushInfo 1 title s, 2 desc s, 3 ex s, 4 iOSPushSound s, 5 iOSBadgeCount bool, 6 signalInfo s
SendMsgResp 1 serverMsgID s, 2 clientMsgID s, 3 sendTime i64, 4 modify MsgData
GetMaxSeqReq 1 userID s
GetMaxSeqResp 1 maxSeqs {i64}, 2 minSeqs {i64}
SeqRange 1 conversationID s, 2 begin i64, 3 end i64, 4 num i64
PullMessageBySeqsReq 1 userID s, 2 seqRanges *SeqRange, 3 order enum
PullMsgs 1 Msgs *MsgData, 2 isEnd bool, 3 endSeq i64
PullMessageBySeqsResp 1 msgs {PullMsgs}, 2 notificationMsgs {PullMsgs}
PushMessages 1 msgs {PullMsgs}, 2 notificationMsgs {PullMsgs}
ConversationSeqs 2 conversationID s, 3 seqs *i64
GetSeqMessageReq 1 userID s, 2 conversations *ConversationSeqs, 3 order enum
GetSeqMessageResp 1 msgs {PullMsgs}, 2 notificationMsgs {PullMsgs}
GetConversationsHasReadAndMaxSeqReq 1 userID s, 2 conversationIDs *s, 3 returnPinned bool
Seqs 1 maxSeq i64, 2 hasReadSeq i64, 3 maxSeqTime i64
GetConversationsHasReadAndMaxSeqResp 1 seqs {Seqs}, 2 pinnedConversationIDs *s
GetLastMessageReq 1 userID s, 2 conversationIDs *s
GetLastMessageResp 1 msgs {MsgData}
SetAppBackgroundStatusReq 1 userID s, 2 isBackground bool
DelUserPushTokenReq 1 userID s, 2 platformID i32
SubUserOnlineStatus 1 subscribeUserID *s, 2 unsubscribeUserID *s
SubUserOnlineStatusElem 1 userID s, 2 onlinePlatformIDs *i32
SubUserOnlineStatusTips 1 subscribers *SubUserOnlineStatusElem
"""

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {"s": Field.TYPE_STRING, "i32": Field.TYPE_INT32, "i64": Field.TYPE_INT64, "bool": Field.TYPE_BOOL,
           "bytes": Field.TYPE_BYTES}


def set_type(field, kind):
    if kind in SCALARS:
        field.type = SCALARS[kind]
    elif kind == "enum":
        field.type, field.type_name = Field.TYPE_ENUM, ".s.PullOrder"
    else:
        field.type, field.type_name = Field.TYPE_MESSAGE, ".s." + kind


def declare():
    file = descriptor_pb2.FileDescriptorProto(name="s.proto", package="s", syntax="proto3")
    order = file.enum_type.add(name="PullOrder")
    order.value.add(name="PullOrderAsc", number=0)
    order.value.add(name="PullOrderDesc", number=1)
    for line in DECLARATIONS.strip().splitlines():
        name, rest = line.split(" ", 1)
        message = file.message_type.add(name=name)
        for part in rest.split(", "):
            number, field_name, kind = part.split(" ")
            field = message.field.add(name=field_name, number=int(number), json_name=field_name, label=1)
            if kind.startswith("{"):
                entry_name = field_name[0].upper() + field_name[1:] + "Entry"
                entry = message.nested_type.add(name=entry_name)
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=1)
                set_type(entry.field.add(name="value", number=2, label=1), kind[1:-1])
                field.label, field.type = 3, Field.TYPE_MESSAGE
                field.type_name = f".s.{name}.{entry_name}"
            else:
                if kind.startswith("*"):
                    field.label = 3
                set_type(field, kind.lstrip("*"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def text(value):
    return base64.b64encode(value.encode()).decode()


MESSAGE = {
    "sendID": "alice", "recvID": "用户_1", "clientMsgID": "c-1", "serverMsgID": "0" * 32, "senderPlatformID": 5,
    "senderNickname": "Älice 👋🏽", "sessionType": 1, "msgFrom": 100, "contentType": 101, "content": text('{"content":"hi"}'),
    "seq": 300, "sendTime": 1796021496502, "createTime": 1796021496501, "status": 2, "isRead": True,
}
WHOLE = dict(
    MESSAGE, groupID="g", senderFaceURL="https://e.com/f", options={"history": False, "unreadCount": True},
    offlinePushInfo={"title": "t", "desc": "d", "ex": "e", "iOSPushSound": "s", "iOSBadgeCount": True, "signalInfo": "i"},
    atUserIDList=["AtAllTag", "bob"], attachedInfo="null", ex='{"a":1}')
PULLED = {"si_a_b": {"Msgs": [MESSAGE, {"seq": 2, "status": 4}], "isEnd": True, "endSeq": 9}}

SAMPLES = [
    ("MsgData", {}), ("MsgData", MESSAGE), ("MsgData", WHOLE),
    ("MsgData", {"sendTime": -1, "createTime": -(2**63), "seq": 2**63 - 1, "status": -(2**31), "contentType": 2**31 - 1}),
    ("MsgData", {"content": base64.b64encode(bytes(range(256))).decode()}),
    ("SendMsgResp", {"serverMsgID": "s", "clientMsgID": "c", "sendTime": 1}),
    ("SendMsgResp", {"serverMsgID": "s", "modify": MESSAGE}),
    ("GetMaxSeqReq", {"userID": "alice"}),
    ("GetMaxSeqResp", {"maxSeqs": {"n_a_b": 1, "sg_g": 2**40, "si_a_b": 3}, "minSeqs": {"si_a_b": 2}}),
    ("GetMaxSeqResp", {}),
    ("PullMessageBySeqsReq", {"userID": "a", "seqRanges": [
        {"conversationID": "si_a_b", "begin": 1, "end": 2**40, "num": 10}, {"conversationID": "n_a_a"}], "order": 1}),
    ("PullMessageBySeqsResp", {"msgs": PULLED, "notificationMsgs": {"n_a_b": {"Msgs": [WHOLE]}}}),
    ("PushMessages", {"msgs": PULLED}), ("PushMessages", {"notificationMsgs": {"n_a_a": {}}}),
    ("GetSeqMessageReq", {"userID": "b", "conversations": [
        {"conversationID": "si_a_b", "seqs": [1, 127, 128, 2**40]}, {"conversationID": "sg_g"}], "order": 1}),
    ("GetSeqMessageResp", {"msgs": PULLED}),
    ("GetConversationsHasReadAndMaxSeqReq", {"userID": "a", "conversationIDs": ["si_a_b", "sg_g"], "returnPinned": True}),
    ("GetConversationsHasReadAndMaxSeqResp", {"seqs": {
        "sg_g": {"maxSeq": 1}, "si_a_b": {"maxSeq": 6, "hasReadSeq": 5, "maxSeqTime": 1796022006583}},
        "pinnedConversationIDs": ["sg_g"]}),
    ("GetLastMessageReq", {"userID": "a", "conversationIDs": ["si_a_b"]}),
    ("GetLastMessageResp", {"msgs": {"si_a_b": MESSAGE}}),
    ("SetAppBackgroundStatusReq", {"userID": "a", "isBackground": True}),
    ("DelUserPushTokenReq", {"userID": "a", "platformID": 1}),
    ("SubUserOnlineStatus", {"subscribeUserID": ["a", "b"], "unsubscribeUserID": ["c"]}),
    ("SubUserOnlineStatusTips", {"subscribers": [{"userID": "a", "onlinePlatformIDs": [1, 5]}, {"userID": "b"}]}),
]


def main():
    pool = declare()
    lines = []
    for name, body in SAMPLES:
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("s." + name))
        message = json_format.ParseDict(body, kind())
        data = message.SerializeToString(deterministic=True)
        lines.append(json.dumps(
            {"message": name, "json": body, "bytes": base64.b64encode(data).decode()}, ensure_ascii=False))
    sys.stdout.write("[\n  " + ",\n  ".join(lines) + "\n]\n")


main()
