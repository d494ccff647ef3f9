"""Purses: the part of a token bucket that this process may spend by itself.

Without Redis a purse is the whole bucket. With Redis the bucket is there, and a purse has tokens on a lease: they are
spent without a question, and the rest goes back when the lease ends.
"""

import asyncio
from collections import deque
from math import ceil
from time import monotonic

from msgspec import Struct

from a2a.errors import TooManyCalls
from tasks_app.limits.rates import Rate

LEASE_SECONDS = 1.0
"""Seconds for which tokens are lent."""
SAFETY = 0.1
"""Seconds by which a purse ends its lease before Redis does."""
NEVER = float("inf")


class Waiter(Struct):
    """A call that waits for tokens, and the future of whether it gets them."""

    cost: int
    future: "asyncio.Future[bool]"


class Wish(Struct, frozen=True):
    """The question of a purse to its bucket, and the calls that wait for the answer."""

    keeps: int
    """Tokens on the lease that goes on."""
    returns: int
    """Tokens of a lease that has ended."""
    renews: bool
    """Whether the purse wants more tokens than its calls wait for."""
    waiters: list[Waiter]


class Purse:
    """The purse of one bucket. It is used on one loop. Times are those of the monotonic clock."""

    def __init__(self, name: str, noun: str, rate: Rate, now: float, *, is_shared: bool = False) -> None:
        self.name = name
        self.noun = noun
        """The name of the policy in headers: caller or tenant."""
        self.rate = rate
        self.is_shared = is_shared
        """Whether other processes may spend from the bucket, so that Redis keeps it."""
        # Plain attributes, because each call reads them several times.
        self.burst, self.per_second = rate.burst, rate.per_second
        self.policy = f'"{noun}";q={rate.burst:.0f};w={rate.window}'.encode()
        """The item of this bucket in the header RateLimit-Policy."""
        self.policy_field = (b"ratelimit-policy", self.policy)
        """That header, for callers with this bucket alone."""
        self.pattern = f'"{noun}";r=%d;t=%d'.encode()
        """The item of this bucket in the header RateLimit, without its numbers."""
        self.level, self.since = rate.burst, now
        """The level of the bucket without leased tokens, and the time of its measurement."""
        self.tokens = 0
        """Tokens on lease."""
        self.ends = 0.0
        """The end of the lease."""
        self.renew_at, self.renew_below = NEVER, -1
        """The time and the number of tokens from which on the lease is to be renewed."""
        self.renews = False
        self.waiting: deque[Waiter] = deque()

    def due(self, cost: int) -> int:
        """Return the tokens that a call of that cost takes: no more than the bucket can hold."""
        return cost if cost < self.burst else int(self.burst)

    def take_at_once(self, cost: int) -> bool:
        """Take the tokens for a call of that cost, if there are so many, without a question to a shared bucket.

        Of a shared bucket only leased tokens are taken, and only while the lease needs no renewal.
        """
        now = monotonic()
        if cost > self.burst:
            cost = int(self.burst)
        if not self.is_shared:
            return self.take_here(cost, now)
        tokens = self.tokens - cost
        if tokens < 0 or tokens < self.renew_below or not now < self.renew_at < NEVER:
            return False
        self.tokens = tokens
        return True

    def take_here(self, cost: int, now: float) -> bool:
        """Take tokens out of the bucket, if it has so many. For a bucket that no other process shares at the moment."""
        # Most calls come here, so this repeats the code of level_at() instead of calling it.
        level = self.level + (now - self.since) * self.per_second if now > self.since else self.level
        if level > self.burst:
            level = self.burst
        self.since = now
        if level < cost:
            self.level = level
            return False
        self.level = level - cost
        return True

    def take_leased(self, cost: int, now: float) -> bool:
        """Take tokens that are on lease, if there are so many."""
        if self.tokens < cost or now >= self.ends:
            return False
        self.tokens -= cost
        return True

    def is_low(self, now: float) -> bool:
        """Return whether the lease should be renewed."""
        return self.tokens < self.renew_below or now >= self.renew_at

    def give_back(self, cost: int) -> None:
        """Give back the tokens that were taken for a call of that cost, which was refused after that.

        Those of a lease that has ended since go back to the shared bucket with the next question to it.
        """
        cost = self.due(cost)
        if self.ends:
            self.tokens += cost
        else:
            self.level = min(self.rate.burst, self.level + cost)

    def level_at(self, now: float) -> float:
        """Return the level of the bucket, without leased tokens."""
        level = self.level + (now - self.since) * self.per_second if now > self.since else self.level
        return min(self.burst, level)

    def state(self, now: float) -> bytes:
        """Return the item of this bucket in the header RateLimit: the tokens that are left, as far as this process
        knows, and the seconds until the bucket is full."""
        level = self.level + self.tokens
        if now > self.since:
            level += (now - self.since) * self.per_second
        remaining = int(min(self.burst, level))
        return self.pattern % (remaining, ceil((self.burst - remaining) / self.per_second))

    def refusal(self, cost: int, now: float) -> TooManyCalls:
        """Return the error of a call for which the bucket has too few tokens."""
        cost = self.due(cost)
        wait = max(1, ceil((cost - self.level_at(now)) / self.rate.per_second))
        limit = f"calls of this {self.noun} by cost in {self.rate.window} s"
        return TooManyCalls(wait, limit=limit, most=f"{self.rate.burst:.0f}", cost=str(cost))

    # ------------------------------------------------------------- the lease

    def wish(self, now: float) -> Wish:
        """Return the next question to the bucket. From now on its waiters belong to that question."""
        waiters = [waiter for waiter in self.waiting if not waiter.future.done()]
        self.waiting.clear()
        keeps, returns = (self.tokens, 0) if now < self.ends else (0, self.tokens)
        self.tokens = keeps
        renews, self.renews = self.renews, False
        return Wish(keeps, returns, renews or bool(waiters), waiters)

    def settle(self, wish: Wish, tokens: int, extra: int, level: float, asked_at: float) -> None:
        """Take in the answer: tokens for the waiters and extra ones, both on lease, and the level that is left."""
        self.tokens += tokens + extra
        self.level, self.since = level, asked_at
        self.ends = asked_at + LEASE_SECONDS - SAFETY
        self.renew_at, self.renew_below = (asked_at + LEASE_SECONDS / 2, extra // 2) if extra else (NEVER, -1)
        for waiter in wish.waiters:
            if not waiter.future.done():
                is_granted = self.tokens >= waiter.cost
                self.tokens -= waiter.cost if is_granted else 0
                waiter.future.set_result(is_granted)

    def go_alone(self, waiters: list[Waiter], now: float) -> None:
        """Decide by this process alone from now on, beginning with what the bucket had when it was last heard of."""
        self.level, self.since = min(self.rate.burst, self.level_at(now) + self.tokens), now
        self.tokens, self.ends, self.renew_at, self.renew_below = 0, 0.0, NEVER, -1
        for waiter in [*waiters, *self.waiting]:
            if not waiter.future.done():
                waiter.future.set_result(self.take_here(waiter.cost, now))
        self.waiting.clear()
