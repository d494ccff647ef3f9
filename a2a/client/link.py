"""One interface of an agent: an address, a language and a transport. A link makes single attempts."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

from msgspec import Struct
from msgspec.structs import replace

from a2a import errors
from a2a.client import refusals
from a2a.client.cards import ACP, ADR, REST, RPC, SOCKET, SPARC, VAPORA, ZONE
from a2a.client.errors import InvalidParams, InvalidResponse, MethodNotFound
from a2a.client.http import Exchange, Http
from a2a.client.language import ClientLanguage, Operation, decoded
from a2a.client.languages import acp, adr, rest_0_x, sparc, v0_2, v0_3, v1_0, vapora, zone
from a2a.client.transports import Transport
from a2a.client.transports.adr import Adr
from a2a.client.transports.jsonrpc import JsonRpc
from a2a.client.transports.rest import Rest
from a2a.client.transports.websocket import WebSocket
from a2a.client.updates import Update
from a2a.money import HEADER as BUDGET
from a2a.money import show_usd
from a2a.requests import Request, SendMessage
from a2a.types import Interface, Json


class Way(Struct, frozen=True, kw_only=True):
    """A binding and a version that the client supports."""

    binding: str
    language: ClientLanguage
    transport: Callable[[Http, str, Mapping[str, str], ClientLanguage], Transport]


def _rpc(http: Http, url: str, headers: Mapping[str, str], language: ClientLanguage) -> Transport:
    return JsonRpc(http, url, headers, language.numbers)


def _rest(http: Http, url: str, headers: Mapping[str, str], language: ClientLanguage) -> Transport:
    return Rest(http, url, headers, language.routes, language.prefix)


def _socket(http: Http, url: str, headers: Mapping[str, str], language: ClientLanguage) -> Transport:
    return WebSocket(http, url, headers)


def _adr(http: Http, url: str, headers: Mapping[str, str], language: ClientLanguage) -> Transport:
    return Adr(http, url, headers, language.numbers)


WAYS = (
    Way(binding=RPC, language=v1_0.LANGUAGE, transport=_rpc),
    Way(binding=REST, language=v1_0.LANGUAGE, transport=_rest),
    Way(binding=RPC, language=v0_3.LANGUAGE, transport=_rpc),
    Way(binding=REST, language=rest_0_x.LANGUAGE, transport=_rest),
    Way(binding=RPC, language=v0_2.LANGUAGE, transport=_rpc),
    Way(binding=REST, language=rest_0_x.OLDEST, transport=_rest),
    Way(binding=SOCKET, language=v1_0.LANGUAGE, transport=_socket),
    Way(binding=SOCKET, language=v0_3.LANGUAGE, transport=_socket),
    Way(binding=SOCKET, language=v0_2.LANGUAGE, transport=_socket),
    Way(binding=VAPORA, language=vapora.LANGUAGE, transport=_rpc),
    Way(binding=ACP, language=acp.LANGUAGE, transport=_rpc),
    Way(binding=ADR, language=adr.LANGUAGE, transport=_adr),
    Way(binding=ZONE, language=zone.LANGUAGE, transport=_rpc),
    Way(binding=SPARC, language=sparc.LANGUAGE, transport=_rpc),
)
"""All bindings and versions. Each language over each transport is a row."""


class Link:
    """Calls to one interface."""

    def __init__(self, http: Http, interface: Interface, extensions: tuple[str, ...]) -> None:
        way = next(way for way in WAYS if (way.binding, way.language.version) == (interface.binding, interface.version))
        self.language = way.language
        self.interface = interface
        self._http = http
        self._headers = dict(self.language.headers)
        if extensions:
            self._headers[self.language.extensions_header] = ", ".join(extensions)
        self._transport = way.transport(http, interface.url, self._headers, self.language)

    async def close(self) -> None:
        """Close what the transport keeps open."""
        await self._transport.close()

    async def ask(self, request: Request) -> Any:
        """Return the result. Raises ClientError."""
        operation, wire = await self._answer(request)
        return decoded(operation.decode, wire, f"the result of {operation.method}", self._transport.where)

    async def ask_plainly(self, request: Request) -> Any:
        """Return the JSON of the result. Raises ClientError."""
        return (await self._answer(request))[1]

    async def _answer(self, request: Request) -> tuple[Operation, Any]:
        request, operation = self._prepared(request)
        if operation.page:
            return operation, await self._page(operation)
        seconds = self._http.timeouts.of(type(request), self.language.seconds)
        headers = self._headers_of(request)
        params = self._params(operation, request)
        return operation, await self._transport.call(operation.method, params, seconds, headers)

    @asynccontextmanager
    async def listen(self, request: Request, after: str | None) -> AsyncIterator[AsyncIterator[tuple[Update, float]]]:
        """Open a stream of updates, each with the server's pause between two connections in seconds."""
        request, operation = self._prepared(request)
        params, headers = self._params(operation, request), self._headers_of(request)
        async with self._transport.stream(operation.method, params, after, headers) as frames:
            yield self._updates(frames, operation)

    @asynccontextmanager
    async def hear(
        self, request: Request, after: str | None
    ) -> AsyncIterator[AsyncIterator[tuple[str | None, Any, float]]]:
        """Open a stream of values, each with its id and with the server's pause between two connections."""
        request, operation = self._prepared(request)
        params = self._params(operation, request)
        async with self._transport.stream(operation.method, params, after, {}) as frames:
            yield self._values(frames, operation)

    async def _values(
        self, frames: AsyncIterator[Any], operation: Operation
    ) -> AsyncIterator[tuple[str | None, Any, float]]:
        async for frame in frames:
            what = f"an event of {operation.method}"
            value = decoded(operation.decode, frame.value, what, self._transport.where)
            yield frame.id, value, frame.retry or 0.0

    async def _updates(self, frames: AsyncIterator[Any], operation: Operation) -> AsyncIterator[tuple[Update, float]]:
        async for frame in frames:
            what = f"an event of {operation.method}"
            update = decoded(self.language.update, frame.value, what, self._transport.where)
            yield replace(update, id=frame.id), frame.retry or 0.0

    def _prepared(self, request: Request) -> tuple[Request, Operation]:
        try:
            operation = self.language.operation(request)
        except LookupError as error:
            raise MethodNotFound(str(error), where=self.interface.url) from None
        tenant = request.tenant or self.interface.tenant
        return (request if tenant == request.tenant else replace(request, tenant=tenant)), operation

    def _params(self, operation: Operation, request: Request) -> Json:
        try:
            return operation.encode(request)
        except errors.InvalidParams as error:
            raise InvalidParams(error.message, where=f"{operation.method} in {self.language.name}") from None

    def _headers_of(self, request: Request) -> dict[str, str]:
        """Return the headers of one call: the budget of its task, and its id in a language that has it in a header."""
        if not isinstance(request, SendMessage):
            return {}
        headers = {} if request.budget is None else {BUDGET: show_usd(request.budget)}
        if self.language.key_header:
            headers[self.language.key_header] = request.message.message_id
        return headers

    async def _page(self, operation: Operation) -> Any:
        url = urljoin(self.interface.url, operation.page)
        exchange = Exchange("GET", url, self._headers | {"Accept": "application/json"})
        answer = await self._http.fetch(exchange, self._http.timeouts.request)
        if answer.status != 200:
            raise refusals.of_rest(answer, exchange.place)
        wire = refusals.parsed(answer)
        if wire is None:
            raise InvalidResponse("the answer is not JSON", where=exchange.place)
        return wire
