"""An agent that raises Failure fails in its own words, queued or quick; operators still see where."""

from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from a2a.agents import agent
from a2a.failures import Failure, Retry
from a2a.run import Run
from tasks_app import models
from tests.conftest import Person
from tests.operations.asking import data, sent, text_of, words
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
    assert f": agent {name} failed, and its caller reads: The shop has no tea left." in caplog.text


@agent
async def fails_with_a_secret(run: Run) -> None:
    """Fails with a sentence of two lines and a key."""
    raise Failure("The shop refused td" + "k_0123456789abcdefghij.\n2026-01-01 ERROR A false line.")


def test_the_log_has_the_text_of_a_failure_in_one_line_without_secrets(
    owner: Person, caplog: pytest.LogCaptureFixture
) -> None:
    sent(owner, "tea", "fails-with-a-secret")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "tasks_app.runner.failures"]
    assert line.endswith("its caller reads: The shop refused [redacted]. 2026-01-01 ERROR A false line.")


def test_the_log_says_which_limit_a_task_has_reached(
    owner: Person, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.A2A_TASK_EVENTS = 2
    sent(owner, "tea", "fails-in-words")
    assert "its caller reads: The agent has written more than a task may hold: 2 events." in caplog.text


class Strange(Failure):
    """A failure of a class that does not call `super().__init__`."""

    def __init__(self) -> None:
        self.reason = 7  # type: ignore[assignment]  # the mistake


class Unreadable(Exception):
    """An exception that has no text."""

    def __str__(self) -> str:
        raise ValueError("no text")


STRANGE: dict[str, tuple[Callable[[], Exception], str]] = {
    "error": (lambda: Failure(ValueError("no tea")), "no tea"),
    "number": (lambda: Failure(7, reason=7), "7"),
    "half a character": (lambda: Failure("no \ud83d tea", reason="\ud83d"), "no ? tea"),
    "retry": (lambda: Retry(ValueError("no tea"), after=Decimal(0)), "no tea"),
    "long": (lambda: Failure("no tea " + "x" * 4_000_000, reason="x" * 4_000_000), "no tea xxx"),
    "class": (Strange, "The agent failed. Reference: "),
    "unreadable": (lambda: Failure(Unreadable()), "The agent failed. Reference: "),
}


REASONS = {"number": "7", "half a character": "?", "long": "x" * 100}


def strange(how: str) -> Exception:
    return STRANGE[how][0]()


@agent
async def fails_strangely(run: Run, how: str) -> None:
    """Fails with what is no sentence."""
    raise strange(how)


@agent
def fails_strangely_in_a_thread(run: Run, how: str) -> None:
    """Fails in a thread with what is no sentence."""
    raise strange(how)


@agent(quick=True)
async def quick_fails_strangely(run: Run, how: str) -> None:
    """Fails inside the call with what is no sentence."""
    raise strange(how)


@agent(isolation="process")
def fails_strangely_apart(run: Run, how: str) -> None:
    """Fails in a process of its own with what is no sentence."""
    raise strange(how)


@pytest.mark.usefixtures("isolation")
@pytest.mark.parametrize("how", STRANGE)
@pytest.mark.parametrize(
    "name", ["fails-strangely", "fails-strangely-in-a-thread", "quick-fails-strangely", "fails-strangely-apart"]
)
def test_a_failure_with_a_strange_text_ends_its_task(owner: Person, name: str, how: str) -> None:
    task = sent(owner, data({"how": how}), name)
    assert task.status.state == "failed"
    assert task.status.message
    assert task.status.message.text.startswith(STRANGE[how][1])
    run = models.Run.objects.get()
    assert run.outcome == "failed"
    assert "Traceback" in run.traceback
    if how in REASONS:
        assert task.status.message.metadata == {"reason": REASONS[how]}
    if how == "long":
        assert task.status.message.text.endswith(" … (cut: 4,000,007 characters)")
        assert len(words(task)) < 10_000
        assert len(run.traceback) < 200_000
