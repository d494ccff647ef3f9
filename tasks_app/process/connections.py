"""HTTP connections on uvicorn with limits: bytes and time of heads and trailers, progress of readers, and the number of
connections."""

import asyncio
import socket
from collections.abc import Collection
from http import HTTPStatus
from typing import Any, ClassVar

import httptools
from django.conf import settings

from tasks_app.process.answering import LARGE_DIGITS, Answering
from tasks_app.process.asgi_extensions import COMPLETE, CONNECTION, CUT, DROP, WHOLE
from tasks_app.process.descriptors import max_connections
from tasks_app.process.displacing import displace, waiting
from tasks_app.process.head_limits import FIELD_BYTES, HEAD_BYTES, MAX_FIELDS, Refused, say_too_large, say_too_many
from tasks_app.process.progress import Progress
from tasks_app.process.upgrades import announces_body, head_without_offer, is_request_of_socket, make_parser
from tasks_app.process.weights import weigh_head

MAX_PIPELINE = 64
"""Requests that may wait on a connection for the answer of an earlier one."""
MAX_PIPED = 524_288
"""Bytes of memory that they may take. One read may bring dozens, with thousands of fields."""
TINY_BYTES, MAX_TINY = 16, 1_024
"""The size below which a piece of a body is tiny, and the tiny pieces of a body. Each costs as much as a large one."""
MAX_UNREAD = 16_384
"""Bytes of a body, or behind a request that is being answered, above which reading stops until they are taken. One read
may bring more."""
MAX_OWED = 32_768
"""Bytes of memory that requests may take on a connection whose first one waits for its early refusal, or for the
look-up of its credential."""
MAX_BEHIND = 4_096
"""Bytes behind a request that waits to begin (tasks_app/asgi/entrance.py). Thousands of strangers may wait so."""
REQUEST = 2_000
"""Bytes of memory that a request takes besides its head and its body."""
RECEIVE_BUFFER = 32_768
"""Bytes of a connection that the kernel may hold before they are read. Linux doubles the number."""
SPARE = 16
"""The limit of connections may be exceeded by one in SPARE, for connections that are being refused."""


def count_connections() -> int:
    """Return the number of open connections of the process, of WebSocket too."""
    return len(Connection.of_process)


