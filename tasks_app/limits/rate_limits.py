"""Rate limits of callers and tenants: the rules, the purses that apply them, and the headers that show them.

A rule is a row of RateLimit, or the default of the settings for callers without a row. All rows are read by the sweep,
so that no call asks the database.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from django.conf import settings
from django.db.models import Count, Max, Sum

from a2a.errors import RateLimited, Unavailable
from a2a.requests import Request, SendMessage
from tasks_app.callers.access import Caller
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoApart
from tasks_app.limits.banks import Bank
from tasks_app.limits.buckets import MOST
from tasks_app.limits.purses import Purse
from tasks_app.limits.rates import SEND_COST, Rate
from tasks_app.models import RateLimit

Subject = tuple[str, int]
"""The policy and the id of a bucket: ("caller", id of the principal) or ("tenant", id of the tenant)."""


class Limits:
    """The rate limits of this process."""

    def __init__(self) -> None:
        self.rules: dict[Subject, Rate | None] = {}
        """The rates of the rows; None for a caller without a limit."""
        self.edition: object = None
        """Aggregates of the rows, which tell them from later ones."""
        self.purses: dict[Subject, Purse] = {}
        self.of_owner: dict[int, tuple[Purse, ...]] = {}
        """The purses that each caller spends from."""
        self.bank = Bank(self.purses.values)

    async def spend(self, caller: Caller, cost: int) -> None:
        """Take the cost of a call out of the buckets of its caller. Raises TooManyCalls, and then takes nothing."""
        purses = self.purses_of(caller)
        for place, purse in enumerate(purses):
            if not purse.take_at_once(cost) and not (purse.is_shared and await self.bank.take(purse, cost)):
                for other in purses[:place]:
                    other.give_back(cost)
                raise purse.refusal(cost, monotonic())

    @asynccontextmanager
    async def paid(self, caller: Caller, cost: int) -> AsyncIterator[None]:
        """Spend the cost of the call that the block makes in the caller's name. Raises TooManyCalls.

        The cost of a call that is refused for the moment is given back: the call is made again later, and pays then.
        """
        await self.spend(caller, cost)
        try:
            yield
        except (RateLimited, Unavailable):
            self.give_back(caller, cost)
            raise

    def give_back(self, caller: Caller, cost: int) -> None:
        """Give back what was spent for a call of that cost."""
        for purse in self.purses_of(caller):
            purse.give_back(cost)

    def pay(self, caller: Caller, cost: int) -> bool:
        """Take the cost of a call out of the only bucket of its caller, if no other process need be asked.

        Return True if the call is paid for, or nothing limits its caller, and False if spend() must decide. Most calls
        are paid for here, without a coroutine.
        """
        purses = self.purses_of(caller)
        return purses[0].take_at_once(cost) if len(purses) == 1 else not purses

    def fields(self, caller: Caller) -> tuple[tuple[bytes, bytes], ...]:
        """Return the headers of an answer to the caller (draft-ietf-httpapi-ratelimit-headers-10), each as its name in
        lower case and its value, as ASGI takes them; empty if there are no limits."""
        purses = self.purses_of(caller)
        if not purses:
            return ()
        now = monotonic()
        if len(purses) == 1:
            return purses[0].policy_field, (b"ratelimit", purses[0].state(now))
        return (
            (b"ratelimit-policy", b", ".join([purse.policy for purse in purses])),
            (b"ratelimit", b", ".join([purse.state(now) for purse in purses])),
        )

    def purses_of(self, caller: Caller) -> tuple[Purse, ...]:
        """Return the purses that pay for calls of the caller; none if nothing limits them."""
        purses = self.of_owner.get(caller.owner_id)
        if purses is not None:
            return purses
        return self._open(caller) if settings.A2A_CALLER_RATE or self.rules else ()

    def _open(self, caller: Caller) -> tuple[Purse, ...]:
        # Each change of the rules empties the first table only.
        if len(self.of_owner) >= MOST or len(self.purses) >= MOST:
            self.of_owner.clear()
            self.purses.clear()
        own, whole = ("caller", caller.owner_id), ("tenant", caller.tenant_id)
        rates = {own: self.rules.get(own, default_rate()), whole: self.rules.get(whole)}
        purses = tuple(self._purse(subject, rate) for subject, rate in rates.items() if rate is not None)
        self.of_owner[caller.owner_id] = purses
        return purses

    def _purse(self, subject: Subject, rate: Rate) -> Purse:
        purse = self.purses.get(subject)
        if purse is None or purse.rate != rate:
            noun, number = subject
            purse = self.purses[subject] = Purse(
                f"{noun}:{number}", noun, rate, monotonic(), is_shared=bool(settings.REDIS_URL)
            )
        return purse

    def forget(self) -> None:
        """Drop all purses, as after a change of the rules. Local buckets are full again."""
        self.purses.clear()
        self.of_owner.clear()

    def load(self) -> None:
        """Read the rows if they have changed. For a thread; raises errors of the database."""
        edition, rules = bridge.do(DoApart(lambda: _read(self.edition)))
        if rules is not None:
            # The purses of callers whose rates are the same stay as they are.
            self.edition, self.rules = edition, rules
            self.of_owner.clear()


def cost_of_send(kind: type[Request] = SendMessage) -> int:
    """Return the cost of a message to an agent, for code that sends one in the name of a caller."""
    cost: int = settings.A2A_OPERATION_COSTS.get(kind.__name__, SEND_COST)
    return cost


def default_rate() -> Rate | None:
    """Return the rate of callers without a row; None for no limit."""
    rate = settings.A2A_CALLER_RATE
    return Rate(rate, settings.A2A_CALLER_BURST or rate) if rate else None


def rate_of(row: RateLimit) -> Rate | None:
    """Return the rate of a row; None for no limit."""
    return Rate(row.per_minute, row.burst or row.per_minute) if row.per_minute else None


def _read(last: object) -> tuple[object, dict[Subject, Rate | None] | None]:
    """Return the edition of the rows, and the rules if it is not the last one."""
    # The time of a change is later than that of all other rows, except those that another operator changes meanwhile.
    marks = Count("id"), Max("changed_at"), Max("id"), Sum("per_minute"), Sum("burst")
    edition = tuple(RateLimit.objects.aggregate(*marks).values())
    if edition == last:
        return edition, None
    return edition, {
        ("tenant", row.tenant_id) if row.principal_id is None else ("caller", row.principal_id): rate_of(row)
        for row in RateLimit.objects.all()
    }


limits = Limits()
"""The limits of this process."""
