"""A client of SPARC, as its text describes one, with the requests of the text. It imports nothing of the server.

The places of the text for ids and addresses are filled in by its calls.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

Json = dict[str, Any]
SEND: Json = {
    "message": {
        "role": "user",
        "parts": [{"kind": "text", "text": "Execute SPARC specification phase for user authentication system"}],
        "messageId": "msg-001",
    },
    "configuration": {"sparcPhase": "specification", "batchtoolsOptimized": True, "parallelProcessing": True},
    "metadata": {"workflowId": "sparc-workflow-001", "priority": "high"},
}
STREAM: Json = {
    "message": {
        "role": "user",
        "parts": [{"kind": "text", "text": "Implement SPARC refinement phase with TDD for authentication module"}],
        "messageId": "msg-003",
    },
    "configuration": {"sparcPhase": "refinement", "tddEnabled": True, "streamingUpdates": True},
}
LIST: Json = {"limit": 10, "status": "working"}
WEBHOOK: Json = {
    "url": "https://client.example.com/webhook/a2a-notifications",
    "token": "secure-client-token",
    "authentication": {"schemes": ["Bearer"]},
}
SET_PHASE: Json = {
    "workflowId": "sparc-workflow-001",
    "phase": "refinement",
    "agentTypes": ["coder", "analyst"],
    "configuration": {"tddEnabled": True, "parallelProcessing": True, "batchtoolsOptimized": True},
}
PHASES = ("specification", "pseudocode", "architecture", "refinement", "completion")


class Refused(Exception):
    """An error object."""

    def __init__(self, error: Json) -> None:
        super().__init__(error)
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Json = error["data"]


@dataclass
class SparcClient:
    """Calls one server with a bearer token."""

    http: httpx.Client
    path: str = "/jsonrpc"
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def body(self, method: str, params: Json) -> Json:
        return {"jsonrpc": "2.0", "method": method, "params": params, "id": f"req-{next(self.numbers):03}"}

    def call(self, method: str, params: Json) -> Any:
        """Return the result. Raises Refused."""
        body = self.body(method, params)
        answer = self.http.post(self.path, json=body).json()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", body["id"])
        if "error" in answer:
            assert answer["error"]["data"]["requestId"] == body["id"]
            raise Refused(answer["error"])
        return answer["result"]

    def stream(self, method: str, params: Json) -> tuple[httpx.Headers, list[tuple[str, Json]]]:
        """Return the headers of a stream, and the name and the result of each event until its end."""
        body, events = self.body(method, params), []
        with self.http.stream("POST", self.path, json=body, headers={"Accept": "text/event-stream"}) as answer:
            name = ""
            for line in answer.iter_lines():
                kind, _, value = line.partition(": ")
                if kind == "event":
                    name = value
                elif kind == "data":
                    found = json.loads(value)
                    assert found["id"] == body["id"]
                    events.append((name, found["result"]))
            return answer.headers, events
