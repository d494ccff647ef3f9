"""JSON-RPC over WebSocket: calls share one connection and are matched to answers by id. Each stream has a connection of
its own, so that a slow reader of a stream holds back no call and no other stream."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, cast

import orjson
from websockets import ClientConnection, ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, connect

from a2a.client import refusals
from a2a.client.errors import (
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    ConnectTimeout,
    InvalidResponse,
    Timeout,
    UntrustedServer,
)
from a2a.client.http import Answer, Http
from a2a.client.patience import seconds_until
from a2a.client.transports import Frame
from a2a.client.transports.jsonrpc import envelope
from a2a.types import Json

PARAMETERS = "a2a-service-parameters"
"""The member with the service parameters of a frame (A2A 1.0.1, 12.3)."""
AFTER, SEQUENCE, END = "afterSequence", "sequence", "stream/end"
"""The parameter and the member for the number of an event, and the method that ends a stream."""
PINGS = 20.0
"""Seconds between two pings, and for the answer to a ping, if no limit for the silence of a stream is set."""


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
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        """The calls that have no answer yet, by their ids."""
        self._lock = asyncio.Lock()

    async def call(self, method: str, params: Json, seconds: float) -> Any:
        rpc_id = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[rpc_id] = answer
        try:
            async with asyncio.timeout(seconds):
                connection = await self._shared()
                await self._send(connection, rpc_id, method, params, {})
                return self._result(await answer, method)
        except TimeoutError:
            raise Timeout(f"no answer within {seconds:g} seconds", where=self._place(method)) from None
        finally:
            del self._waiting[rpc_id]
            answer.cancel()

    @asynccontextmanager
    async def stream(self, method: str, params: Json, after: str | None) -> AsyncIterator[AsyncIterator[Frame]]:
        rpc_id = next(self._ids)
        resumption = {AFTER: int(after)} if after is not None and after.isdigit() else {}
        connection = await self._connect()
        try:
            await self._send(connection, rpc_id, method, params, resumption)
            yield self._frames(connection, rpc_id, method)
        finally:
            await connection.close()

    async def close(self) -> None:
        """Close the connection of calls."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        if self._connection is not None:
            await self._connection.close()

    # ------------------------------------------------------------- connections

    async def _connect(self) -> ClientConnection:
        credentials = self.http.credentials
        headers = await credentials.headers() if credentials else {}
        pings = self.http.timeouts.silence / 2 if self.http.timeouts.silence else PINGS
        try:
            return await _Direct(
                self.where,
                additional_headers=headers,
                open_timeout=self.http.timeouts.connect,
                ping_interval=pings,
                ping_timeout=pings,
                max_size=self.http.largest,
                compression=None,
            )
        except InvalidStatus as error:
            raise self._refusal(error) from error
        except TimeoutError:
            raise ConnectTimeout("no connection in time", where=self.where) from None
        except ssl.SSLCertVerificationError as error:
            raise UntrustedServer(f"the certificate of the server is not valid: {error}", where=self.where) from error
        except (InvalidHandshake, InvalidURI) as error:
            raise InvalidResponse(f"no WebSocket: {error}", where=self.where) from error
        except OSError as error:
            raise ConnectionRefused(f"no connection: {error}", where=self.where) from error

    def _refusal(self, error: InvalidStatus) -> ClientError:
        """Return the error of a handshake that the server has refused with an answer of HTTP."""
        response = error.response
        if response.status_code == 401 and self.http.credentials:
            self.http.credentials.refused()
        wait = seconds_until(response.headers.get("Retry-After"), self.http.clock)
        media = response.headers.get("Content-Type", "")
        answer = Answer(response.status_code, media, bytes(response.body or b""), wait)
        envelope = refusals.in_envelope(answer)
        if envelope is not None and envelope.get("error") is not None:
            return refusals.of_rpc(envelope["error"], answer, self.where)
        return refusals.of_status(answer, self.where)

    async def _shared(self) -> ClientConnection:
        async with self._lock:
            if self._connection is None or self._reading is None or self._reading.done():
                self._connection = await self._connect()
                self._reading = asyncio.create_task(self._read(self._connection))
            return self._connection

    async def _read(self, connection: ClientConnection) -> None:
        """Hand each answer to its call, until the connection ends."""
        fault: ClientError = ConnectionLost("the connection was closed", where=self.where)
        try:
            while True:
                wire = await self._receive(connection)
                answer = self._waiting.get(wire.get("id", 0))
                if answer is not None and not answer.done():
                    answer.set_result(wire)
        except ClientError as error:
            fault = error
            connection.transport.abort()
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(fault)

    # ------------------------------------------------------------------- frames

    async def _frames(self, connection: ClientConnection, rpc_id: int, method: str) -> AsyncIterator[Frame]:
        while True:
            wire = await self._receive(connection)
            if wire.get("method") == END and wire["params"].get("id") == rpc_id:
                return
            if wire.get("id") == rpc_id:
                sequence = wire.get(SEQUENCE)
                yield Frame(None if sequence is None else str(sequence), self._result(wire, method))

    async def _send(self, connection: ClientConnection, rpc_id: int, method: str, params: Json, more: Json) -> None:
        wire = envelope(rpc_id, method, params)
        parameters = {**self._parameters, **more}
        try:
            await connection.send(orjson.dumps(wire | ({PARAMETERS: parameters} if parameters else {})).decode())
        except ConnectionClosed as error:
            raise ConnectionLost(f"the connection was closed: {error}", where=self.where) from error

    async def _receive(self, connection: ClientConnection) -> Json:
        try:
            wire = orjson.loads(await connection.recv())
        except ConnectionClosed as error:
            raise ConnectionLost(f"the connection was closed: {error}", where=self.where) from error
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


def _fault(wire: Any) -> str:
    """Return why a frame cannot be read; an empty text if it can."""
    if not isinstance(wire, dict):
        return "a frame is not a JSON object"
    if isinstance(wire.get("id"), list | dict | bool):
        return "the id of a frame is neither a number nor a text"
    if not isinstance(wire.get(SEQUENCE), int | None):
        return f"the {SEQUENCE} of a frame is not an integer"
    if wire.get("method") == END and not isinstance(wire.get("params"), dict):
        return f"the params of {END} are not an object"
    return ""
