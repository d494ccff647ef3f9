"""Django's ASGI handler for the protocol's paths: the same request, URLs and views, without a thread, a spooled file
and signals for each call.

Nothing synchronous may be on these paths: it would share one thread with everything else of its kind.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, ResolverMatch, resolve, set_script_prefix
from django.utils.module_loading import import_string

from a2a import languages
from tasks_app.process.connections import CUT
from tasks_app.transports.bodies import STRANGERS, Gone, Intake, Receive
from tasks_app.transports.headers import protect
from tasks_app.transports.http import Refusal, fault_of_key, key_of, refuse
from tasks_app.transports.keys import authenticate
from tasks_app.transports.waiting import Unfinished

log = logging.getLogger(__name__)
Send = Callable[[dict[str, Any]], Awaitable[None]]
LINGER_BYTES, LINGER_SECONDS = 16_000_000, 1.0
"""The rest that a refused client may still send before the connection is closed: it reads the answer only then."""
LINGER_PAUSE = 0.05
"""Seconds between two reads of what is thrown away: whoever sends it again and again is slowed down."""
PIECE = 65_536
"""Bytes of an answer that are sent at once."""
LONGEST_KNOWN = 128
"""Characters of a path that is remembered."""


class LeanHandler(ASGIHandler):
    """An ASGI application. Limits act while the body is read."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Only settings.LEAN_MIDDLEWARE, which must be async-native."""
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        handler: Any = convert_exception_to_response(self._get_response_async)
        for path in reversed(settings.LEAN_MIDDLEWARE):
            handler = convert_exception_to_response(import_string(path)(handler))
        self._middleware_chain = handler

    def __init__(self) -> None:
        super().__init__()
        # Read once: a look at Django's settings costs as much as a small statement.
        self.limit, self.seconds = settings.A2A_BODY_BYTES, settings.A2A_BODY_SECONDS

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        """The view of the path, from the one URLconf; found once for each path."""
        request.resolver_match = _resolved(request.path_info)
        return request.resolver_match

    async def _get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Call the view. The views of these paths are async, and no middleware looks at views, so that what Django does
        for others is left out."""
        view, arguments, named = self.resolve_request(request)
        response: HttpResponseBase = await view(request, *arguments, **named)
        return response

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if root := scope.get("root_path", ""):
            set_script_prefix(root)
        intake = Intake(scope, receive, self.limit, self.seconds, partial(_owner_of, scope))
        try:
            body = await intake.read()
            request: Any = ASGIRequest(scope, BytesIO(body))
            request._body = body  # As Django keeps a body that it has read: this one is within its limit.
            request.left = partial(_disconnected, receive)  # For views that wait.
            response = await self._middleware_chain(request)
        except Gone:
            return
        except Refusal as refusal:
            await send_refusal(_refused(ASGIRequest(scope, BytesIO()), refusal), receive, send)
            return
        finally:
            intake.release()
        if isinstance(response, StreamingHttpResponse):
            # It may take long, and the account has its body no more.
            del body, request
            await _send_stream(response, scope, receive, send)
        elif isinstance(response, HttpResponse):
            try:
                await _send_whole(response, send)
            finally:
                _release(response)


async def _owner_of(scope: dict[str, Any], must_be_known: bool) -> int:
    """Return who sends a request, by its head alone. Raises Refusal."""
    try:
        return (await authenticate(key_of(ASGIRequest(scope, BytesIO())))).owner_id
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        if must_be_known:
            raise fault_of_key(error) from None
        return STRANGERS


async def send_refusal(response: HttpResponse, receive: Receive, send: Send) -> None:
    """Send the answer at once, and end it when the client has stopped sending: else it sees a reset instead."""
    response["Connection"] = "close"
    await send(_start(response))
    await send({"type": "http.response.body", "body": response.content, "more_body": True})
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            left = LINGER_BYTES
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b"")) or 1
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    break
                await asyncio.sleep(LINGER_PAUSE)
    await send({"type": "http.response.body", "body": b""})


@lru_cache(maxsize=512)
def _known(path: str) -> ResolverMatch:
    return resolve(path)


def _resolved(path: str) -> ResolverMatch:
    """Only short paths are remembered: long ones are made up."""
    return _known(path) if len(path) <= LONGEST_KNOWN else resolve(path)


def _refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """Return the refusal in the words of the endpoint that the path leads to."""
    name = "rpc"
    with contextlib.suppress(Resolver404):
        name = getattr(_resolved(request.path_info).func, "endpoint", name)
    return refuse(request, refusal, languages.SPOKEN.endpoints[name])


def _start(response: HttpResponseBase) -> dict[str, Any]:
    # By their names in lower case, as Django keeps them: its own way to list them takes a call or two for each.
    store = response.headers._store
    headers = [(name.encode("ascii"), value.encode("latin1")) for name, (_, value) in store.items()]
    headers += [(b"set-cookie", morsel.output(header="").encode("ascii")) for morsel in response.cookies.values()]
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}


async def _send_whole(response: HttpResponse, send: Send) -> None:
    body = response.content
    protect(response)
    start = _start(response)
    if not response.has_header("Content-Length"):
        start["headers"].append((b"content-length", str(len(body)).encode()))
    await send(start)
    await _send_pieces(body, send, more=False)


async def _send_pieces(body: bytes, send: Send, *, more: bool) -> None:
    """In pieces, each of which waits until the one before is on its way: else an answer is copied as a whole into the
    buffer of a client who may not read it."""
    place = 0
    while len(body) - place > PIECE:
        await send({"type": "http.response.body", "body": body[place : place + PIECE], "more_body": True})
        place += PIECE
    await send({"type": "http.response.body", "body": body[place:], "more_body": more})


def _release(response: HttpResponse) -> None:
    """Do what Django's close() does, but for the signal, at which every thread looks after its connections."""
    for close in response._resource_closers:  # type: ignore[attr-defined]  # Django has it
        close()


async def _send_stream(response: StreamingHttpResponse, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Sends chunks until the generator ends or the client leaves; either way the generator is closed at once."""
    sending = asyncio.ensure_future(_send_chunks(response, scope, send))
    leaving = asyncio.ensure_future(_disconnected(receive))
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
        # Another server cannot be told to. The spaces that were sent are no JSON either.
    except Exception:
        log.exception("a stream broke")
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]  # it is a generator
    await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
