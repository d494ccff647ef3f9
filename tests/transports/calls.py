"""Calls of JSON-RPC, and the refusals they get."""

import json
from typing import Any

import httpx

PLAIN: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}


def call(method: str = "SendMessage", params: Any = None, **more: Any) -> bytes:
    wire = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params} | more
    return json.dumps({name: value for name, value in wire.items() if value is not ...}).encode()


def send(**message: Any) -> bytes:
    """Return a send in 1.0 whose message differs by these members; ... leaves one out."""
    wire = {name: value for name, value in (PLAIN | message).items() if value is not ...}
    return call(params={"message": wire})


def refusal(response: httpx.Response, status: int, code: int, rpc_id: Any = None) -> dict[str, Any]:
    """Return the error, which must be whole and harmless."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert "Traceback" not in response.text
    answer: dict[str, Any] = response.json()
    assert set(answer) == {"jsonrpc", "id", "error"}
    assert (answer["id"], answer["error"]["code"]) == (rpc_id, code), answer
    return answer["error"]
