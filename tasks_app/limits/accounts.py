"""The account of what each owner has in flight, which limits it before new work begins.

It counts what this process holds open, such as streams. The unfinished tasks of all processes come from the census, so
that no call asks the database. At an owner's limit a call is refused with RateLimited, at the limit of all owners with
Unavailable; both name the time after which another attempt may succeed.
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
from tasks_app.off_loop import LARGE

SHORTEST, LONGEST = 1, 60
"""The bounds of Retry-After, in seconds."""
FRESH = 10.0
"""Seconds for which a count of tasks is used. An older one refuses no task."""
WEIGHT = 0.3
"""The weight of the newest measurement in a rate."""


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of resource that a process holds for callers, and the settings that limit it."""

    noun: str
    of_owner: str
    """The setting with the limit for one owner."""
    of_all: str
    """The setting with the limit for all owners in a process."""
    shares: int = 1
    """The number of shares in the limit for one owner, who may have one of them, and 1 at least."""
    leaves_half: bool = False
    """Whether an owner leaves half of what others have not taken to further owners. Otherwise a few owners who give
    nothing back could take all of it."""
    retry_after: int = 1
    """Seconds after which some of the resource is likely to be free again."""

    def refusal(self, most: int) -> RateLimited:
        """Return the error for an owner who would have more than this."""
        return RateLimited(self.retry_after, limit=self.noun, most=str(most))


KINDS = {
    "streams": Kind(noun="open streams", of_owner="A2A_OWNER_STREAMS", of_all="A2A_STREAMS", retry_after=5),
    "sockets": Kind(noun="open sockets", of_owner="A2A_OWNER_SOCKETS", of_all="A2A_SOCKETS", retry_after=5),
    # A call waits for an unfinished task. With more waiting calls than tasks an owner waits for a task twice.
    "waits": Kind(noun="calls that wait", of_owner="A2A_OWNER_TASKS", of_all="A2A_TASKS", retry_after=5),
    # The link of a file has no owner, so the address of the download stands for one.
    "downloads": Kind(
        noun="downloads",
        of_owner="A2A_DOWNLOADS",
        of_all="A2A_DOWNLOADS",
        shares=2,
        leaves_half=True,
        retry_after=5,
    ),
    "bodies": Kind(
        noun="bytes of requests and answers",
        of_owner="A2A_OWNER_BODY_BYTES",
        of_all="A2A_BODIES_BYTES",
        leaves_half=True,
    ),
    # Apart from the others, so that one large answer that is read slowly has no small ones refused.
    "small_answers": Kind(
        noun="bytes of small answers",
        of_owner="A2A_OWNER_BODY_BYTES",
        of_all="A2A_BODIES_BYTES",
        leaves_half=True,
    ),
}


class Count(Struct, frozen=True, kw_only=True):
    """The unfinished tasks of one owner with one agent."""

    unfinished: int
    older: int
    """Unfinished tasks that were created before this count began."""
    before: int
    """Unfinished tasks that were created before the last count. The others of that count have ended since."""


Owner = int | str | None
"""The id of an owner, or the address of a call that has none; None if that is not known either."""
NOTHING = Count(unfinished=0, older=0, before=0)


class Rates:
    """The number of tasks that end in a second, by group, measured from one count to the next."""

    def __init__(self) -> None:
        self.last: Counter[str] = Counter()
        self.rates: dict[str, float] = {}

    def learn(self, older: Counter[str], before: Counter[str], seconds: float) -> None:
        """Learn from a count that was made some seconds after the last one. A long pause measures nothing."""
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
        """Return the seconds in which this number of tasks of the group is likely to end, as a whole number."""
        rate = self.rates.get(group, 0.0)
        return min(max(math.ceil(tasks / rate), SHORTEST), LONGEST) if rate else LONGEST


