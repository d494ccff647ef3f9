"""Leases of webhooks: one try at a time, and a lease that ends."""

import asyncio
from typing import Any

import pytest
from django.db import OperationalError

from tasks_app import clock
from tasks_app.models import Webhook
from tasks_app.webhooks import leases
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.schedule import TryResult
from tasks_app.webhooks.sending import Sender
from tests.conftest import Person
from tests.operations.rows import chunk, together
from tests.operations.webhooks import (
    DONE,
    WORKS,
    happens,
    hooked,
    pump,
    states,
)
from tests.support.hand import Hand
from tests.support.receiver import Receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


def test_many_senders_send_nothing_twice_and_a_webhook_has_one_try_at_a_time(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_ids = [hooked(owner, f"{there.url}/{place}") for place in range(6)]
    for task_id in task_ids:
        happens(task_id, WORKS, chunk("one"), chunk("two"), chunk("three"), DONE)
    assert together(4, lambda _: pump()) == [None] * 4
    pump()
    for place in range(6):
        assert [got.seq for got in there.at(f"/{place}")] == [2, 3, 4, 5, 6]
    assert {state for _, state, _ in states()} == {"delivered"}


def test_a_turn_that_was_lost_is_taken_over_and_its_late_end_decides_nothing(
    lanes: None, owner: Person, hand: Hand
) -> None:
    happens(hooked(owner, "http://127.0.0.1:65001/"), WORKS)
    (first,) = leases.take("one", 5, Busy())
    assert leases.take("two", 5, Busy()) == []
    hand.on(seconds=21)
    (second,) = leases.take("two", 5, Busy())
    assert second.delivery == first.delivery
    leases.settle(first, TryResult(status=404), clock.now(), clock.now(), 0.5)
    assert states() == [(2, "waiting", 1)]
    leases.settle(second, TryResult(status=204), clock.now(), clock.now(), 0.5)
    assert states() == [(2, "delivered", 2)]
    assert Webhook.objects.get().lease_owner is None


def test_a_lease_is_as_long_as_it_says_although_the_writers_were_busy(
    lanes: None, owner: Person, hand: Hand, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    happens(hooked(owner, there.url), WORKS)
    due, take, waits, ends = leases.due, leases.take, iter([15]), []

    def slowly(now: Any, busy: Busy) -> Any:
        hand.on(seconds=next(waits, 0))
        return due(now, busy)

    def taken(*arguments: Any) -> Any:
        found = take(*arguments)
        ends.extend(lease.until - clock.now() for lease in found)
        return found

    monkeypatch.setattr(leases, "due", slowly)
    monkeypatch.setattr(leases, "take", taken)
    pump()
    assert ends == [leases.LEASE]


def test_a_try_that_would_outlast_its_lease_is_not_begun(
    lanes: None, owner: Person, hand: Hand, there: Receiver
) -> None:
    happens(hooked(owner, there.url), WORKS)
    (lease,) = leases.take("one", 1, Busy())
    hand.on(seconds=11)
    asyncio.run(Sender()._send(lease))
    assert (there.got, states()) == ([], [(2, "waiting", 0)])
    pump()
    assert states() == [(2, "delivered", 1)]


async def test_a_result_that_a_database_that_is_away_does_not_record_is_a_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def record() -> None:
        raise OperationalError("connection refused")

    sender = Sender()
    task = asyncio.ensure_future(record())
    await asyncio.wait([task])
    sender._finish(task)
    (line,) = caplog.records
    assert line.getMessage().endswith("it is made again after its lease: connection refused")
    assert line.exc_info is None
