"""HTTP connections on uvicorn, within limits: heads and trailers by bytes and time, readers by their progress, and all
connections by their number."""

import asyncio
import fcntl
import resource
import socket
import termios
from array import array
from http import HTTPStatus
from typing import Any

import httptools
from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_BYTES = 32_768
"""The most that the head of a request may have, and again its trailers."""
FIELD_BYTES = 32
"""The cost of a field besides its name and value (RFC 9113, 6.5.2, counts so): empty fields are not free."""
MAX_PIPELINE = 64
"""Requests that may wait on a connection behind the one that is being answered."""
TINY_BYTES, MOST_TINY = 16, 1_024
"""Pieces of a body with fewer bytes, and how many of them a body may have: each costs as much as a large one."""
LEAST_PROGRESS = 16_384
"""Bytes that a reader must take within A2A_WRITE_SECONDS while more waits for it."""
LINGER_BYTES, LINGER_SECONDS = 1_000_000, 1.0
"""The rest that a refused client may still send before its connection is closed: it reads the answer only then."""
DESCRIPTORS = 0.8
"""The part of the process's file descriptors that connections may take. Agents and the database need the rest."""
RECEIVED = 32_768
"""Bytes of a connection that the kernel is asked to keep until they are read; Linux takes twice as much."""
COMPLETE = "taskdesk.complete"
"""The extension of ASGI in the scope of a request that has arrived as a whole: its body is read without waiting."""
CUT = "taskdesk.cut"
"""The extension of ASGI that is a function: it ends the connection of an answer under way."""
SPARE = 16
"""One in so many connections may exceed the limit for as long as its refusal takes."""


class Refused(Exception):
    """The request cannot be read any further. Raised inside the parser's callbacks, which ends the parsing."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def most_connections() -> int:
    """Return how many connections this process takes: A2A_CONNECTIONS, or less if descriptors are short."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return settings.A2A_CONNECTIONS
    return max(1, min(settings.A2A_CONNECTIONS, int(descriptors * DESCRIPTORS)))


_unserved: dict["Connection", None] = {}
"""Connections of this process on which no request is being answered, longest first. At the limit the first one gives
way to a new connection, so that strangers who only hold connections lock no caller out."""


