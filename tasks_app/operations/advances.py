"""The advances of this process: which one pays for the call of a quick agent, and when it ends."""

import asyncio
import logging
from concurrent.futures import Future
from functools import partial
from time import monotonic

from msgspec import Struct

from tasks_app.database.bridge import bridge
from tasks_app.database.errands import insist
from tasks_app.database.rows import KeyRow
from tasks_app.event_log import ORPHAN_AFTER, ChargeDrawn, EndAdvance, FindKeyLast, KeyTarget, Lend, Release, late_cost
from tasks_app.ids import uuid7
from tasks_app.limits.budgets import Charge
from tasks_app.operations.operation import Await

log = logging.getLogger(__name__)
SECONDS = 1.0
"""Seconds for which calls may draw on an advance. Then it is given back, when the last of them has ended."""
CALLS = 16
"""Calls that an advance must be enough for: a smaller one is not worth two commits."""
MAX_WISHES = 10_000


def give_back(kind: type[Release], charge: Charge, spent: int, since: float) -> None:
    """End a reservation or an advance that was made at a time of the monotonic clock, and charge its cost.

    After some time a sweep has given it back as that of a dead process, or will. Then its end would charge nothing, and
    the cost is charged as a late one.
    """
    if spent and monotonic() - since > ORPHAN_AFTER.total_seconds() / 2:
        insist(late_cost(charge.task_id, spent, charge.budgets))
        spent = 0
    insist(kind(charge=charge, spent=spent))


class Advance:
    """Money that is reserved for calls to come. It is used on one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, charge: Charge, amount: int, since: float) -> None:
        self.loop = loop
        self.id = charge.task_id
        self.budgets = charge.budgets
        self.left = amount
        """Millionths of a dollar that no call has taken."""
        self.since, self.ends = since, since + SECONDS
        self.calls = 0
        """Calls under way that draw on it."""
        self.spent = 0
        """The cost of calls that have stored no task."""
        self.is_over = False

    def exceed(self, excess: int) -> None:
        """Note that a call has cost so much more than its maximum.

        The advance does not cover that. The budgets are charged at once, so that they give no further advances, and
        admit no calls, if too little is left. This advance pays for fewer calls.
        """
        self.left -= excess
        insist(ChargeDrawn(charge=self._charge))

    def leave(self, spent: int) -> None:
        """Note the end of a call, and its cost if it has stored no task. The last call of an advance that is over gives
        the rest back."""
        self.calls -= 1
        self.spent += spent
        self._give_back()

    def leave_elsewhere(self, spent: int) -> None:
        """Note the end of a call on any thread.

        Once the loop has ended, the advance is given back as one of a dead process. That charges only what is stored
        with tasks, so the cost of a call that has stored none is charged at once.
        """
        try:
            self.loop.call_soon_threadsafe(self.leave, spent)
        except RuntimeError:
            if spent:
                insist(late_cost(self.id, spent, self.budgets))

    def leave_in_doubt(self, key: KeyRow, spent: int) -> None:
        """Note the end of a call that may or may not have stored its task or reply under the key. Any thread may call
        this.

        The key is looked up to find out. If the database is away, the look-up waits until it is back.
        """

        def note(target: KeyTarget | None) -> None:
            is_own = isinstance(target, KeyTarget) and (target.task_id, target.reply_id) == (key.task_id, key.turn_id)
            self.leave_elsewhere(0 if is_own else spent)

        insist(FindKeyLast(owner_id=key.owner_id, key=key.key), note)

    def end(self) -> None:
        """Lend no more of it."""
        if not self.is_over:
            self.is_over = True
            self._give_back()

    def _give_back(self) -> None:
        if self.is_over and not self.calls:
            give_back(EndAdvance, self._charge, self.spent, self.since)

    @property
    def _charge(self) -> Charge:
        """The advance, for work items about it."""
        return Charge(task_id=self.id, budgets=self.budgets, least=0, most=0)


class Wish(Struct, eq=False):
    """The latest question for an advance of a set of budgets."""

    since: float
    """Its time, on the monotonic clock."""
    answer: "asyncio.Future[None]"
    """Done when there is an answer, whatever it is."""
    is_awaited: bool
    """Whether calls wait for the answer. After a refusal none does, because the next one is often a refusal, too."""
    is_granted: bool = False


class Advances:
    """The advances of this process. They belong to the loop of the doors: a call elsewhere has none."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.current: dict[tuple[int, ...], Advance] = {}
        """The advance of each set of budgets."""
        self.wishes: dict[tuple[int, ...], Wish] = {}
        """The latest wish for each set of budgets."""

    async def find(self, charge: Charge) -> Advance | None:
        """Return the advance that pays for a call, or None. An operation awaits it.

        A call that comes while one is asked for waits for it. A reservation of its own would take as long, and would
        keep the row of the budget from all others.
        """
        if (advance := self.take(charge)) is not None:
            return advance
        wish = self.wishes.get(charge.budgets)
        if wish is None or not wish.is_awaited or wish.answer.done():
            return None
        await Await(lambda: asyncio.wait({wish.answer}, timeout=SECONDS))
        return self.take(charge)

    def take(self, charge: Charge) -> Advance | None:
        """Return the advance that pays for a call; None if there is none, and then there may be one for later calls."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return None
        if loop is not self.loop:
            self.forget()
            self.loop = loop
        now = monotonic()
        advance = self.current.get(charge.budgets)
        wish = self.wishes.get(charge.budgets)
        if wish is None or now - wish.since > SECONDS / 2:
            self._ask(charge, now, is_awaited=wish is None or wish.is_granted)
        if advance is None or now >= advance.ends or advance.left < charge.most:
            return None
        advance.left -= charge.most
        advance.calls += 1
        return advance

    def forget(self) -> None:
        """End all advances, as those of a loop that has ended."""
        former, self.current, self.wishes = self.current, {}, {}
        for advance in former.values():
            advance.end()

    def _ask(self, charge: Charge, now: float, *, is_awaited: bool) -> None:
        if len(self.wishes) >= MAX_WISHES:
            self.wishes.clear()
        loop = asyncio.get_running_loop()
        wish = self.wishes[charge.budgets] = Wish(now, loop.create_future(), is_awaited)
        own = Charge(task_id=uuid7(), budgets=charge.budgets, least=CALLS * max(charge.most, 1), most=0)
        future: Future[int] = Future()
        future.add_done_callback(partial(self._hand_over, loop, own, wish))
        bridge.put(Lend(charge=own), future)

    def _hand_over(self, loop: asyncio.AbstractEventLoop, charge: Charge, wish: Wish, future: "Future[int]") -> None:
        """Hand the answer to a wish to the loop, from the thread of the lane."""
        advance = None
        if (error := future.exception()) is not None:
            log.info("no advance of budgets %s: %s", charge.budgets, error)
        elif isinstance(amount := future.result(), int) and amount:
            advance = Advance(loop, charge, amount, wish.since)
        try:
            loop.call_soon_threadsafe(self._answer, loop, wish, advance)
        except RuntimeError:  # The loop has ended.
            if advance is not None:
                advance.end()

    def _answer(self, loop: asyncio.AbstractEventLoop, wish: Wish, advance: Advance | None) -> None:
        if advance is not None:
            wish.is_granted = True
            if former := self.current.get(advance.budgets):
                former.end()
            self.current[advance.budgets] = advance
            loop.call_later(SECONDS, self._end, advance)
        wish.answer.set_result(None)

    def _end(self, advance: Advance) -> None:
        if self.current.get(advance.budgets) is advance:
            del self.current[advance.budgets]
        advance.end()


advances = Advances()
"""The advances of this process."""
