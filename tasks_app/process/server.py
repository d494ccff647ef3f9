"""uvicorn with our own signal handlers: the first signal drains the process, the second ends it at once."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from django.conf import settings
from django.utils.module_loading import import_string

from tasks_app.process import services
from tasks_app.process.connections import Connection
from tasks_app.process.main_loop import obey_signals, run_to_end
from tasks_app.runner.fork_server import finish, leave
from tasks_app.runner.runner import runner

log = logging.getLogger(__name__)
SILENCE_SECONDS = 1.0
"""How long a client may take to read the end of its answer when the process stops."""


ACCEPTS = 8
"""Connections that are accepted in a round of the loop."""


class Server(uvicorn.Server):
    """A uvicorn server that leaves signals to us, and calls `on_ready` when it listens."""

    on_ready: Callable[[], None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would raise the signal again after serving, and the code after run() would never run.
        yield

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            await self._listen_again()
        if self.started and self.on_ready:
            self.on_ready()

    async def _listen_again(self) -> None:
        """Listen on copies of each socket, too: libuv accepts one connection of each in a round of the loop.

        Otherwise new connections of callers would wait for seconds while there are many, or while rounds are long.
        """
        loop = asyncio.get_running_loop()
        for listener in [listener for server in self.servers for listener in server.sockets]:
            for _ in range(ACCEPTS - 1):
                copy = listener.dup()
                self.servers.append(await loop.create_server(self._protocol, sock=copy, backlog=self.config.backlog))

    def _protocol(self) -> asyncio.Protocol:
        protocol: Any = self.config.http_protocol_class
        connection: asyncio.Protocol = protocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return connection


def serve(on_ready: Callable[[], None] | None = None) -> int:
    """Serve until a signal, then end the process within the grace, even with open streams. Return 1 if it could not
    listen. A process that stops serving without a signal ends with exit code 1, so that a supervisor restarts it."""
    config = config_of(import_string(settings.ASGI_APPLICATION))
    server = Server(config)
    server.on_ready = on_ready
    has_signal = False
    # uvicorn calls sys.exit() when it cannot listen. The command that called us reports why. An agent that cancels all
    # tasks of its loop cancels the server, too.
    with contextlib.suppress(SystemExit, asyncio.CancelledError):
        has_signal = run_to_end(config.get_loop_factory(), _serve(server))
    services.stop()
    if server.started:
        if not has_signal:
            log.critical("the server has ended without a signal")
        # All data is written by now.
        finish(runner.exit_code if has_signal else 1)
    return 1


def config_of(application: Any) -> uvicorn.Config:
    """Return the configuration of the server for an application, with sockets if it has a door for them."""
    return uvicorn.Config(
        application,
        host=settings.HOST,
        port=settings.PORT,
        http=Connection,
        ws="tasks_app.process.sockets:Socket" if "websocket" in application.doors else "none",
        ws_max_size=settings.A2A_BODY_BYTES,
        ws_ping_interval=settings.A2A_PING_SECONDS,
        ws_ping_timeout=settings.A2A_WRITE_SECONDS,
        ws_per_message_deflate=False,  # An attacker could have a few bytes unpacked into megabytes.
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=4096,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=settings.A2A_KEEP_ALIVE_SECONDS,
        loop="uvloop",
    )


def cut_slow_readers(server: uvicorn.Server) -> None:
    """End the connections of clients that do not read: the end of their stream cannot be sent to them."""
    for connection in list(server.server_state.connections):
        transport: Any = getattr(connection, "transport", None)
        if transport is not None and transport.get_write_buffer_size():
            transport.abort()


async def _serve(server: Server) -> bool:
    """Serve, and return whether a signal has ordered the end."""
    loop = asyncio.get_running_loop()

    def stop(name: str) -> None:
        log.info("%s: no new work; streams end now, running agents have %g s", name, settings.A2A_GRACE_SECONDS)
        services.drain()
        server.should_exit = True
        loop.call_later(SILENCE_SECONDS, cut_slow_readers, server)

    orders = obey_signals(stop)
    await server.serve()
    for number in (signal.SIGINT, signal.SIGTERM):
        # From here on the loop handles no signals. A further one ends the process at once.
        signal.signal(number, lambda *_: leave(1))
    return bool(orders)
