"""Calls of Slack's Web API, to addresses that tasks_app/outbound has checked.

slack_sdk's own clients would dial whatever a name leads to, follow proxies of the environment, and need a thread each.
"""

import asyncio
from collections.abc import Hashable
from time import monotonic
from typing import Any
from urllib.parse import urljoin

import httpx
import orjson
from django.conf import settings

from tasks_app.outbound import dialling, policy
from tasks_app.outbound.bodies import UNCOMPRESSED, read_body
from tasks_app.slack.pace import Pace
from tasks_app.slack.space import Space

SECONDS = 10.0
"""The time limit of each part of a call."""
MOST_BYTES = 2_000_000
"""Bytes of an answer."""
WHOLE_SECONDS = 30.0
"""The time limit of a whole call."""
PATIENCE = 60.0
"""The longest pauses of one call that are waited for, together. For longer ones the question is put off, so that it
takes no place from others."""
SHORTEST = 1.0
"""The seconds as which a shorter pause counts."""
TRANSIENT = frozenset({"fatal_error", "internal_error", "ratelimited", "request_timeout", "service_unavailable"})
"""Refusals that may pass by themselves."""


class SlackAway(Exception):
    """Raised when Slack gives no answer, or asks to come back later."""

    def __init__(self, problem: str, seconds: float | None = None) -> None:
        super().__init__(problem)
        self.seconds = seconds
        """The pause that Slack asked for, if any."""


class SlackRefused(Exception):
    """Raised when Slack refuses a call for good; the text is the name of its error."""


class _Hold(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class WebApi:
    """The calls of one process, on one event loop."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.space = Space()
        """The space for files, which are fetched one by one outside the pace."""
        self.client: httpx.AsyncClient | None = None

    async def call(self, token: str, method: str, body: dict[str, Any], *keys: Hashable) -> dict[str, Any]:
        """Return the answer to a call, in the pace of its keys. Raises SlackAway and SlackRefused."""
        rest = PATIENCE
        while True:
            await self.pace.wait(keys)
            try:
                async with asyncio.timeout(WHOLE_SECONDS):
                    return await self._post(token, method, body)
            except _Hold as hold:
                rest -= max(hold.seconds, SHORTEST)
                if rest < 0:
                    raise SlackAway(f"{method}: Slack asks for a pause", hold.seconds) from None
                self.pace.hold(keys, hold.seconds, monotonic())
            except TimeoutError:
                raise SlackAway(f"{method}: no answer in time") from None

    async def _post(self, token: str, method: str, body: dict[str, Any]) -> dict[str, Any]:
        client = self.client = self.client or dialling.client(seconds=SECONDS, most_read=MOST_BYTES)
        url = urljoin(settings.A2A_SLACK_API, method)
        try:
            policy.target(url)
            headers = UNCOMPRESSED | {"Authorization": f"Bearer {token}"}
            async with client.stream("POST", url, data=_form(body), headers=headers) as response:
                content = await read_body(response, MOST_BYTES)
        except policy.Blocked as error:
            raise SlackAway(f"{method}: A2A_SLACK_API {error}") from None
        except (httpx.HTTPError, policy.Unknown) as error:
            raise SlackAway(f"{method}: {type(error).__name__}") from None
        return _read(method, response, content)

    async def close(self) -> None:
        """Close the client. The next call opens another."""
        client, self.client = self.client, None
        if client is not None:
            await client.aclose()


def _form(body: dict[str, Any]) -> dict[str, str]:
    """Return the members as a form, which every method takes. Objects are JSON within it."""
    return {name: value if isinstance(value, str) else orjson.dumps(value).decode() for name, value in body.items()}


def _read(method: str, response: httpx.Response, content: bytes) -> dict[str, Any]:
    """Return the answer in a response. Raises SlackAway, SlackRefused and _Hold."""
    if response.status_code == 429:
        raise _Hold(_pause_of(response))
    if response.status_code >= 500:
        raise SlackAway(f"{method}: HTTP {response.status_code}")
    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise SlackAway(f"{method}: HTTP {response.status_code} without JSON")
    if answer.get("ok") is True:
        return answer
    name = str(answer.get("error") or f"HTTP {response.status_code}")[:64]
    if name in TRANSIENT:
        raise SlackAway(f"{method}: {name}")
    raise SlackRefused(name)


def _pause_of(response: httpx.Response) -> float:
    """Return the seconds of a Retry-After header; one without a usable one."""
    text = response.headers.get("Retry-After", "")
    return float(min(int(text), 86_400)) if text.isascii() and text.isdigit() and len(text) < 9 else 1.0
