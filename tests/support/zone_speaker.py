"""A speaker of zones, which gives answers back in the words of the story: those of A2A 1.0."""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any

from a2a.dialects import v1_0
from a2a.errors import ALL
from tests.support.speaker import Json, Speaker

TOKEN = "xoxb-never-stored-anywhere"
CODES = {error.reason: v1_0.DIALECT.column[error].number for error in ALL}
"""The codes of A2A by the reasons of errors."""
STATES = {"success": "completed", "accepted": "working", "input_required": "input_required"}


@dataclass(kw_only=True)
class ZoneSpeaker(Speaker):
    """Zones over JSON-RPC."""

    names: dict[str, str] = field(
        default_factory=lambda: {
            "send": "execute_task",
            "execute": "execute_task",
            "get": "get_task",
            "card": "get_agent_card",
            "nope": "execute_nothing",
        }
    )
    statuses_tell = True
    traits = frozenset()

    def call(self, wish: str, params: Any) -> Json:
        if isinstance(params, dict) and "id" in params:
            params = {("task_id" if name == "id" else name): value for name, value in params.items()}
        return super().call(wish, params)

    def sending(
        self, text: str, *, agent: str | None = None, task: str | None = None, now: bool = False, **more: Any
    ) -> Json:
        wire: Json = {"channel": "C1", "text": text, "bot_token": TOKEN, "wait": not now}
        return wire | ({"agent": agent} if agent else {}) | ({"task_id": task} if task else {})

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        attachment = {"name": name, "mimetype": media_type, "content": b64encode(content).decode()}
        return self.sending("") | {"attachments": [attachment]}

    def state(self, status: Json) -> str:
        return str(status["state"])

    def sent(self, result: Json) -> tuple[str, Json]:
        return "task", result

    def is_task(self, task: Json) -> None:
        assert task["id"]

    def answer_of(self, status: int, answer: Any, wire: Any) -> Any:
        if "error" in answer:
            error = answer["error"]
            return answer | {"error": error | {"code": CODES[error["data"]["reason"]]}}
        if "status" not in answer["result"]:
            return answer
        return answer | {"result": _translated(answer["result"])}


def _translated(result: Json) -> Json:
    """Return a result as a task of A2A. The question of an agent is the message of the status."""
    state, text = STATES[result["status"]], result["response_text"]
    message = {"message": {"role": "ROLE_AGENT", "parts": [{"text": text}]}} if state == "input_required" else {}
    artifacts = [{"artifactId": "text", "parts": [{"text": text}]}] if text and not message else []
    return {"id": result["task_id"], "contextId": "", "status": {"state": state} | message, "artifacts": artifacts}
