"""Answers that a connection writes itself: whole ones of the application, and, without it, those to floods, to bodies
that need not be read, and to bytes that are no request."""

import asyncio
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from tasks_app.process.displacing import waiting
from tasks_app.process.lingering import Lingering
from tasks_app.process.unchunked import Unchunked

LARGE_DIGITS = 5
"""Digits of the length of a body that may be too large for a stranger."""
REST_SECONDS = 0.1
"""Seconds for which the application does not begin with a request that may be answered early, while the rest of its
body may be on its way. Many clients send a body right behind its head, but in a packet of its own."""
_CLOSE = (b"connection", b"close")
_CONTROLS = bytes({*range(32), 127} - {9})
"""Characters that no header may have (RFC 9110, 5.5)."""

Whole = tuple[int, list[tuple[bytes, bytes]], bytes]
"""A whole answer: its status, headers and body."""
Early = Callable[[bytes], "Whole | asyncio.Future[Whole | None] | None"]
"""Returns the answer to a request by its body, or a future of it, or None if the application itself must answer it."""


class Answering(HttpToolsProtocol):
    """The part of a connection that answers."""

    current: RequestResponseCycle | None = None
    """The request that is being answered. uvicorn's `cycle` is the request that came last."""
    refuse_early: Callable[[Any], Early | None] | None = None
    """Returns how a request can be answered without the application, by its scope. It comes from the application."""
    refuse_unread: Callable[[Any], Whole | None] | None = None
    """Returns the answer to a request with a large body that need not be read, by its scope; None if the application
    must answer it."""
    is_large = False
    """Whether the current head announces a body of LARGE_DIGITS or more."""
    lingering: Lingering | None = None
    """Drops what still comes after a refusal; None before one."""
    reads_head = False
    """Whether the parser reports the end of a head at this moment, whose request may be answered early."""
    place: "asyncio.Future[Any] | None" = None
    """The place of its request in a line of strangers; None for a request that has begun."""
    owed: "asyncio.Future[Whole | None] | None" = None
    """The early answer that comes later than its request. It is a place in a line, too."""
    early: Early | None = None
    """Answers the current request without the application, when its body is there. Until then the application has not
    begun."""
    awaited: RequestResponseCycle | None = None
    """The request whose rest is awaited for REST_SECONDS, or was."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.current = cycle
        if cycle.scope["http_version"] == "1.0":
            cycle.__class__ = Unchunked  # uvicorn lets no other class make its requests.
        refuse = self.refuse_unread if self.reads_head and self.is_large else None
        if refuse is not None and (answer := refuse(cycle.scope)) is not None:
            self._refuse_unread(answer, cycle)
            return
        if self.refuse_early is not None:
            if self.reads_head:
                self.early = self.refuse_early(cycle.scope)
            elif not cycle.more_body and (early := self.refuse_early(cycle.scope)) and self.answer_early(early, cycle):
                return  # A request that waited behind another one is complete.
        if self.early is None:
            super()._start_asgi_task(cycle, app)

    def line_up(self, place: "asyncio.Future[Any] | None") -> None:
        """Note the place of its request in a line, or that it has begun or is answered."""
        self.place = place
        if place is not None and self.current is not None and self.current.more_body:
            self.flow.pause_reading()  # What waits takes no further memory.
        elif place is not None:
            self.flow.resume_reading()  # Otherwise the server would not notice that its client leaves.
        self._note_wait()

    def _note_wait(self) -> None:
        """Note whether the server waits for the client, so that another connection may replace this one.

        The client has to read an answer, to send a request or the rest of one, or to close after a refusal. A request
        of a stranger in a line counts, too.
        """
        current = self.current
        works = (
            current is not None
            and self.place is None
            and not (current.response_complete or current.more_body or self.flow.write_paused)
        )
        if self not in self.connections or (works and self.lingering is None and not self.transport.is_closing()):
            waiting.pop(self, None)
        else:
            waiting.setdefault(self)

    def begin(self) -> None:
        """Let the application answer a request that was not answered early."""
        self.early = None
        super()._start_asgi_task(self.cycle, self.app)

    def begin_soon(self) -> None:
        """Let the application answer a request whose body does not arrive within REST_SECONDS."""
        if self.awaited is not self.cycle:
            self.awaited = self.cycle
            self.loop.call_later(REST_SECONDS, self._begin_late, self.cycle)

    def _begin_late(self, cycle: RequestResponseCycle) -> None:
        if self.early is not None and self.cycle is cycle:
            self.begin()

    def answer_early(self, early: Early, cycle: RequestResponseCycle) -> bool:
        """Write the answer to a request whose body is there; return whether there is one, now or later.

        A flood of such requests costs a fraction of what it would cost with a task of the loop for each.
        """
        answer = None if self.flow.write_paused else early(bytes(cycle.body))
        if answer is None:
            return False
        self.early = None
        if isinstance(answer, asyncio.Future):
            self.owed = answer
            self.line_up(answer)
            answer.add_done_callback(partial(self._answer_after, cycle))
        else:
            self._write_whole(answer, cycle)
        return True

    def write_whole(self, answer: Whole, send: Any) -> bool:
        """Write the application's answer to the current request, and return whether it was written.

        This costs a third of the messages of ASGI. A reader that is behind and a HEAD request get those, and so does a
        `send` that is not uvicorn's own: an application before the handler may want to see or change the messages.
        """
        cycle = self.current
        is_own = getattr(send, "__self__", None) is cycle
        if cycle is None or not is_own:
            return False
        if cycle.response_started or cycle.disconnected or cycle.scope["method"] == "HEAD":
            return False
        if self.flow.write_paused:
            return False
        self._write_whole(answer, cycle)
        cycle.message_event.set()
        return True

    def _answer_after(self, cycle: RequestResponseCycle, answer: "asyncio.Future[Whole | None]") -> None:
        """Write the answer that a future has brought. Without one the application answers."""
        self.owed = None
        self.line_up(None)
        if cycle.disconnected or self.transport.is_closing():
            return
        if self.flow.write_paused or answer.cancelled() or (whole := answer.result()) is None:
            super()._start_asgi_task(cycle, self.app)
        else:
            self._write_whole(whole, cycle)

    def _refuse_unread(self, answer: Whole, cycle: RequestResponseCycle) -> None:
        """Write the answer to a request whose body is not read."""
        cycle.keep_alive = False
        self._write(answer, cycle)
        cycle.response_started = cycle.response_complete = True
        self.drop()

    def _write_whole(self, answer: Whole, cycle: RequestResponseCycle) -> None:
        """Write the answer to a request, and go on with the next one."""
        self._write(answer, cycle)
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _write(self, answer: Whole, cycle: RequestResponseCycle) -> None:
        status, headers, body = answer
        fields = [*self.server_state.default_headers, *headers, *([] if cycle.keep_alive else [_CLOSE])]
        head = b"".join([b"%b: %b\r\n" % field for field in fields])
        if len(head.translate(None, _CONTROLS)) != len(head) - 2 * len(fields):
            raise RuntimeError("A header of an answer has a control character, such as a line break.")
        self.transport.write(STATUS_LINE[status] + head + b"\r\n" + body)

    def cut(self) -> None:
        """End the connection before the end of an answer, so that the client sees it is incomplete (RFC 9112, 8)."""
        if self.current is not None:
            # Otherwise uvicorn would log a fault of the application.
            self.current.disconnected = True
        self.transport.close()

    def drop(self) -> None:
        """End a connection whose answer has been sent, but drop the rest of its request first."""
        if self.current is not None:
            self.current.disconnected = True
            self.current.body = bytearray()
            self.current.message_event.set()
        self.early = None
        self.flow.resume_reading()
        self.lingering = Lingering(self.transport, self.loop)

    def refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer with an error and close a moment later. A complete request before it gets its answer instead.

        The refused bytes are often the rest of that request: its client took the length in characters for that in
        bytes. Its answer says what is missing. Close at once if an answer has begun, or if several requests wait: they
        may take much memory.
        """
        cycle = self.current
        if cycle is not None and not cycle.response_complete and (cycle.response_started or not cycle.more_body):
            if cycle.response_started or self.pipeline:
                self.transport.close()
            else:
                cycle.keep_alive = False  # Nothing behind the refused bytes is parsed, and the answer is the last.
            return
        # The refused bytes may be the body of the current request. Then the error is its answer.
        body = detail.encode()
        retry = "retry-after: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
        self.transport.write(
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\n{retry}connection: close\r\n\r\n".encode()
            + body
        )
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.drop()
