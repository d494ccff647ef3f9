"""Relays to agents of another server of ours: each kind of answer passes through, in each version and binding."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from a2a.client import Client
from a2a.requests import CancelTask, GetTask, NotifyOfTask
from a2a.states import TERMINAL
from a2a.types import Card, Message, Part, Task
from tasks_app.models import RelayedTask, Run
from tasks_app.process import services
from tasks_app.relays import nudges, passage
from tasks_app.relays.passage import Passage
from tasks_app.runner.runner import runner
from tests.conftest import Person, Server, until
from tests.operations.asking import ask, data, message, sent, shown, text_of
from tests.relays.conftest import AddRelay
from tests.support.agents import PIECES

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]

WAYS = [(version, binding) for version in ("1.0", "0.3", "0.2") for binding in ("JSONRPC", "HTTP+JSON")]


@pytest.fixture(params=WAYS, ids="-".join)
def way(request: pytest.FixtureRequest, spoken: Callable[[str, str], None]) -> None:
    spoken(*request.param)


@pytest.mark.usefixtures("way")
def test_a_text_passes_through_with_its_progress(owner: Person, to_agent: AddRelay) -> None:
    task = sent(owner, "hello", to_agent("form-async-generator"))
    assert (task.status.state, text_of(task)) == ("completed", "hello")
    assert [said.text for said in task.history] == ["hello", "at it"]


@pytest.mark.usefixtures("way")
def test_a_question_and_its_answer_are_one_remote_task(owner: Person, to_agent: AddRelay, server: Server) -> None:
    before = server.row_counts()["task"]
    asked = sent(owner, "red", to_agent("asks"))
    assert asked.status.message
    assert (asked.status.state, asked.status.message.text) == ("input_required", "Which one?")
    answered = sent(owner, message("blue", task_id=asked.id))
    assert (answered.status.state, text_of(answered)) == ("completed", "red and blue")
    assert server.row_counts()["task"] == before + 1


@pytest.mark.parametrize(
    ("agent", "state", "said"),
    [
        ("replies", "completed", "You said hello"),
        ("replies-late", "completed", "You said hello"),
        ("rejects", "rejected", "That is not my job."),
        ("asks-credentials", "auth_required", "Please sign in."),
        ("raises", "failed", "The agent failed. Reference: "),
    ],
)
def test_an_ending_passes_through(owner: Person, to_agent: AddRelay, agent: str, state: str, said: str) -> None:
    task = sent(owner, "hello", to_agent(agent))
    assert task.status.message
    assert task.status.state == state
    assert task.status.message.text.startswith(said)


@pytest.mark.usefixtures("way")
def test_a_cancellation_ends_the_remote_task(owner: Person, to_agent: AddRelay, server: Server) -> None:
    task = sent(owner, "hello", to_agent("waits"), return_immediately=True)
    row = until(lambda: RelayedTask.objects.filter(pk=task.id).first(), "the remote task is stored")
    ask(owner, CancelTask(id=task.id))
    state = f"select state from tasks_app_task where id = '{row.remote_id}'"  # noqa: S608
    until(lambda: server.rows(state) == [("canceled",)], "the remote task is canceled")
    until(lambda: not RelayedTask.objects.get(pk=task.id).is_open, "that is stored")


def test_files_and_data_pass_through_both_ways(owner: Person, to_agent: AddRelay) -> None:
    file = Part(raw=bytes(range(250)), filename="a.bin", media_type="application/zip")
    task = sent(owner, data({"sizes": [100, 20_000]}), to_agent("files"))
    small, large = task.artifacts
    assert small.parts[0].raw == bytes(100)
    assert (large.artifact_id, large.parts[0].filename) == ("size-20000", "made.bin")
    task = sent(owner, message(parts=(file,)), to_agent("files"))
    assert [said.text for said in task.history[1:]] == ["a.bin: 250 bytes, 1"]
    task = sent(owner, data({"city": "Oslo", "days": 3}), to_agent("inputs"))
    assert text_of(task) == "3 days of rain in Oslo"


def test_the_pieces_of_a_text_stay_as_they_are(owner: Person, to_agent: AddRelay) -> None:
    assert text_of(sent(owner, "hello", to_agent("tells"))) == "".join(PIECES)


def test_metadata_and_marks_of_an_artifact_pass_through(owner: Person, to_agent: AddRelay) -> None:
    task = sent(owner, "hello", to_agent("extended"))
    (artifact,) = task.artifacts
    assert artifact.metadata == {"https://example.org/ext/geo/v1": {"lat": 1}}


def test_messages_to_a_working_task_reach_the_remote_task(owner: Person, to_agent: AddRelay, server: Server) -> None:
    before = server.row_counts()["task"]
    task = sent(owner, "hello", to_agent("gate"), return_immediately=True)
    until(lambda: RelayedTask.objects.filter(pk=task.id), "the remote task is stored")
    for word in ("one", "two", "stop"):
        sent(owner, message(word, task_id=task.id), return_immediately=True)
    until(lambda: shown(ask(owner, GetTask(id=task.id))).status.state == "completed", "the task ends")
    assert text_of(shown(ask(owner, GetTask(id=task.id)))) == "begin one two end"
    assert server.row_counts()["task"] == before + 1


@pytest.mark.requirement("ACP-08")
def test_a_notification_ends_the_pause_of_a_relay_that_polls(
    owner: Person, stranger: Person, to_agent: AddRelay, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Client.card

    async def card_without_streaming(self: Client) -> Card:
        return replace(await card(self), streaming=False)

    monkeypatch.setattr(Client, "card", card_without_streaming)
    monkeypatch.setattr(passage, "POLL_FIRST", 3_600)
    task = sent(owner, "hello", to_agent("gate"), return_immediately=True)
    row = until(lambda: RelayedTask.objects.filter(pk=task.id).first(), "the remote task is stored")
    until(lambda: any(poll[0] == task.id for poll in nudges._polls), "the relay polls")
    sent(owner, message("stop", task_id=task.id), return_immediately=True)
    state = f"select state from tasks_app_task where id = '{row.remote_id}'"  # noqa: S608
    until(lambda: server.rows(state) == [("completed",)], "the remote task ends")
    for person, remote_id in ((stranger, row.remote_id), (owner, task.id), (owner, "\0"), (owner, "x" * 9_999)):
        assert ask(person, NotifyOfTask(remote_id=remote_id)) is None
    assert shown(ask(owner, GetTask(id=task.id))).status.state == "working"
    assert ask(owner, NotifyOfTask(remote_id=row.remote_id)) is None
    until(lambda: shown(ask(owner, GetTask(id=task.id))).status.state == "completed", "the relay looks")


def slowly(monkeypatch: pytest.MonkeyPatch, wait: Callable[[], Awaitable[Any]]) -> None:
    """Keep back the answer to the message "stop", which ends the remote task, until the wait is over."""
    send = Client.send

    async def send_slowly(self: Client, outgoing: Message, **options: Any) -> Any:
        answer = await send(self, outgoing, **options)
        if outgoing.text == "stop":
            await wait()
        return answer

    monkeypatch.setattr(Client, "send", send_slowly)


def test_a_message_whose_answer_comes_after_the_end_is_not_read_again(
    owner: Person, to_agent: AddRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, settle = asyncio.Event(), Passage._settle

    async def end_and_settle(self: Passage) -> None:
        ended.set()
        await settle(self)

    monkeypatch.setattr(Passage, "_settle", end_and_settle)
    slowly(monkeypatch, ended.wait)
    task = stopped(owner, to_agent("gate"))
    assert text_of(task) == "begin end"
    assert [run.outcome for run in Run.objects.filter(task=task.id)] == ["completed"]


def test_a_message_whose_answer_never_comes_is_found_in_the_remote_task(
    owner: Person, to_agent: AddRelay, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = server.row_counts()["task"]
    monkeypatch.setattr(passage, "SETTLE", 0.0)
    slowly(monkeypatch, asyncio.Event().wait)
    task = stopped(owner, to_agent("gate"))
    assert text_of(task) == "begin end"
    assert [run.outcome for run in Run.objects.filter(task=task.id).order_by("fence")] == ["continued", "completed"]
    assert server.row_counts()["task"] == before + 1


def stopped(owner: Person, name: str) -> Task:
    """Return a task that a message during its run has ended."""
    task = sent(owner, "hello", name, return_immediately=True)
    until(lambda: RelayedTask.objects.filter(pk=task.id), "the remote task is stored")
    sent(owner, message("stop", task_id=task.id), return_immediately=True)
    until(lambda: shown(ask(owner, GetTask(id=task.id))).status.state in TERMINAL, "the task ends")
    return shown(ask(owner, GetTask(id=task.id)))


def test_messages_from_before_the_run_reach_the_remote_task_in_order(owner: Person, to_agent: AddRelay) -> None:
    name = to_agent("asks")
    runner.close()
    task = sent(owner, "red", name, return_immediately=True)
    sent(owner, message("blue", task_id=task.id), return_immediately=True)
    services.stop()
    services.start()
    until(lambda: shown(ask(owner, GetTask(id=task.id))).status.state == "completed", "the task ends")
    assert text_of(shown(ask(owner, GetTask(id=task.id)))) == "red and blue"


def test_a_context_is_that_of_one_caller(owner: Person, colleague: Person, to_agent: AddRelay) -> None:
    name = to_agent("conversation")
    sent(owner, message("the secret", context_id="same"), to_agent("form-coroutine"))
    sent(owner, message("first", context_id="same"), name)
    assert "first" in text_of(sent(owner, message("second", context_id="same"), name))
    assert text_of(sent(colleague, message("third", context_id="same"), name)) == ""
