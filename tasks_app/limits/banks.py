"""The bank: the token buckets that all processes share through Redis, and the state of the connection to them.

All purses that need something are asked for by one script, and one such trip is under way at a time. A call that its
purse can pay for asks nothing. A bucket that is at least half full lends a process a sixteenth of what it has, for a
second. A lower one lends nothing, so that each call is asked for: no process may refuse calls while another one has
tokens that it does not need. Lent tokens count as a part of the bucket while it fills. So all processes together never
admit more than the bucket.

While Redis is away, each process applies the whole limit for itself, and no call waits.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

from django.conf import settings

from tasks_app.limits.purses import LEASE_SECONDS, Purse, Waiter, Wish

log = logging.getLogger(__name__)
PATIENCE = 0.1
"""Seconds that Redis may take to answer. After that it counts as away, and no further call waits for it."""
PROBE_SECONDS = 1.0
"""Seconds between two attempts to reach a Redis that is away, and the longest duration of one."""
PREFIX = "taskdesk:{rates}:"
"""The beginning of keys. The braces keep them together in a cluster."""
SHARE = 16
"""The part of a bucket that is lent beyond what calls wait for."""
SCRIPT = """
local me, share, seconds = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local answers = {}
for place, key in ipairs(KEYS) do
  local at = 3 + (place - 1) * 7
  local rate, burst, keeps = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local returns, need, least = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  local level, since, lent = burst, now, keeps
  local row = redis.call('HGETALL', key)
  for i = 1, #row, 2 do
    if row[i] == 'level' then level = tonumber(row[i + 1])
    elseif row[i] == 'since' then since = tonumber(row[i + 1])
    elseif row[i] ~= me then
      -- The lease of another process: the tokens and the end.
      local space = string.find(row[i + 1], ' ')
      if tonumber(string.sub(row[i + 1], space + 1)) <= now then redis.call('HDEL', key, row[i])
      else lent = lent + tonumber(string.sub(row[i + 1], 1, space - 1)) end
    end
  end
  level = math.max(0, math.min(burst - lent, level + math.max(0, now - since) * rate + returns))
  local tokens, extra = 0, 0
  if level >= least then tokens = math.floor(math.min(level, need)) end
  if ARGV[at + 7] == '1' and level - tokens >= burst / 2 then extra = math.floor((level - tokens) / share) end
  level = level - tokens - extra
  redis.call('HSET', key, 'level', string.format('%.6f', level), 'since', string.format('%.6f', now))
  if keeps + extra > 0 then redis.call('HSET', key, me, keeps + extra .. ' ' .. string.format('%.6f', now + seconds))
  else redis.call('HDEL', key, me) end
  redis.call('PEXPIRE', key, math.ceil((burst / rate + 2 * seconds) * 1000))
  answers[place] = {tokens, extra, string.format('%.6f', level)}
