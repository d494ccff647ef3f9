"""Django's ASGI handler for the protocol's paths, with its requests, URLs and views, but without a thread, a temporary
file and signals for each call.

Code on these paths must be async: all synchronous views and middleware of a process share one thread.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, ResolverMatch, resolve, set_script_prefix
from django.utils.module_loading import import_string

from a2a import languages
from a2a.errors import InvalidKey
from tasks_app.asgi.entrance import entrance
from tasks_app.callers.networks import admits
from tasks_app.callers.paths import is_health, is_signed
from tasks_app.callers.peers import origin_in, peer_in
from tasks_app.callers.schemes import evidence_in
from tasks_app.limits import strangers
from tasks_app.process.asgi_extensions import CONNECTION, CUT, DROP, WHOLE
from tasks_app.process.lingering import MAX_BYTES, MAX_SECONDS, PAUSE
from tasks_app.transports.bodies import STRANGERS, Gone, Intake, Receive
from tasks_app.transports.drain import take_back_cancellation
from tasks_app.transports.headers import protect
from tasks_app.transports.heads import meta_of
from tasks_app.transports.http import LargeResponse, Refusal, fault_of_key, over_limit, refuse_call
from tasks_app.transports.http_requests import Request
from tasks_app.transports.keys import authenticate, is_cached
from tasks_app.transports.waiting import Unfinished

log = logging.getLogger(__name__)
Send = Callable[[dict[str, Any]], Awaitable[None]]
PIECE = 65_536
"""Bytes of an answer that are sent at once."""
MAX_CACHED_PATH = 128
"""Characters of a path whose view is cached."""


class LeanHandler(ASGIHandler):
    """An ASGI application that enforces limits while it reads the body."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Load settings.LEAN_MIDDLEWARE only. All of it must be async."""
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        handler: Any = convert_exception_to_response(self._get_response_async)
        for path in reversed(settings.LEAN_MIDDLEWARE):
            handler = convert_exception_to_response(import_string(path)(handler))
        self._middleware_chain = handler

    def __init__(self) -> None:
        super().__init__()
        # Read once, because reading a Django setting costs as much as a small statement.
        self.limit, self.seconds = settings.A2A_BODY_BYTES, settings.A2A_BODY_SECONDS

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        """Return the view of the path from the URLconf, cached for each path."""
        request.resolver_match = _resolve(request.path_info)
        return request.resolver_match

    async def _get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Call the view.

        The views of these paths are async, and no middleware handles views, so Django's code for both is left out.
        """
        view, arguments, keywords = self.resolve_request(request)
        response: HttpResponseBase = await view(request, *arguments, **keywords)
        return response

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if root := scope.get("root_path", ""):
            set_script_prefix(root)
        intake = Intake(scope, receive, self.limit, self.seconds, partial(_owner_of, scope))
        try:
            body = await intake.read()
            await entrance.enter(scope, "health" if is_health(scope["path"]) else "calls", intake.uncounted)
            request: Any = Request(scope, BytesIO(body))
            request._body = body  # Where Django keeps a body that it has read. This one is within the limit.
            request.departure = partial(wait_for_disconnect, receive)  # For views that wait.
            request.connection = scope.get("extensions", {}).get(CONNECTION)
            request.take_weight = intake.take_weight  # For batches that go on behind their headers.
            response = await self._middleware_chain(request)
        except Gone:
            return
        except Refusal as refusal:
            await _refuse(refusal, scope, receive, send)
            return
        except asyncio.CancelledError:
            # A request whose body or caller was not read yet, or a batch of notifications. Others have answers.
            if (error := take_back_cancellation()) is None:
                raise
            await _refuse(over_limit(error), scope, receive, send)
            return
        finally:
            intake.release()
        if isinstance(response, StreamingHttpResponse):
            # The stream may last long, and intake.release() has ended the accounting for the body. Free it.
            del body, request
            try:
                await _send_stream(response, scope, receive, send)
            finally:
                _release(response)
        elif isinstance(response, HttpResponse):
            try:
                await _send_whole(response, scope, send)
            finally:
                _release(response)


async def _refuse(refusal: Refusal, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    response = await _encode_refusal(Request(scope, BytesIO()), refusal)
    await send_refusal(response, scope, receive, send)


async def _owner_of(scope: dict[str, Any], required: bool, size: int) -> int:
    """Authenticate a request by its head, and return its owner. Raises Refusal and Gone.

    `size` is the bytes of the body that are in no account while the request of a stranger waits.
    """
    if is_signed(scope["path"]):
        return STRANGERS
    evidence = evidence_in(meta_of(scope))
    is_slow = required if evidence is None else not is_cached(evidence)  # A refusal, or a look-up.
    if is_slow:
        await entrance.enter(scope, "calls", size)
    meta = meta_of(scope)  # Anew, because during the wait the headers would take memory.
    try:
        recognition = await authenticate(evidence, partial(origin_in, meta))
        if not admits(recognition.caller.networks, peer_in(meta)):
            # Otherwise a stolen key, useless from elsewhere, could fill the body account of its owner.
            strangers.count_failure(origin_in(meta))
            raise InvalidKey
        return recognition.caller.owner_id
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        if required:
            raise fault_of_key(error) from None
        return STRANGERS


async def send_refusal(response: HttpResponse, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Send the answer at once, but end it only when the client has stopped sending.

    If the connection were closed earlier, the client would see a reset instead of the answer.
    """
    response["Connection"] = "close"
    response["Content-Length"] = str(len(response.content))
    await send(_start(response))
    await send({"type": "http.response.body", "body": response.content, "more_body": True})
    if drop := scope.get("extensions", {}).get(DROP):
        drop()
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MAX_SECONDS):
            remaining = MAX_BYTES
            while remaining > 0:
                message = await receive()
                remaining -= len(message.get("body", b"")) or 1
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    break
                await asyncio.sleep(PAUSE)
    await send({"type": "http.response.body", "body": b""})


