"""play: an author tests an agent of any form without a server, and sees what its caller would."""

import asyncio
import functools
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from a2a import Caller, Failure, Message, Part, Run, agent
from a2a.agents import registry
from a2a.errors import InvalidParams
from a2a.mistakes import AgentMistake
from a2a.testing import play
from a2a.types import Role
from tests.clients.documents import saved
from tests.conftest import ROOT
from tests.support.servers import COMMAND_SECONDS


async def hello(run: Run) -> AsyncIterator[Any]:
    """Greets people by name."""
    if not run.text:
        yield run.ask("What is your name?")
        return
    yield run.status("thinking")
    for piece in ("Hello,", " ", run.text, "!"):
        yield piece


def counts(run: Run, most: int, by: int = 1) -> Iterator[Any]:
    """Counts."""
    yield {"numbers": list(range(0, most, by))}


async def knows(run: Run) -> str:
    """Says what it knows."""
    said = [message.text for message in (*run.conversation, *run.history)]
    return f"{run.caller.name} {run.caller.tenant} {sorted(run.caller.scopes)} {run.metadata} {run.attempt} {said}"


def replies(run: Run) -> Any:
    """Replies, or will not."""
    return run.reply("You said ", run.text) if run.text else run.reject("Say something.")


def test_it_plays_an_agent_for_a_message() -> None:
    played = play(hello, "Ann")
    assert (played.text, played.state, played.statuses) == ("Hello, Ann!", "completed", ("thinking",))
    assert len(played.actions) == 5
    assert [part.text for part in played.task.artifacts[0].parts] == ["Hello, Ann!"]
    assert played.task.history[0].text == "Ann"


def test_a_question_is_answered() -> None:
    asked = play(hello, "")
    assert (asked.state, asked.question, asked.text) == ("input_required", "What is your name?", "")
    done = asked.answer("Ann")
    assert (done.text, done.question) == ("Hello, Ann!", "")
    assert [message.text for message in done.run.history] == ["", "What is your name?", "Ann"]
    with pytest.raises(ValueError, match="it ended as completed"):
        done.answer("again")


def test_data_files_and_several_parts_are_messages_too() -> None:
    assert play(counts, {"most": 6, "by": 2}).data == {"numbers": [0, 2, 4]}
    with pytest.raises(InvalidParams):
        play(counts, {"most": "six"})

    def reads(run: Run) -> str:
        """Reads files."""
        return f"{run.text}: {[run.read_now(part) for part in run.files]}"

    assert play(reads, ["two", b"a", Part(raw=b"b", filename="b.bin")]).text == "two: [b'a', b'b']"


def test_an_agent_is_told_what_the_test_says_of_its_caller() -> None:
    before = Message(message_id="m", role=Role.USER, parts=(Part(text="before"),))
    caller = Caller(name="ann", tenant="home", scopes=frozenset({"a"}))
    played = play(knows, "now", caller=caller, conversation=[before], metadata={"k": 1}, attempt=2)
    assert played.text == "ann home ['a'] {'k': 1} 2 ['before', 'now']"
    assert play(knows, "now").text == "tester default ['*'] {} 1 ['now']"


def test_the_value_that_a_generator_returns_is_an_action_too() -> None:
    def greets(run: Run) -> Generator[Any, Any, Any]:
        """Greets people by name."""
        if not run.text:
            return run.ask("What is your name?")
        yield "Hello, "
        return run.text

    first = play(greets)
    assert (first.question, first.warnings) == ("What is your name?", ())
    assert first.answer("Ann").text == "Hello, Ann"


def test_a_wrong_value_that_a_generator_returns_is_a_mistake() -> None:
    def greets(run: Run) -> Generator[Any, Any, Any]:
        """Greets."""
        yield "Hello"
        return {1}

    with pytest.raises(AgentMistake, match="gives a set, which JSON does not have: give a list"):
        play(greets)


def test_an_error_of_a_generator_that_tidies_up_is_raised() -> None:
    def asks(run: Run) -> Iterator[Any]:
        """Asks, and fails when it tidies up."""
        try:
            yield run.ask("Which one?")
        finally:
            raise RuntimeError("untidy")

    with pytest.raises(RuntimeError, match="untidy"):
        play(asks)


