"""A mistake of an agent's author is one sentence with file, line and agent, in the log and with the run only."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a.actions import Chunk, Say
from a2a.agents import agent
from a2a.run import Run
from a2a.types import Artifact, Part
from tasks_app.models import Run as Row
from tests.conftest import Person
from tests.operations.asking import message, sent, words

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
CHOICES = "give text, bytes, JSON data, a Part, an Artifact, or what run.status, run.ask and their like make"


async def fetch() -> str:
    """Gets something."""
    return "it"


def some() -> Iterator[str]:
    """Several texts."""
    yield "it"


async def some_more() -> AsyncIterator[str]:
    """Several texts, one after another."""
    yield "it"


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "none": (lambda: None, f"gives None: {CHOICES}"),
    "coroutine": (fetch, 'gives a coroutine, fetch(): did you forget "await"?'),
    "generator": (some, 'gives a generator, some(): give its values, one by one, with "for"'),
    "async generator": (
        some_more,
        'gives an async generator, some_more(): give its values, one by one, with "async for" in an async agent',
    ),
    "set": (lambda: {1}, "gives a set, which JSON does not have: give a list"),
    "set inside": (lambda: {"numbers": {1}}, "gives what JSON cannot hold: type is not JSON serializable: set"),
    "keys": (lambda: {1: "one"}, "gives what JSON cannot hold: dict key must be str"),
    "half a character": (
        lambda: "\ud83d",
        "gives what JSON cannot hold: str is not valid UTF-8: surrogates not allowed",
    ),
    "object": (object, f"gives a value of type object: {CHOICES}"),
    "function": (lambda: fetch, "gives the function fetch itself: did you forget the brackets behind it?"),
    "empty status": (lambda: Say(()), "gives run.status() without content: give it at least one part"),
    "empty artifact": (lambda: Chunk(()), "gives run.artifact() without content: give it at least one part"),
    "empty part": (Part, "gives a Part with 0 contents: give it one of text=, raw=, url= and data="),
    "crowded part": (
        lambda: Artifact(artifact_id="a", parts=(Part(text="x", raw=b"x"),)),
        "gives a Part with 2 contents: give it one of text=, raw=, url= and data=",
    ),
    "odd text": (
        lambda: Part(text=7),  # type: ignore[arg-type]  # the mistake
        "gives a Part whose text= is not a string, but of type int",
    ),
    "odd file": (
        lambda: Part(raw="text"),  # type: ignore[arg-type]  # the mistake
        "gives a Part whose raw= is not bytes, but of type str",
    ),
    "odd parts": (
        lambda: Artifact(artifact_id="a", parts=("x",)),  # type: ignore[arg-type]  # the mistake
        "gives an Artifact whose parts have a value of type str: give Part values",
    ),
    "odd metadata": (
        lambda: Say((Part(text="x"),), metadata=[1]),  # type: ignore[arg-type]  # the mistake
        "gives run.status() whose metadata= is not a dict, but of type list",
    ),
    "odd metadata of a part": (
        lambda: Part(text="x", metadata="m"),  # type: ignore[arg-type]  # the mistake
        "gives a Part whose metadata= is not a dict, but of type str",
    ),
    "odd name": (
        lambda: Chunk((Part(text="x"),), name=["n"]),  # type: ignore[arg-type]  # the mistake
        "gives run.artifact() whose name= is not a string, but of type list",
    ),
    "odd id": (
        lambda: Chunk((Part(text="x"),), artifact_id=7),  # type: ignore[arg-type]  # the mistake
        "gives an artifact whose id is not a string, but of type int",
    ),
}


@agent
async def wrong_async(run: Run, what: str) -> AsyncIterator[Any]:
    """Yields what it may not."""
    yield "so far"
    yield WRONG[what][0]()  # wrong_async


@agent
def wrong_sync(run: Run, what: str) -> Iterator[Any]:
    """Yields what it may not, in a thread."""
    yield "so far"
    yield from inner(what)


def inner(what: str) -> Iterator[Any]:
    """A part of the agent."""
    yield WRONG[what][0]()  # wrong_sync


@agent(quick=True)
async def wrong_quick(run: Run, what: str) -> AsyncIterator[Any]:
    """Yields what it may not, within a call."""
    yield WRONG[what][0]()  # wrong_quick


@agent
async def wrong_inside(run: Run, what: str) -> AsyncIterator[Any]:
    """Says what it may not."""
    yield "so far"
    yield run.status(WRONG[what][0]())  # wrong_inside


@agent  # wrong_return
async def wrong_return(run: Run) -> Any:
    """Returns what it may not."""
    return object()


def line_of(mark: str) -> str:
    """Return the place of the line with that mark, as a sentence begins with it."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"{__file__}:{next(n for n, line in enumerate(lines, 1) if line.endswith(f'# {mark}'))}"


