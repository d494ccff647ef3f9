"""Speakers of JSON-RPC: A2A 1.0 and 0.x."""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import uuid4

from tests.support.descriptions import rpc_description
from tests.support.speaker import Frame, Json, Speaker


@dataclass(kw_only=True)
class NewSpeaker(Speaker):
    """A2A 1.0."""

    names: dict[str, str] = field(
        default_factory=lambda: {
            "send": "SendMessage",
            "stream": "SendStreamingMessage",
            "get": "GetTask",
            "list": "ListTasks",
            "cancel": "CancelTask",
            "subscribe": "SubscribeToTask",
            "push": "CreateTaskPushNotificationConfig",
            "pushed": "GetTaskPushNotificationConfig",
            "pushes": "ListTaskPushNotificationConfigs",
            "unpush": "DeleteTaskPushNotificationConfig",
            "card": "GetExtendedAgentCard",
        }
    )
    error_is_list = True
    traits = frozenset({"batch", "card", "extensions", "tenants", "versions"})
    versions = frozenset({"1.0", "1.0.1", ""})

    def is_card(self, card: Json) -> None:
        assert card["capabilities"]["extendedAgentCard"] is True
        assert card["supportedInterfaces"][0]["url"].endswith("/jsonrpc")

    def delivered(self, media: str, body: Json) -> str:
        assert media == "application/a2a+json"
        rpc_description("rpc", "1.0").check_answer("SubscribeToTask", {"result": body})
        ((kind, value),) = body.items()
        return str(value["id"] if kind == "task" else value["taskId"])

    def message(self, text: str, *, id: str | None = None, task: str | None = None, context: str | None = None) -> Json:
        found: Json = {"messageId": id or str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
        return found | ({"taskId": task} if task else {}) | ({"contextId": context} if context else {})

    def configuration(self, *, now: bool, history: int | None) -> Json:
        return {"returnImmediately": now, "historyLength": history}

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        part = {"raw": b64encode(content).decode(), "mediaType": media_type, "filename": name}
        return self.message("") | {"parts": [part]}

    def data(self, value: Json) -> Json:
        return {"data": value}

    def link(self, url: str) -> Json:
        return {"url": url}

    def state(self, status: Json) -> str:
        assert status["state"].startswith("TASK_STATE_")
        return str(status["state"].removeprefix("TASK_STATE_").lower())

    def is_task(self, task: Json) -> None:
        super().is_task(task)
        assert "kind" not in task
        assert task.get("history") != []
        assert {said["role"] for said in task.get("history", ())} <= {"ROLE_USER", "ROLE_AGENT"}

    def sent(self, result: Json) -> tuple[str, Json]:
        ((kind, value),) = result.items()
        return kind, value

    def frame(self, seq: int | None, result: Json) -> Frame:
        ((kind, value),) = result.items()
        assert "final" not in value
        assert "kind" not in value
        return Frame(seq, {"statusUpdate": "status", "artifactUpdate": "artifact"}.get(kind, kind), value, result)

    def listing(self, **filters: Any) -> Json:
        names = {"context": "contextId", "size": "pageSize", "token": "pageToken", "artifacts": "includeArtifacts"}
        return {names[name]: value for name, value in filters.items()}

    def page(self, result: Json) -> tuple[list[Json], str, int]:
        assert set(result) == {"tasks", "nextPageToken", "pageSize", "totalSize"}
        assert result["pageSize"] == len(result["tasks"])
        return result["tasks"], result["nextPageToken"], result["totalSize"]

    webhook_name = "taskPushNotificationConfig"

    def webhook(self, url: str, *, scheme: str = "Bearer", credentials: str | None = None, **more: Any) -> Json:
        secret = {"authentication": {"scheme": scheme, "credentials": credentials}} if credentials else {}
        return {"url": url, **secret, **more}

    def webhook_of(self, task: str, url: str, **more: Any) -> Json:
        return {"taskId": task, **self.webhook(url, **more)}

    def webhook_id(self, task: str, id: str | None = None) -> Json:
        return {"taskId": task} | ({"id": id} if id else {})

    def webhooks(self, result: Any) -> list[tuple[str, Json]]:
        assert set(result) == {"configs", "nextPageToken"} or "url" in result
        found = result.get("configs", [result])
        return [(one["taskId"], {name: value for name, value in one.items() if name != "taskId"}) for one in found]


@dataclass(kw_only=True)
class OldSpeaker(Speaker):
    """A2A 0.3, and 0.2 by its header."""

    names: dict[str, str] = field(
        default_factory=lambda: {
            "send": "message/send",
            "stream": "message/stream",
            "get": "tasks/get",
            "list": "tasks/list",
            "cancel": "tasks/cancel",
            "subscribe": "tasks/resubscribe",
            "push": "tasks/pushNotificationConfig/set",
            "pushed": "tasks/pushNotificationConfig/get",
            "pushes": "tasks/pushNotificationConfig/list",
            "unpush": "tasks/pushNotificationConfig/delete",
            "card": "agent/getAuthenticatedExtendedCard",
        }
    )

    traits = frozenset({"batch", "card", "extensions", "versions"})
    subscription_ends = True
    always_has_reason = False
    versions = frozenset({"0.3", "0.3.0", "0.2", "0.2.9", ""})
    extensions_headers = ("x-a2a-extensions", "a2a-extensions")
    extension_code = -32600
    default_webhook = True
    nothing: ClassVar[Any] = None
    webhook_path = "pushNotificationConfig."
    completed_mark = '"completed"'
    webhook_version = "0.3"
    deliveries_are_answers = True

    @property
    def has_card(self) -> bool:
        return self.version != "0.2"  # There it is a page of its own: see tests/transports/cards/test_extended.py.

    def is_card(self, card: Json) -> None:
        assert (card["protocolVersion"], card["supportsAuthenticatedExtendedCard"]) == ("0.3.0", True)

    def delivered(self, media: str, body: Json) -> str:
        assert (media, body["kind"]) == ("application/json", "task")
        rpc_description("rpc", "0.3").check_answer("tasks/get", {"result": body})
        return str(body["id"])

    def message(self, text: str, *, id: str | None = None, task: str | None = None, context: str | None = None) -> Json:
        found: Json = {"kind": "message", "messageId": id or str(uuid4()), "role": "user"}
        found["parts"] = [{"kind": "text", "text": text}]
        return found | ({"taskId": task} if task else {}) | ({"contextId": context} if context else {})

    def configuration(self, *, now: bool, history: int | None) -> Json:
        return {"blocking": not now, "historyLength": history}

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        file = {"bytes": b64encode(content).decode(), "mimeType": media_type, "name": name}
        return self.message("") | {"parts": [{"kind": "file", "file": file}]}

    def data(self, value: Json) -> Json:
        return {"kind": "data", "data": value}

    def link(self, url: str) -> Json:
        return {"kind": "file", "file": {"uri": url}}

    def state(self, status: Json) -> str:
        assert "_" not in status["state"]
        return str(status["state"].replace("-", "_"))

    def is_task(self, task: Json) -> None:
        super().is_task(task)
        assert task["kind"] == "task"
        assert {said["kind"] for said in task.get("history", ())} <= {"message"}
        assert {said["role"] for said in task.get("history", ())} <= {"user", "agent"}
        parts = [part for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
        assert {part["kind"] for part in parts} <= {"text", "data", "file"}

    def sent(self, result: Json) -> tuple[str, Json]:
        return result["kind"], result

    def frame(self, seq: int | None, result: Json) -> Frame:
        kind = result["kind"].removesuffix("-update")
        if kind == "status":
            ends = {"completed", "failed", "canceled", "rejected", "input-required"}
            assert result["final"] is (result["status"]["state"] in ends)
        else:
            assert "final" not in result
        return Frame(seq, kind, result, result)

    def listing(self, **filters: Any) -> Json:
        names = {"context": "contextId", "size": "limit", "token": "cursor", "artifacts": "includeArtifacts"}
        return {names[name]: value for name, value in filters.items()}

    def page(self, result: Json) -> tuple[list[Json], str, int]:
        assert set(result) == {"tasks", "nextCursor", "totalSize"}
        return result["tasks"], result["nextCursor"], result["totalSize"]

    webhook_name = "pushNotificationConfig"

    def webhook(self, url: str, *, scheme: str = "Bearer", credentials: str | None = None, **more: Any) -> Json:
        secret = {"authentication": {"schemes": [scheme], "credentials": credentials}} if credentials else {}
        return {"url": url, **secret, **more}

    def webhook_of(self, task: str, url: str, **more: Any) -> Json:
        return {"taskId": task, "pushNotificationConfig": self.webhook(url, **more)}

    def webhook_id(self, task: str, id: str | None = None) -> Json:
        return {"id": task} | ({"pushNotificationConfigId": id} if id else {})

    def webhooks(self, result: Any) -> list[tuple[str, Json]]:
        found = result if isinstance(result, list) else [result]
        assert all(set(one) == {"taskId", "pushNotificationConfig"} for one in found)
        return [(one["taskId"], one["pushNotificationConfig"]) for one in found]
