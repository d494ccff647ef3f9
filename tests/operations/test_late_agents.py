"""Async quick agents that ignore their cancellation: their calls are answered, their runs are counted and named."""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a.agents import agent
from a2a.errors import Unavailable
from a2a.requests import GetTask, SendMessage
from a2a.run import Run
from a2a.states import TaskState
from tasks_app.models import Task as TaskRow
from tasks_app.operations import Context, perform
from tasks_app.process.main_loop import run_to_end
from tasks_app.runner import quick
from tasks_app.runner.late import Latecomers
from tasks_app.runner.store import store
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask, message, sent, shown, text_of
from tests.support.agents import MEMORY

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
FORMS = pytest.mark.parametrize("name", ["ignores-its-end", "ignores-its-end-and-yields"])


async def go_on() -> None:
    MEMORY["begun"].set()
    while not MEMORY["let go"].is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)  # It is here.


@agent(quick=True)
async def ignores_its_end(run: Run) -> str:
    """Goes on until it is let go, whatever cancels it."""
    await go_on()
    return "gone"


@agent(quick=True)
async def ignores_its_end_and_yields(run: Run) -> AsyncIterator[str]:
    """Goes on as a generator."""
    yield "begun"
    await go_on()
    yield " and gone"
    MEMORY["steps"].append("after its time")


@agent(quick=True)
async def tidies_up(run: Run) -> None:
    """Ends when it is cancelled, after a moment."""
    try:
        await asyncio.sleep(PATIENCE)
    finally:
        await asyncio.sleep(0.01)
        MEMORY["steps"].append("tidy")


@agent(timeout=1)
async def talks_on(run: Run) -> AsyncIterator[str]:
    """Counts aloud, whatever cancels it."""
    number = 0
    try:
        while True:
            yield f"{number} "
            number += 1
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.001)
    finally:
        MEMORY[run.task_id] = number


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], int]]:
    """Yield a function that counts runs of an agent beyond their time. Two may go on, and none outlives the test."""
    monkeypatch.setattr(quick, "LIMIT", 0.2)
    monkeypatch.setattr(quick, "SLOTS", 2)
    monkeypatch.setattr(quick, "THREADS", defaultdict(quick.Threads))
    monkeypatch.setattr("tasks_app.runner.late.LATE", 0.0)
    MEMORY["begun"], MEMORY["let go"], MEMORY["steps"] = threading.Event(), threading.Event(), []
    yield lambda name: len(quick.THREADS[name].late)
    MEMORY["let go"].set()


def call(owner: Person, name: str) -> Awaitable[Any]:
    return perform(SendMessage(message=message("hello")), Context(caller=owner.caller, agent=name))


async def all_end(late: Callable[[str], int], name: str) -> None:
    MEMORY["let go"].set()
    async with asyncio.timeout(PATIENCE):
        while late(name):  # noqa: ASYNC110  # the test counts as the service does
            await asyncio.sleep(0.01)


def line_of(text: str) -> str:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return f"test_late_agents.py:{next(number for number, line in enumerate(lines, 1) if line.endswith(text))}"


