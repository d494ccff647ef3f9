"""The WebSocket door: many calls and streams at once on one connection, as frames of JSON-RPC (docs/websocket.md)."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from functools import cache, partial
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.http import HttpRequest
from msgspec import UNSET
from msgspec.structs import replace

from a2a.documents import Encoded
from a2a.envelopes import AnyMember, Id, Member
from a2a.errors import Error, InvalidRequest, RateLimited
from tasks_app.callers.access import Caller
from tasks_app.database.errors import MAY_PASS, Busy
from tasks_app.database.waits import CallerLeft
from tasks_app.database.work import Work
from tasks_app.limits.accounts import Holding, account
from tasks_app.limits.turns import Turn, turns
from tasks_app.process.asgi_extensions import SOCKET
from tasks_app.transports.call import SMALL, Call, Reply
from tasks_app.transports.endings import end_stream
from tasks_app.transports.frames import END, end_of_stream, text_of, with_parameters
from tasks_app.transports.handshake import ENDPOINT, Opening, encode_refusal, open_socket, request_of
from tasks_app.transports.http import Refusal, add_headers
from tasks_app.transports.keys import KEY_SECONDS, has_ended, is_valid, rest_of
from tasks_app.transports.receiving import Batch, join, methods_of, parse, receive_parsed, refuse_body
from tasks_app.transports.streams import End, Stream

log = logging.getLogger(__name__)
IDLE, NO_TEXT, INVALID_KEY, FAULT = 1001, 1003, 1008, 1011
"""Close codes (RFC 6455, 7.4.1)."""
REASONS = {End.DONE: "done", End.REVOKED: "revoked", End.TOO_LONG: "too-long", End.DRAINING: "draining"}
"""The reasons in the last frame of a stream, by the end of the stream. A fault is the reason of all others."""
ON_REQUEST = "asked"
"""The reason of a stream that its client has ended."""
RESUMABLE = {End.TOO_LONG, End.DRAINING, End.FAULT}
"""The ends after which a client should come back with the last sequence number that it has seen."""
STREAMING = {
    name for language in ENDPOINT.languages for name, method in language.methods.items() if method.request.streaming
}
"""The methods that stream, in any language."""
NO_LIMITS = (
    "this server has no limits for WebSocket connections, so it refuses them: use manage.py run or manage.py serve"
)
Name = tuple[bool, Id]
"""An id, and whether it is a string: the string "1" is another id than the number."""


class WebSocket(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels ships no types
    """One connection. It has no layer: news of tasks come to the readers of the process, once for all streams."""

    channel_layer_alias = None
    opening: Opening | None = None

    def __init__(self) -> None:
        super().__init__()
        self.working: set[asyncio.Task[Any]] = set()
        """The work on frames."""
        self.calls: dict[Name, asyncio.Task[Any]] = {}
        """The work on calls and streams in flight, by their ids."""
        self.members: dict[asyncio.Task[Any], int] = {}
        """The numbers of calls in batches in flight, by the work on their frames."""
        self.streams: set[asyncio.Task[Any]] = set()
        """The part of `calls` that has become a stream."""
        self.beginning: set[asyncio.Task[Any]] = set()
        """The part of `calls` whose method streams, until it has become a stream, or is refused."""
        self.unwanted: set[asyncio.Task[Any]] = set()
        """The streams that the client has asked to end."""
        self.silent: set[asyncio.Task[Any]] = set()
        """The work on notifications, which goes on when the client has left: it waits for no answer."""
        self.sending = asyncio.Lock()
        """The right to send. No frame is queued: work waits here until the client has taken the frame before."""
        self.closing = asyncio.Event()
        """Set when the connection ends, before the work on its frames is cancelled."""
        self.socket: Any = None
        """The connection of our own server."""
        self.waits_for_turn = False
        """Whether a frame waits for the turn of its caller."""
        self.quiet_since = 0.0
        """The time at which the last work ended."""

    # ------------------------------------------------------ the life of a connection

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._leave()

    async def dispatch(self, message: Any) -> None:
        """Call the handler of a message. Channels would visit a thread first, to close connections of the database
        which this door does not have."""
        match message["type"]:
            case "websocket.connect":
                await self.websocket_connect(message)
            case "websocket.receive":
                # The message lives until the next one comes, and its text may be large.
                await self.receive(message.pop("text", None))
            case "websocket.disconnect":
                await self.websocket_disconnect(message)

    async def connect(self) -> None:
        """Accept the connection, or refuse it with an answer of HTTP."""
        request = request_of(self.scope)
        try:
            socket = _limited(self.scope)
            self.opening = await open_socket(request, self.scope.get("subprotocols", ()))
        except Refusal as refusal:
            await self._refuse(request, refusal)
            return
        self.socket, socket.owner_id = socket, self.opening.call.caller.owner_id
        self.quiet_since = asyncio.get_running_loop().time()
        self.watch = asyncio.ensure_future(self._watch(self.opening.call))
        await self.accept(self.opening.protocol)  # The last step: it raises ClientDisconnected if the client has left.

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Begin to answer a frame when its caller has a turn for it. Meanwhile no further frame is read.

        One too many is refused, and then no further frame is read until it is answered.
        """
        if text_data is None or self.opening is None:
            await self.close(NO_TEXT, "frames must be text, with JSON in it")
            return
        base = self.opening.call
        refusal: Error | None = None
        if self.socket.stopping.is_set():
            return  # No answer could be sent any more.
        self.waits_for_turn = True
        try:
            turn = await turns.take(base.caller.owner_id, self.socket.wait_for_stop)
        except CallerLeft:
            return
        except Busy as error:
            refusal, turn = error, Turn(turns, base.caller.owner_id)  # The refusal waits for none a second time.
        finally:
            self.waits_for_turn = False
        if len(self.working) - len(self.streams) >= settings.A2A_SOCKET_CALLS:
            refusal = RateLimited(limit="calls in flight on a socket", most=str(settings.A2A_SOCKET_CALLS))
        work = asyncio.ensure_future(self._work(base, turn, text_data.encode(), refusal))
        self.working.add(work)
        work.add_done_callback(partial(self._end_work, turn))
        if refusal is not None:
            await asyncio.wait({work})

    def _end_work(self, turn: Turn, work: "asyncio.Task[Any]") -> None:
        turn.end()  # The work has done so, unless it was cancelled before it began.
        self.working.discard(work)
        self.members.pop(work, None)
        self.silent.discard(work)
        self.beginning.discard(work)
        self.unwanted.discard(work)
        if work.cancelled():  # A callback that an agent leaves behind can cancel it while its answer is being sent.
            self.calls = {name: call for name, call in self.calls.items() if call is not work}
        self.quiet_since = asyncio.get_running_loop().time()

    async def _leave(self) -> None:
        """End the work of a connection that is closed or lost. Its tasks go on."""
        if self.opening is None:
            return
        self.closing.set()
        work = [*self.working, self.watch]
        for one in work:
            if one not in self.silent:
                one.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        self.opening.holding.release()

    async def _departure(self) -> None:
        """Wait until the connection ends."""
        await self.closing.wait()

    async def _refuse(self, request: HttpRequest, refusal: Refusal) -> None:
        """Refuse the handshake, with a status of HTTP if the server can send one."""
        response = encode_refusal(request, refusal)
        if "websocket.http.response" not in self.scope.get("extensions", {}):
            await self.close()
            return
        add_headers(request, response, refusal.error)
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.items()]
        start = {"type": "websocket.http.response.start", "status": response.status_code, "headers": headers}
        await self.base_send(start)
        await self.base_send({"type": "websocket.http.response.body", "body": response.content})

    async def _watch(self, call: Call) -> None:
        """Close the connection when its key is revoked or ends, and when it has been idle for too long."""
        proof, expires_at = call.find_again(), call.caller.expires_at
        clock = asyncio.get_running_loop().time
        due = clock() + rest_of(expires_at, KEY_SECONDS)
        while True:
            is_busy = self.working or self.waits_for_turn
            idle_at = (clock() if is_busy else self.quiet_since) + settings.A2A_SOCKET_IDLE_SECONDS
            if clock() >= idle_at:
                await self.close(IDLE, f"there was no call for {settings.A2A_SOCKET_IDLE_SECONDS:g} s")
                return
            if clock() >= due:
                due = clock() + rest_of(expires_at, KEY_SECONDS)
                if has_ended(expires_at) or not await _is_valid(proof):
                    await self.close(INVALID_KEY, "the key of this socket is not valid any more")
                    return
            await asyncio.sleep(max(0.0, min(due, idle_at) - clock()))

    # ------------------------------------------------------------------ one frame

    async def _work(self, base: Call, turn: Turn, body: bytes, refusal: Error | None) -> None:
        """Answer one frame, with the one catch of the door."""
        try:
            reply = await self._handle(base, turn, body, refusal)
            del body  # It may be large, and a stream open for long.
            await (self._answer_batch(reply) if isinstance(reply, Batch) else self._answer(reply))
        except OSError:
            pass  # The client has left.
        except Exception:
            log.exception("a frame of a socket could not be answered")
            await self.close(FAULT, "a fault of the server")

    async def _handle(self, base: Call, turn: Turn, body: bytes, refusal: Error | None) -> Reply | Batch:
        """Return the reply to a frame. One that cannot be matched to a call is an error with the id null."""
        # The key is looked up again, because it may be revoked by now.
        call = replace(base, identity=None, turn=turn)
        weight, members = None, None
        try:
            weight = _weigh(base, body)
            members = await parse(ENDPOINT, body)
            if isinstance(members, Member) and members.method == END:
                # A client at its limit must be able to end a stream. Frames are read one at a time then.
                return await end_stream(call, members, body, self._end_stream)
            if refusal is not None:
                raise refusal
            if _is_silent(members):
                self.silent.add(_current())
            else:
                call.departure = self._departure
            if isinstance(members, Member):
                self._take_id(members)
            if isinstance(members, list):
                self._take_members(len(members))
            reply = await receive_parsed(call, members, body)
            if isinstance(reply, Batch):
                # Its members are still in memory.
                reply.hold(weight)
                weight = None
            return reply
        except Error as error:
            rpc_id = None if isinstance(error, InvalidRequest) else _id_of(members)
            return await refuse_body(call, body, error, rpc_id, methods_of(members) if members else ())
        finally:
            turn.end()
            if weight:
                weight.release()

    async def _answer(self, reply: Reply) -> None:
        """Send the reply to one call: an answer, a stream, or nothing for a notification."""
        try:
            if reply.stream is not None:
                await self._stream(reply, reply.stream)
                return
            payload = await reply.late.payload(early=False) if reply.late else reply.payload
            self._free_id(reply.wrapping.id)
            if payload is not None:
                await self._send(payload, reply.headers)
        finally:
            reply.release()

    async def _answer_batch(self, batch: Batch) -> None:
        """Send the answers to the members of a batch, in one frame, if there are any."""
        try:
            answers = [(reply.payload, reply.headers) for reply in await batch.work if reply.payload is not None]
            if not batch.silent:
                await self._send(await join(with_parameters(payload, headers) for payload, headers in answers))
        finally:
            batch.release()

    # ------------------------------------------------------------------ streams

    async def _stream(self, reply: Reply, stream: Stream) -> None:
        """Send the events of a stream, and then a frame with the reason of its end."""
        work = _current()
        self.beginning.discard(work)
        self.streams.add(work)
        try:
            await self._send_events(stream, reply.headers)
        except asyncio.CancelledError:
            if work not in self.unwanted or work.uncancel():
                raise
        finally:
            self.streams.discard(work)
        self._free_id(reply.wrapping.id)
        if stream.failure:
            await self._send(stream.failure)
        on_request = work in self.unwanted
        reason = ON_REQUEST if on_request else REASONS.get(stream.end, "fault")
        await self._send(end_of_stream(reply.wrapping.id, reason, resume=not on_request and stream.end in RESUMABLE))

    async def _send_events(self, stream: Stream, parameters: dict[str, str]) -> None:
        """Send each page before asking for the next one. A stream that is unwanted before it begins has one page, which
        tells the client its task."""
        async with aclosing(stream.pages()) as pages:
            async for page in pages:
                for seq, event in page:
                    number = seq if stream.numbers_frames else None
                    stream.count_bytes(await self._send(event, parameters, number))
                    parameters = {}
                    del event
                page.clear()
                if _current() in self.unwanted:
                    return

    def _end_stream(self, rpc_id: Id) -> bool:
        """End the stream of a call by the wish of the client; return whether there is one, or one is to begin."""
        work = self.calls.get(_name(rpc_id))
        if work is None or work in self.unwanted or work not in self.streams | self.beginning:
            return False
        self.unwanted.add(work)
        return work in self.beginning or work.cancel()

    # ------------------------------------------------------------- ids, and sending

    def _take_id(self, call: Member) -> None:
        """Note that a call with its id is in flight. Raises InvalidRequest if another one is."""
        if call.id is UNSET or call.id is None:
            return
        if _name(call.id) in self.calls:
            raise InvalidRequest(detail="another call with this id is in flight on this socket; choose another id")
        self.calls[_name(call.id)] = _current()
        if call.method in STREAMING:
            self.beginning.add(_current())

    def _take_members(self, number: int) -> None:
        """Note that a batch with so many calls is in flight. Raises RateLimited if there are too many beside it."""
        others = sum(self.members.values())
        if others and others + number > settings.A2A_SOCKET_CALLS:
            raise RateLimited(limit="calls in batches on a socket", most=str(settings.A2A_SOCKET_CALLS))
        self.members[_current()] = number

    def _free_id(self, rpc_id: Id) -> None:
        """Note that the call of this work is answered. The client may use the id again once it has the answer."""
        if self.calls.get(_name(rpc_id)) is _current():
            del self.calls[_name(rpc_id)]

    async def _send(self, payload: Encoded, parameters: Mapping[str, str] | None = None, seq: int | None = None) -> int:
        """Send a frame when the client has taken those before; return its size in characters."""
        text = await text_of(payload, parameters, seq)
        async with self.sending:
            await self.send(text)
        return len(text)


