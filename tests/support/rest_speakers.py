"""Speakers of REST: the same story told by verbs and paths. Their answers come back in the shape that chapters know."""

import json
from base64 import b64encode
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote, urlencode
from uuid import uuid4

from tests.support.descriptions import rest_description
from tests.support.doors import Reply
from tests.support.rpc_speakers import NewSpeaker, OldSpeaker
from tests.support.speaker import Frame, Json, Speaker

ROUTES = {
    "send": ("POST", "/message:send"),
    "stream": ("POST", "/message:stream"),
    "get": ("GET", "/tasks/{id}"),
    "list": ("GET", "/tasks"),
    "cancel": ("POST", "/tasks/{id}:cancel"),
    "subscribe": ("POST", "/tasks/{id}:subscribe"),
    "push": ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
    "pushed": ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "pushes": ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "unpush": ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "card": ("GET", "/extendedAgentCard"),
    "nope": ("POST", "/message:nope"),
}
CODES = {
    "INVALID_REQUEST": (400, "INVALID_ARGUMENT", -32600),
    "METHOD_NOT_FOUND": (404, "NOT_FOUND", -32601),
    "INVALID_PARAMS": (400, "INVALID_ARGUMENT", -32602),
    "IDEMPOTENCY_CONFLICT": (400, "INVALID_ARGUMENT", -32602),
    "TASK_NOT_FOUND": (404, "NOT_FOUND", -32001),
    "TASK_NOT_CANCELABLE": (400, "FAILED_PRECONDITION", -32002),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": (400, "FAILED_PRECONDITION", -32003),
    "CONTENT_TYPE_NOT_SUPPORTED": (400, "INVALID_ARGUMENT", -32005),
    "UNSUPPORTED_OPERATION": (400, "FAILED_PRECONDITION", -32004),
    "VERSION_NOT_SUPPORTED": (400, "FAILED_PRECONDITION", -32009),
    "BUDGET_EXCEEDED": (402, "FAILED_PRECONDITION", -38006),
    "UNAUTHENTICATED": (401, "UNAUTHENTICATED", -38009),
}
"""The HTTP status and gRPC name of each error of the story, and its number in JSON-RPC."""


class WithoutEnvelope(Speaker):
    """A speaker without an envelope, as in all versions of REST."""

    has_envelope = False
    other_version_code = -32009
    error_is_list = True
    traits = frozenset({"card", "versions"})
    nothing: ClassVar[Any] = {}
    deliveries_are_answers = False
    prefix = ""

    def request_of(self, wire: Json) -> tuple[str, str, bytes]:
        """Return path and body: members named in the path leave the body, and a GET has its members in the query."""
        verb, template = ROUTES[wire["method"]]
        params = dict(wire["params"])
        named = {name: quote(params.pop(name), safe="") for name in ("id", "taskId") if f"{{{name}}}" in template}
        path = self.prefix + template.format(**named)
        if verb == "GET":
            told = {name: json.dumps(value) if isinstance(value, bool) else value for name, value in params.items()}
            return verb, f"{path}?{urlencode(told)}" if told else path, b""
        return verb, path, json.dumps(params).encode() if params else b""

    def check_answer(self, wire: Any, answer: Any, headers: dict[str, str], reply: Reply) -> None:
        verb, path, body = self.request_of(wire)
        description, media = rest_description(), reply.headers["content-type"]
        if media == "text/event-stream":
            description.check_event(verb, path, answer)
        else:
            description.check_answer(verb, path, reply.status, media, answer)
        if reply.status == 200:
            description.check_body(verb, path, body)

    def answer_of(self, status: int, answer: Any, wire: Any) -> Any:
        envelope = {"jsonrpc": "2.0", "id": wire["id"]}
        if status == 200:
            return envelope | {"result": self.result(answer, wire)}
        error = answer["error"]
        info = error["details"][0]
        assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
        assert info["domain"] == "a2a-protocol.org"
        http, name, code = CODES[info["reason"]]
        assert (status, error["code"], error["status"]) == (http, http, name)
        self.is_error(answer, code)
        # For a path that does not exist, a hint follows the sentence.
        message = error["message"].partition(": there is nothing")[0]
        return envelope | {"error": {"code": code, "message": message, "data": error["details"]}}

    def is_error(self, answer: Json, code: int) -> None:
        assert set(answer) == {"error"}

    def result(self, answer: Any, wire: Json) -> Any:
        return answer

    def event_of(self, answer: Json, wire: Json) -> Json:
        result: Json = self.result(answer, wire)
        return result


@dataclass(kw_only=True)
class RestSpeaker(WithoutEnvelope, NewSpeaker):
    """A2A 1.0."""

    media = "application/a2a+json"

    def __post_init__(self) -> None:
        self.names = {}


