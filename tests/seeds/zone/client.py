"""A verification zone, as the specification of the JSON-RPC zone connection describes one. It imports nothing of the
server.

A request has `jsonrpc`, `method`, `params` and `id`. A response has `jsonrpc`, the same `id`, and either `result` or
`error` with a code and a message.
"""

import json
from dataclasses import dataclass
from typing import Any

import httpx

Json = dict[str, Any]


class ExecutionError(Exception):
    """The error object of a response."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code, self.message = error["code"], error["message"]


@dataclass
class VerificationZone:
    """Sends tasks to one execution zone."""

    http: httpx.Client
    url: str
    number: int = 0

    def post(self, body: bytes) -> Json:
        """Return the response to a body, which must be one of JSON-RPC 2.0."""
        response = self.http.post(f"{self.url}/jsonrpc", content=body, headers={"Content-Type": "application/json"})
        answer: Json = response.json()
        assert answer["jsonrpc"] == "2.0"
        assert answer.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        if "error" in answer:
            assert isinstance(answer["error"]["code"], int)
            assert answer["error"]["message"]
        return answer

    def call(self, method: str, params: Json, rpc_id: Any = None) -> Any:
        """Return the result of a request. Raises ExecutionError."""
        self.number += 1
        own = f"request-{self.number}" if rpc_id is None else rpc_id
        answer = self.post(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": own}).encode())
        assert (type(answer["id"]), answer["id"]) == (type(own), own)
        if "error" in answer:
            raise ExecutionError(answer["error"])
        return answer["result"]

    def execute(self, text: str, rpc_id: Any = None, **params: Any) -> Json:
        task = {"channel": "C024BE91L", "text": text, "bot_token": "xoxb-1"} | params
        result: Json = self.call("execute_task", task, rpc_id)
        return result
