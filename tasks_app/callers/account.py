"""The one account of what owners have in flight, asked before anything is begun for them: what this process holds
open, which it counts itself, and their unfinished tasks in all processes, which the census counts.

A cap of one owner is refused as RateLimited, a cap of all together as Unavailable; both at once, with the time after
which another try makes sense. It never asks the database: the numbers are told to it.
"""

import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

from django.conf import settings
from msgspec import Struct

from a2a.errors import RateLimited, Unavailable

SHORTEST, LONGEST = 1, 60
"""Seconds that a Retry-After may say."""
FRESH = 10.0
"""Seconds for which a count of tasks is believed: an older one refuses no task."""
WEIGHT = 0.3
"""Share of the newest measurement in a rate."""


class Kind(Struct, frozen=True, kw_only=True):
    """Something that a process holds for callers, and the settings that bound it."""

    noun: str
    of_owner: str
    """The setting with the most of one owner."""
    of_all: str
    """The setting with the most in a process."""
    retry_after: int = 1
    """Seconds after which some of it is likely to be free again."""


KINDS = {
    "streams": Kind(noun="open streams", of_owner="A2A_OWNER_STREAMS", of_all="A2A_STREAMS", retry_after=5),
    # Each for a task that is not finished; beyond that an owner waits for the same tasks again and again.
    "waits": Kind(noun="calls that wait", of_owner="A2A_OWNER_TASKS", of_all="A2A_TASKS", retry_after=5),
    "bodies": Kind(noun="bytes of requests and answers", of_owner="A2A_OWNER_BODY_BYTES", of_all="A2A_BODIES_BYTES"),
}


class Count(Struct, frozen=True, kw_only=True):
    """The unfinished tasks of one owner with one agent."""

    unfinished: int
    older: int
    """Unfinished tasks that were created before this count began."""
    before: int
    """Unfinished tasks that were created before the count before this one; the others it saw have ended since."""


NOTHING = Count(unfinished=0, older=0, before=0)


class Rates:
    """How many tasks end in a second, by group, from one count to the next."""

    def __init__(self) -> None:
        self.last: Counter[str] = Counter()
        self.rates: dict[str, float] = {}

    def learn(self, older: Counter[str], before: Counter[str], seconds: float) -> None:
        """Takes up a count that was made so many seconds after the last one; of a long pause nothing is measured."""
        last, self.last = self.last, older
        if seconds > FRESH:
            return
        measured = {group: max(0, number - before[group]) / seconds for group, number in last.items()}
        former = self.rates
        self.rates = {
            group: WEIGHT * rate + (1 - WEIGHT) * former[group] if group in former else rate
            for group, rate in measured.items()
        }

    def seconds_for(self, group: str, tasks: int) -> int:
        """Whole seconds in which so many tasks of the group are likely to end."""
        rate = self.rates.get(group, 0.0)
        return min(max(math.ceil(tasks / rate), SHORTEST), LONGEST) if rate else LONGEST


