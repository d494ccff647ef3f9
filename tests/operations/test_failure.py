"""An agent that raises Failure fails in its own words, queued or quick; operators still see where."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a.agents import agent
from a2a.run import Failure, Run
from tasks_app import models
from tests.conftest import Person
from tests.operations.asking import sent, text_of, words
from tests.support.agents import SECRET

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def out_of_stock() -> Failure:
    try:
        raise RuntimeError(SECRET)
    except RuntimeError as error:
        failure = Failure("The shop has no tea left.")
        failure.__cause__ = error
        return failure


@agent
async def fails_in_words(run: Run) -> AsyncIterator[Any]:
    """Fails with a sentence, after a first chunk."""
    yield "so far so good"
    raise out_of_stock()


@agent
def fails_in_words_in_a_thread(run: Run) -> Iterator[Any]:
    """Fails with a sentence, in a thread of its own."""
    yield "so far so good"
    raise out_of_stock()


@agent(quick=True)
async def quick_fails_in_words(run: Run) -> AsyncIterator[Any]:
    """Fails with a sentence, inside the call."""
    yield "so far so good"
    raise out_of_stock()


@pytest.mark.parametrize("name", ["fails-in-words", "fails-in-words-in-a-thread", "quick-fails-in-words"])
@pytest.mark.requirement("ACP-12", "ZONE-08")
def test_the_caller_reads_the_sentence_and_the_operator_the_traceback(
    owner: Person, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    task = sent(owner, "tea", name)
    assert task.status.state == "failed"
    assert task.status.message
    assert task.status.message.text == "The shop has no tea left."
    assert text_of(task) == "so far so good"
    assert SECRET not in words(task)
    run = models.Run.objects.get()
    assert (run.outcome, run.reference) == ("failed", "")
    assert SECRET in run.traceback
    assert f"task {task.id}" in caplog.text
    assert "failed in its own words" in caplog.text
