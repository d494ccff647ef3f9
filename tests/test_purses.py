"""Purses: tokens that were taken for a call and come back, before and after the end of their lease."""

import asyncio

import pytest

from tasks_app.limits.purses import Purse, Waiter
from tasks_app.limits.rates import Rate


async def leased(cost: int) -> Purse:
    """Return the purse of a shared bucket of 60, out of which a call has taken its cost at the time 0."""
    purse = Purse("caller:1", "caller", Rate(60, 60), 0.0, is_shared=True)
    purse.waiting.append(Waiter(cost, asyncio.get_running_loop().create_future()))
    purse.settle(purse.wish(0.0), cost, 0, 60.0 - cost, 0.0)
    assert purse.tokens == 0
    return purse


@pytest.mark.parametrize(("now", "keeps", "returns"), [(0.5, 10, 0), (30.0, 0, 10)])
async def test_a_refused_call_loses_nothing_after_the_end_of_its_lease(now: float, keeps: int, returns: int) -> None:
    purse = await leased(10)
    purse.give_back(10)
    wish = purse.wish(now)
    assert (wish.keeps, wish.returns) == (keeps, returns)


async def test_a_process_that_decides_alone_takes_back_into_its_own_bucket() -> None:
    purse = await leased(10)
    purse.go_alone([], 0.0)
    purse.give_back(10)
    assert (purse.level, purse.tokens) == (60.0, 0)
