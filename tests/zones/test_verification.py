"""Questions of a chat: authorised, limited and executed, with an answer that grows."""

import asyncio
import itertools
import sys
import threading
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from a2a import errors
from a2a.agents import agent
from a2a.params import write_base64
from a2a.run import Run
from tasks_app import clock, models
from tasks_app.exchanges.recording import recorder
from tasks_app.models.states import SlackQuestionState
from tasks_app.off_loop import LARGE
from tasks_app.slack.attachments import FetchedFile, Luggage
from tasks_app.slack.questions import Turn
from tasks_app.zones import verification
from tasks_app.zones.slack import ask_for_slack
from tasks_app.zones.verification import Attachment, Question, Reply
from tests.conftest import Person, until
from tests.zones.asking import TOKEN, answers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
STEPS: dict[str, asyncio.Event] = {}
"""The gate of each text, which the reader of its first reply opens."""


@agent
async def grows(run: Run) -> AsyncIterator[Any]:
    """Says one piece, and another when its reader has read the first."""
    yield "one"
    await STEPS[run.text].wait()
    yield " and two"


def test_a_question_is_answered_by_the_default_agent(owner: Person) -> None:
    *_, last = answers(owner)
    assert (last.text, last.final) == ("hello", True)
    task = models.Task.objects.get()
    assert (task.id, task.agent, task.state) == (last.task_id, "echo", "completed")


def test_an_answer_grows_and_its_last_reply_is_final(owner: Person) -> None:
    opened: list[str] = []

    def open_gate(reply: Reply) -> None:
        if reply.text:
            opened.append(reply.text)
            STEPS["grow"].release_from_any_thread()  # type: ignore[attr-defined]

    STEPS["grow"] = Gate()
    replies = answers(owner, "grow", agent="grows", each=open_gate)
    assert (replies[0].text, replies[1].text[:3]) == ("", "one")
    assert [reply.final for reply in replies][-1:] == [True]
    assert (replies[-1].text, len({reply.task_id for reply in replies})) == ("one and two", 1)
    assert all(later.text.startswith(earlier.text) for earlier, later in itertools.pairwise(replies))


class Gate(asyncio.Event):
    """An event of the agents' loop that any thread may set."""

    async def wait(self) -> Any:  # type: ignore[override]
        self.loop = asyncio.get_running_loop()
        return await super().wait()

    def release_from_any_thread(self) -> None:
        until(lambda: hasattr(self, "loop"), "the agent waits at its gate")
        self.loop.call_soon_threadsafe(self.set)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("raises", errors.InvalidAgentResponse),
        ("rejects", errors.InvalidParams),
        ("sleeper", errors.Timeout),
        ("nobody", errors.UnknownAgent),
    ],
)
def test_a_failure_is_an_error(owner: Person, name: str, error: type[errors.Error]) -> None:
    with pytest.raises(error):
        answers(owner, agent=name)


@pytest.mark.requirement("ZONE-14")
def test_a_person_without_the_right_reaches_no_agent(owner: Person) -> None:
    person = Person(owner.key, replace(owner.caller, scopes=frozenset({"tasks:read"})))
    with pytest.raises(errors.MissingScope):
        answers(person)
    assert not models.Task.objects.exists()


def test_a_question_under_the_same_key_is_executed_once(owner: Person) -> None:
    first, second = answers(owner, key="Ev1")[-1], answers(owner, key="Ev1")[-1]
    assert first == second
    assert models.Task.objects.count() == 1


def test_a_thread_is_one_conversation_and_another_is_not(owner: Person) -> None:
    answers(owner, "first", thread="1.0")
    answers(owner, "other", thread="2.0")
    *_, last = answers(owner, "next", thread="1.0", agent="conversation")
    assert "first" in last.text
    assert "other" not in last.text


def test_a_question_with_large_files_is_read_off_the_loop(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def note(*arguments: Any, call: Any) -> Any:
        threads.append(threading.current_thread().name.partition("_")[0])
        return call(*arguments)

    for name in ("_open", "_decode"):
        monkeypatch.setattr(verification, name, partial(note, call=getattr(verification, name)))
    for size in (3, 2 * LARGE):
        file = Attachment(name="a.bin", content=write_base64(b"x" * size))
        *_, last = answers(owner, agent="files", attachments=(file,))
        assert last.final
    assert threads == ["MainThread", "MainThread", "large", "large"]


def of_zone(person: Person, content: str) -> AsyncIterator[Reply]:
    return verification.ask(
        Question(
            channel="C1",
            text="keep",
            bot_token=TOKEN,
            agent="grows",
            attachments=(Attachment("a.txt", "text/plain", content=content),),
        ),
        person.caller,
    )


def of_slack(person: Person, content: str) -> AsyncIterator[Reply]:
    turn = Turn(
        **dict.fromkeys(("id", "team_id", "token", "channel", "thread", "ts", "user", "reply"), "1"),
        **dict.fromkeys(("fence", "workspace_id", "sends", "failures"), 1),
        agent="grows",
        caller=person.caller,
        text="keep",
        files=(),
        state=SlackQuestionState.WAITING,
        task_id=None,
        posts=(),
        created_at=clock.now(),
    )
    return ask_for_slack(turn, Luggage((FetchedFile("a.txt", "text/plain", 3, content),)))


@pytest.mark.parametrize("asked", [of_zone, of_slack])
def test_nothing_keeps_the_files_of_a_question_while_its_agent_works(owner: Person, asked: Any) -> None:
    content, gate = write_base64(b"abc"), Gate()
    before, STEPS["keep"] = sys.getrefcount(content), gate

    async def work() -> list[int]:
        counts = []
        async for _ in asked(owner, content):
            counts.append(sys.getrefcount(content))
            if not gate.is_set():
                await asyncio.to_thread(gate.release_from_any_thread)
        return counts

    assert set(asyncio.run(work())) == {before}
    recorder.drain(5)
    assert "keep" in models.ExchangeBody.objects.get().request


def test_a_large_attachment_is_skipped_with_a_reason(owner: Person, settings: Any) -> None:
    settings.A2A_ATTACHMENT_BYTES = 3
    small, large = Attachment("a.txt", "text/plain", content="YWJj"), Attachment("b.txt", size=4, url="https://x/b")
    *_, last = answers(owner, agent="files", attachments=(small, large))
    ((facts),) = [task.metadata for task in models.Task.objects.all()]
    assert last.final
    assert facts is not None
    assert "the attachment has 4 bytes, and may have 3" in str(facts)
    assert "a.txt" not in str(facts)


def test_a_question_is_recorded_without_its_token(owner: Person) -> None:
    answers(owner, correlation_id="corr-1")
    recorder.drain(5)
    exchange = models.Exchange.objects.get()
    assert (exchange.rpc_id, exchange.method, exchange.outcome) == ("corr-1", "execute_task", "result")
    body = models.ExchangeBody.objects.get(exchange=exchange)
    assert TOKEN not in body.request + body.response
    assert "hello" in body.request