class Connection(HttpToolsProtocol):
    """One connection. uvicorn alone would wait for ever, and count nothing."""

    most: int | None = None
    """The limit of connections, looked up with the first one."""
    since: float | None = None
    """When the head under way began; None while none is."""
    look: asyncio.TimerHandle | None = None
    reading_head = False
    reading_message = False
    """Between the beginning of a message and its end, trailers included."""
    head = 0
    """Bytes of the head, or of the trailers, under way."""
    silent = 0
    """Bytes received since the parser last reported a part of a message: of a field without end it reports nothing."""
    hosts = 0
    tiny = 0
    """Tiny pieces of the body under way."""
    running: RequestResponseCycle | None = None
    """The request that is being answered; uvicorn's `cycle` is the one that came last."""
    stuck: tuple[float, int] | None = None
    """Since when, and with how many bytes left, the reader has been behind."""
    unread: tuple[float, int] | None = None
    """Since when, and with how many bytes, the kernel keeps the end of an answer that was given to it as a whole."""
    extensions: Any = None
    """Extensions of ASGI that each request of this connection may use."""
    complete: Any = None
    """The extensions of a request that has arrived as a whole."""
    kept = b""
    """Bytes that came behind a whole request while it was being answered. They are read when it has been."""
    dropped: int | None = None
    """Bytes that were thrown away since a refusal; None before one."""

    # ------------------------------------------------------------------ begin, end

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # The event loop reads what the kernel has of a connection, wanted or not: up to a quarter of a megabyte.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
        self.since = self.loop.time()
        self.extensions = {CUT: self.cut}
        self.complete = self.extensions | {COMPLETE: {}}
        self._look_later()
        if Connection.most is None:
            Connection.most = most_connections()
        if len(self.connections) <= Connection.most or self._find_room(Connection.most):
            _unserved[self] = None

    def _find_room(self, most: int) -> bool:
        """Close the connection that has waited longest without a request; else refuse this one."""
        if oldest := next(iter(_unserved), None):
            del _unserved[oldest]
            oldest.transport.close()
            return True
        if len(self.connections) > most + most // SPARE:
            self.transport.abort()
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "This process has too many connections. Come again soon.")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        _unserved.pop(self, None)
        self.kept = b""
        for extensions in (self.extensions, self.complete):
            extensions.clear()  # Else they would keep this connection until garbage is collected.
        if self.look is not None:
            self.look.cancel()
        # uvicorn tells only the request that came last that its client has left.
        for cycle in [self.running, *(cycle for cycle, _ in self.pipeline)]:
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    # ------------------------------------------------------------------ what arrives

    def data_received(self, data: bytes) -> None:
        if self.dropped is not None:
            self.dropped += len(data)
            if self.dropped > LINGER_BYTES:
                self.transport.abort()
            return
        running = self.running
        if running is not None and not running.response_complete and not running.more_body:
            # An answer may be a stream of hours, and each head behind it work for others to wait for: what is in the
            # kernel's buffers stays there, so that the client waits too.
            self.kept += data
            self.flow.pause_reading()
            return
        # On a kept connection the clock starts with the first byte of the next request, or with what is none.
        if self.since is None and not self.reading_message:
            self.since = self.loop.time()
        self.silent += len(data)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._unsupported_upgrade_warning()
        except httptools.HttpParserError as error:
            cause = error.__context__
            status = cause.status if isinstance(cause, Refused) else HTTPStatus.BAD_REQUEST
            self._refuse(status, str(cause) if isinstance(cause, Refused) else "This is not a request of HTTP/1.1.")
            return
        if self.silent > HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.reading_head = self.reading_message = True
        self.head = self.silent = self.hosts = self.tiny = 0
        if self.since is None:
            # Of a head behind another request, whose answer may be a stream.
            self.since = self.loop.time()

    def on_url(self, url: bytes) -> None:
        self.silent = 0
        self.head += len(url)
        if self.head > HEAD_BYTES:
            raise Refused(HTTPStatus.REQUEST_URI_TOO_LONG, _too_large())
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # Called ten times a request: it does what uvicorn's does, instead of calling it.
        self.silent = 0
        self.head += len(name) + len(value) + FIELD_BYTES
        if self.head > HEAD_BYTES:
            raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _too_large())
        if not self.reading_head:
            # A field behind the body is none that a proxy has checked, nor may it act as one of the head
            # (RFC 9110, 6.5.1).
            return
        name = name.lower()
        if name == b"host":
            self.hosts += 1
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.reading_head, self.since = False, None
        self.head = self.silent = 0
        if self.hosts != 1 or self.pipeline or self.parser.get_http_version() != "1.1":
            self._check()
        _unserved.pop(self, None)
        super().on_headers_complete()
        self.scope["extensions"] = self.extensions

    def _check(self) -> None:
        """Raises Refused for a head that two servers could read in two ways."""
        version = self.parser.get_http_version()
        if version not in {"1.0", "1.1"}:
            raise Refused(HTTPStatus.BAD_REQUEST, "The version of the request must be HTTP/1.1 or HTTP/1.0.")
        if self.hosts != 1 and (version == "1.1" or self.hosts):
            raise Refused(HTTPStatus.BAD_REQUEST, "A request of HTTP/1.1 must have one Host header (RFC 9112, 3.2).")
        if version == "1.0" and any(name == b"transfer-encoding" for name, _ in self.headers):
            raise Refused(HTTPStatus.BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding (RFC 9112, 6.1).")
        if len(self.pipeline) >= MAX_PIPELINE:
            raise Refused(HTTPStatus.BAD_REQUEST, f"At most {MAX_PIPELINE} requests may wait on a connection.")

    def on_body(self, body: bytes) -> None:
        # What stands around the chunks of a body may be as long as they are, and no more.
        self.silent = max(0, self.silent - 2 * len(body))
        if len(body) < TINY_BYTES:
            self.tiny += 1
            if self.tiny > MOST_TINY:
                raise Refused(HTTPStatus.BAD_REQUEST, f"The body comes in more than {MOST_TINY} tiny pieces.")
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.reading_message = False
        self.scope["extensions"] = self.complete
        super().on_message_complete()

    # ------------------------------------------------------------------ what is answered

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.running is not None and self.running.response_complete and not self.transport.is_closing():
            _unserved[self] = None
        if self.kept and not self.transport.is_closing():
            kept, self.kept = self.kept, b""
            self.data_received(kept)

    def cut(self) -> None:
        """End the connection in the midst of an answer, which thereby lacks its end (RFC 9112, 8)."""
        if self.running is not None:
            # uvicorn would report a fault of the application.
            self.running.disconnected = True
        self.transport.close()

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer and close, once the client has had time to read it; close at once if another answer is under way."""
        running = self.running
        if running is not None and not running.response_complete:
            if running.response_started or not running.more_body:
                self.transport.close()
                return
            # What is refused is the end of this very request, whose answer has not begun.
            running.disconnected = True
            running.message_event.set()
        _unserved.pop(self, None)
        self.dropped, self.since = 0, None
        body = detail.encode()
        retry = "retry-after: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
        self.transport.write(
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\n{retry}connection: close\r\n\r\n".encode()
            + body
        )
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)

    # ------------------------------------------------------------------ what takes too long

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stuck = self.loop.time(), self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stuck = None

    def _look_later(self) -> None:
        """One timer a connection and not one a request: it is late by half a period at most."""
        period = min(settings.A2A_HEADER_SECONDS, settings.A2A_WRITE_SECONDS) / 2
        self.look = self.loop.call_later(period, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        if self._is_stuck(now) or self._is_unread(now):
            self.transport.abort()
            return
        if self.since is not None and now - self.since >= settings.A2A_HEADER_SECONDS:
            self.transport.close()
        self._look_later()

    def _is_stuck(self, now: float) -> bool:
        """Return whether the reader takes too little. Only a paused or closing connection is written to no more, so
        that what is left says what the reader took."""
        if self.stuck is None:
            if self.transport.is_closing():
                self.stuck = now, self.transport.get_write_buffer_size()
            return False
        began, left = self.stuck
        if now - began < settings.A2A_WRITE_SECONDS:
            return False
        remaining = self.transport.get_write_buffer_size()
        self.stuck = now, remaining
        return left - remaining < LEAST_PROGRESS

    def _is_unread(self, now: float) -> bool:
        """Return whether the reader takes too little of an answer that only the kernel has by now, which keeps
        megabytes of it: to the server that connection is idle, and idle ones may stay for long."""
        queued = _queued(self.transport) if self in _unserved else 0
        if not queued:
            self.unread = None
            return False
        if self.unread is None:
            self.unread = now, queued
            return False
        began, left = self.unread
        if now - began < settings.A2A_WRITE_SECONDS:
            return False
        self.unread = now, queued
        return left - queued < LEAST_PROGRESS


def _queued(transport: Any) -> int:
    """Return how many bytes the kernel has that the other side has not acknowledged; 0 where that cannot be asked."""
    answer = array("i", [0])
    try:
        fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, answer)
    except OSError:
        return 0
    return answer[0]


def _too_large() -> str:
    return f"The head of a request, or its trailers, may have {HEAD_BYTES} bytes."
