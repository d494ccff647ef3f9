"""A client of ADR-002, written from its text: card, negotiation, calls and streams, timeouts, retries and errors.

It imports nothing of this server.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

CONNECT, REQUEST, ATTEMPTS = 5.0, 30.0, 3
"""The timeouts in seconds, and the most attempts of a call."""
REASONS = {
    -32000: "AGENT_UNAVAILABLE",
    -32001: "BUDGET_EXCEEDED",
    -32002: "TIMEOUT",
    -32003: "RATE_LIMITED",
    -32602: "VALIDATION_ERROR",
}
Json = dict[str, Any]


class AgentError(Exception):
    """An error of JSON-RPC, with its reason and its HTTP status."""

    def __init__(self, error: Json, status: int, headers: httpx.Headers) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.reason: str = error["data"]["reason"]
        self.data: Json = error["data"]
        self.status = status
        self.headers = headers


@dataclass(kw_only=True)
class Agent:
    """An agent at an address."""

    http: httpx.AsyncClient
    url: str
    token: str = ""
    pause: Callable[[float], Awaitable[Any]] = asyncio.sleep
    pauses: list[float] = field(default_factory=list)
    seen: httpx.Headers = field(default_factory=httpx.Headers)
    """The headers of the last answer."""

    async def card(self) -> Json:
        response = await self.http.get(f"{self.url}/card", timeout=CONNECT)
        response.raise_for_status()
        card: Json = response.json()
        return card

    async def health(self) -> Json:
        answer: Json = (await self.http.get(f"{self.url}/healthz")).json()
        return answer

    async def negotiate(self, capabilities: list[str], budget_usd: float) -> Json:
        wire = {"capabilities": capabilities, "budget_usd": budget_usd}
        answer: Json = self._read(await self._post("/negotiate", wire, {}))
        return answer

    async def invoke(
        self, method: str, params: Json, *, request_id: str | None = None, budget_usd: str | None = None, **more: str
    ) -> Any:
        """Return the result of a call. It is repeated on 5xx and timeouts, under its id."""
        headers = self._headers(request_id, budget_usd) | more
        wire = self._call(method, params, headers)
        for attempt in range(ATTEMPTS):
            try:
                response = await self._post("/invoke", wire, headers)
            except httpx.TimeoutException:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                if attempt == ATTEMPTS - 1 or (response.status_code < 500 and response.status_code != 408):
                    return self._result(response, wire)
            self.pauses.append(2.0**attempt)
            await self.pause(2.0**attempt)
        raise AssertionError("the last attempt returns or raises")

    async def stream(
        self, method: str, params: Json, *, request_id: str | None = None, budget_usd: str | None = None, **more: str
    ) -> AsyncIterator[str]:
        """Yield the tokens of a call. Raises AgentError, also after the first ones."""
        headers = self._headers(request_id, budget_usd) | {"Accept": "text/event-stream"} | more
        wire = self._call(method, params, headers)
        limits = httpx.Timeout(REQUEST, connect=CONNECT)
        async with self.http.stream(
            "POST", f"{self.url}/invoke/stream", json=wire, headers=headers, timeout=limits
        ) as response:
            self.seen = response.headers
            if response.headers["content-type"] != "text/event-stream":
                await response.aread()
                self._result(response, wire)
            name, lines = "", list[str]()
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    lines.append(line[6:])
                elif not line and lines:
                    if name == "error":
                        self._raise(httpx.Response(200, content="\n".join(lines), headers=response.headers))
                    yield "\n".join(lines)
                    name, lines = "", []

    def _headers(self, request_id: str | None, budget_usd: str | None) -> dict[str, str]:
        headers = {"X-Request-ID": uuid.uuid4().hex if request_id is None else request_id}
        return headers | ({"X-Budget-USD": budget_usd} if budget_usd is not None else {})

    def _call(self, method: str, params: Json, headers: dict[str, str]) -> Json:
        return {"jsonrpc": "2.0", "method": method, "params": params, "id": headers["X-Request-ID"]}

    async def _post(self, path: str, wire: Json, headers: dict[str, str]) -> httpx.Response:
        limits = httpx.Timeout(REQUEST, connect=CONNECT)
        credentials = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        self.http.headers.update(credentials)
        response = await self.http.post(f"{self.url}{path}", json=wire, headers=headers, timeout=limits)
        self.seen = response.headers
        return response

    def _result(self, response: httpx.Response, wire: Json) -> Any:
        answer = self._read(response)
        assert set(answer) == {"jsonrpc", "id", "result"}
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", wire["id"])
        return answer["result"]

    def _read(self, response: httpx.Response) -> Json:
        answer: Json = response.json()
        if "error" in answer:
            self._raise(response)
        assert response.status_code == 200
        return answer

    def _raise(self, response: httpx.Response) -> None:
        answer = response.json()
        assert set(answer) == {"jsonrpc", "id", "error"}
        error = AgentError(answer["error"], response.status_code, response.headers)
        assert REASONS.get(error.code, error.reason) == error.reason
        raise error
