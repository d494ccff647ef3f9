"""Calls over JSON-RPC whose exchanges are looked at."""

import json
from collections.abc import Callable
from typing import Any

Post = Callable[..., tuple[int, bytes]]
_made = iter(range(1, 1_000_000))


def call(method: str, params: Any, rpc_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params}


def new(text: str = "hello", rpc_id: Any = 1, *, method: str = "SendMessage", agent: str = "echo", **more: Any) -> Any:
    said = {"messageId": f"m{next(_made)}", "role": "ROLE_USER", "parts": [{"text": text}]}
    if task := more.pop("task", None):
        said["taskId"] = task
    return call(method, {"message": said, "metadata": {"agent": agent}, **more}, rpc_id)


def old(text: str = "hello", rpc_id: Any = 1, *, method: str = "message/send", agent: str = "echo", **more: Any) -> Any:
    said = {
        "kind": "message",
        "messageId": f"m{next(_made)}",
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
    }
    return call(method, {"message": said, "metadata": {"agent": agent}, **more}, rpc_id)


def task_id(content: bytes) -> str:
    result = json.loads(content)["result"]
    return str(result.get("task", result)["id"])


def without_id(wire: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wire.items() if name != "id"}


def name_of(wire: Any) -> str:
    """Return what is special about the call."""
    if isinstance(wire, bytes):
        return repr(wire)
    params = {name: value for name, value in wire["params"].items() if name != "message"}
    said = wire["params"].get("message", {}).get("parts", [{}])[0].get("text", "")
    return f"{wire['method']} {wire['id']!r} {said[:1]} {json.dumps(params)}"


LATER = {"configuration": {"returnImmediately": True}}
