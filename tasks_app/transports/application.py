"""The ASGI application: the protocol's paths through the lean handler, all else through Django's own."""

from collections.abc import Awaitable, Callable
from typing import Any

from tasks_app import services
from tasks_app.paths import is_lean

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
        await (self.lean if is_lean(scope["path"]) else self.stock)(scope, receive, send)


async def lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            services.start()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