class Connection(Answering):
    """A connection with limits. uvicorn alone has no deadlines for heads and readers, and counts no bytes."""

    limit: int | None = None
    """The limit of connections, computed when the first one is made."""
    of_process: ClassVar[Collection[object]] = ()
    """The open connections of the process, of WebSocket too. The server keeps them."""
    is_known = False
    """Whether the last call on it had a valid credential and could be read, as the application says."""
    head_since: float | None = None
    """The time at which the current head began; None while no head is being read."""
    timer: asyncio.TimerHandle | None = None
    reading_head = False
    reading_message = False
    """Whether a message is being read, from its first byte to the end of its trailers."""
    head = 0
    """Bytes of the current head, or of the current trailers."""
    unreported = 0
    """Bytes received since the parser last reported a part of a message. A field without end is never reported."""
    hosts = 0
    """Host headers in the current head."""
    tiny = trailers = 0
    """Tiny pieces of the current body, and fields behind it."""
    progress: Progress
    """The progress of its reader."""
    extensions: Any = None
    """The ASGI extensions of each request of this connection."""
    complete: Any = None
    """The ASGI extensions of a request that has arrived completely."""
    pending = b""
    """Bytes that came while a complete request was being answered. They are parsed after its answer."""
    # ------------------------------------------------------------------ begin, end

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        Connection.of_process = self.connections
        self.progress = Progress(transport)
        # The event loop reads all that the kernel holds of a connection at once, by default up to 256 kB.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self.head_since = self.loop.time()
        self.refuse_early = getattr(self.app, "refuse_early", None)
        self.refuse_unread = getattr(self.app, "refuse_unread", None)
        self.extensions = {CONNECTION: self, CUT: self.cut, DROP: self.drop}
        self.complete = self.extensions | {COMPLETE: {}, WHOLE: self.write_whole}
        self._set_timer()
        if Connection.limit is None:
            Connection.limit = max_connections()
        if len(self.connections) <= Connection.limit or self._find_room(Connection.limit):
            waiting[self] = None

    def _find_room(self, limit: int) -> bool:
        """Close the connection that has waited longest and return true; if none waits, refuse this one."""
        if displace():
            return True
        if len(self.connections) > limit + limit // SPARE:
            self.transport.abort()
        else:
            self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "This process has too many connections. Come again soon.")
            waiting.pop(self, None)  # It takes no place that a new connection could have.
        return False

    def abandon(self) -> None:
        """Note that the request at work gets no answer, because its client leaves."""
        if self.current is not None:
            self.current.disconnected = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        if self.place is not None and not self.place.done():
            self.place.set_result(None)  # The request begins or is answered, and ends at once.
        # uvicorn tells only the last request that its client has left. Tell the others too.
        for cycle in [self.current, *(cycle for cycle, _ in self.pipeline)]:
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to the protocol of sockets."""
        if self.flow.write_paused or (self.current is not None and not self.current.response_complete):
            # The answer to the request before would be written into the socket, or its client has not read it. In the
            # second case the socket would not learn that the write buffer is full, and would fill it further.
            self.transport.close()
            return
        self._release()
        super().handle_websocket_upgrade()
        # It refers to this object, which keeps the head. uvicorn does the same when a connection is lost.
        self.parser = None  # type: ignore[assignment]

    def _release(self) -> None:
        """End all that keeps this object alive: it has no connection any more, which is lost or of another protocol."""
        waiting.pop(self, None)
        self.pending, self.early = b"", None
        for extensions in (self.extensions, self.complete):
            extensions.clear()  # Break the reference cycle, so that the connection is freed now.
        if self.timer is not None:
            self.timer.cancel()

    # ------------------------------------------------------------------ what arrives

    @property
    def size(self) -> int:
        """The bytes of memory that its requests take: that which is being answered, and those behind it."""
        requests = [self.current, *(cycle for cycle, _ in self.pipeline)]
        return sum(REQUEST + weigh_head(one.scope["headers"]) + len(one.body) for one in requests if one is not None)

    def data_received(self, data: bytes) -> None:
        if self.lingering is not None:
            self.lingering.drop(data)
            return
        current = self.current
        if current is not None and not current.response_complete and not current.more_body:
            # The answer may be a stream of hours. Parsing the requests behind it would take time from other callers,
            # so reading stops: the rest stays in the kernel's buffers until the client has to wait as well.
            self.pending += data
            if self.place is not None and len(self.pending) > MAX_BEHIND:
                self.transport.abort()
                return
            self.flow.pause_reading()
            # uvicorn reads on for each wait for a departure, once in KEY_SECONDS, and each time there would be more.
            self.flow.read_paused = len(self.pending) <= MAX_UNREAD
            return
        # On a kept connection the deadline of a head starts with its first byte, whether or not it is a request.
        if self.head_since is None and not self.reading_message:
            self.head_since = self.loop.time()
        self.unreported += len(data)
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            cause = error.__context__
            status = cause.status if isinstance(cause, Refused) else HTTPStatus.BAD_REQUEST
            self.refuse(status, str(cause) if isinstance(cause, Refused) else "This is not a request of HTTP/1.1.")
            return
        if self.unreported > HEAD_BYTES:
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, say_too_large())
            return
        if self.early is not None:
            # The rest of the body may be long in coming. The application has a deadline for it.
            if self.is_large or self.expect_100_continue or len(self.cycle.body) > MAX_UNREAD:
                self.begin()
            else:
                self.begin_soon()
        self._note_wait()

    def _parse(self, data: bytes | memoryview) -> None:
        """Feed the parser, which calls the methods below. It stops at a request that offers another protocol."""
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                end = offer.args[0]
            if self._should_upgrade():
                self.handle_websocket_upgrade()
                return
            head = head_without_offer(self.parser, self.url, self.headers)
            self.parser = make_parser(self)
            self.parser.feed_data(head)
            data = memoryview(data)[end:]

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.reading_head = self.reading_message = True
        self.is_large = False
        self.codings: list[bytes] = []
        self.head = self.unreported = self.hosts = self.tiny = self.trailers = 0
        if self.head_since is None:
            # A head behind another request in the same data. data_received() set no time for it.
            self.head_since = self.loop.time()

    def on_url(self, url: bytes) -> None:
        self.unreported = 0
        self.head += len(url)
        if self.head > HEAD_BYTES:
            raise Refused(HTTPStatus.REQUEST_URI_TOO_LONG, say_too_large())
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # This runs some ten times a request, so it repeats the code of uvicorn's method instead of calling it.
        self.unreported = 0
        self.head += len(name) + len(value) + FIELD_BYTES
        if self.head > HEAD_BYTES:
            raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, say_too_large())
        if not self.reading_head:
            # A trailer. Proxies do not check trailers, and they must not count as headers (RFC 9110, 6.5.1).
            self.trailers += 1
            if self.trailers > MAX_FIELDS:
                raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, say_too_many("trailers"))
            return
        if len(self.headers) == MAX_FIELDS:
            raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, say_too_many("header fields"))
        # The parser leaves the white space behind a value, which is no part of it (RFC 9110, 5.5).
        name, value = name.lower(), value.rstrip(b" \t")
        if name == b"host":
            self.hosts += 1
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        elif name == b"content-length":
            self.is_large = len(value) >= LARGE_DIGITS
        elif name == b"transfer-encoding":
            self.codings += [coding.strip() for coding in value.lower().split(b",")]
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.reading_head, self.head_since = False, None
        self.head = self.unreported = 0
        if self.hosts != 1 or self.pipeline or self.codings or self.parser.get_http_version() != "1.1":
            self._check_head()
        if self.parser.should_upgrade():
            self._check_offer()
            if not self._should_upgrade():
                return  # _parse() has the head parsed again, and then this is called again.
        waiting.pop(self, None)  # A body that is still to come is a wait of its own.
        self.reads_head = True
        super().on_headers_complete()
        self.reads_head = False
        self.scope["extensions"] = self.extensions

    def _check_head(self) -> None:
        """Refuse a head that two servers could read in two ways."""
        version = self.parser.get_http_version()
        if version not in {"1.0", "1.1"}:
            raise Refused(HTTPStatus.BAD_REQUEST, "The version of the request must be HTTP/1.1 or HTTP/1.0.")
        if self.hosts != 1 and (version == "1.1" or self.hosts):
            raise Refused(HTTPStatus.BAD_REQUEST, "A request of HTTP/1.1 must have one Host header (RFC 9112, 3.2).")
        if version == "1.0":
            if self.codings:
                raise Refused(HTTPStatus.BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding (RFC 9112, 6.1).")
            self.expect_100_continue = False  # A client of HTTP/1.0 would take it for the answer (RFC 9110, 10.1.1).
        if len(self.codings) > 1 and self.codings[-1] == b"chunked":  # The parser refuses those that end otherwise.
            raise Refused(
                HTTPStatus.NOT_IMPLEMENTED,
                "This server knows no transfer coding but chunked (RFC 9112, 6.1), and takes no compressed body.",
            )
        most = MAX_PIPED if self.owed is None else MAX_OWED
        if len(self.pipeline) >= MAX_PIPELINE or (self.pipeline and self.size > most):
            raise Refused(HTTPStatus.BAD_REQUEST, f"At most {MAX_PIPELINE} small requests may wait on a connection.")

    def _check_offer(self) -> None:
        """Refuse a head after which a proxy and this server could disagree about where the next request begins."""
        if self.parser.get_method() == b"CONNECT":
            raise Refused(HTTPStatus.NOT_IMPLEMENTED, "This server is no proxy, and has no CONNECT (RFC 9110, 9.3.6).")
        if self._should_upgrade() and announces_body(self.headers):
            raise Refused(HTTPStatus.BAD_REQUEST, "A request for a WebSocket must have no body (RFC 9110, 9.3.1).")

    def _should_upgrade(self) -> bool:
        """Return whether the head asks for a WebSocket, and the server has a door for it."""
        return is_request_of_socket(self.parser) and super()._should_upgrade()

    def on_body(self, body: bytes) -> None:
        # Chunk sizes and extensions are not reported. They may be as long as the chunks themselves, but not longer.
        self.unreported = max(0, self.unreported - 2 * len(body))
        if len(body) < TINY_BYTES:
            self.tiny += 1
            if self.tiny > MAX_TINY:
                raise Refused(HTTPStatus.BAD_REQUEST, f"The body comes in more than {MAX_TINY} tiny pieces.")
        super().on_body(body)
        if len(self.cycle.body) > MAX_UNREAD:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # Behind an offer the parser reports the end at once, whether or not there is a body.
        self.reading_message = False
        self.scope["extensions"] = self.complete
        super().on_message_complete()
        self._note_wait()
        if self.early is not None and not self.answer_early(self.early, self.cycle):
            self.begin()

    # ------------------------------------------------------------------ what is answered

    def refuse(self, status: HTTPStatus, detail: str) -> None:
        self.head_since = None  # No head is awaited any more, however long the answer before it takes.
        super().refuse(status, detail)

    def drop(self) -> None:
        self._allow_reading()
        self.head_since = None
        super().drop()
        self._note_wait()

    def _allow_reading(self) -> None:
        """Have uvicorn know again of a pause that data_received() has hidden from it, so that it can end the pause."""
        self.flow.read_paused = self.flow.read_paused or len(self.pending) > MAX_UNREAD

    def on_response_complete(self) -> None:
        self._allow_reading()
        super().on_response_complete()
        self._note_wait()
        if self.pending and not self.transport.is_closing():
            pending, self.pending = self.pending, b""
            if self.head_since is not None:
                self.head_since = self.loop.time()  # The head could not go on while its rest was not parsed.
            self.data_received(pending)

    # ------------------------------------------------------------------ what takes too long

    def pause_writing(self) -> None:
        super().pause_writing()
        self.progress.pause(self.loop.time())
        self._note_wait()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.progress.resume()
        self._note_wait()

    def _set_timer(self) -> None:
        """Set the timer that checks all deadlines of this connection.

        One timer for a connection is cheaper than one for each request. It may be late by half a deadline.
        """
        period = min(settings.A2A_HEADER_SECONDS, settings.A2A_WRITE_SECONDS) / 2
        self.timer = self.loop.call_later(period, self._check_progress)

    def _check_progress(self) -> None:
        now = self.loop.time()
        if self.progress.is_too_slow(now) or self.progress.is_unacknowledged(now, idle=self in waiting):
            self.transport.abort()
            return
        # A head whose rest is in `pending` waits for us, not for its client.
        late = self.head_since is not None and now - self.head_since >= settings.A2A_HEADER_SECONDS
        if late and not self.pending:
            self.transport.close()
        self._set_timer()