def test_an_async_decorator_may_have_a_sync_agent_behind_it() -> None:
    def in_a_thread(function: Callable[[Run], Any]) -> Callable[[Run], Any]:
        @functools.wraps(function)
        async def wrapper(run: Run) -> Any:
            return await asyncio.to_thread(function, run)

        return wrapper

    @in_a_thread
    def shouts(run: Run) -> str:
        """Shouts."""
        return run.text.upper()

    assert play(shouts, "hello").text == "HELLO"


def test_the_limits_of_an_input_are_checked() -> None:
    def forecasts(run: Run, days: Annotated[int, Meta(ge=1, le=14)], note: Annotated[str, "for people"] = "") -> str:
        """Tells the weather of some days."""
        return f"{days} days"

    assert play(forecasts, {"days": 2}).text == "2 days"
    with pytest.raises(InvalidParams) as refused:
        play(forecasts, {"days": 15})
    assert refused.value.violations == (("message.parts[0].data.days", "must be at most 14"),)


def test_the_values_of_an_input_are_named() -> None:
    def forecasts(run: Run, unit: Literal["celsius", "kelvin"] = "celsius") -> str:
        """Tells the weather in a unit."""
        return unit

    with pytest.raises(InvalidParams) as refused:
        play(forecasts, {"unit": "fahrenheit"})
    assert refused.value.violations == (("message.parts[0].data.unit", "must be one of celsius, kelvin"),)


def test_replies_and_refusals_are_seen() -> None:
    assert (play(replies, "hi").text, play(replies, "hi").state) == ("You said \nhi", "completed")
    assert (play(replies, "").question, play(replies, "").state) == ("Say something.", "rejected")


def test_an_exception_of_an_agent_is_raised() -> None:
    async def fails(run: Run) -> str:
        """Fails."""
        raise Failure("Not today.")

    with pytest.raises(Failure, match=r"Not today\."):
        play(fails)


def test_a_mistake_is_the_sentence_that_the_log_would_have() -> None:
    async def errs(run: Run) -> AsyncIterator[Any]:
        """Gives nothing."""
        run.status("forgotten")
        yield None if run.text else "something"

    with pytest.raises(AgentMistake, match=r'test_testing.py:\d+: agent "errs" gives None: '):
        play(errs, "now")
    (sentence,) = play(errs).warnings
    assert 'agent "errs": run.status(...) does nothing by itself: did you forget "yield"?' in sentence


def test_a_decorated_agent_keeps_its_options() -> None:
    @agent(extensions=["urn:one"])
    def plays_extended(run: Run) -> Any:
        """Says which extensions were asked for."""
        return run.artifact(*run.extensions, extensions=run.extensions)

    try:
        assert play(plays_extended, "", extensions=["urn:one"]).text == "urn:one"
    finally:
        registry._agents.pop("plays-extended")


async def test_within_a_running_loop_it_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="to_thread"):
        play(hello, "Ann")


def test_playing_an_agent_needs_no_django() -> None:
    code = "import sys, a2a.testing; print({'django', 'tasks_app'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True, timeout=COMMAND_SECONDS
    )
    assert done.stdout == "set()\n"


def test_the_agent_of_the_readme_passes_the_test_of_the_readme(tmp_path: Path) -> None:
    for name in ("hello.py", "test_hello.py"):
        (tmp_path / name).write_text(saved(ROOT, name), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:django", "test_hello.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


async def collects(run: Run) -> AsyncIterator[Any]:
    """Asks until it is told to stop, and knows its earlier results."""
    yield run.artifact(run.text, id=f"part-{len(run.artifacts)}")
    if run.text != "stop":
        yield run.ask("What else?")


def test_a_run_has_the_results_of_earlier_runs() -> None:
    last = play(collects, "one").answer("two").answer("stop")
    assert [artifact.artifact_id for artifact in last.run.artifacts] == ["part-0", "part-1"]
    assert [artifact.artifact_id for artifact in last.task.artifacts] == ["part-0", "part-1", "part-2"]
