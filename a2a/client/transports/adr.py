"""ADR-002: a path for each operation, and streams of bare text."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
from httpx_sse import ServerSentEvent

from a2a.client.errors import InvalidResponse
from a2a.client.http import Answer, Exchange
from a2a.client.transports import Frame
from a2a.client.transports.jsonrpc import JsonRpc, envelope
from a2a.client.transports.sse import stream_headers
from a2a.envelopes.jsonrpc import MEDIA
from a2a.types import Json


class Adr(JsonRpc):
    """Calls below one address. The method of the envelope is the name of an agent or a skill."""

    @asynccontextmanager
    async def stream(
        self, method: str, params: Json, after: str | None, headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[Frame]]:
        rpc_id = next(self._ids)
        exchange = self._exchange(rpc_id, method, params, stream_headers(after) | dict(headers))
        async with self.http.listen(exchange) as events:
            if isinstance(events, Answer):
                self._result(events, rpc_id, method)
                raise InvalidResponse(f"{method} answered without a stream", where=self._place(method))
            yield self._texts(events, rpc_id, method)

    async def _texts(self, events: AsyncIterator[ServerSentEvent], rpc_id: int, method: str) -> AsyncIterator[Frame]:
        """Yield the texts, and then null. Raises the error of a stream that fails."""
        async for event in events:
            if event.event == "error":
                self._result(Answer(200, MEDIA, event.data.encode(), None), rpc_id, method)
            elif event.data:
                yield Frame(event.id or None, event.data)
        yield Frame(None, None)

    def _exchange(self, rpc_id: int, method: str, params: Json, headers: dict[str, str]) -> Exchange:
        body: Any = envelope(rpc_id, params["method"], params["params"])
        return Exchange("POST", f"{self.where.rstrip('/')}/{method}", self._headers | headers, orjson.dumps(body))