end
return answers
"""
"""Answers the questions of a process to some buckets: for each the tokens that its calls wait for, extra tokens, and
the level that is left. ARGV has the name of the process, SHARE, LEASE_SECONDS, and seven values for each bucket."""


class Bank:
    """The connection of this process to the shared buckets. It belongs to the loop of the doors."""

    def __init__(self, purses: Callable[[], Iterable[Purse]]) -> None:
        self.purses = purses
        """Returns all purses of the process."""
        self.me = secrets.token_hex(6)
        self.trouble = ""
        """Why limits are not shared at the moment; empty if they are."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop on which limits are shared; None while they are not."""
        self.client: Any = None
        self.script: Any = None
        self.due: dict[str, Purse] = {}
        """The purses that the next trip asks for."""
        self.trips: asyncio.Task[None] | None = None
        self.trip: asyncio.Future[Any] | None = None
        self.probes: asyncio.Task[None] | None = None
        self.probes_loop: asyncio.AbstractEventLoop | None = None

    async def take(self, purse: Purse, cost: int) -> bool:
        """Take tokens of a shared bucket; return whether it had so many."""
        cost, now = purse.due(cost), monotonic()
        loop = asyncio.get_running_loop()
        if self.loop is not loop:
            self._begin_probes(loop)
            return purse.take_here(cost, now)
        if purse.take_leased(cost, now):
            if purse.is_low(now):
                self._renew(purse)
            return True
        waiter = Waiter(cost, loop.create_future())
        purse.waiting.append(waiter)
        self._ask(purse)
        return await waiter.future

    async def connect(self) -> None:
        """Connect before the first call, if limits are to be shared."""
        if settings.REDIS_URL:
            self._begin_probes(asyncio.get_running_loop())
            if self.probes is not None:
                await asyncio.wait({self.probes}, timeout=PROBE_SECONDS)

    async def close(self) -> None:
        """Return the tokens on lease, as far as Redis answers, and end the connection."""
        if self.probes is not None:
            self.probes.cancel()
        if self.loop is asyncio.get_running_loop():
            for purse in self.purses():
                purse.ends = 0.0
                if purse.tokens:
                    self._ask(purse)
            if self.trips is not None:
                await asyncio.wait({self.trips}, timeout=PROBE_SECONDS)
            self.loop = None
            await self.client.aclose()

    # ---------------------------------------------------------------- trips

    def _renew(self, purse: Purse) -> None:
        """Ask for more tokens, while calls go on spending those that are there."""
        purse.renews, purse.renew_at, purse.renew_below = True, float("inf"), -1
        self._ask(purse)

    def _ask(self, purse: Purse) -> None:
        self.due[purse.name] = purse
        if self.trips is None or self.trips.done():
            self.trips = asyncio.ensure_future(self._travel())

    async def _travel(self) -> None:
        """Ask for all purses that are due, and for those that become due meanwhile."""
        while self.due and self.loop is not None:
            purses, self.due = list(self.due.values()), {}
            asked_at = monotonic()
            wishes = [(purse, purse.wish(asked_at)) for purse in purses]
            try:
                answers = await self._call(wishes)
            except Exception as error:  # noqa: BLE001  # whatever it is, each process decides alone now
                self._lose(error, wishes)
                return
            for (purse, wish), (tokens, extra, level) in zip(wishes, answers, strict=True):
                purse.settle(wish, tokens, extra, float(level), asked_at)
                if extra:
                    asyncio.get_running_loop().call_later(LEASE_SECONDS, self._end_lease, purse)

    async def _call(self, wishes: list[tuple[Purse, Wish]]) -> Any:
        """Return the answers to the wishes. Raises TimeoutError, and the errors of Redis."""
        arguments: list[Any] = [self.me, SHARE, LEASE_SECONDS]
        for purse, wish in wishes:
            costs = [waiter.cost for waiter in wish.waiters]
            arguments += [purse.rate.per_second, purse.rate.burst, wish.keeps, wish.returns]
            arguments += [sum(costs), min(costs, default=0), int(wish.renews)]
        trip = self.trip = asyncio.ensure_future(self.script([PREFIX + purse.name for purse, _ in wishes], arguments))
        await asyncio.wait({trip}, timeout=PATIENCE)
        for _ in range(4):
            # The loop itself may have been late. Then the answer is there, but not yet read.
            if not trip.done():
                await asyncio.sleep(0)
        if not trip.done():
            trip.cancel()
            raise TimeoutError(f"no answer within {PATIENCE:g} s")
        return trip.result()

    def _end_lease(self, purse: Purse) -> None:
        """Return the tokens of a lease that has ended."""
        if self.loop is not None and purse.tokens and monotonic() >= purse.ends:
            self._ask(purse)

    # ----------------------------------------------------------- away, and back

    def _lose(self, error: Exception, wishes: list[tuple[Purse, Wish]]) -> None:
        """Go on without Redis. Calls that wait for it are decided now."""
        self.loop, self.due, now = None, {}, monotonic()
        waiters = {purse.name: wish.waiters for purse, wish in wishes}
        for purse in {purse.name: purse for purse in [*(purse for purse, _ in wishes), *self.purses()]}.values():
            purse.go_alone(waiters.get(purse.name, []), now)
        self._report(error)
        self._begin_probes(asyncio.get_running_loop())

    def _report(self, error: BaseException) -> None:
        if not self.trouble:
            log.warning("Redis does not answer; each process applies rate limits for itself: %s", error)
        self.trouble = "limits: Redis does not answer, each process applies rate limits for itself"

    def _begin_probes(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.probes is None or self.probes.done() or self.probes_loop is not loop:
            self.probes, self.probes_loop = loop.create_task(self._probe(loop)), loop

    async def _probe(self, loop: asyncio.AbstractEventLoop) -> None:
        """Connect to Redis, again and again until it answers."""
        import redis.asyncio  # Commands that serve no calls start faster without it.

        while self.loop is not loop:
            client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_keepalive=True)
            script = client.register_script(SCRIPT)
            try:
                async with asyncio.timeout(PROBE_SECONDS):
                    await script([], [self.me, SHARE, LEASE_SECONDS])
            except Exception as error:  # noqa: BLE001  # any error may be gone at the next attempt
                self._report(error)
                await client.aclose()
                await asyncio.sleep(PROBE_SECONDS)
            else:
                self.client, self.script, self.loop = client, script, loop
                if self.trouble:
                    log.warning("Redis answers again: processes share their rate limits")
                    self.trouble = ""
