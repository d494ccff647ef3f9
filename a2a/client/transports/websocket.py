"""JSON-RPC over WebSocket: calls share one connection and are matched to answers by id. Each stream has a connection of
its own, so that a slow reader of a stream holds back no call and no other stream."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, cast

import orjson
from websockets import (
    ClientConnection,
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    InvalidURI,
    connect,
)
from websockets.frames import CloseCode

from a2a.client import refusals
from a2a.client.addresses import WS, check_address
from a2a.client.bodies import check_use, check_values
from a2a.client.errors import (
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    ConnectTimeout,
    InvalidCall,
    InvalidRequest,
    InvalidResponse,
    UntrustedServer,
)
from a2a.client.http import Answer, Http, loss_of, within
from a2a.client.patience import seconds_until
from a2a.client.sharing import SharedWork
from a2a.client.transports import Frame
from a2a.client.transports.jsonrpc import envelope
from a2a.types import Json

PARAMETERS = "a2a-service-parameters"
"""The member with the service parameters of a frame (A2A 1.0.1, 12.3)."""
AFTER, SEQUENCE, END = "afterSequence", "sequence", "stream/end"
"""The parameter and the member for the number of an event, and the method that ends a stream."""
PINGS = 20.0
"""Seconds between two pings, and for the answer to a ping, if no limit for the silence of a stream is set."""
MOST_UNREAD = 1
"""Messages of a connection that wait to be read, before the client takes no more from the network; one more may be
there already. Each may be as large as an answer may be, so that the usual 16 of the library are too many."""
LEAVING = 1.0
"""Seconds for the server to take the end of a connection. Then the client cuts it."""


class _Direct(connect):
    """A connection that follows no redirect, so that credentials reach no other address."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class WebSocket:
    """Calls to one address."""

    def __init__(self, http: Http, url: str, headers: Mapping[str, str]) -> None:
        self.http = http
        self.where = url
        self._parameters = dict(headers)
        self._ids = count(1)
        self._connection: ClientConnection | None = None
        """The connection that calls share."""
        self._largest = 0
        """Bytes of the largest frame that was sent over it."""
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        """The calls that have no answer yet, by their ids."""
        self._connecting = SharedWork()
        self._is_closed = False

    async def call(self, method: str, params: Json, seconds: float, headers: Mapping[str, str]) -> Any:
        rpc_id = next(self._ids)
        frame = self._frame(rpc_id, method, params, headers)
        answer = asyncio.get_running_loop().create_future()
        async with within(seconds, self._place(method)):
            connection = await self._shared()
            self._waiting[rpc_id] = answer
            self._largest = max(self._largest, len(frame))
            try:
                await connection.send(frame, text=True)
                return self._result(await answer, method)
            except ConnectionClosed as error:
                # If a frame was too large, it was the largest one. The other calls are made again.
                raise self._loss(error, len(frame) if len(frame) == self._largest else 0) from error
            finally:
                del self._waiting[rpc_id]
                answer.cancel()

    @asynccontextmanager
    async def stream(
        self, method: str, params: Json, after: str | None, headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[Frame]]:
        rpc_id = next(self._ids)
        resumption: Json = {AFTER: int(after)} if after is not None and after.isdecimal() else {}
        frame = self._frame(rpc_id, method, params, resumption | dict(headers))
        connection = await self._connect()
        try:
            async with within(self.http.timeouts.request, self._place(method)):
                try:
                    await connection.send(frame, text=True)
                except ConnectionClosed as error:
                    raise self._loss(error, len(frame)) from error
            yield self._frames(connection, rpc_id, method, len(frame))
        finally:
            await _leave(connection)

    async def close(self) -> None:
        """Close the connection of calls. No other is opened after it: a call under way would leave one behind."""
        self._is_closed = True
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        if self._connection is not None:
            await _leave(self._connection)

    # ------------------------------------------------------------- connections

    async def _connect(self) -> ClientConnection:
        if self._is_closed:
            raise InvalidCall("the client is closed", where=self.where)
        check_address(self.where, WS)
        headers = await self.http.authentication()
        pings = self.http.timeouts.silence / 2 if self.http.timeouts.silence else PINGS
        try:
            return await _Direct(
                self.where,
                additional_headers=headers,
                open_timeout=self.http.timeouts.connect,
                ping_interval=pings,
                ping_timeout=pings,
                max_size=self.http.largest,
                max_queue=MOST_UNREAD,
                compression=None,
            )
        except InvalidStatus as error:
            raise self._refusal(error, headers) from error
        except TimeoutError:
            raise ConnectTimeout("no connection in time", where=self.where) from None
        except ssl.SSLCertVerificationError as error:
            raise UntrustedServer(f"the certificate of the server is not valid: {error}", where=self.where) from error
        except (InvalidHandshake, InvalidURI) as error:
            if isinstance(error, InvalidMessage) and isinstance(error.__cause__, EOFError):
                raise ConnectionRefused("the server closed the connection at once", where=self.where) from error
            raise InvalidResponse(f"no WebSocket: {error}", where=self.where) from error
        except OSError as error:
            raise ConnectionRefused(f"no connection: {error}", where=self.where) from error
        except ValueError as error:
            raise InvalidCall(f"the address is not valid: {error}", where=self.where) from None

    def _refusal(self, error: InvalidStatus, headers: Mapping[str, str]) -> ClientError:
        """Return the error of a handshake with these headers that the server has refused with an answer of HTTP."""
        response = error.response
        if response.status_code == 401:
            self.http.refused(headers)
        # `get` raises an error for a header that is there twice.
        wishes, media = (response.headers.get_all(name) for name in ("Retry-After", "Content-Type"))
        wait = seconds_until(wishes[0] if wishes else None, self.http.clock)
        answer = Answer(response.status_code, media[0] if media else "", bytes(response.body or b""), wait)
        envelope = refusals.in_envelope(answer)
        if envelope is not None and envelope.get("error") is not None:
            return refusals.of_rpc(envelope["error"], answer, self.where)
        return refusals.of_status(answer, self.where)

    async def _shared(self) -> ClientConnection:
        async with self._connecting.attempt():
            if self._connection is None or self._reading is None or self._reading.done():
                self._connection, self._largest = await self._connect(), 0
                self._reading = asyncio.create_task(self._read(self._connection))
            return self._connection

    async def _read(self, connection: ClientConnection) -> None:
        """Hand each answer to its call, until the connection ends."""
        fault: ClientError | ConnectionClosed = ConnectionLost("the connection was closed", where=self.where)
        strays = 0
        try:
            while True:
                check_use(strays, "frames in a row are for no call", self.where)
                wire = await self._receive(connection)
                answer = self._only_call(wire) if _is_for_any(wire) else self._waiting.get(wire.get("id", 0))
                strays += 1
                if answer is not None and not answer.done():
                    answer.set_result(wire)
                    strays = 0
        except (ClientError, ConnectionClosed) as error:
            fault = error
            connection.transport.abort()
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(fault)

    def _only_call(self, wire: Json) -> asyncio.Future[Json] | None:
        """Return the call that an error without an id is about. Raises ConnectionLost if it may be one of several."""
        if len(self._waiting) > 1:
            words = refusals.of_rpc(wire["error"], None, self.where).what
            raise ConnectionLost(f"the server refused one of {len(self._waiting)} calls: {words}", where=self.where)
        return next(iter(self._waiting.values()), None)

    # ------------------------------------------------------------------- frames

    async def _frames(self, connection: ClientConnection, rpc_id: int, method: str, size: int) -> AsyncIterator[Frame]:
        """Yield the events of a stream, which a frame of so many bytes has requested."""
        try:
            while (wire := await self._event(connection, rpc_id, method)) is not None:
                size = 0  # The server has taken the frame.
                sequence = wire.get(SEQUENCE)
                yield Frame(None if sequence is None else str(sequence), self._result(wire, method))
        except ConnectionClosed as error:
            raise self._loss(error, size) from error

    async def _event(self, connection: ClientConnection, rpc_id: int, method: str) -> Json | None:
        """Return the frame of the next event of a stream; None after the last one.

        Only an event ends a silence. The library of a server answers pings even if the stream hangs, and a flood of
        notifications would keep the process busy without an end.
        """
        async with within(self.http.timeouts.silence, self._place(method)):
            while True:
                wire = await self._receive(connection)
                if wire.get("method") == END and wire["params"].get("id") == rpc_id:
                    return None
                if wire.get("id") == rpc_id or _is_for_any(wire):
                    return wire
                if wire.get("id") is not None:
                    # The connection has this one call. A server that answers others would be heard for ever.
                    raise InvalidResponse("a frame has the id of another call", where=self._place(method))

    def _frame(self, rpc_id: int, method: str, params: Json, more: Mapping[str, Any]) -> bytes:
        parameters = {**self._parameters, **more}
        return orjson.dumps(envelope(rpc_id, method, params) | ({PARAMETERS: parameters} if parameters else {}))

    def _loss(self, error: ConnectionClosed, size: int) -> ClientError:
        """Return the error of a call whose connection has ended. The size is that of its frame, or 0 if the connection
        did not end because of it."""
        if size and error.rcvd is not None and error.rcvd.code == CloseCode.MESSAGE_TOO_BIG:
            return InvalidRequest(f"the server refused a message of {size} bytes: {error.rcvd}", where=self.where)
        is_cut = isinstance(error.__cause__, ConnectionError | ssl.SSLError)
        return loss_of(f"the connection was closed: {error}", self.where, size if is_cut else 0)

    async def _receive(self, connection: ClientConnection) -> Json:
        """Return the next frame. Raises ClientError, and ConnectionClosed."""
        try:
            frame = await connection.recv()
            check_values(frame, self.where)
            wire = orjson.loads(frame)
        except ValueError:
            wire = None
        fault = _fault(wire)
        if fault:
            raise InvalidResponse(fault, where=self.where)
        return cast("Json", wire)

    def _result(self, wire: Json, method: str) -> Any:
        if wire.get("error") is not None:
            raise refusals.of_rpc(wire["error"], None, self._place(method))
        return wire.get("result")

    def _place(self, method: str) -> str:
        return f"{method} at {self.where}"


async def _leave(connection: ClientConnection) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(LEAVING):
            await connection.close()
    connection.transport.abort()


def _is_for_any(wire: Json) -> bool:
    """Return whether a frame is an error without an id: the server could not read a frame of the client."""
    return wire.get("id") is None and wire.get("error") is not None


def _fault(wire: Any) -> str:
    """Return why a frame cannot be read; an empty text if it can."""
    if not isinstance(wire, dict):
        return "a frame is not a JSON object"
    if isinstance(wire.get("id"), list | dict | bool):
        return "the id of a frame is neither a number nor a text"
    sequence = wire.get(SEQUENCE)
    if sequence is not None and not (type(sequence) is int and sequence >= 0):
        return f"the {SEQUENCE} of a frame is not the number of an event"
    if wire.get("method") == END and not isinstance(wire.get("params"), dict):
        return f"the params of {END} are not an object"
    return ""
