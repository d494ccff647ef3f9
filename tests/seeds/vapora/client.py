"""A client of VAPORA, as its ADR 0003 describes one. It imports nothing of the server.

The text has seven kinds of errors of a client, two ranges of codes, the status 404 for an absent task, and repetition
with growing pauses for errors that may pass.
"""

import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx

Json = dict[str, Any]
DOMAIN, INTERNAL = -32000, -32603


class A2aClientError(Exception):
    """The base of the client's errors."""


class HttpError(A2aClientError):
    """HTTP failed in another way than those below."""


class TaskNotFound(A2aClientError):
    """The task does not exist."""


class ServerError(A2aClientError):
    """The server refused the call."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class ConnectionRefused(A2aClientError):
    """No connection."""


class Timeout(A2aClientError):
    """No answer in time."""


class InvalidResponse(A2aClientError):
    """An answer that is not JSON-RPC 2.0."""


class InternalError(A2aClientError):
    """The server failed."""


@dataclass
class VaporaClient:
    """Calls one server."""

    http: httpx.AsyncClient
    url: str
    pause: Callable[[float], Awaitable[None]]
    retries: int = 3
    seconds: float = 30.0
    number: int = 0

    async def call(self, method: str, params: Json) -> Any:
        """Return the result. A call is made again after a fault of the network, and after 5xx."""
        for attempt in range(self.retries + 1):
            try:
                return await self._once(method, params)
            except A2aClientError as error:
                status = getattr(error, "status", None)
                may_pass = isinstance(error, ConnectionRefused | Timeout) or (status is not None and status >= 500)
                if not may_pass or attempt == self.retries:
                    raise
            await self.pause(0.1 * 2**attempt * random.uniform(0.8, 1.2))  # noqa: S311  # jitter is no secret
        raise AssertionError("the loop ends with a result or an error")

    async def _once(self, method: str, params: Json) -> Any:
        self.number += 1
        wire = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        try:
            response = await self.http.post(f"{self.url}/a2a", json=wire, timeout=self.seconds)
        except httpx.ConnectError as error:
            raise ConnectionRefused(str(error)) from error
        except httpx.TimeoutException as error:
            raise Timeout(str(error)) from error
        except httpx.HTTPError as error:
            raise HttpError(str(error)) from error
        try:
            answer = response.json()
        except json.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
            kind = HttpError if response.is_error else InvalidResponse
            raise with_status(kind(response.text[:200]), response.status_code)
        if "error" in answer:
            raise with_status(error_of(answer["error"], response.status_code), response.status_code)
        if answer["id"] != self.number:
            raise InvalidResponse("the answer to another call")
        return answer["result"]

    # ------------------------------------------------------------------ calls

    async def send(self, text: str, message_id: str, **more: Any) -> Json:
        message = {"kind": "message", "messageId": message_id, "role": "user"}
        parts = {"parts": [{"kind": "text", "text": text}]}
        task: Json = await self.call("message/send", {"message": message | parts, **more})
        return task

    async def get(self, task_id: str) -> Json:
        task: Json = await self.call("tasks/get", {"id": task_id})
        return task

    async def cancel(self, task_id: str) -> Json:
        task: Json = await self.call("tasks/cancel", {"id": task_id})
        return task


def error_of(error: Json, status: int) -> A2aClientError:
    """Return the typed error of an error object."""
    if error["code"] == DOMAIN and status == 404:
        return TaskNotFound(error["message"])
    if error["code"] == INTERNAL:
        return InternalError(error["message"])
    return ServerError(error["code"], error["message"])


def with_status(error: A2aClientError, status: int) -> A2aClientError:
    error.status = status  # type: ignore[attr-defined]  # for the decision to call again
    return error