@dataclass(kw_only=True)
class OldRestSpeaker(WithoutEnvelope, OldSpeaker):
    """A2A 0.3 in the JSON of its protobuf."""

    prefix = "/v1"
    tells_zero = False
    webhook_name = "pushNotification"

    def __post_init__(self) -> None:
        self.names = {}

    def message(self, text: str, *, id: str | None = None, task: str | None = None, context: str | None = None) -> Json:
        found: Json = {"messageId": id or str(uuid4()), "role": "ROLE_USER", "content": [{"text": text}]}
        return found | ({"taskId": task} if task else {}) | ({"contextId": context} if context else {})

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        file = {"fileWithBytes": b64encode(content).decode(), "mimeType": media_type, "name": name}
        return self.message("") | {"content": [{"file": file}]}

    def data(self, value: Json) -> Json:
        return {"data": {"data": value}}

    def link(self, url: str) -> Json:
        return {"file": {"fileWithUri": url}}

    def request_of(self, wire: Json) -> tuple[str, str, bytes]:
        verb, path, body = super().request_of(wire)
        return verb, path.replace("/extendedAgentCard", "/card"), body

    def is_error(self, answer: Json, code: int) -> None:
        assert answer["code"] == code
        assert answer["message"] == answer["error"]["message"]
        assert answer["type"].endswith("Error")

    def result(self, answer: Any, wire: Json) -> Any:
        is_proto(answer)
        return plain(answer)

    def webhook_of(self, task: str, url: str, **more: Any) -> Json:
        return {"taskId": task, "config": {"pushNotificationConfig": self.webhook(url, **more)}}

    def webhook_id(self, task: str, id: str | None = None) -> Json:
        return {"taskId": task} | ({"id": id} if id else {})

    def webhooks(self, result: Any) -> list[tuple[str, Json]]:
        found = result.get("configs", [result] if result else [])
        tasks = [one.get("taskId") or one["name"].split("/")[1] for one in found]
        return [(task, one["pushNotificationConfig"]) for task, one in zip(tasks, found, strict=True)]

    def is_task(self, task: Json) -> None:
        Speaker.is_task(self, task)
        assert {said["role"] for said in task.get("history", ())} <= {"user", "agent"}

    def sent(self, result: Json) -> tuple[str, Json]:
        ((kind, value),) = result.items()
        return kind, value

    def frame(self, seq: int | None, result: Json) -> Frame:
        ((kind, value),) = result.items()
        if kind == "statusUpdate":
            ends = {"completed", "failed", "canceled", "rejected", "input-required"}
            assert value.get("final", False) is (value["status"]["state"] in ends)
        return Frame(seq, {"statusUpdate": "status", "artifactUpdate": "artifact"}.get(kind, kind), value, result)


@dataclass(kw_only=True)
class KindRestSpeaker(OldRestSpeaker):
    """A2A 0.3 in the JSON of its text: what it sends is answered alike, what has no body in the other one."""

    tells_zero = True
    webhook_name = "pushNotificationConfig"

    def webhook_of(self, task: str, url: str, **more: Any) -> Json:
        return {"taskId": task, "config": self.webhook(url, **more)}

    def message(self, text: str, **more: Any) -> Json:
        return OldSpeaker.message(self, text, **more)

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        return OldSpeaker.attaching(self, content, media_type, name)

    def data(self, value: Json) -> Json:
        return OldSpeaker.data(self, value)

    def link(self, url: str) -> Json:
        return OldSpeaker.link(self, url)

    def result(self, answer: Any, wire: Json) -> Any:
        if wire["method"] in {"send", "stream"}:
            has_kind(answer)
        else:
            is_proto(answer)
        return plain(answer)


def is_proto(value: Any) -> None:
    """No tag, no name of the other JSON."""
    for found in objects(value):
        assert "kind" not in found
        assert str(found.get("state", "TASK_STATE_")).startswith("TASK_STATE_")
        if "messageId" in found:
            assert found["role"].startswith("ROLE_")
            assert "parts" not in found
            assert found["content"]


def has_kind(value: Any) -> None:
    ((name, inner),) = value.items()
    tags = {"statusUpdate": "status-update", "artifactUpdate": "artifact-update"}
    assert inner["kind"] == tags.get(name, name)
    for found in objects(value):
        assert not str(found.get("state", "")).startswith("TASK_STATE_")
        if "messageId" in found:
            assert found["kind"] == "message"
            assert {part["kind"] for part in found["parts"]} <= {"text", "file", "data"}


def objects(value: Any) -> list[Json]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if isinstance(value, dict) else []) + [found for child in inner for found in objects(child)]


def plain(value: Any) -> Any:
    """Return a value alike for both kinds of JSON: that of the protobuf leaves out what is false or empty."""
    if isinstance(value, list):
        return [plain(child) for child in value]
    if not isinstance(value, dict):
        return value
    shown = {name: child for name, child in value.items() if name != "kind" and child is not False and child != {}}
    found = {name: plain(child) for name, child in shown.items()}
    if "content" in found:
        found["parts"] = found.pop("content")
    if "state" in found:
        state = found["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
        found["state"] = "canceled" if state == "cancelled" else state
    if "role" in found:
        found["role"] = found["role"].removeprefix("ROLE_").lower()
    return found
