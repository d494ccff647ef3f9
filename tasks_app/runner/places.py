"""Places for calls, such as one for each thread of a sync quick agent. Owners whose calls wait for one take turns."""

import asyncio
import threading
from collections import OrderedDict, deque
from concurrent.futures import Future


class NoPlace(Exception):
    """The agent has no place for a call."""


class Places:
    """Places for so many runs. Any thread may give one back, and calls on any loop may wait for one.

    A place that becomes free goes to the owner whose turn it is. So an owner with many calls gets all places while no
    other owner waits, and delays a call of another one by little more than the end of a run for each waiting owner.
    """

    def __init__(self, number: int) -> None:
        self.lock = threading.Lock()
        self.free = number
        self.waiting: OrderedDict[int | str, deque[Future[None]]] = OrderedDict()
        """The waiting calls of each owner, by its id or name, in the order of turns. Some may have given up."""

    async def take(self, owner: int | str, seconds: float | None) -> None:
        """Take a place, or wait for one for so many seconds; None waits without a limit. Raises NoPlace after them."""
        with self.lock:
            if self.free:
                self.free -= 1
                return
            call = Future[None]()
            self.waiting.setdefault(owner, deque()).append(call)
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wrap_future(call)
        except (TimeoutError, asyncio.CancelledError) as error:
            if not call.cancel():
                self.give_back()  # It came in the same moment.
            if isinstance(error, TimeoutError):
                raise NoPlace from None
            raise

    def give_back(self) -> None:
        """Give the place of a run to the next call, or leave it free."""
        with self.lock:
            while self.waiting:
                if (call := self._next()).set_running_or_notify_cancel():
                    break
            else:
                self.free += 1
                return
        call.set_result(None)

    def _next(self) -> Future[None]:
        """Return the first call of the owner whose turn it is, and put the owner at the end."""
        owner, calls = self.waiting.popitem(last=False)
        call = calls.popleft()
        if calls:
            self.waiting[owner] = calls
        return call
