"""Calls of sync quick agents that wait for a thread: owners take turns, and the wait is no time of the agent."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

from a2a.agents import agent
from a2a.requests import SendMessage
from a2a.run import Run
from tasks_app.operations import Context, perform
from tasks_app.process.main_loop import run_to_end
from tasks_app.runner import quick
from tasks_app.runner.places import NoPlace, Places
from tests.conftest import PATIENCE, Person
from tests.operations.asking import message, sent, shown, text_of
from tests.operations.rows import together
from tests.support.agents import MEMORY

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
LIMIT, WORK = 4.0, 2.2
"""The seconds of a quick agent, and those that one takes. Two runs one after another take longer than the limit, and a
run may stand still for a while."""


@agent(quick=True)
def takes_its_time(run: Run) -> str:
    """Works for most of the time that it has."""
    time.sleep(WORK)
    return "done"


@agent(quick=True)
def notes_its_caller(run: Run) -> str:
    """Waits until it is let go."""
    assert MEMORY["let go"].wait(PATIENCE)
    MEMORY["callers"].append(run.caller.name)
    return "done"


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(quick, "LIMIT", LIMIT)
    monkeypatch.setattr(quick, "SLOTS", 1)
    monkeypatch.setattr(quick, "THREADS", defaultdict(quick.Threads))
    MEMORY["let go"], MEMORY["callers"] = threading.Event(), []
    yield
    MEMORY["let go"].set()
    for threads in quick.THREADS.values():
        threads.shutdown()


def test_the_wait_for_a_thread_is_no_time_of_the_agent(owner: Person) -> None:
    results = together(2, lambda _: sent(owner, "hello", "takes-its-time"))
    assert [text_of(result) for result in results] == ["done", "done"]


def test_owners_take_turns(owner: Person, stranger: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "LIMIT", PATIENCE)

    def call(person: Person) -> Awaitable[Any]:
        return perform(SendMessage(message=message("hello")), Context(caller=person.caller, agent="notes-its-caller"))

    async def calls() -> list[Any]:
        places, begun = quick.THREADS["notes-its-caller"].places, []
        for number, person in enumerate([owner, owner, owner, stranger]):
            begun.append(asyncio.ensure_future(call(person)))
            async with asyncio.timeout(PATIENCE):
                while places.free or sum(map(len, places.waiting.values())) < number:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        MEMORY["let go"].set()
        return await asyncio.gather(*begun)

    assert [text_of(shown(answer)) for answer in run_to_end(None, calls())] == ["done"] * 4
    one, other = owner.caller.name, stranger.caller.name
    assert MEMORY["callers"] == [one, one, other, one]


async def test_a_call_that_gives_up_its_wait_keeps_no_place() -> None:
    places = Places(1)
    await places.take(1, PATIENCE)
    with pytest.raises(NoPlace):
        await places.take(1, 0)
    left = asyncio.ensure_future(places.take(1, PATIENCE))
    await asyncio.sleep(0)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    last = asyncio.ensure_future(places.take(2, PATIENCE))
    await asyncio.sleep(0)
    places.give_back()
    await last
    places.give_back()
    assert (places.free, len(places.waiting)) == (1, 0)


async def test_a_place_that_comes_while_a_call_gives_up_is_free_again() -> None:
    places = Places(1)
    await places.take(1, PATIENCE)
    left = asyncio.ensure_future(places.take(1, PATIENCE))
    await asyncio.sleep(0)
    places.give_back()
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert places.free == 1