class Account:
    """The account of one process. Any thread may use it."""

    def __init__(self) -> None:
        # Reentrant, because a garbage collection inside a locked block may release a Holding.
        self.lock = threading.RLock()
        self.amounts: Counter[tuple[str, Owner]] = Counter()
        """The amount of each kind that each owner has."""
        self.totals: Counter[str] = Counter()
        """The amount of each kind that all owners have, without their excess."""
        self.excess: Counter[tuple[str, Owner]] = Counter()
        """The part of these amounts that is beyond the room of each owner: answers that are owed, and bodies that are
        larger than was expected. It counts against this owner alone, or one owner could take the room of all others."""
        self.count_due = threading.Event()
        """Set when the census should count: a task was sent since the last count, or that count reached a limit."""
        self.rates = Rates()
        self.counted: Counter[str] = Counter()
        """Unfinished tasks by group, as of the last count."""
        self.counted_at = float("-inf")
        self.pending: Counter[str] = Counter()
        """Tasks that are admitted but not yet stored."""
        self.since: Counter[str] = Counter()
        """Tasks that this process stored after the last count began."""
        self.refused: Counter[str] = Counter()
        """Tasks refused since the last count. Their callers come again, so a new caller has to wait behind them."""

    # ------------------------------------------------- what a process holds

    def take(self, owner_id: Owner, kind: str, amount: int = 1) -> None:
        """Add an amount to what the owner has. Without an owner only the total is limited.

        Raises RateLimited and Unavailable; then nothing is added.
        """
        limits = KINDS[kind]
        with self.lock:
            own = self.amounts[kind, owner_id]
            most = self._share_of(kind)
            if owner_id is not None and own + amount > most:
                raise limits.refusal(most)
            if own + amount > self._left_to(owner_id, kind):
                most = getattr(settings, limits.of_all)
                raise Unavailable(limits.retry_after, limit=f"{limits.noun} of all callers", most=str(most))
            self._add(owner_id, kind, amount)

    @staticmethod
    def _share_of(kind: str) -> int:
        most: int = getattr(settings, KINDS[kind].of_owner)
        return max(most // KINDS[kind].shares, 1)

    def _left_to(self, owner_id: Owner, kind: str) -> int:
        """Return how much of the limit for all owners the others leave to an owner, with what it has."""
        others = self.totals[kind] - self._without_excess(owner_id, kind)
        most: int = getattr(settings, KINDS[kind].of_all)
        return math.ceil((most - others) / 2) if KINDS[kind].leaves_half and others else most - others

    def _without_excess(self, owner_id: Owner, kind: str) -> int:
        return self.amounts[kind, owner_id] - self.excess[kind, owner_id]

    def _add(self, owner_id: Owner, kind: str, amount: int, excess: int = 0) -> None:
        self.totals[kind] += amount - excess
        for amounts, more in ((self.amounts, amount), (self.excess, excess)):
            if more:
                amounts[kind, owner_id] += more
                if not amounts[kind, owner_id]:
                    del amounts[kind, owner_id]

    def add_owed(self, owner_id: Owner, kind: str, amount: int) -> int:
        """Add an amount whatever the limits are. Return its excess: the part for which the owner has no room."""
        with self.lock:
            room = min(self._share_of(kind), self._left_to(owner_id, kind)) - self._without_excess(owner_id, kind)
            excess = min(max(0, amount - room), amount)
            self._add(owner_id, kind, amount, excess)
            return excess

    def give(self, owner_id: Owner, kind: str, amount: int = 1, excess: int = 0) -> None:
        """Give an amount back that take() added, or add_owed() with that excess."""
        with self.lock:
            self._add(owner_id, kind, -amount, -excess)

    def hold(self, owner_id: Owner, kind: str, amount: int = 1) -> "Holding":
        """Take an amount that any of several places may give back. Raises RateLimited and Unavailable."""
        self.take(owner_id, kind, amount)
        return Holding(self, owner_id, kind, amount)

    def hold_body(self, owner_id: int, size: int, beside: int = 0) -> "Holding":
        """Take the bytes of one request or answer. Raises RateLimited and Unavailable.

        One that is larger than the share of its owner is taken while the owner has no other bytes in the account.
        `beside` is the number of bytes that the same call may have there.
        """
        return self.hold(owner_id, "bodies", max(0, min(size, settings.A2A_OWNER_BODY_BYTES - beside)))

    def hold_answer(self, owner_id: int, size: int, beside: int = 0) -> "Holding":
        """Take the bytes of an answer as hold_body() does, those of a small one apart from the others."""
        if (kind := kind_of_answer(size)) == "bodies":
            return self.hold_body(owner_id, size, beside)
        return self.hold(owner_id, kind, size)

    def hold_owed(self, owner_id: int, size: int) -> "Holding":
        """Take the bytes of an answer that is owed, whatever the account has: the change that it answers is done."""
        kind = kind_of_answer(size)
        return Holding(self, owner_id, kind, size, self.add_owed(owner_id, kind, size))

    def check_bodies(self, owner_id: int) -> None:
        """Check that an owner may do what an answer is owed for. Raises RateLimited while its requests and answers have
        more than all bytes of the owner."""
        for kind in ("bodies", "small_answers"):
            if self.amounts.get((kind, owner_id), 0) > settings.A2A_OWNER_BODY_BYTES:
                raise KINDS[kind].refusal(settings.A2A_OWNER_BODY_BYTES)

    # ------------------------------------------------------ unfinished tasks

    @contextmanager
    def new_work(self, owner_id: int, agent: str) -> Iterator[None]:
        """Admit one more task, which the block stores. Raises RateLimited and Unavailable."""
        groups = groups_of(owner_id, agent)
        if not self.count_due.is_set():
            self.count_due.set()
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
        most = limit_of(group)
        if self.counted[group] + self.pending[group] + self.since[group] < most:
            return
        self.refused[group] += 1
        raise error(self.rates.seconds_for(group, self.refused[group]), limit=limit, most=str(most))

    def begin_count(self) -> Counter[str]:
        """Prepare for a count of unfinished tasks. Pass the result to end_count()."""
        with self.lock:
            self.count_due.clear()
            return self.since.copy()

    def end_count(self, baseline: Counter[str], counts: Mapping[tuple[int, str], Count]) -> None:
        """Take in a count of unfinished tasks by owner and agent."""
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
            self.since.subtract(baseline)
            self.since, self.pending = +self.since, +self.pending
            self.refused.clear()
            if any(number >= limit_of(group) for group, number in unfinished.items()):
                # At a limit count again: a caller who returns after Retry-After must not be refused by an old count.
                self.count_due.set()


class Holding:
    """An amount in use. It is given back by release(), or when this object is garbage."""

    def __init__(self, account: Account, owner_id: Owner, kind: str, amount: int, excess: int = 0) -> None:
        self.account = account
        self.entry: tuple[Owner, str, int] | None = (owner_id, kind, amount)
        self.excess = excess
        """The part of the amount that counts against its owner alone."""

    def release(self) -> None:
        """Give the amount back. A second call does nothing."""
        if (entry := self.entry) is not None:
            self.entry = None
            self.account.give(*entry, self.excess)

    def measure(self, size: int) -> None:
        """Count the bytes of a body, now that they are known, in place of those that were expected.

        Stored sizes are in characters, which have up to four bytes. A body that is larger than the share of its owner
        still counts as the share.
        """
        if self.entry is not None:
            owner_id, kind, before = self.entry
            size = min(size, max(before, settings.A2A_OWNER_BODY_BYTES))
            with self.account.lock:
                self.account.give(*self.entry, self.excess)
                self.entry, self.excess = (owner_id, kind, size), self.account.add_owed(owner_id, kind, size)

    def __del__(self) -> None:
        self.release()


def kind_of_answer(size: int) -> str:
    """Return the kind of resource that an answer of so many bytes is."""
    return "bodies" if size > LARGE else "small_answers"


def groups_of(owner_id: int, agent: str) -> tuple[str, str, str]:
    """Return the groups in which a task counts. Each of them has a limit."""
    return f"owner:{owner_id}", f"agent:{agent}", "all"


LIMITS = {"owner": "A2A_OWNER_TASKS", "agent": "A2A_AGENT_TASKS", "all": "A2A_TASKS"}
"""The setting with the limit of unfinished tasks, by kind of group."""


def limit_of(group: str) -> int:
    """Return the limit of unfinished tasks of a group."""
    most: int = getattr(settings, LIMITS[group.partition(":")[0]])
    return most


account = Account()
"""The account of this process."""
