"""Looking names up, in threads of their own, which the end of the process does not wait for.

A name server that does not answer holds a thread for as long as the system is patient, which may be a minute. The
threads of a loop are few and for everybody; those of an executor are joined when the process ends.
"""

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Any

AT_ONCE = 256
"""Look-ups under way in one place; more than senders need while each of their names hangs for half a minute."""

Found = list[tuple[Any, Any, Any, Any, tuple[Any, ...]]]
"""The result of getaddrinfo."""


class Lookups:
    """Look-ups of one kind, each in a thread of its own."""

    def __init__(self, name: str, at_once: int = AT_ONCE) -> None:
        self.name = name
        self.room = threading.BoundedSemaphore(at_once)

    async def find(self, host: str, port: int) -> Found:
        """Ask the system's resolver. Raises OSError, also when there is no room for another look-up."""
        if not self.room.acquire(blocking=False):
            raise OSError("too many names are being looked up")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Found] = loop.create_future()
        thread = threading.Thread(target=self._look, args=(host, port, loop, answer), name=self.name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self.room.release()
            raise OSError("no thread can be started") from error
        return await answer

    def _look(self, host: str, port: int, loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[Found]") -> None:
        try:
            found: Found | Exception = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        except (OSError, UnicodeError) as error:
            found = error
        finally:
            self.room.release()
        with suppress(RuntimeError):  # The loop has ended.
            loop.call_soon_threadsafe(_tell, answer, found)


def _tell(answer: "asyncio.Future[Found]", found: Found | Exception) -> None:
    if answer.done():  # The caller lost its patience.
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)


registering = Lookups("lookup-registering")
sending = Lookups("lookup-sending")
