"""A speaker of ACP, which gives answers back in the words of the story: those of A2A 1.0."""

import asyncio
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from a2a.dialects import v1_0
from a2a.errors import ALL
from tests.conftest import PATIENCE
from tests.support.speaker import Json, Speaker

STATES = {"SUBMITTED", "WORKING", "INPUT_REQUIRED", "COMPLETED", "FAILED", "CANCELED"}
OPEN = {"submitted", "working"}
CODES = {error.reason: v1_0.DIALECT.column[error].number for error in ALL}
"""The codes of A2A by the reasons of errors."""
CHAPTERS = frozenset(
    {
        "a_quick_message_is_answered_with_a_completed_task",
        "a_waiting_message_is_answered_when_the_work_is_done",
        "a_message_that_does_not_wait_is_answered_at_once",
        "an_interview_takes_several_turns_in_one_task",
        "what_is_not_offered_is_refused_with_its_code",
        "without_a_key_there_is_a_challenge",
    }
)
"""The chapters that need the methods of tasks alone: no stream, list, context, message id or direct reply."""


@dataclass(kw_only=True)
class AcpSpeaker(Speaker):
    """ACP over JSON-RPC."""

    names: dict[str, str] = field(
        default_factory=lambda: {
            "send": "tasks.create",
            "continue": "tasks.send",
            "get": "tasks.get",
            "cancel": "tasks.cancel",
            "begin": "stream.start",
            "say": "stream.message",
            "chunk": "stream.chunk",
            "end": "stream.end",
            "push": "tasks.subscribe",
            "notify": "task.notification",
            "nope": "tasks.nope",
        }
    )

    traits = frozenset()

    def call(self, wish: str, params: Any) -> Json:
        """Return the call. A message to a task is another method than one that begins a task."""
        if isinstance(params, dict) and "id" in params:
            params = {("taskId" if name == "id" else name): value for name, value in params.items()}
        if wish == "send" and isinstance(params, dict) and "taskId" in params:
            wish = "continue"
        return super().call(wish, params)

    def sending(self, text: str, *, agent: str | None = None, task: str | None = None, **more: Any) -> Json:
        if task:
            return {"taskId": task, "message": self.message(text)}
        return {"initialMessage": self.message(text)} | ({"metadata": {"agent": agent}} if agent else {})

    def message(self, text: str, **more: Any) -> Json:
        return {"role": "user", "parts": [{"type": "TextPart", "content": text}]}

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        encoded = b64encode(content).decode()
        part = {"type": "FilePart", "content": encoded, "mimeType": media_type, "filename": name, "encoding": "base64"}
        return self.message("") | {"parts": [part]}

    def webhook_of(self, task: str, url: str, *, id: str = "", **more: Any) -> Json:
        """Return a subscription. Its address has the id, because one address has one subscription."""
        return {"taskId": task, "callbackUrl": f"{url}?{quote(id)}" if id else url}

    def data(self, value: Json) -> Json:
        return {"type": "DataPart", "content": value}

    def state(self, status: Json) -> str:
        assert status["state"] in STATES
        return str(status["state"].lower())

    def sent(self, result: Json) -> tuple[str, Json]:
        return "task", result

    def is_task(self, task: Json) -> None:
        assert task["id"]
        assert task["status"]["timestamp"].endswith("Z")

    async def send(self, text: str, *, now: bool = False, **more: Any) -> Json:
        """Return the task, when no agent works on it unless `now` is true: no call of ACP waits."""
        task = await super().send(text, **more)
        async with asyncio.timeout(PATIENCE):
            while not now and self.state(task["status"]) in OPEN:
                await asyncio.sleep(0.02)
                task = await self.get(task["id"])
        return task

    def answer_of(self, status: int, answer: Any, wire: Any) -> Any:
        if "error" in answer:
            error = answer["error"]
            assert error["data"]["suggestion"]
            return answer | {"error": error | {"code": CODES[error["data"]["reason"]]}}
        assert answer["result"]["type"] == "task"
        return answer | {"result": _translated(answer["result"]["task"])}


def _translated(task: Json) -> Json:
    """Return a task in the words of A2A. The question of an agent is the message of the status."""
    messages = [_with_text(message) for message in task["messages"]]
    status = {"state": task["status"], "timestamp": task["updatedAt"]}
    if messages[-1]["role"] == "agent":
        status["message"] = messages.pop()
    artifacts = [_with_text(artifact) for artifact in task["artifacts"]]
    return {"id": task["taskId"], "contextId": "", "status": status, "history": messages, "artifacts": artifacts}


def _with_text(wire: Json) -> Json:
    """Return a message or an artifact whose text parts are called as in A2A."""
    names = {"content": "text"}
    return wire | {"parts": [{names.get(name, name): value for name, value in part.items()} for part in wire["parts"]]}
