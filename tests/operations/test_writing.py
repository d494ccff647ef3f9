"""Writes of a run, and their times."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a.agents import agent
from a2a.run import Run as Given
from tasks_app.models import Event
from tasks_app.runner.store import store
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


class Talk:
    """The moments of an agent that says two words and is then silent."""

    first_is_stored, second_is_given, end = (threading.Event() for _ in range(3))


talk = Talk()


async def reached(moment: threading.Event) -> None:
    assert await asyncio.to_thread(moment.wait, PATIENCE)


@agent
async def says_two_words(run: Given) -> AsyncIterator[Any]:
    """Gives the second word while the first is being written, and nothing after it until it may end."""
    yield "one"
    await reached(talk.first_is_stored)
    yield "two"
    talk.second_is_given.set()
    await reached(talk.end)


@pytest.fixture
def moments() -> Iterator[Talk]:
    for moment in (talk.first_is_stored, talk.second_is_given, talk.end):
        moment.clear()
    yield talk
    talk.end.set()


def test_a_word_that_comes_while_another_is_written_waits_for_no_third(
    owner: Person, moments: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(item: Any, *arguments: Any) -> int:
        seq = await store(item, *arguments)
        moments.first_is_stored.set()
        await reached(moments.second_is_given)
        return seq

    monkeypatch.setattr("tasks_app.runner.writer.store", slowly)
    task = sent(owner, "hello", "says-two-words", return_immediately=True)
    stored = Event.objects.filter(task=task.id, kind="artifactUpdate")
    until(lambda: stored.count() == 2, "the second word is stored while its agent is silent")
    assert not moments.end.is_set()
