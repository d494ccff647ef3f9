"""The pace of early refusals: few are written at a time while known callers call.

Each costs little, but a client with a hundred connections sends its next hundred calls as soon as it has its answers.
Nearly all of the processor would go into refusals.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

from tasks_app.limits.turns import turns
from tasks_app.process.answering import Whole
from tasks_app.transports.refusal_memory import Answer, memory

MOST = 4
"""Refusals in one round. With the pause they are 1,000 a second. Beside a client of 256 connections the p99 of calls
rises to 1.4 times that of calls alone, with ten in a round to twice that, and without a pace to 15 times."""
PAUSE = 0.004
"""Seconds between two rounds while known callers call."""


class Pace:
    """The refusals that wait, on the loop of this process. Each connection has one at most."""

    def __init__(self) -> None:
        self._begin_anew(None)

    def _begin_anew(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.waiting: deque[tuple[Answer, Whole]] = deque()
        self.in_round = 0
        """The number of refusals in the current round."""

    def of(self, refusal: Whole, scope: Mapping[str, Any]) -> Whole | Answer:
        """Return the refusal of a request if it may be written now, and otherwise a future of it. End the future of a
        request whose client has left."""
        if self._passes():
            return refusal
        answer: Answer = asyncio.get_running_loop().create_future()
        self.waiting.append((answer, refusal))
        memory.hold(answer, scope)
        return answer

    def give(self, answer: Answer, refusal: Whole) -> None:
        """Make a refusal the result of a future as soon as it may be written."""
        if self._passes():
            answer.set_result(refusal)
        else:
            self.waiting.append((answer, refusal))

    def _passes(self) -> bool:
        if (loop := asyncio.get_running_loop()) is not self.loop:
            self._begin_anew(loop)
        if not self.in_round and not turns.are_taken():
            return True
        if self.in_round >= MOST:
            return False
        self.in_round += 1
        if self.in_round == 1:
            loop.call_later(PAUSE, self._begin_round, loop)
        return True

    def _begin_round(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self.loop:
            return
        self.in_round, most = 0, MOST if turns.are_taken() else len(self.waiting)
        while self.waiting and self.in_round < most:
            answer, refusal = self.waiting.popleft()
            if not answer.done():
                answer.set_result(refusal)
                self.in_round += 1
        if self.in_round:
            loop.call_later(PAUSE, self._begin_round, loop)


pace = Pace()
"""The pace of this process."""
