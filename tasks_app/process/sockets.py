"""WebSocket connections on uvicorn with limits: the time of a handshake, the size and the time of a message, its bytes
in the account of its owner, and the progress of readers."""

import asyncio
from http import HTTPStatus
from typing import Any

from django.conf import settings
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from a2a.errors import RateLimited, Unavailable
from tasks_app.limits.accounts import account
from tasks_app.process.asgi_extensions import SOCKET
from tasks_app.process.displacing import waiting
from tasks_app.process.progress import Progress
from tasks_app.process.weights import weigh_head

LAST_SECONDS = 0.5
"""Seconds between the order to stop and the end of a socket. Its streams and waiting calls end in this time."""
FREE_BYTES = 16_384
"""Bytes of a message under way that do not count in the account."""
MAX_FRAGMENTS = 1_024
"""Fragments of a message. An empty one adds nothing to the size of the message, but takes memory."""
MAX_QUEUED = 1_024
"""Messages that may wait until the door takes them. Reading stops behind the first one, but a single read may bring
thousands of tiny ones, which take thirty times as much memory as they have bytes."""
EARLY = "A client must wait for the answer to its handshake before it sends more (RFC 6455, 4.1)."
NO_HANDSHAKE = "This is not a handshake of WebSocket (RFC 6455, 4.1)."
LATE = "The handshake could not be answered in time. Come again soon."
COPIES = 3
"""The number of times that a handshake is in memory while it waits."""
BETWEEN = "at_eof"
"""The innermost generator of the parser of websockets while it waits for the first byte of a frame."""
INVALID_DATA, POLICY, TRY_AGAIN = 1007, 1008, 1013
"""Close codes (RFC 6455, 7.4.1)."""


