"""Replies over HTTP: a JSON body, server-sent events, or spaces before a JSON body.

A late answer sends its headers early, and then a space again and again, which JSON allows before a value (RFC 8259,
section 2), so that neither a proxy nor a client gives up. After the headers a fault cannot have a status. It ends the
connection before the answer is complete, and the client, which sees that, sends its message again with the same id.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial

from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from a2a import sse
from a2a.documents import Encoded, Pieces
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.transports.call import Call, Reply
from tasks_app.transports.compression import compress
from tasks_app.transports.drain import take_back_cancellation
from tasks_app.transports.http import add_headers, add_limits, answer, headers_of
from tasks_app.transports.receiving import Batch
from tasks_app.transports.streams import End as StreamEnd
from tasks_app.transports.streams import Page, Stream
from tasks_app.transports.waiting import Unfinished

SPACE = b" "
LAST_WORDS = {
    StreamEnd.REVOKED: sse.REVOCATION,
    StreamEnd.EXPIRED: sse.EXPIRY,
    StreamEnd.TOO_LONG: sse.TOO_LONG,
    StreamEnd.DRAINING: sse.DRAINING,
}
"""The comments for the reason of a stream's end, if its events do not show it."""


async def response_to(request: HttpRequest, call: Call, reply: Reply | Batch) -> HttpResponseBase:
    """Return the HTTP answer to a call, or to a batch."""
    if isinstance(reply, Batch):
        return await compress(request, add_limits(await _batch(request, reply), call))
    return await compress(request, add_limits(_single(request, call, reply), call), reply.holding)


def _single(request: HttpRequest, call: Call, reply: Reply) -> HttpResponseBase:
    request_id, media, headers = reply.request_id, reply.wrapping.media, reply.headers
    if reply.stream is not None:
        return StreamingHttpResponse(
            frames(reply.stream), content_type="text/event-stream", headers=_stream_headers(reply)
        )
    if reply.late is not None:
        late = _late(with_spaces(partial(reply.late.payload, early=True)), request_id, media, headers)
        _release_after(late, reply)
        return late
    if reply.payload is None:
        return no_content(request_id, headers)
    if _is_expected_as_stream(request, call, reply):
        event = sse.frame(bytes(reply.payload))
        return HttpResponse(event, content_type="text/event-stream", headers=_stream_headers(reply))
    response = answer(reply.payload, request_id, reply.status, media, headers)
    if reply.error is not None:
        add_headers(request, response, reply.error)
    if reply.holding:
        _release_after(response, reply)
    return response


def no_content(request_id: str, headers: Mapping[str, str]) -> HttpResponse:
    """Return an answer without a body, and so without a media type: Django would call it text/html."""
    response = HttpResponse(status=204, headers={"X-Request-ID": request_id, **headers})
    del response["Content-Type"]
    return response


def _is_expected_as_stream(request: HttpRequest, call: Call, reply: Reply) -> bool:
    """Return whether the client can read only a stream here, because it is older than A2A-Version
    (docs/protocol.md#envelope). An error with an HTTP status of its own is not a stream for it."""
    if not reply.error_as_stream or call.version is not None or reply.status != 200:
        return False
    # The official Python client 0.3.26 sends two lines for the stream of a send: that of httpx, and its own.
    return request.headers.get("Accept", "").replace(" ", "").removeprefix("*/*,") == "text/event-stream"


async def _batch(request: HttpRequest, batch: Batch) -> HttpResponseBase:
    """Return the answer to a batch: 204 if all its members are notifications.

    Members without a reply are refused, each under its id, when the server ends before the headers were sent.
    """
    if batch.silent:
        await batch.work
        return no_content(batch.request_id, batch.headers)
    try:
        ready, _ = await asyncio.wait({batch.work}, timeout=settings.A2A_PING_SECONDS)
    except asyncio.CancelledError:
        if (error := take_back_cancellation()) is None:
            raise
        return answer(batch.refuse_rest(error), batch.request_id, media=batch.media, headers=batch.headers)
    response: HttpResponseBase
    if ready:
        response = answer(await batch.payload(), batch.request_id, media=batch.media, headers=batch.headers)
    else:
        if take_weight := getattr(request, "take_weight", None):  # Set by the lean handler.
            batch.hold(take_weight())
        # The status of a batch is 200, whatever its members are answered.
        response = _late(with_spaces(batch.payload), batch.request_id, batch.media, batch.headers)
    _release_after(response, batch)
    return response


def _late(pieces: AsyncIterator[bytes], request_id: str, media: str, headers: dict[str, str]) -> StreamingHttpResponse:
    """Return an answer whose headers are sent now. A proxy must pass each space on at once, without compression."""
    early = headers_of(request_id, headers) | {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(pieces, content_type=media, headers=early)


def _release_after(response: HttpResponseBase, reply: Reply | Batch) -> None:
    """Take the answer out of the account when the response is closed."""
    response._resource_closers.append(reply.release)  # type: ignore[attr-defined]  # Django has it


def _stream_headers(reply: Reply) -> dict[str, str]:
    own = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
    return own | {"X-Request-ID": reply.request_id} | reply.headers


async def frames(stream: Stream) -> AsyncIterator[bytes]:
    """Yield a stream as server-sent events, with a comment in each silence, and a fault as the last event."""
    start, framing = sse.RETRY, stream.language.framing
    async with aclosing(stream.pages()) as pages:
        async for page in pages:
            if not page:
                yield sse.PING
                continue
            large = sum(len(data) for _, data in page) > LARGE
            numbered = page[0][0] is not None
            chunk = await off_loop(_frame, page, framing) if large else _frame(page, framing)
            page.clear()
            stream.count_bytes(len(chunk))
            if start and numbered:
                chunk, start = start + chunk, b""
            yield chunk
            del chunk
    if stream.failure:
        yield b"event: error\n" + sse.frame(stream.failure)
    elif words := LAST_WORDS.get(stream.end):
        yield words


def _frame(page: Page, framing: Callable[[bytes, int | None], bytes]) -> bytes:
    if len(page) == 1:
        return framing(page[0][1], page[0][0])
    return b"".join([framing(data, seq) for seq, data in page])


async def with_spaces(begin: Callable[[], Awaitable[Encoded]]) -> AsyncIterator[bytes]:
    """Yield a space at once and another after each silence, and then the payload. The work ends with the iteration."""
    work = asyncio.ensure_future(begin())
    try:
        yield SPACE
        while not (await asyncio.wait({work}, timeout=settings.A2A_PING_SECONDS))[0]:
            yield SPACE
        payload = work.result()
        for part in payload.parts if isinstance(payload, Pieces) else (payload,):
            yield part
            # The kernel may take megabytes at once, and then nothing else makes this task wait.
            await asyncio.sleep(0)
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError, Unfinished):
            await work
