"""Look-ups of names, each in a daemon thread of its own.

A name server that does not answer blocks a thread until the system gives up, which may take a minute. The default
executor of an event loop has few threads, which other work needs too; and Python waits for an executor's threads when
the process ends.

Calls that look for the same name at the same time share one look-up. So a name whose server hangs costs one thread,
however many calls wait for it, and takes the room of no other name.
"""

import asyncio
import socket
import threading
from typing import Any

AT_ONCE = 512
"""Look-ups under way for one purpose. The sender needs fewer, even while each of its names hangs for half a minute: its
tries give up after five seconds, and A2A_DELIVERY_SLOTS of them are under way."""

Answers = list[tuple[Any, Any, Any, Any, tuple[Any, ...]]]
"""The result of socket.getaddrinfo()."""
Question = tuple[asyncio.AbstractEventLoop, str, int]
"""The host and the port of a look-up, and the loop that waits for it."""


class Lookups:
    """Look-ups for one purpose, limited in number."""

    def __init__(self, name: str, at_once: int = AT_ONCE) -> None:
        self.name = name
        self.room = threading.BoundedSemaphore(at_once)
        self.under_way: dict[Question, asyncio.Future[Answers]] = {}
        """The answers that are awaited. Each entry is used by the thread of its loop alone."""

    async def find(self, host: str, port: int) -> Answers:
        """Look a name up with the system's resolver. Raises OSError, also if too many look-ups are under way."""
        question = asyncio.get_running_loop(), host, port
        # Shielded, because a caller whose time is up must not end the look-up of the others.
        return await asyncio.shield(self.under_way.get(question) or self._begin(*question))

    def _begin(self, loop: asyncio.AbstractEventLoop, host: str, port: int) -> "asyncio.Future[Answers]":
        """Begin a look-up. Raises OSError."""
        if not self.room.acquire(blocking=False):
            raise OSError("too many names are being looked up")
        answer: asyncio.Future[Answers] = loop.create_future()
        thread = threading.Thread(target=self._look, args=(host, port, loop, answer), name=self.name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self.room.release()
            raise OSError("no thread can be started") from error
        self.under_way[loop, host, port] = answer
        answer.add_done_callback(lambda _: self.under_way.pop((loop, host, port)))
        return answer

    def _look(self, host: str, port: int, loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[Answers]") -> None:
        result: Answers | Exception
        try:
            result = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        except (OSError, UnicodeError) as error:
            result = error
        finally:
            self.room.release()
        try:
            loop.call_soon_threadsafe(_settle, answer, result)
        except RuntimeError:  # The loop has ended.
            self.under_way.pop((loop, host, port), None)


def _settle(answer: "asyncio.Future[Answers]", result: Answers | Exception) -> None:
    if isinstance(result, Exception):
        answer.set_exception(result)
        answer.exception()  # Now it is not reported as an error that was forgotten, if all callers have gone.
    else:
        answer.set_result(result)


registering = Lookups("lookup-registering")
sending = Lookups("lookup-sending")
"""The look-ups of deliveries, whose names callers choose."""
calling = Lookups("lookup-calling")
"""The look-ups of all other calls, to places that operators choose. Names of callers must not take their room."""
