"""Rate limits that processes share through Redis: exact over all of them, and without waiting for one that is away."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tasks_app.limits import banks, purses
from tasks_app.limits.banks import Bank
from tasks_app.limits.purses import Purse
from tasks_app.limits.rates import Rate
from tests.faults.clients import PATIENCE, envelope
from tests.faults.conftest import Plant
from tests.faults.nodes import KEY, Node
from tests.support import servers

pytestmark = pytest.mark.fault
GET = envelope("GetTask", {"id": "none"})
SLOW = {"A2A_CALLER_RATE": "1"}
"""A token a minute, so that none comes back during a test."""
PATIENT = {"REDIS_SECONDS": "120"}
"""On a busy machine a Redis that is there may answer late. Then each process would decide alone, by design."""


@asynccontextmanager
async def calling(*nodes: Node) -> AsyncIterator[list[httpx.AsyncClient]]:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    limits = httpx.Limits(max_connections=16)
    clients = [
        httpx.AsyncClient(base_url=node.base, headers=headers, verify=servers.NO_TLS, timeout=60, limits=limits)
        for node in nodes
    ]
    try:
        yield clients
    finally:
        for client in clients:
            await client.aclose()


async def ask(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/jsonrpc", content=GET)


async def statuses(clients: list[httpx.AsyncClient], each: int) -> Counter[int]:
    """Return how many of so many calls to each process got which status. All are sent at the same time."""
    answers = await asyncio.gather(*(ask(client) for _ in range(each) for client in clients))
    return Counter(answer.status_code for answer in answers)


@pytest.mark.parametrize(("burst", "each"), [(10, 8), (300, 320)])
async def test_two_processes_admit_exactly_the_bucket(plant: Plant, burst: int, each: int) -> None:
    webs = await asyncio.gather(*(plant.web(A2A_CALLER_BURST=str(burst), **SLOW, **PATIENT) for _ in range(2)))
    async with calling(*webs) as clients:
        assert await statuses(clients, each) == {200: burst, 429: 2 * each - burst}
        answer = await ask(clients[0])
        assert answer.json()["error"]["code"] == -38008
        assert answer.headers["RateLimit-Policy"] == f'"caller";q={burst};w={burst * 60}'
        assert answer.headers["RateLimit"].startswith('"caller";r=0;t=')
        assert int(answer.headers["Retry-After"]) > 0
        plant.redis.flush()
        assert (await statuses(clients, each))[200] <= burst, "a Redis without data has full buckets, and no more"


@pytest.mark.finds("limits: Redis does not answer", "broker: it does not answer")
async def test_a_redis_that_is_away_holds_up_no_call_and_opens_nothing(
    plant: Plant, record_property: Callable[[str, object], None]
) -> None:
    web = await plant.web(A2A_CALLER_BURST="40", **SLOW)
    async with calling(web) as clients:
        assert await statuses(clients, 5) == {200: 5}
        plant.redis.tell(signal.SIGSTOP)
        took = []
        for _ in range(30):
            start = time.monotonic()
            assert (await ask(clients[0])).status_code == 200
            took.append(time.monotonic() - start)
        record_property(
            "the longest calls while Redis hangs, in ms", [round(1000 * each) for each in sorted(took)[-3:]]
        )
        assert (await statuses(clients, 60))[200] <= 10, "this process goes on with the limit alone"
        await web.logs("each process applies rate limits for itself")
        assert "each process applies rate limits" in (await clients[0].get("/readyz")).text
        plant.redis.tell(signal.SIGCONT)
        await web.logs("processes share their rate limits")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with servers.redis() as url:
        yield url


class Place:
    """A process, as far as one bucket is concerned."""

    def __init__(self, rate: Rate, name: str) -> None:
        self.purse = Purse(name, "caller", rate, time.monotonic())
        self.bank = Bank(lambda: [self.purse])

    async def take(self, cost: int = 1) -> bool:
        return await self.bank.take(self.purse, cost)


@asynccontextmanager
async def places(number: int, rate: Rate, settings: Any, address: str) -> AsyncIterator[list[Place]]:
    settings.REDIS_URL = address
    with pytest.MonkeyPatch.context() as patience:
        patience.setattr(banks, "PATIENCE", PATIENCE)
        async with _places(number, rate) as found:
            yield found


@asynccontextmanager
async def _places(number: int, rate: Rate) -> AsyncIterator[list[Place]]:
    found = [Place(rate, f"test:{time.monotonic_ns()}") for _ in range(number)]
    try:
        for place in found:
            place.purse.name = found[0].purse.name
            await place.bank.connect()
            assert place.bank.loop is not None
        yield found
    finally:
        for place in found:
            await place.bank.close()


async def test_many_processes_spend_a_bucket_to_its_end_and_no_further(settings: Any, address: str) -> None:
    async with places(5, Rate(1, 1_000), settings, address) as found:
        first = await asyncio.gather(*(place.take() for _ in range(300) for place in found))
        assert 900 <= first.count(True) <= 1_000
        # A few tokens are on lease. The process that has them spends them, or gives them back.
        second = await asyncio.gather(*(place.take() for _ in range(300) for place in found))
        assert first.count(True) + second.count(True) == 1_000
        assert sum(place.purse.tokens for place in found) == 0


async def test_costs_that_differ_never_exceed_the_bucket(settings: Any, address: str) -> None:
    async with places(3, Rate(1, 200), settings, address) as found:
        costs = [1, 10, 5, 2] * 40
        calls = [(cost, place) for cost in costs for place in found]
        answers = await asyncio.gather(*(place.take(cost) for cost, place in calls))
        spent = sum(cost for (cost, _), is_granted in zip(calls, answers, strict=True) if is_granted)
        assert 190 <= spent <= 200


async def test_most_calls_do_not_ask_redis(settings: Any, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trips = []
    call = Bank._call
    monkeypatch.setattr(Bank, "_call", lambda bank, wishes: trips.append(1) or call(bank, wishes))
    async with places(1, Rate(1, 100_000), settings, address) as (place,):
        for _ in range(5_000):
            assert await place.take()
        assert len(trips) < 50


async def test_a_lease_that_ends_goes_back(settings: Any, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (banks, purses):
        monkeypatch.setattr(module, "LEASE_SECONDS", 5.0)  # Longer than a busy machine stands still.
    async with places(2, Rate(1, 160), settings, address) as (one, other):
        assert await one.take()
        assert one.purse.tokens == 9, "a sixteenth of the rest is lent"
        async with asyncio.timeout(PATIENCE):
            while one.purse.tokens:  # noqa: ASYNC110  # nothing tells of it
                await asyncio.sleep(0.05)
        answers = await asyncio.gather(*(other.take() for _ in range(200)))
        assert answers.count(True) == 159


async def test_a_bucket_that_fills_leaves_no_room_where_tokens_are_lent(
    settings: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (banks, purses):
        monkeypatch.setattr(module, "LEASE_SECONDS", 60.0)
    async with places(2, Rate(60_000_000, 160), settings, address) as (one, other):
        assert await one.take()
        assert await other.take()  # The bucket is full again, but for what the first one has on lease.
        lent = one.purse.tokens + other.purse.tokens
        assert lent >= 16
        assert other.purse.level + lent <= 160, "so both together cannot spend more than the bucket"


async def test_a_caller_that_leaves_while_it_waits_costs_nothing(settings: Any, address: str) -> None:
    async with places(1, Rate(1, 10), settings, address) as (place,):
        leaving = asyncio.ensure_future(place.take())
        await asyncio.sleep(0)
        leaving.cancel()
        answers = await asyncio.gather(*(place.take() for _ in range(12)))
        assert 9 <= answers.count(True) <= 10
