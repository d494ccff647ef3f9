"""The ASGI application: the protocol's paths through the lean handler, all else through Django's own."""

from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings
from django.http import HttpResponse

from tasks_app.asgi.handler import send_refusal
from tasks_app.callers.paths import is_lean
from tasks_app.process import services
from tasks_app.transports.bodies import Gone, Intake, strangers
from tasks_app.transports.http import Refusal

App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class Application:
    """Chooses the handler, and starts the background work with whatever server it finds itself in."""

    def __init__(self, lean: App, stock: App) -> None:
        self.lean = lean
        self.stock = stock

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await lifespan(receive, send)
            return
        # Daphne has no lifespan; after the first call this is one look at a boolean.
        services.start()
        await (self.lean if is_lean(scope["path"]) else self._people)(scope, receive, send)

    async def _people(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Give Django's own handler a body that is whole: it would write one of any size to a file before it asks."""
        intake = Intake(scope, receive, settings.A2A_BODY_BYTES, settings.A2A_BODY_SECONDS, strangers)
        try:
            if _is_multipart(scope):
                raise Refusal(415, "forms of these pages are application/x-www-form-urlencoded")
            body = await intake.read()
            await self.stock(scope, _again(body, receive), send)
        except Gone:
            return
        except Refusal as refusal:
            sentence = HttpResponse(f"{refusal}\n", status=refusal.status, content_type="text/plain; charset=utf-8")
            await send_refusal(sentence, receive, send)
        finally:
            intake.release()


def _is_multipart(scope: dict[str, Any]) -> bool:
    """Return whether the body is of a kind that none of the pages takes: a megabyte of it would be taken to pieces in
    Python before anybody is asked who they are."""
    return any(name == b"content-type" and b"multipart" in value.lower() for name, value in scope["headers"])


def _again(body: bytes, receive: Any) -> Any:
    """Return a `receive` that begins with a body that was read already."""
    first = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Any:
        return first.pop() if first else await receive()

    return received


async def lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            services.start()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
