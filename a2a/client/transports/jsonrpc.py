"""JSON-RPC 2.0 over HTTP; streams are server-sent events, each of them a whole answer."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any

import orjson

from a2a.client import refusals
from a2a.client.errors import InvalidResponse
from a2a.client.http import Answer, Exchange, Http
from a2a.client.refusals import A2A, Numbers
from a2a.client.transports import Frame
from a2a.client.transports.sse import frames, stream_headers
from a2a.envelopes.jsonrpc import MEDIA
from a2a.types import Json


class JsonRpc:
    """Calls to one address."""

    def __init__(self, http: Http, url: str, headers: Mapping[str, str], numbers: Numbers = A2A) -> None:
        self.http = http
        self.where = url
        self._numbers = numbers
        self._headers = dict(headers) | {"Content-Type": MEDIA}
        self._ids = count(1)

    async def call(self, method: str, params: Json, seconds: float, headers: Mapping[str, str]) -> Any:
        rpc_id = next(self._ids)
        exchange = self._exchange(rpc_id, method, params, {"Accept": MEDIA, **headers})
        return self._result(await self.http.fetch(exchange, seconds), rpc_id, method)

    @asynccontextmanager
    async def stream(
        self, method: str, params: Json, after: str | None, headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[Frame]]:
        rpc_id = next(self._ids)
        async with self.http.listen(
            self._exchange(rpc_id, method, params, stream_headers(after) | dict(headers))
        ) as events:
            if isinstance(events, Answer):
                self._result(events, rpc_id, method)
                raise InvalidResponse(f"{method} answered without a stream", where=self._place(method))
            yield frames(events, MEDIA, partial(self._result, rpc_id=rpc_id, method=method))

    async def close(self) -> None:
        """Do nothing: connections belong to the Http."""

    def _exchange(self, rpc_id: int, method: str, params: Json, headers: dict[str, str]) -> Exchange:
        body = orjson.dumps(envelope(rpc_id, method, params))
        return Exchange("POST", self.where, self._headers | headers, body)

    def _result(self, answer: Answer, rpc_id: int, method: str) -> Any:
        """Return the result; None if there is none, as some servers answer a deletion."""
        wire = refusals.in_envelope(answer)
        if wire is not None and wire.get("error") is not None:
            raise refusals.of_rpc(wire["error"], answer, self._place(method), self._numbers)
        if answer.status >= 300:
            raise refusals.of_status(answer, self._place(method))
        if wire is None:
            raise InvalidResponse("the answer is not JSON-RPC", where=self._place(method))
        # Lenient about the type of the id, and about its absence. A wrong one is the answer to another call.
        if wire.get("id") not in (None, rpc_id, str(rpc_id)):
            raise InvalidResponse("the answer has the id of another call", where=self._place(method))
        # A subscription may send notifications after its answer. What they say is in their params.
        return wire.get("params") if "method" in wire else wire.get("result")

    def _place(self, method: str) -> str:
        return f"{method} at {self.where}"


def envelope(rpc_id: int, method: str, params: Json) -> Json:
    """Return the JSON of a call."""
    return {"jsonrpc": "2.0", "id": rpc_id, "method": method} | ({"params": params} if params else {})
