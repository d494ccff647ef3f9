"""A speaker of ACP, which gives answers back in the words of the story: those of A2A 1.0."""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any

from tests.support.speaker import Json, Speaker

STATES = {"SUBMITTED", "WORKING", "INPUT_REQUIRED", "COMPLETED", "FAILED", "CANCELED"}


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
            "nope": "tasks.nope",
        }
    )

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

    def data(self, value: Json) -> Json:
        return {"type": "DataPart", "content": value}

    def state(self, status: Json) -> str:
        assert status["state"] in STATES
        return str(status["state"].lower())

    def sent(self, result: Json) -> tuple[str, Json]:
        return "task", result
