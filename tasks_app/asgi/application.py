"""The ASGI application: a door for each kind of connection. The door for HTTP has two handlers, chosen by the path."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpResponse

from a2a.errors import Unavailable
from tasks_app.api.problems import refuse_unread
from tasks_app.asgi.entrance import entrance
from tasks_app.asgi.handler import send_refusal, wait_for_disconnect
from tasks_app.asgi.places import OF_ADDRESS, TOKENS_OF_ADDRESS, WAITING, Departure, Places
from tasks_app.callers.paths import is_lean, is_oauth, is_static
from tasks_app.callers.peers import origin_in
from tasks_app.limits.rate_limits import limits
from tasks_app.operators.refusals import sentence_of
from tasks_app.process import services
from tasks_app.process.answering import Early, Whole
from tasks_app.transports.bodies import Gone, Intake, strangers
from tasks_app.transports.drain import take_back_cancellation
from tasks_app.transports.heads import meta_of
from tasks_app.transports.http import Refusal

App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
API = "/api/"
"""The beginning of the paths of the operators' API."""


class Application:
    """Gives each connection to its door, and starts the background services under any ASGI server."""

    def __init__(
        self,
        doors: Mapping[str, App],
        refuse_early: Callable[[dict[str, Any]], Early | None] | None = None,
        refuse_unread: Callable[[dict[str, Any]], Whole | None] | None = None,
    ) -> None:
        self.doors = doors
        """The doors by the types of ASGI scopes, such as `http` and `websocket`."""
        self.refuse_early, self.refuse_unread = refuse_early, refuse_unread
        """These refuse requests before their door. Our own server calls them, and others do not."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await lifespan(receive, send)
            return
        # Daphne has no lifespan messages. After the first call this costs next to nothing.
        services.start()
        door = self.doors.get(scope["type"])
        if door is None:
            raise ValueError(f"no door for {scope['type']}: config/asgi.py lists the doors")
        await door(scope, receive, send)


class Http:
    """The door for HTTP: the protocol's paths go through the lean handler, all others through Django's own."""

    def __init__(self, lean: App, stock: App) -> None:
        self.lean = lean
        self.stock = stock
        self.places, self.oauth_places = Places(OF_ADDRESS), Places(TOKENS_OF_ADDRESS)
        self.static_places = Places(WAITING)

    def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Awaitable[None]:
        return (self.lean if is_lean(scope["path"]) else self._serve_page)(scope, receive, send)

    async def _serve_page(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Read the body within the limits, then call Django's own handler.

        That handler alone would write a body of any size to a file before it authenticates the caller.
        """
        intake = Intake(scope, receive, settings.A2A_BODY_BYTES, settings.A2A_BODY_SECONDS, strangers)
        page = Page(send)
        try:
            if _is_multipart(scope):
                await entrance.enter(scope, "pages")
                raise Refusal(415, "forms of these pages are application/x-www-form-urlencoded")
            body = await intake.read()
            await entrance.enter(scope, "pages", intake.uncounted)
            with await self._take_place(scope, partial(wait_for_disconnect, receive)) as page.place:
                await self.stock(scope, _replay(body, receive), page)
        except Gone:
            return
        except Refusal as refusal:
            sentence = _say(str(refusal), refusal.status, scope)
            if isinstance(refusal.error, Unavailable):
                sentence["Retry-After"] = str(refusal.error.retry_after)
            await send_refusal(sentence, scope, receive, send)
        except asyncio.CancelledError:
            if page.has_begun or (error := take_back_cancellation()) is None:
                raise
            page.is_over = True
            sentence = _say(f"The server is going down. Try again in {error.retry_after} s.", 503, scope)
            sentence["Retry-After"] = str(error.retry_after)
            await send_refusal(sentence, scope, receive, send)
        finally:
            intake.release()

    async def _take_place(self, scope: dict[str, Any], departure: Departure) -> ExitStack:
        """Return a place for a page. Raises Refusal, and Gone if the client leaves before there is one.

        Programs get tokens also while slow pages of operators, or logins of strangers, take all other places. So do
        browsers get static files. They ask for two dozen at once for each page, of several tabs over one connection of
        HTTP/2, and no browser comes again for a file that was refused. So these have no limit by address.
        """
        if is_static(scope["path"]):
            return await self.static_places.take("", departure)
        places = self.oauth_places if is_oauth(scope["path"]) else self.places
        return await places.take(origin_in(meta_of(scope)), departure)


class Sockets:
    """The door for WebSocket: few handshakes of strangers begin in one round of the loop."""

    def __init__(self, door: App) -> None:
        self.door = door

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        try:
            await entrance.enter_socket(scope)
        except Gone:
            return
        await self.door(scope, receive, send)


class Page:
    """The answer of Django's own handler, which goes on in a task of its own after it was cancelled."""

    def __init__(self, send: Any) -> None:
        self.send = send
        self.place = ExitStack()
        """Its place, which it gives back when its answer begins, because a client may be slow in reading that."""
        self.has_begun = False
        self.is_over = False
        """Whether another answer was sent instead, so that this one is dropped."""

    async def __call__(self, message: dict[str, Any]) -> None:
        """Send a message of ASGI."""
        if not self.is_over:
            self.place.close()
            self.has_begun = True
            await self.send(message)


def _say(sentence: str, status: int, scope: dict[str, Any]) -> HttpResponse:
    """Return a refusal as text, or as a problem where the operators' API would have answered."""
    if scope["path"].startswith(API):
        return refuse_unread(sentence_of(ValueError(sentence)), status, scope["path"])
    return HttpResponse(f"{sentence}\n", status=status, content_type="text/plain; charset=utf-8")


def _is_multipart(scope: dict[str, Any]) -> bool:
    """Return whether the body is multipart, which no page accepts.

    Django would parse a megabyte of it in Python before it authenticates the caller.
    """
    return any(name == b"content-type" and b"multipart" in value.lower() for name, value in scope["headers"])


def _replay(body: bytes, receive: Any) -> Any:
    """Return a `receive` that first returns a body that has been read already."""
    first = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Any:
        return first.pop() if first else await receive()

    return receive_again


async def lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            services.start()
            await limits.bank.connect()
        if message["type"] == "lifespan.shutdown":
            await limits.bank.close()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
