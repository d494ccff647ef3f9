"""uvicorn, under our own signals: the first order to stop drains, the second leaves at once."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from django.conf import settings
from django.utils.module_loading import import_string

from tasks_app.process import services
from tasks_app.process.connections import Connection
from tasks_app.runner.runner import runner

log = logging.getLogger(__name__)
SILENCE_SECONDS = 1.0
"""How long, at the end, a client may take to read what it has been sent."""


class Server(uvicorn.Server):
    """A uvicorn server that leaves the signals to us, and says when it is ready."""

    on_ready: Callable[[], None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would raise the signal again after serving, and nothing after run() would happen.
        yield

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started and self.on_ready:
            self.on_ready()


def serve(on_ready: Callable[[], None] | None = None) -> int:
    """Serves until a signal, and ends the process, within the grace, open streams or not; 1 if it could not begin."""
    application = import_string(settings.ASGI_APPLICATION)
    config = uvicorn.Config(
        application, host=settings.HOST, port=settings.PORT, http=Connection, ws="none", lifespan="on",
        log_config=None, access_log=False, proxy_headers=False, server_header=False, backlog=4096,
        timeout_graceful_shutdown=2, timeout_keep_alive=settings.A2A_KEEP_ALIVE_SECONDS, loop="uvloop",
    )  # fmt: skip
    server = Server(config)
    server.on_ready = on_ready
    # uvicorn exits when it cannot listen; the command says why.
    with contextlib.suppress(SystemExit), asyncio.Runner(loop_factory=config.get_loop_factory()) as loop:
        loop.run(_serve(server))
    services.stop()
    if not server.started:
        return 1
    # A sync agent's thread cannot be stopped, and Python would wait for it. Everything is written by now.
    sys.stdout.flush()
    logging.shutdown()
    os._exit(runner.exit_code)


def cut_silent(server: uvicorn.Server) -> None:
    """Ends the connections of clients that do not read: their streams cannot even be told to end."""
    for connection in list(server.server_state.connections):
        transport: Any = getattr(connection, "transport", None)
        if transport is not None and transport.get_write_buffer_size():
            transport.abort()


async def _serve(server: Server) -> None:
    loop, orders = asyncio.get_running_loop(), []

    def stop(name: str) -> None:
        orders.append(name)
        if len(orders) > 1:
            log.warning("%s again: leaving at once", name)
            os._exit(1)
        log.info("%s: no new work; streams end now, running agents have %g s", name, settings.A2A_GRACE_SECONDS)
        services.drain()
        server.should_exit = True
        loop.call_later(SILENCE_SECONDS, cut_silent, server)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, signal.Signals(number).name)
    await server.serve()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Until the process has ended, a further signal means: at once.
        signal.signal(number, lambda *_: os._exit(1))
