"""Bodies of REST calls, and the refusals they get."""

from typing import Any
from uuid import uuid4

import httpx

PLAIN: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
KIND: dict[str, Any] = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
PROTO: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}
JSON = {"Content-Type": "application/json"}
HOOK: dict[str, Any] = {"url": "https://nobody.invalid/"}


def sending(message: dict[str, Any] = PLAIN, agent: str = "echo", **more: Any) -> dict[str, Any]:
    return {"message": message | {"messageId": str(uuid4())}, "metadata": {"agent": agent}, **more}


def refusal(response: httpx.Response, status: int, reason: str) -> dict[str, Any]:
    """Return the error, which must be whole and harmless."""
    assert response.status_code == status, response.text
    old = response.request.url.path.startswith("/v1/") or "/v1/" in response.request.url.path
    assert response.headers["content-type"] == ("application/json" if old else "application/a2a+json")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-request-id"]
    assert "Traceback" not in response.text
    answer = response.json()
    assert set(answer) == ({"error", "code", "message", "type"} if old else {"error"})
    error: dict[str, Any] = answer["error"]
    assert (error["code"], error["details"][0]["reason"]) == (status, reason), error
    return error


def fields(error: dict[str, Any]) -> list[str]:
    return [found["field"] for detail in error["details"] for found in detail.get("fieldViolations", [])]
