"""Downloads of files by signed links, which expire. Browsers save the files and never show them."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from a2a.errors import RateLimited, TooManyCalls, Unavailable
from a2a.files import ID
from tasks_app.callers.peers import peer_of
from tasks_app.database.bridge import bridge
from tasks_app.exchanges.refusals import count_wrong, tally
from tasks_app.files import FindFile, find_problem, path_of, storage
from tasks_app.limits import strangers
from tasks_app.limits.accounts import account
from tasks_app.models import File
from tasks_app.transports.http import find_origin

log = logging.getLogger(__name__)
CHUNK = 262_144
"""Bytes that are read at once, which is all that one download has in memory."""
SECONDS = 30.0
"""Seconds for which a download waits for the storage to open a file or to read one chunk."""
THREADS = ThreadPoolExecutor(8, thread_name_prefix="download")
"""The threads that read. A client that is slow holds none. A storage that hangs holds them until it answers, because
nothing can end a thread; meanwhile other downloads are refused after SECONDS."""
NO_WORK: Future[Any] = Future()
"""Work that is done, for a file that was not read yet."""
NO_WORK.set_result(None)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    # If a browser shows the file after all, a script in it can do nothing.
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
    "Accept-Ranges": "bytes",
}
_ID = re.compile(ID)
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


async def download(request: HttpRequest, file: str, name: str = "") -> HttpResponseBase:
    """Return a file or one range of it, as an attachment with the name that is stored."""
    if request.method not in {"GET", "HEAD"}:
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
    if (refusal := _check_link(request, file)) is not None:
        return refusal
    row: File | None = await bridge.ask(FindFile(file)) if _ID.fullmatch(file) else None
    if row is None:
        return _refuse(404, "there is no such file: its task may have been deleted")
    # A range counts only for GET (RFC 9110, 14.2), and not with an If-Range: a file has no validator that it could name
    # (RFC 9110, 13.1.5).
    counts = request.method == "GET" and "HTTP_IF_RANGE" not in request.META
    header = request.META.get("HTTP_RANGE", "") if counts else ""
    try:
        start, end = _range(header, row.size)
    except ValueError:
        response = _refuse(416, f"the file has {row.size} bytes")
        response["Content-Range"] = f"bytes */{row.size}"
        return response
    headers = _headers(row, start, end)
    status = 200 if end - start == row.size else 206
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers)
    try:
        holding = account.hold(find_origin(request) or None, "downloads")
    except RateLimited as error:
        return _refuse_for_now(429, error)
    except Unavailable as error:
        return _refuse_for_now(503, error)
    try:
        content = await _open(path_of(row.id))
    except Exception:  # a custom storage may raise any exception
        holding.release()
        log.exception("the bytes of file %s cannot be read", row.id)
        return _refuse(503, "the file cannot be read now, try again")
    reading = Reading(content, start, end)
    transfer = StreamingHttpResponse(reading.chunks(), status=status, headers=headers)
    transfer._resource_closers += [reading.close, holding.release]  # type: ignore[attr-defined]  # Django has it
    return transfer


def _refuse(status: int, sentence: str) -> HttpResponse:
    return JsonResponse({"error": sentence}, status=status, headers={"Cache-Control": "no-store"})


def _refuse_for_now(status: int, error: RateLimited | Unavailable) -> HttpResponse:
    response = _refuse(status, error.message)
    response["Retry-After"] = str(error.retry_after)
    return response


def _check_link(request: HttpRequest, file: str) -> HttpResponse | None:
    """Count the request, and a wrong link. Return the refusal of a wrong link, or of an address with too many."""
    origin, peer = find_origin(request), peer_of(request)
    try:
        strangers.check_calls(origin)
    except TooManyCalls as error:
        tally.count(peer, 429, has_exchange=False)
        return _refuse_for_now(429, error)
    if not (sentence := find_problem(file, request.GET.get("until", ""), request.GET.get("signature", ""))):
        return None
    try:
        count_wrong(origin, peer, 403)
    except TooManyCalls as error:
        return _refuse_for_now(429, error)
    return _refuse(403, sentence)


def _headers(row: File, start: int, end: int) -> dict[str, str]:
    about = {
        "Content-Type": row.media_type,
        "Content-Length": str(end - start),
        "Content-Disposition": content_disposition_header(True, row.name) or "attachment",
    }
    if end - start != row.size:
        about["Content-Range"] = f"bytes {start}-{end - 1}/{row.size}"
    return _HEADERS | about


def _range(header: str, size: int) -> tuple[int, int]:
    """Return the first byte and the end of a range; the whole file for a header that names no single range.

    Raises ValueError for a range outside the file.
    """
    match = _RANGE.fullmatch(header)
    if match is None or match.group(0) == "bytes=-":
        return 0, size
    first, last = match.groups()
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last or size) + 1, size)
    if start >= end:
        raise ValueError("not in the file")
    return start, end


async def _open(path: str) -> Any:
    """Return the open file. Raises the errors of the storage, and TimeoutError."""
    opening = THREADS.submit(storage().open, path)
    try:
        return await _wait_for(opening)
    except BaseException:
        opening.add_done_callback(_close_late)
        raise


def _close_late(opening: Future[Any]) -> None:
    """Close a file that was opened when its download had ended."""
    if not opening.cancelled() and opening.exception() is None:
        THREADS.submit(opening.result().close)


class Reading:
    """The reading of one open file, of which `start` and `end` are the first byte and the end."""

    def __init__(self, content: Any, start: int, end: int) -> None:
        self.content, self.start, self.end = content, start, end
        self.work: Future[Any] = NO_WORK
        """The newest work on the file in a thread."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes in chunks. Each is read in a thread after the one before was sent."""
        start = self.start
        if start:
            self.work = THREADS.submit(self.content.seek, start)
            await _wait_for(self.work)
        while start < self.end:
            self.work = THREADS.submit(self.content.read, min(CHUNK, self.end - start))
            piece: bytes = await _wait_for(self.work)
            if not piece:
                raise OSError("the file is shorter than its row says")
            start += len(piece)
            yield piece

    def close(self) -> None:
        """Close the file after its last read. Beside a read that hangs, close() would hold a second thread."""
        self.work.add_done_callback(lambda _: THREADS.submit(self.content.close))


async def _wait_for(work: Future[Any]) -> Any:
    """Return the result of work in a thread. Raises its error, and TimeoutError for work that takes too long.

    Work that has no thread yet is given up with its wait.
    """
    try:
        async with asyncio.timeout(SECONDS):
            return await asyncio.wrap_future(work)
    except TimeoutError:
        if work.done() and not work.cancelled():
            raise  # The storage has raised it.
        raise TimeoutError(f"the storage of files (A2A_FILE_STORAGE) gave no answer within {SECONDS:g} s") from None
