"""The migration that a competent user would write: LeanCloud to Sendbird or OpenIM, over the vendors' REST.

Keep-alive connections (`requests.Session`; `http.client`, which is faster, where that is not installed), eight threads,
the largest pages and batches that the vendors take, everything in memory, no restart, no verification. Reads one JSON
object from standard input and prints one.
"""

import http.client
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode, urlsplit

try:
    import requests
except ImportError:
    requests = None

THREADS = 8
local = threading.local()


class Service:
    def __init__(self, url, headers):
        self.host = urlsplit(url).netloc
        self.url = url.rstrip("/")
        self.headers = {"Content-Type": "application/json", **headers}
        self.call = self.call_plain if requests is None else self.call_session

    def call_session(self, method, path, body=None, query=None):
        if not hasattr(local, "session"):
            local.session = requests.Session()
        response = local.session.request(method, self.url + path, params=query, json=body, headers=self.headers)
        if response.status_code >= 300:
            raise RuntimeError(f"{method} {path}: {response.status_code} {response.text[:200]!r}")
        return response.json() if response.content else {}

    def call_plain(self, method, path, body=None, query=None):
        if not hasattr(local, "connections"):
            local.connections = {}
        connection = local.connections.get(self.host)
        if connection is None:
            connection = http.client.HTTPConnection(self.host)
            local.connections[self.host] = connection
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        target = path + ("?" + urlencode(query) if query else "")
        connection.request(method, target, data, self.headers)
        response = connection.getresponse()
        payload = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {payload[:200]!r}")
        return json.loads(payload) if payload else {}


def read_channels(source):
    channels = []
    while True:
        where = json.dumps({"objectId": {"$gt": channels[-1]["objectId"]}} if channels else {})
        page = source.call(
            "GET", "/1.1/classes/_Conversation", query={"limit": 1000, "order": "objectId", "where": where}
        )["results"]
        channels += page
        if not page:
            return channels


def read_messages(source, channel):
    path = f"/1.2/rtm/conversations/{channel}/messages"
    messages = []
    query = {"limit": 1000, "reversed": "true"}
    while True:
        page = source.call("GET", path, query=query)
        if not page:
            return messages
        messages += page
        query.update(timestamp=page[-1]["timestamp"], msgid=page[-1]["msg-id"])


def text_of(message):
    try:
        body = json.loads(message["data"])
        return body.get("_lctext", message["data"]) if isinstance(body, dict) else message["data"]
    except ValueError:
        return message["data"]


class Sendbird:
    batch = 100

    def __init__(self, target):
        self.service = Service(target["url"], {"Api-Token": target["secret"]})

    def put_users(self, users, pool):
        def put(user):
            self.service.call("POST", "/v3/users", {"user_id": user, "nickname": user, "profile_url": ""})

        list(pool.map(put, users))

    def put_channel(self, channel, members):
        body = {"channel_url": channel["objectId"], "name": channel.get("name", ""), "user_ids": members[:100]}
        if len(members) > 100:
            body["is_super"] = True
        self.service.call("POST", "/v3/group_channels", body)
        for start in range(100, len(members), 100):
            self.service.call(
                "POST", f"/v3/group_channels/{channel['objectId']}/invite", {"user_ids": members[start : start + 100]}
            )

    def put_messages(self, channel, messages):
        for start in range(0, len(messages), self.batch):
            items = [
                {
                    "message_type": "MESG",
                    "user_id": m["from"],
                    "timestamp": m["timestamp"],
                    "message": text_of(m),
                    "dedup_id": m["msg-id"],
                }
                for m in messages[start : start + self.batch]
            ]
            self.service.call("POST", f"/v3/migration/{quote(channel)}", {"messages": items})


class OpenIM:
    def __init__(self, target):
        service = Service(target["url"], {"operationID": "peer"})
        token = service.call(
            "POST", "/auth/get_admin_token", {"secret": target["secret"], "userID": "imAdmin"}
        )["data"]["token"]
        self.service = Service(target["url"], {"operationID": "peer", "token": token})

    def post(self, path, body):
        answer = self.service.call("POST", path, body)
        if answer.get("errCode", 0) != 0:
            raise RuntimeError(f"{path}: {answer}")
        return answer.get("data")

    def put_users(self, users, pool):
        parts = [users[start : start + 1000] for start in range(0, len(users), 1000)]

        def put(part):
            self.post("/user/user_register", {"users": [{"userID": u, "nickname": u, "faceURL": ""} for u in part]})

        list(pool.map(put, parts))

    def put_channel(self, channel, members):
        self.post(
            "/group/create_group",
            {
                "ownerUserID": members[0],
                "adminUserIDs": [],
                "memberUserIDs": members[1:],
                "groupInfo": {
                    "groupID": channel["objectId"],
                    "groupName": channel.get("name", ""),
                    "groupType": 2,
                },
            },
        )

    def put_messages(self, channel, messages):
        for m in messages:
            self.post(
                "/msg/send_msg",
                {
                    "sendID": m["from"],
                    "recvID": "",
                    "groupID": channel,
                    "senderPlatformID": 10,
                    "content": {"content": text_of(m)},
                    "contentType": 101,
                    "sessionType": 3,
                    "isOnlineOnly": False,
                    "notOfflinePush": True,
                    "sendTime": m["timestamp"],
                },
            )


def main():
    plan = json.load(sys.stdin)
    start = time.monotonic()
    source = Service(
        plan["source"]["url"],
        {"X-LC-Id": plan["source"]["app"], "X-LC-Key": plan["source"]["secret"] + ",master"},
    )
    target = {"sendbird": Sendbird, "openim": OpenIM}[plan["target"]["vendor"]](plan["target"])
    with ThreadPoolExecutor(THREADS) as pool:
        channels = read_channels(source)
        histories = list(pool.map(lambda c: read_messages(source, c["objectId"]), channels))
        users = {m["from"] for history in histories for m in history}
        for channel in channels:
            users.update(channel.get("m", []))
        target.put_users(sorted(users), pool)

        def move(pair):
            channel, history = pair
            members = list(dict.fromkeys(channel.get("m", []) + [m["from"] for m in history]))
            target.put_channel(channel, members)
            target.put_messages(channel["objectId"], history)
            return len(history)

        count = sum(pool.map(move, zip(channels, histories)))
    client = "http.client" if requests is None else "requests"
    print(json.dumps({"messages": count, "seconds": time.monotonic() - start, "client": client}))


main()