@lru_cache(maxsize=512)
def _resolve_cached(path: str) -> ResolverMatch:
    return resolve(path)


def _resolve(path: str) -> ResolverMatch:
    """Return the view of a path. Long paths, which callers may make up, are not cached."""
    return _resolve_cached(path) if len(path) <= MAX_CACHED_PATH else resolve(path)


async def _encode_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """Return the refusal in the form of the endpoint that the path belongs to."""
    name = "rpc"
    with contextlib.suppress(Resolver404):
        name = getattr(_resolve(request.path_info).func, "endpoint", name)
    return await refuse_call(request, refusal, languages.ALL.endpoints[name])


def _start(response: HttpResponseBase) -> dict[str, Any]:
    # Django's store of headers has their names in lower case. Its public methods take several calls for each header.
    store = response.headers._store
    headers = [(name.encode("ascii"), value.encode("latin1")) for name, (_, value) in store.items()]
    headers += [(b"set-cookie", morsel.output(header="").encode("ascii")) for morsel in response.cookies.values()]
    headers += getattr(response, "fields", ())  # They are encoded already, because each answer to a caller has them.
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}


async def _send_whole(response: HttpResponse, scope: dict[str, Any], send: Send) -> None:
    if isinstance(response, LargeResponse):
        parts, last = response.parts[:-1], response.parts[-1]
    else:
        parts, last = (), response.content
    protect(response)
    start = _start(response)
    if not response.has_header("Content-Length"):
        start["headers"].append((b"content-length", str(sum(map(len, parts), len(last))).encode()))
    write = scope.get("extensions", {}).get(WHOLE)
    if write and not parts and len(last) <= PIECE and write((start["status"], start["headers"], last), send):
        return
    await send(start)
    for part in parts:
        await _send_pieces(part, send, more=True)
        await asyncio.sleep(0)
    await _send_pieces(last, send, more=False)


async def _send_pieces(body: bytes, send: Send, *, more: bool) -> None:
    """Send a body in pieces, each after the one before has left the buffer.

    At once, a whole large answer would be copied into the write buffer of a client that may never read it.
    """
    place = 0
    while len(body) - place > PIECE:
        await send({"type": "http.response.body", "body": body[place : place + PIECE], "more_body": True})
        # The kernel may take megabytes at once, and then nothing else makes this task wait.
        await asyncio.sleep(0)
        place += PIECE
    await send({"type": "http.response.body", "body": body[place:], "more_body": more})


def _release(response: HttpResponseBase) -> None:
    """Close the resources of a response. Django's close() also sends a signal, on which it checks all database
    connections."""
    for close in response._resource_closers:  # type: ignore[attr-defined]  # Django has it
        close()


async def _send_stream(response: StreamingHttpResponse, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Send chunks until the generator ends or the client leaves. In both cases the generator is closed at once."""
    sending = asyncio.ensure_future(_send_chunks(response, scope, send))
    leaving = asyncio.ensure_future(wait_for_disconnect(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (leaving, sending):
            task.cancel()
        for task in (leaving, sending):
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await task


async def _send_chunks(response: StreamingHttpResponse, scope: dict[str, Any], send: Send) -> None:
    await send(_start(response))
    chunks = aiter(response.streaming_content)  # type: ignore[arg-type]  # our streams are async
    try:
        async for chunk in chunks:
            await _send_pieces(chunk, send, more=True)
    except Unfinished:
        if cut := scope.get("extensions", {}).get(CUT):
            cut()
            return
        # Under another server the connection cannot be cut. The answer is still not valid JSON, so the client notices.
    except Exception:
        log.exception("a stream broke")
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]  # it is a generator
    await send({"type": "http.response.body", "body": b""})


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client of a request, whose body was read, has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
