"""A stand-in for Slack on loopback: its Web API, its files, and events that are signed as Slack signs them.

It keeps threads of messages, answers as it is told, and counts what it was asked.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import httpx
from slack_sdk.signature import SignatureVerifier

Json = dict[str, Any]
TEAM, CHANNEL, USER, BOT_USER, BOT = "T0TASKDESK", "C0GENERAL", "U0ASKER", "U0BOT", "B0BOT"
TOKEN = "xoxb-1234567890-abcdefghijkl"
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


class Answer(NamedTuple):
    """One answer of the Web API. Without a body the method does its work first."""

    status: int = 200
    body: Json | None = None
    headers: tuple[tuple[str, str], ...] = ()
    does: bool = False
    """Whether the method does its work all the same, so that only its answer is lost."""


class Slack(ThreadingHTTPServer):
    """A workspace with channels and their messages."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.messages: list[Json] = []
        self.calls: list[tuple[str, Json, float]] = []
        self.tokens: Counter[str] = Counter()
        self.script: dict[str, list[Answer]] = {}
        """The next answers of each method."""
        self.away: Answer | None = None
        """The answer to every call while Slack is away."""
        self.gates: dict[str, threading.Event] = {}
        """Methods that do their work at once, and answer when their gate is open."""
        self.files: dict[str, Answer | bytes] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/"

    def file_url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/files/{name}"

    def texts(self, channel: str = CHANNEL) -> list[str]:
        """Return the texts of the messages of the bot, in their order."""
        with self.lock:
            return [message["text"] for message in self.messages if message["channel"] == channel]

    def methods(self) -> list[str]:
        with self.lock:
            return [method for method, _, _ in self.calls]

    def count(self, method: str) -> int:
        return self.methods().count(method)

    def say(self, method: str, body: Json) -> Json:
        """Do the work of a method, and return its answer."""
        match method:
            case "auth.test":
                return {"ok": True, "team": "Taskdesk", "team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT}
            case "chat.postMessage":
                ts = f"1700000000.{len(self.messages) + 1:06}"
                metadata = json.loads(body.get("metadata", "null"))
                self.messages.append({**body, "ts": ts, "metadata": metadata, "edits": 0})
                return {"ok": True, "channel": body["channel"], "ts": ts}
            case "chat.update":
                found = [
                    each for each in self.messages if (each["channel"], each["ts"]) == (body["channel"], body["ts"])
                ]
                if not found:
                    return {"ok": False, "error": "message_not_found"}
                if len(body["text"]) > 4_000:
                    return {"ok": False, "error": "msg_too_long"}
                found[0].update(text=body["text"], edits=found[0]["edits"] + 1)
                return {"ok": True, "channel": body["channel"], "ts": body["ts"]}
            case "conversations.replies":
                place = (body["channel"], body["ts"])
                thread = [each for each in self.messages if (each["channel"], each.get("thread_ts")) == place]
                return {"ok": True, "messages": thread, "has_more": False}
        return {"ok": False, "error": "unknown_method"}


class _Handler(BaseHTTPRequestHandler):
    server: Slack

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body: Json = dict(parse_qsl(self.rfile.read(length).decode(), keep_blank_values=True))
        method = self.path.removeprefix("/api/")
        with self.server.lock:
            self.server.calls.append((method, body, time.monotonic()))
            self.server.tokens[self.headers.get("Authorization", "")] += 1
            script = self.server.script.get(method)
            answer = script.pop(0) if script else self.server.away or Answer(does=True)
            done = self.server.say(method, body) if answer.does else {}
        if gate := self.server.gates.get(method):
            gate.wait(60)
        self._send(answer.status, json.dumps(done if answer.body is None else answer.body).encode(), answer.headers)

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.calls.append(("file", {"path": self.path}, time.monotonic()))
            self.server.tokens[self.headers.get("Authorization", "")] += 1
        content = self.server.files.get(self.path.removeprefix("/files/"), Answer(404))
        if isinstance(content, bytes):
            self._send(200, content, (("Content-Type", "application/octet-stream"),))
        else:
            self._send(content.status, b"", content.headers)

    def _send(self, status: int, body: bytes, headers: tuple[tuple[str, str], ...]) -> None:
        try:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # Its caller was killed.

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def slack() -> Iterator[Slack]:
    """Run the stand-in."""
    server = Slack()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        for gate in server.gates.values():
            gate.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


def mention(text: str = "hello", *, event_id: str = "Ev1", ts: str = "1700000000.000100", **more: Any) -> Json:
    """Return an event in which a user mentions the bot in a channel."""
    event = {"type": "app_mention", "user": USER, "text": f"<@{BOT_USER}> {text}", "ts": ts, "channel": CHANNEL}
    return callback(event | more, event_id)


def direct(text: str = "hello", *, event_id: str = "Ev1", ts: str = "1700000000.000100", **more: Any) -> Json:
    """Return an event in which a user writes to the bot directly."""
    event = {"type": "message", "channel_type": "im", "user": USER, "text": text, "ts": ts, "channel": "D0DIRECT"}
    return callback(event | more, event_id)


def callback(event: Json, event_id: str) -> Json:
    return {
        "token": "legacy-verification-token",
        "team_id": TEAM,
        "api_app_id": "A0APP",
        "event": {name: value for name, value in event.items() if value is not None},
        "type": "event_callback",
        "event_id": event_id,
        "event_time": 1700000000,
        "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
    }


def signed(body: bytes, secret: str = SECRET, at: float | None = None) -> dict[str, str]:
    """Return the headers of a request of Slack, made by its own library."""
    timestamp = str(int(time.time() if at is None else at))
    signature = SignatureVerifier(secret).generate_signature(timestamp=timestamp, body=body)
    return {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": str(signature),
    }


def send(url: str, payload: Json, secret: str = SECRET, **headers: str) -> httpx.Response:
    """Send an event to a server."""
    body = json.dumps(payload).encode()
    return httpx.post(f"{url}/slack/events", content=body, headers=signed(body, secret) | headers, timeout=20)