class Socket(WebSocketsSansIOProtocol):
    """A connection with limits. uvicorn alone has no deadlines, counts no bytes, and may cut off a stream."""

    progress: Progress
    """The progress of its reader."""
    timer: asyncio.TimerHandle
    upgraded_at: float
    """The time at which the handshake came. It must be answered within A2A_HEADER_SECONDS."""
    owner_id: int | None = None
    """The owner of messages, once the door knows it. Without one only the total of all owners is limited."""
    weight = 0
    """Bytes of a message under way, in the account."""
    started_at: float | None = None
    """The time at which the message under way began."""
    place: "asyncio.Future[None] | None" = None
    """The place of its handshake in a line of strangers; None for a handshake that has begun."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.stopping = asyncio.Event()
        """Set when the server closes the socket because it ends."""
        self.progress = Progress(transport)
        self.upgraded_at = self.loop.time()
        waiting[self] = None
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        waiting.pop(self, None)
        self.timer.cancel()
        self._weigh(0)
        if self.place is not None and not self.place.done():
            self.place.set_result(None)
        super().connection_lost(exc)

    # ------------------------------------------------------------------ the handshake

    def line_up(self, place: "asyncio.Future[None] | None") -> None:
        """Note the place of its handshake in a line, or that it has begun."""
        self.place = place

    def abandon(self) -> None:
        """Note that the handshake gets no answer, because its client leaves."""
        self.handshake_complete = True

    @property
    def size(self) -> int:
        """The bytes of memory that its handshake takes: two parsers keep its head, and so does the application."""
        return COPIES * weigh_head(self.scope["headers"])

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if self.close_sent:
            waiting.pop(self, None)  # uvicorn has refused the handshake.
            if self.conn.handshake_exc is not None:
                # Its frames refer to this object, and to the error itself.
                self.conn.handshake_exc.__traceback__ = None
        if self.handshake_initiated and not self.close_sent:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[SOCKET] = self

    async def run_asgi(self) -> None:
        try:
            await super().run_asgi()
        finally:
            # Break the reference cycle, so that the connection is freed once it is lost. Its handshake may be large.
            self.scope["extensions"].clear()

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer the handshake with an error of HTTP, and close."""
        if self.close_sent:
            return
        answer = self.conn.reject(status, detail)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            answer.headers["Retry-After"] = "1"
        self._end_handshake(answer.serialize())

    def _refuse_head(self) -> None:
        """Refuse a head that the parser of HTTP has accepted, and the stricter parser of WebSocket has not.

        uvicorn would neither close nor send the refusal of that parser, if there is one.
        """
        if refusal := b"".join(self.conn.data_to_send()):
            self._end_handshake(refusal)
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, NO_HANDSHAKE)

    def _end_handshake(self, answer: bytes) -> None:
        """Write the last bytes of a connection whose handshake is refused, and close."""
        self.handshake_complete = self.close_sent = True
        waiting.pop(self, None)
        self.transport.write(answer)
        self.transport.close()

    # ------------------------------------------------------------------ messages

    def data_received(self, data: bytes) -> None:
        if self.handshake_initiated and not self.handshake_complete:
            self._refuse(HTTPStatus.BAD_REQUEST, EARLY)
            return
        super().data_received(data)
        if not self.handshake_initiated:
            self._refuse_head()
            return
        if self.close_sent or self.transport.is_closing():
            return
        # A message is in the buffer of its parser, and its earlier fragments are in a list, until it is complete.
        size = len(self.conn.reader.buffer) + (sum(map(len, self.frames)) if self.frames else 0)
        under_way = size or self.frames or self._is_within_frame()  # Fragments may be empty.
        self.started_at = (self.started_at or self.loop.time()) if under_way else None
        if size > FREE_BYTES or self.weight:
            self._count(size)

    def _is_within_frame(self) -> bool:
        """Return whether the parser has read the head of a frame, and of its payload nothing yet."""
        parser: Any = self.conn.parser
        while (inner := parser.gi_yieldfrom) is not None:
            parser = inner
        return bool(parser.__name__ != BETWEEN)

    def handle_cont(self, event: Any) -> None:
        super().handle_cont(event)
        if len(self.frames) > MAX_FRAGMENTS:
            self._fail(POLICY, f"a message may have {MAX_FRAGMENTS} fragments")

    def send_receive_event_to_app(self) -> None:
        self.started_at = None
        if self.curr_msg_data_type == "text" and not _is_utf8(b"".join(self.frames)):
            # uvicorn would log it as a fault of the server, with a traceback.
            self._fail(INVALID_DATA, "a text message must be in UTF-8")
            return
        if self.queue.qsize() >= MAX_QUEUED:
            while not self.queue.empty():
                self.queue.get_nowait()
            self._fail(POLICY, f"{MAX_QUEUED} messages may wait until those before them are read")
            return
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer a ping if the client reads. Pongs for a client that only writes would fill the memory."""
        answer = self.conn.data_to_send()
        if self.writable.is_set():
            self.transport.write(b"".join(answer))

    async def send(self, message: Any) -> None:
        """Send a message, and return when the client has taken most of it."""
        if self.close_sent:
            raise ClientDisconnected
        if message["type"] != "websocket.send":
            waiting.pop(self, None)  # The handshake is being answered.
        await super().send(message)
        await self.writable.wait()

    def _count(self, size: int) -> None:
        try:
            self._weigh(size if size > FREE_BYTES else 0)
        except (RateLimited, Unavailable):
            self._fail(TRY_AGAIN, "too many bytes of messages at once; come again soon")

    def _weigh(self, size: int) -> None:
        """Set the bytes in the account. Raises RateLimited and Unavailable."""
        if size > self.weight:
            account.take(self.owner_id, "bodies", size - self.weight)
        elif size < self.weight:
            account.give(self.owner_id, "bodies", self.weight - size)
        self.weight = size

    def _fail(self, code: int, reason: str) -> None:
        """End the connection with a reason."""
        if self.close_sent:
            return
        self._weigh(0)
        self.frames = []
        self.conn.fail(code, reason)
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()

    # ------------------------------------------------------------------- deadlines

    def pause_writing(self) -> None:
        super().pause_writing()
        self.progress.pause(self.loop.time())

    def resume_writing(self) -> None:
        super().resume_writing()
        self.progress.resume()

    def shutdown(self) -> None:
        """Close the socket once its streams and waiting calls have had time to send their end."""
        self.timer.cancel()
        self.timer = self.loop.call_later(LAST_SECONDS, self._shut_down)

    async def wait_for_stop(self) -> None:
        """Wait until the server closes the socket because it ends."""
        await self.stopping.wait()

    def _shut_down(self) -> None:
        self.stopping.set()
        if not self.handshake_complete:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, LATE)  # uvicorn would answer with 500.
        super().shutdown()

    def _set_timer(self) -> None:
        """Set the timer for all deadlines. It may be late by half of the shortest one."""
        shortest = min(settings.A2A_WRITE_SECONDS, settings.A2A_BODY_SECONDS, settings.A2A_HEADER_SECONDS)
        self.timer = self.loop.call_later(shortest / 2, self._check_progress)

    def _check_progress(self) -> None:
        now = self.loop.time()
        if self.progress.is_too_slow(now):
            self.transport.abort()
            return
        if not self.handshake_complete and now - self.upgraded_at >= settings.A2A_HEADER_SECONDS:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, LATE)
        if self.started_at is not None and not self.read_paused and now - self.started_at > settings.A2A_BODY_SECONDS:
            self._fail(POLICY, f"a message must arrive within {settings.A2A_BODY_SECONDS:g} s")
        self._set_timer()  # Also for a connection that closes: its client may not read what is left.


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