def _limited(scope: Mapping[str, Any]) -> Any:
    """Return the connection of our own server, which limits its messages and its readers. Raises Refusal: 501."""
    socket = scope.get("extensions", {}).get(SOCKET)
    if socket is None:
        _warn(NO_LIMITS)
        raise Refusal(501, NO_LIMITS)
    return socket


@cache
def _warn(sentence: str) -> None:
    """Log a sentence once."""
    log.warning(sentence)


def _name(rpc_id: Id) -> Name:
    return isinstance(rpc_id, str), rpc_id


def _id_of(members: AnyMember | list[AnyMember] | None) -> Id:
    return members.id if isinstance(members, Member) and members.id is not UNSET else None


def _is_silent(members: AnyMember | list[AnyMember]) -> bool:
    return all(member.id is UNSET for member in (members if isinstance(members, list) else [members]))


def _current() -> "asyncio.Task[Any]":
    work = asyncio.current_task()
    if work is None:
        raise RuntimeError("frames are answered in tasks of asyncio")
    return work


def _weigh(base: Call, body: bytes) -> Holding | None:
    """Take a large frame from the account of its caller. Raises RateLimited and Unavailable."""
    return account.hold_body(base.caller.owner_id, len(body)) if len(body) > SMALL else None


async def _is_valid(proof: Work[Caller | None]) -> bool:
    """Return whether the key is valid, as far as the database can be asked."""
    try:
        return await is_valid(proof)
    except (*MAY_PASS, Error):
        return True
