"""Calls whose credentials may be wrong, examined in groups: all those of a few milliseconds together. A flood of wrong
credentials from many addresses, none of which is refused yet, costs one small statement, or one thread's turn, for each
group."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeVar

from tasks_app.callers.schemes import Evidence, schemes
from tasks_app.process.answering import Whole
from tasks_app.transports.pace import pace
from tasks_app.transports.refusal_memory import Answer, memory

log = logging.getLogger(__name__)
GROUP_SECONDS = 0.01
"""Seconds for which a group collects calls."""
MOST = 500
"""Calls of a group. A full one is examined at once."""
MOST_WAITING = 2_000
"""Calls that wait for the next groups. The application answers those that come then."""

T = TypeVar("T")
IsWrong = Callable[[], bool]
"""Verifies a token; returns whether it is wrong."""

_thread = ThreadPoolExecutor(1, thread_name_prefix="tokens")
"""The thread that verifies tokens. A verification gives up the interpreter lock, and the loop would have to wait for it
after each one. asyncio's default executor would not do, because agents may block it."""


class Doubt(NamedTuple, Generic[T]):
    """A call whose credential may be wrong."""

    evidence: T
    refuse: Callable[[], Whole | None]
    """Returns the refusal of a wrong credential; None if the application itself must answer."""
    answer: Answer
    """The refusal, or None."""


class Doubts(Generic[T]):
    """The calls of one kind of credential, on the loop of this process. One group is examined at a time, while the next
    one collects."""

    def __init__(self, examine: Callable[[Sequence[T]], Awaitable[Sequence[bool]]]) -> None:
        self.examine = examine
        """Returns which credentials of a group are wrong."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.waiting: list[Doubt[T]] = []
        """The calls of the next group."""
        self.timer: asyncio.TimerHandle | None = None
        """Begins the next group."""
        self.group: asyncio.Task[None] | None = None
        """The group that is examined."""

    def add(self, evidence: T, refuse: Callable[[], Whole | None], scope: Mapping[str, Any]) -> Answer | None:
        """Return a future of the refusal, whose result is None for a credential that is not wrong; None if too many
        calls wait. End the future of a call whose client has left."""
        loop = asyncio.get_running_loop()
        if loop is not self.loop:
            self.loop, self.waiting, self.timer, self.group = loop, [], None, None
        if len(self.waiting) >= MOST_WAITING:
            return None
        doubt = Doubt(evidence, refuse, loop.create_future())
        memory.hold(doubt.answer, scope)
        self.waiting.append(doubt)
        if self.group is None:
            if self.timer is None:
                self.timer = loop.call_later(GROUP_SECONDS, self._begin)
            elif len(self.waiting) >= MOST:
                self.timer.cancel()
                self._begin()
        return doubt.answer

    def _begin(self) -> None:
        doubts, self.waiting, self.timer = self.waiting[:MOST], self.waiting[MOST:], None
        self.group = asyncio.ensure_future(self._settle([doubt for doubt in doubts if not doubt.answer.done()]))
        self.group.add_done_callback(self._end)

    def _end(self, group: "asyncio.Task[None]") -> None:
        if group is self.group and self.loop is not None:
            self.group = None
            if self.waiting:
                self.timer = self.loop.call_later(GROUP_SECONDS, self._begin)

    async def _settle(self, doubts: Sequence[Doubt[T]]) -> None:
        """Examine the credentials, and refuse the calls with wrong ones. The application answers all others, also if
        anything fails here."""
        refused = set[Answer]()
        try:
            wrong = await self.examine([doubt.evidence for doubt in doubts])
            for doubt, is_wrong in zip(doubts, wrong, strict=True):
                if is_wrong and not doubt.answer.done() and (refusal := doubt.refuse()) is not None:
                    refused.add(doubt.answer)
                    pace.give(doubt.answer, refusal)
        except Exception as error:  # noqa: BLE001  # the database may be away; the application says so to each caller
            log.warning("the credentials of %d calls could not be examined together: %s", len(doubts), error)
        finally:
            for doubt in doubts:
                if doubt.answer not in refused and not doubt.answer.done():
                    doubt.answer.set_result(None)


async def find_unknown(evidence: Sequence[Evidence]) -> list[bool]:
    """Return which evidence is not stored, by one look-up for each scheme. Raises errors of the database."""
    is_unknown: dict[Evidence, bool] = {}
    for scheme in schemes():
        if scheme.lacks and (group := [one for one in evidence if one.scheme == scheme.name]):
            is_unknown.update(zip(group, await scheme.lacks(group), strict=True))
    return [is_unknown.get(one, False) for one in evidence]


async def find_wrong(tokens: Sequence[IsWrong]) -> list[bool]:
    """Return which tokens are wrong."""
    return await asyncio.get_running_loop().run_in_executor(_thread, _verify, tokens)


def _verify(tokens: Sequence[IsWrong]) -> list[bool]:
    return [is_wrong() for is_wrong in tokens]
