"""Look-ups of names, each in a daemon thread of its own.

A name server that does not answer blocks a thread until the system gives up, which may take a minute. The default
executor of an event loop has few threads, which other work needs too; and Python waits for an executor's threads when
the process ends.
"""

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Any

AT_ONCE = 256
"""Look-ups under way in one place. The senders need fewer, even while each of their names hangs for half a minute."""

Answers = list[tuple[Any, Any, Any, Any, tuple[Any, ...]]]
"""The result of socket.getaddrinfo()."""


class Lookups:
    """Look-ups for one purpose, limited in number."""

    def __init__(self, name: str, at_once: int = AT_ONCE) -> None:
        self.name = name
        self.room = threading.BoundedSemaphore(at_once)

    async def find(self, host: str, port: int) -> Answers:
        """Look a name up with the system's resolver. Raises OSError, also if too many look-ups are under way."""
        if not self.room.acquire(blocking=False):
            raise OSError("too many names are being looked up")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answers] = loop.create_future()
        thread = threading.Thread(target=self._look, args=(host, port, loop, answer), name=self.name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self.room.release()
            raise OSError("no thread can be started") from error
        return await answer

    def _look(self, host: str, port: int, loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[Answers]") -> None:
        result: Answers | Exception
        try:
            result = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        except (OSError, UnicodeError) as error:
            result = error
        finally:
            self.room.release()
        with suppress(RuntimeError):  # The loop has ended.
            loop.call_soon_threadsafe(_settle, answer, result)


def _settle(answer: "asyncio.Future[Answers]", result: Answers | Exception) -> None:
    if answer.done():  # The caller's time limit has cancelled it.
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)


registering = Lookups("lookup-registering")
sending = Lookups("lookup-sending")