@FORMS
def test_an_agent_that_ignores_its_end_is_answered_for_and_named(
    owner: Person, late: Callable[[str], int], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    latecomers = Latecomers()

    async def calls() -> tuple[Any, Any, list[str]]:
        async with asyncio.timeout(PATIENCE):
            answer = await call(owner, name)
        assert late(name) == 1, "it is still at work"
        sentences = latecomers.troubles()
        latecomers.look()
        latecomers.look()
        await all_end(late, name)
        return answer, await perform(GetTask(id=answer.task.id), Context(caller=owner.caller)), sentences

    answer, again, (sentence,) = run_to_end(None, calls())
    task = shown(answer)
    assert task.status.message
    assert (task.status.state, "without quick=True" in task.status.message.text) == (TaskState.FAILED, True)
    assert shown(again) == task, "its later results are dropped"
    assert sentence.startswith(f"doors: quick agent {name} at {line_of('# It is here.')} (task {task.id}) has gone on")
    assert sentence.endswith("beyond its time; late runs: 1 (its calls are refused from 2 on)")
    assert caplog.text.count("has gone on for") == 1
    assert MEMORY["steps"] == [], "a generator ends at its next yield"
    assert latecomers.troubles() == []


@FORMS
def test_an_agent_with_too_many_late_runs_is_refused_and_others_go_on(
    owner: Person, late: Callable[[str], int], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async def calls() -> tuple[Any, Any]:
        await asyncio.gather(call(owner, name), call(owner, name))
        with pytest.raises(Unavailable):
            await call(owner, name)
        monkeypatch.setattr(quick, "LIMIT", PATIENCE)  # The calls from now on are to end by themselves.
        other = await call(owner, "quick-function")
        await all_end(late, name)
        return other, await call(owner, name)

    other, again = map(shown, run_to_end(None, calls()))
    assert text_of(other) == "hello"
    assert "gone" in text_of(again)


def test_a_burst_of_calls_leaves_more_runs_than_the_limit(owner: Person, late: Callable[[str], int]) -> None:
    async def calls() -> list[str]:
        await asyncio.gather(*(call(owner, "ignores-its-end") for _ in range(4)))
        assert late("ignores-its-end") == 4
        with pytest.raises(Unavailable):
            await call(owner, "ignores-its-end")
        sentences = Latecomers().troubles()
        await all_end(late, "ignores-its-end")
        return sentences

    (sentence,) = run_to_end(None, calls())
    assert sentence.endswith("; late runs: 4 (its calls are refused from 2 on)")


def test_a_caller_that_leaves_does_not_wait_for_the_agent(owner: Person, late: Callable[[str], int]) -> None:
    async def calls() -> None:
        leaving = asyncio.ensure_future(call(owner, "ignores-its-end"))
        while not MEMORY["begun"].is_set():  # noqa: ASYNC110  # the agent has no loop of its own
            await asyncio.sleep(0.01)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(PATIENCE):
                await leaving
        assert late("ignores-its-end") == 1
        await all_end(late, "ignores-its-end")

    run_to_end(None, calls())


def test_an_agent_that_heeds_its_end_may_tidy_up(
    owner: Person, late: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "GRACE", PATIENCE)

    async def calls() -> Any:
        answer = await call(owner, "tidies-up")
        return answer, list(MEMORY["steps"]), late("tidies-up")

    answer, steps, count = run_to_end(None, calls())
    assert (shown(answer).status.state, steps, count) == (TaskState.FAILED, ["tidy"], 0)


def test_an_agent_that_talks_on_after_its_timeout_is_closed_and_heard_once(owner: Person) -> None:
    task = sent(owner, "go", "talks-on", return_immediately=True)
    until(lambda: TaskRow.objects.get(pk=task.id).state == "failed", "the timeout")
    size = TaskRow.objects.get(pk=task.id).last_seq
    until(lambda: task.id in MEMORY, "its generator is closed")
    ended = shown(ask(owner, GetTask(id=task.id)))
    assert TaskRow.objects.get(pk=task.id).last_seq == size
    numbers = text_of(ended).split()
    assert numbers == [str(number) for number in range(len(numbers))], "each once"
    assert 0 < len(numbers) <= MEMORY[task.id] + 1


@pytest.mark.parametrize("seconds", [0.05, 1.0], ids=["slow", "too slow"])
def test_a_result_has_no_gap_though_a_write_is_under_way_at_its_end(
    owner: Person, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    async def store_late(*arguments: Any) -> int:
        await asyncio.sleep(seconds)
        return await store(*arguments)

    monkeypatch.setattr("tasks_app.runner.writer.store", store_late)
    task = sent(owner, "go", "talks-on", return_immediately=True)
    until(lambda: TaskRow.objects.get(pk=task.id).state == "failed", "the timeout")
    until(lambda: task.id in MEMORY, "its generator is closed")
    numbers = text_of(shown(ask(owner, GetTask(id=task.id)))).split()
    assert numbers == [str(number) for number in range(len(numbers))]