class Account:
    """The account of one process; any thread may ask."""

    def __init__(self) -> None:
        # A collection of garbage may release something in the midst of anything.
        self.lock = threading.RLock()
        self.held: Counter[tuple[str, int | None]] = Counter()
        """The amount that each owner has of each kind."""
        self.totals: Counter[str] = Counter()
        """The amount that all owners have of each kind."""
        self.wanted = threading.Event()
        """Set when a task was asked for since the last count, or a cap was reached then."""
        self.rates = Rates()
        self.counted: Counter[str] = Counter()
        """Unfinished tasks by group, as of the last count."""
        self.counted_at = float("-inf")
        self.pending: Counter[str] = Counter()
        """Tasks that were admitted and are being stored."""
        self.since: Counter[str] = Counter()
        """Tasks that were stored here after the last count was begun."""
        self.refused: Counter[str] = Counter()
        """Tasks that were refused since then: who comes again competes with them."""

    # ------------------------------------------------- what a process holds

    def take(self, owner_id: int | None, kind: str, amount: int = 1) -> None:
        """Notes that the owner has so much more of the kind; without an owner only the total is looked at. Raises
        RateLimited and Unavailable, and then notes nothing."""
        limits = KINDS[kind]
        with self.lock:
            most = getattr(settings, limits.of_owner)
            if owner_id is not None and self.held[kind, owner_id] + amount > most:
                raise RateLimited(limits.retry_after, limit=limits.noun, most=str(most))
            most = getattr(settings, limits.of_all)
            if self.totals[kind] + amount > most:
                raise Unavailable(limits.retry_after, limit=f"{limits.noun} of all callers", most=str(most))
            self.totals[kind] += amount
            self.held[kind, owner_id] += amount

    def give(self, owner_id: int | None, kind: str, amount: int = 1) -> None:
        """Takes back what was noted by take()."""
        with self.lock:
            self.totals[kind] -= amount
            self.held[kind, owner_id] -= amount
            if not self.held[kind, owner_id]:
                del self.held[kind, owner_id]

    def hold(self, owner_id: int | None, kind: str, amount: int = 1) -> "Holding":
        """Take an amount that may be given back in more than one place. Raises RateLimited and Unavailable."""
        self.take(owner_id, kind, amount)
        return Holding(self, owner_id, kind, amount)

    @contextmanager
    def using(self, owner_id: int | None, kind: str, amount: int = 1) -> Iterator[None]:
        """Holds so much of the kind for the length of the block. Raises RateLimited and Unavailable."""
        self.take(owner_id, kind, amount)
        try:
            yield
        finally:
            self.give(owner_id, kind, amount)

    def holdings(self) -> list[tuple[str, int | None, int]]:
        """Kind, owner and amount of all that is held, for operators."""
        with self.lock:
            return sorted(((kind, owner, much) for (kind, owner), much in self.held.items()), key=str)

    # ------------------------------------------------------ unfinished tasks

    @contextmanager
    def new_work(self, owner_id: int, agent: str) -> Iterator[None]:
        """Admits one more task to be run, which the block stores. Raises RateLimited and Unavailable."""
        groups = groups_of(owner_id, agent)
        if not self.wanted.is_set():
            self.wanted.set()
        with self.lock:
            if monotonic() - self.counted_at < FRESH:
                self._check(groups)
            self.pending.update(groups)
        try:
            yield
        except BaseException:
            with self.lock:
                self.pending.subtract(groups)
            raise
        with self.lock:
            self.pending.subtract(groups)
            self.since.update(groups)

    def _check(self, groups: tuple[str, str, str]) -> None:
        of_owner, of_agent, of_all = groups
        self._check_one(of_owner, RateLimited, "unfinished tasks")
        self._check_one(of_agent, Unavailable, "unfinished tasks of the agent")
        self._check_one(of_all, Unavailable, "unfinished tasks of all callers")

    def _check_one(self, group: str, error: type[RateLimited | Unavailable], limit: str) -> None:
        most = cap_of(group)
        if self.counted[group] + self.pending[group] + self.since[group] < most:
            return
        self.refused[group] += 1
        raise error(self.rates.seconds_for(group, self.refused[group]), limit=limit, most=str(most))

    def begin_count(self) -> Counter[str]:
        """Says that unfinished tasks are about to be counted; end_count() takes what this returns."""
        with self.lock:
            self.wanted.clear()
            return self.since.copy()

    def end_count(self, begun: Counter[str], counts: Mapping[tuple[int, str], Count]) -> None:
        """Learns the unfinished tasks by owner and agent."""
        unfinished: Counter[str] = Counter()
        older: Counter[str] = Counter()
        before: Counter[str] = Counter()
        for (owner_id, agent), count in counts.items():
            for group in groups_of(owner_id, agent):
                unfinished[group] += count.unfinished
                older[group] += count.older
                before[group] += count.before
        now = monotonic()
        with self.lock:
            self.rates.learn(older, before, now - self.counted_at)
            self.counted, self.counted_at = unfinished, now
            self.since.subtract(begun)
            self.since, self.pending = +self.since, +self.pending
            self.refused.clear()
            if any(number >= cap_of(group) for group, number in unfinished.items()):
                # A caller who comes back when its Retry-After is over must not be refused by a count from before.
                self.wanted.set()

    def unfinished(self) -> dict[str, int]:
        """Unfinished tasks by group, as far as they are known, for operators."""
        with self.lock:
            return dict(self.counted)


class Holding:
    """A share that was taken. It is given back when it is released, or when nothing refers to it any more."""

    def __init__(self, account: Account, owner_id: int | None, kind: str, amount: int) -> None:
        self.account = account
        self.taken: tuple[int | None, str, int] | None = (owner_id, kind, amount)

    def release(self) -> None:
        """Gives it back, once."""
        if (taken := self.taken) is not None:
            self.taken = None
            self.account.give(*taken)

    def shrink(self, amount: int) -> None:
        """Give back what is more than this amount, which is all that is left."""
        if self.taken is not None and (more := self.taken[2] - amount) > 0:
            self.taken = (*self.taken[:2], amount)
            self.account.give(*self.taken[:2], more)

    def __del__(self) -> None:
        self.release()


def groups_of(owner_id: int, agent: str) -> tuple[str, str, str]:
    """The groups that a task counts in, each of which has a cap."""
    return f"owner:{owner_id}", f"agent:{agent}", "all"


CAPS = {"owner": "A2A_OWNER_TASKS", "agent": "A2A_AGENT_TASKS", "all": "A2A_TASKS"}
"""The setting with the most unfinished tasks of a group, by its kind."""


def cap_of(group: str) -> int:
    """Return the most unfinished tasks that a group may have."""
    most: int = getattr(settings, CAPS[group.partition(":")[0]])
    return most


account = Account()
"""The account of this process."""