def check_told(owner: Person, name: str, sentence: str, caplog: pytest.LogCaptureFixture, **data: Any) -> None:
    """The author is told that sentence, and the caller a reference alone."""
    task = sent(owner, message(parts=(Part(data=data),)) if data else "hello", name)
    assert task.status.state == "failed"
    assert task.status.message
    run = Row.objects.get()
    assert task.status.message.text == f"The agent failed. Reference: {run.reference}"
    assert (run.outcome, run.traceback) == ("failed", sentence)
    assert sentence not in words(task)
    (said,) = of_runner(caplog)
    assert said.getMessage().endswith(f": agent {name} failed, reference {run.reference}: {sentence}")
    assert said.exc_info is None


def of_runner(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return the warnings and errors about runs."""
    return [r for r in caplog.records if r.levelno >= logging.WARNING and r.name.startswith("tasks_app.runner")]


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", ["wrong_async", "wrong_sync", "wrong_quick"])
def test_a_wrong_value_is_one_sentence_with_the_line_of_its_yield(
    owner: Person, name: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent_name = name.replace("_", "-")
    sentence = f'{line_of(name)}: agent "{agent_name}" {WRONG[what][1]}'
    check_told(owner, agent_name, sentence, caplog, what=what)


@pytest.mark.parametrize("what", ["none", "coroutine", "set"])
def test_a_wrong_value_in_an_action_is_named_with_the_line_that_made_it(
    owner: Person, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    sentence = f'{line_of("wrong_inside")}: agent "wrong-inside" {WRONG[what][1]}'
    check_told(owner, "wrong-inside", sentence, caplog, what=what)


def test_a_wrong_value_that_is_returned_is_named_with_the_function(
    owner: Person, caplog: pytest.LogCaptureFixture
) -> None:
    sentence = f'{line_of("wrong_return")}: agent "wrong-return" {WRONG["object"][1]}'
    check_told(owner, "wrong-return", sentence, caplog)


# ------------------------------------------------------- actions that were never given


@agent
async def forgets(run: Run, ask: bool = False) -> AsyncIterator[Any]:
    """Makes actions that it does not give."""
    for _ in range(100):
        run.status("thinking")  # forgets status
    held = run.artifact("later", name="later")
    run.artifact("never", name="never")  # forgets artifact
    yield "so far"
    yield held
    if ask:
        yield run.ask("What now?")
    await asyncio.sleep(0)


@agent
def forgets_in_a_thread(run: Run) -> None:
    """Makes an action that it does not give, and nothing else."""
    run.ask("What now?")  # forgets in a thread


@agent(quick=True)
async def forgets_quickly(run: Run) -> str:
    """Makes an action that it does not give, within a call."""
    run.status("thinking")  # forgets quickly
    return "done"


@agent
async def gives_all(run: Run) -> AsyncIterator[Any]:
    """Gives every action that it makes, in another order."""
    first, second = run.status("one"), run.status("two")
    yield second
    yield first


def forgotten(mark: str, name: str, maker: str) -> str:
    return f'{line_of(mark)}: agent "{name}": run.{maker}(...) does nothing by itself: did you forget "yield"?'


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in of_runner(caplog)]


@pytest.mark.parametrize("ask", [False, True])
def test_actions_that_were_never_given_are_named_when_the_run_ends(
    owner: Person, ask: bool, caplog: pytest.LogCaptureFixture
) -> None:
    task = sent(owner, message(parts=(Part(data={"ask": ask}),)), "forgets")
    assert task.status.state == ("input_required" if ask else "completed")
    assert [artifact.parts[0].text for artifact in task.artifacts] == ["so far", "later"]
    said = [forgotten("forgets status", "forgets", "status"), forgotten("forgets artifact", "forgets", "artifact")]
    assert warnings(caplog) == said
    assert Row.objects.get().traceback == "\n".join(said)
    assert "did you forget" not in words(task)


def test_a_sync_agent_that_only_makes_an_action_is_told(owner: Person, caplog: pytest.LogCaptureFixture) -> None:
    assert sent(owner, "hello", "forgets-in-a-thread").status.state == "completed"
    assert warnings(caplog) == [forgotten("forgets in a thread", "forgets-in-a-thread", "ask")]


def test_a_quick_agent_that_forgets_is_told(owner: Person, caplog: pytest.LogCaptureFixture) -> None:
    assert sent(owner, "hello", "forgets-quickly").status.state == "completed"
    assert warnings(caplog) == [forgotten("forgets quickly", "forgets-quickly", "status")]


def test_actions_that_are_given_late_are_no_mistake(owner: Person, caplog: pytest.LogCaptureFixture) -> None:
    assert sent(owner, "hello", "gives-all").status.state == "completed"
    assert warnings(caplog) == []
    assert Row.objects.get().traceback == ""
