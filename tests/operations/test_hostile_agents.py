"""Agents that do what none should: their task fails at once, with a reference, and everything else goes on."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from a2a.agents import agent
from a2a.errors import MissingScope
from a2a.requests import SendMessage
from a2a.run import Run
from a2a.states import TaskState
from a2a.types import Part
from tasks_app.models import Run as RunRow
from tasks_app.models import Task as TaskRow
from tasks_app.operations import Context, perform
from tasks_app.process.main_loop import run_to_end
from tasks_app.runner.runner import runner
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import message, sent, shown, streamed, text_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]

CRASHES: dict[str, Any] = {
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "generator-exit": GeneratorExit(),
    "cancelled": asyncio.CancelledError(),
}
NOT_JSON: dict[str, Any] = {"surrogate": "\ud800", "object": {"when": object()}, "keys": {1: {2}}, "nothing": ""}


@agent(attempts=2, backoff=0)
async def crashes(run: Run, how: str) -> AsyncIterator[Any]:
    """Raises what ends loops and processes."""
    yield "begun "
    raise CRASHES[how]


@agent(attempts=2, backoff=0)
def crashes_in_a_thread(run: Run, how: str) -> Iterator[Any]:
    """Crashes in a thread."""
    yield "begun "
    if how == "exit":
        sys.exit(3)
    raise CRASHES[how]


@agent(attempts=2, backoff=0, isolation="process")
async def crashes_apart(run: Run, how: str) -> AsyncIterator[Any]:
    """Crashes in a process of its own."""
    yield "begun "
    raise CRASHES[how]


@agent(attempts=2, backoff=0, isolation="process")
def crashes_apart_without_a_loop(run: Run, how: str) -> Iterator[Any]:
    """Crashes in a process of its own that has no loop."""
    yield "begun "
    raise CRASHES[how]


@agent(timeout=PATIENCE)
async def cancels(run: Run, what: str) -> AsyncIterator[Any]:
    """Cancels its own asyncio task, as libraries with cancel scopes do, or all tasks of its loop."""
    yield "begun "
    for task in asyncio.all_tasks() if what == "all" else [asyncio.current_task()]:
        assert task
        task.cancel()
    if what == "itself in its last step":
        return
    if what == "itself, with an error":
        raise ValueError("begun in vain")
    if what == "itself after its reply":
        yield run.reply("Done.")
    await asyncio.sleep(PATIENCE)


@agent(quick=True)
async def crashes_quickly(run: Run, how: str) -> Any:
    """Crashes inside the call."""
    raise CRASHES[how]


@agent(quick=True)
async def cancels_quickly(run: Run, what: str) -> AsyncIterator[Any]:
    """Cancels its own asyncio task inside the call."""
    yield "begun "
    task = asyncio.current_task()
    assert task
    task.cancel()
    if what == "in its last step":
        return
    if what == "with an error":
        raise ValueError("begun in vain")
    with contextlib.suppress(asyncio.CancelledError if what == "and goes on" else LookupError):
        await asyncio.sleep(PATIENCE)
    await asyncio.sleep(0)
    yield "gone on"


@agent(quick=True)
async def fails_after_its_question(run: Run, how: str) -> AsyncIterator[Any]:
    """Asks, and fails when it tidies up."""
    try:
        yield run.ask("And then?")
    finally:
        if how == "with time":
            await asyncio.sleep(PATIENCE)
        raise ValueError("too late")


@agent(quick=True)
async def crashes_in_a_subtask(run: Run, how: str) -> None:
    """Crashes in an asyncio task of its own, inside the call."""

    async def crash() -> None:
        raise CRASHES[how]

    await asyncio.gather(crash())


@agent
async def says_no_json(run: Run, what: str) -> AsyncIterator[Any]:
    """Yields what JSON cannot hold, after a chunk that it can."""
    yield "begun "
    yield run.artifact(id="none") if what == "nothing" else NOT_JSON[what]


def data(**values: str) -> Any:
    return message(parts=(Part(data=values),))


def is_failed_with_a_reference(task: Any) -> bool:
    assert task.status.message is not None
    return task.status.state is TaskState.FAILED and "Reference: " in task.status.message.text


FORMS = ["crashes", "crashes-in-a-thread", "crashes-apart", "crashes-apart-without-a-loop", "crashes-quickly"]


@pytest.mark.usefixtures("isolation")
@pytest.mark.parametrize("how", CRASHES)
@pytest.mark.parametrize("name", FORMS)
def test_an_exception_that_ends_processes_ends_one_task_here(owner: Person, name: str, how: str) -> None:
    assert is_failed_with_a_reference(sent(owner, data(how=how), name))
    row = RunRow.objects.get()
    assert row.outcome == "failed"
    assert row.traceback
    assert runner.alive
    assert text_of(sent(owner, "still there?", "form-coroutine"))


@pytest.mark.parametrize("what", ["itself", "itself in its last step", "itself, with an error", "all"])
def test_an_agent_that_cancels_its_own_task_fails_at_once(owner: Person, what: str) -> None:
    task = sent(owner, data(what=what), "cancels")
    assert is_failed_with_a_reference(task)
    assert text_of(task) == "begun "
    row = RunRow.objects.get()
    assert (row.outcome, "CancelledError" in row.traceback) == ("failed", True)


def test_an_agent_that_cancels_its_own_task_after_its_reply_is_done(owner: Person) -> None:
    assert sent(owner, data(what="itself after its reply"), "cancels").status.state is TaskState.COMPLETED


@pytest.mark.parametrize("what", ["at once", "in its last step", "with an error"])
def test_a_quick_agent_that_cancels_its_own_task_fails(owner: Person, what: str) -> None:
    task = sent(owner, data(what=what), "cancels-quickly")
    assert is_failed_with_a_reference(task)
    assert text_of(task) == "begun "
    row = RunRow.objects.get()
    assert (row.outcome, "CancelledError" in row.traceback) == ("failed", True)


def test_a_quick_agent_that_ignores_its_own_cancellation_is_done(owner: Person) -> None:
    task = sent(owner, data(what="and goes on"), "cancels-quickly")
    assert (task.status.state, text_of(task)) == (TaskState.COMPLETED, "begun gone on")


@pytest.mark.parametrize("how", ["at once", "with time"])
def test_a_quick_agent_that_fails_after_its_question_has_asked(owner: Person, how: str) -> None:
    task = sent(owner, data(how=how), "fails-after-its-question")
    assert task.status.message is not None
    assert (task.status.state, task.status.message.text) == (TaskState.INPUT_REQUIRED, "And then?")


@pytest.mark.parametrize("how", CRASHES)
def test_an_exit_in_a_subtask_of_a_quick_agent_ends_one_call(owner: Person, how: str) -> None:
    async def calls() -> list[Any]:
        crash = SendMessage(message=data(how=how)), Context(caller=owner.caller, agent="crashes-in-a-subtask")
        other = SendMessage(message=message("go on")), Context(caller=owner.caller, agent="form-coroutine")
        return await asyncio.gather(perform(*crash), perform(*other))

    crashed, completed = map(shown, run_to_end(None, calls()))
    assert is_failed_with_a_reference(crashed)
    assert completed.status.state is TaskState.COMPLETED


@pytest.mark.parametrize("what", NOT_JSON)
def test_a_value_that_json_cannot_hold_fails_its_task(owner: Person, what: str) -> None:
    assert is_failed_with_a_reference(sent(owner, data(what=what), "says-no-json"))
    assert RunRow.objects.get().traceback


def test_a_message_reaches_a_run_that_has_said_much(owner: Person) -> None:
    started = sent(owner, "go", "talks-much", return_immediately=True)
    # A message before the run begins would be in its history.
    until(TaskRow.objects.filter(pk=started.id, state=TaskState.WORKING.value).exists, "it is at work")
    sent(owner, message("psst", task_id=started.id), return_immediately=True)
    task = sent(owner, message("last", task_id=started.id))
    assert "psst" in text_of(task)


@agent
async def talks_much(run: Run) -> AsyncIterator[Any]:
    """Says much more than a page of events, then what it heard meanwhile."""
    for number in range(250):
        yield run.artifact(str(number), id=f"a{number}")
    while len(run.inbox) < 2:  # noqa: ASYNC110  # an inbox is a list
        await asyncio.sleep(0.01)
    yield " ".join(said.text for said in run.inbox)


def test_the_scopes_of_an_agent_hold_for_the_next_message_too(owner: Person) -> None:
    task = sent(owner, "go", "guarded")
    less = owner._replace(caller=replace(owner.caller, scopes=frozenset({"tasks:read", "tasks:write"})))
    with pytest.raises(MissingScope):
        sent(less, message("and?", task_id=task.id))
    assert sent(owner, message("and?", task_id=task.id)).status.state is TaskState.COMPLETED


@agent(scopes=["weather"])
async def guarded(run: Run) -> AsyncIterator[Any]:
    """Asks once; only for those who may."""
    if len(run.history) == 1:
        yield run.ask("Where?")
    else:
        yield "sunny"


def test_a_repeated_follow_up_is_streamed_from_where_it_was_stored(owner: Person) -> None:
    task = sent(owner, "go", "guarded")
    said = message("here", task_id=task.id)
    first, again = streamed(owner, said).first, streamed(owner, said).first
    assert first == again
    assert first.state == TaskState.SUBMITTED


def test_texts_of_two_kinds_stay_two_parts(owner: Person) -> None:
    (artifact,) = sent(owner, "go", "two-kinds").artifacts
    assert [part.media_type for part in artifact.parts] == ["text/markdown", "application/json"]


@agent(quick=True)
async def two_kinds(run: Run) -> AsyncIterator[Any]:
    """A heading, then some JSON as text."""
    yield Part(text="# Title", media_type="text/markdown")
    yield Part(text="{}", media_type="application/json")


@agent(timeout=PATIENCE)
def finds_none(run: Run) -> str:
    """Looks in a thread for what is not there."""
    return next(text for text in [""] if text == run.text)


@agent(quick=True)
def finds_none_quickly(run: Run) -> str:
    """Looks inside the call for what is not there."""
    return next(text for text in [""] if text == run.text)


@agent(timeout=PATIENCE)
async def finds_none_on_a_loop(run: Run) -> str:
    """Looks on its loop for what is not there."""
    return next(text for text in [""] if text == run.text)


@pytest.mark.parametrize("name", ["finds-none", "finds-none-quickly", "finds-none-on-a-loop"])
def test_a_stop_iteration_fails_its_task_at_once(owner: Person, name: str) -> None:
    assert is_failed_with_a_reference(sent(owner, "hello", name))
    assert "StopIteration" in RunRow.objects.get().traceback
