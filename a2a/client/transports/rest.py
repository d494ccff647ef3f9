"""REST: verb and path name the method, an answer is the result itself (A2A 1.0, 11)."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from a2a.client import refusals
from a2a.client.errors import InvalidParams, InvalidResponse
from a2a.client.http import Answer, Exchange, Http
from a2a.client.transports import Frame
from a2a.client.transports.sse import frames, stream_headers
from a2a.language import Route
from a2a.types import Json

_VARIABLE = re.compile(r"\{(\w+)\}")
# All servers must accept this media type, and some accept no other.
_MEDIA = "application/json"
_ACCEPT = "application/a2a+json, application/json"
_WRONG_VERB = 405


class Rest:
    """Calls below one address."""

    def __init__(self, http: Http, url: str, headers: Mapping[str, str], routes: Sequence[Route], prefix: str) -> None:
        self.http = http
        self.where = url
        self._base = url.rstrip("/") + prefix
        self._headers = dict(headers)
        self._routes: dict[str, list[Route]] = {}
        """The routes of each method. If a server lacks the verb of the first, the others are tried."""
        for route in routes:
            self._routes.setdefault(route.method, []).append(route)

    async def call(self, method: str, params: Json, seconds: float, headers: Mapping[str, str]) -> Any:
        exchange = self._exchange(self._routes[method][0], params, {"Accept": _ACCEPT, **headers})
        return self._result(await self.http.fetch(exchange, seconds), exchange)

    @asynccontextmanager
    async def stream(
        self, method: str, params: Json, after: str | None, headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[Frame]]:
        own = stream_headers(after) | dict(headers)
        async with AsyncExitStack() as stack:
            last = self._routes[method][-1]
            for route in self._routes[method]:
                exchange = self._exchange(route, params, own)
                events = await stack.enter_async_context(self.http.listen(exchange))
                if not isinstance(events, Answer):
                    yield frames(events, _MEDIA, partial(self._result, exchange=exchange))
                    return
                if events.status != _WRONG_VERB or route is last:
                    self._result(events, exchange)
                    raise InvalidResponse(f"{method} answered without a stream", where=exchange.place)

    async def close(self) -> None:
        """Do nothing: connections belong to the Http."""

    def _exchange(self, route: Route, params: Json, headers: dict[str, str]) -> Exchange:
        """Put the params into the path, and the rest into the body or, without one, into the query."""
        rest = dict(params)
        tenant = rest.pop("tenant", None)
        try:
            path = _VARIABLE.sub(lambda name: quote(str(rest.pop(name[1])), safe=""), route.path)
        except KeyError as name:
            raise InvalidParams(f"{name} is needed for a path over REST", where=f"{route.verb} {route.path}") from None
        url = self._base + (f"/{quote(tenant, safe='')}" if tenant else "") + path
        if route.verb == "POST":
            return Exchange("POST", url, self._headers | headers | {"Content-Type": _MEDIA}, orjson.dumps(rest))
        query = urlencode({name: _text(value) for name, value in rest.items()})
        return Exchange(route.verb, f"{url}?{query}" if query else url, self._headers | headers)

    def _result(self, answer: Answer, exchange: Exchange) -> Any:
        wire = refusals.parsed(answer) if answer.body.strip() else {}
        if answer.status >= 300 or (isinstance(wire, dict) and isinstance(wire.get("error"), dict)):
            raise refusals.of_rest(answer, exchange.place)
        if wire is None:
            raise InvalidResponse("the answer is not JSON", where=exchange.place)
        return wire


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
