"""An executed message: its secrets and its row in the usage history are stored with its task."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from a2a import errors
from a2a.agents import agent
from a2a.requests import Execute, GetTask
from a2a.run import Run
from a2a.states import TaskState
from a2a.types import Part, Task
from tasks_app import models, run_secrets
from tasks_app.database.work import Work
from tasks_app.event_log.create import Create
from tasks_app.operations import execute as execution
from tests.conftest import Person
from tests.operations.asking import ask, message, shown

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
SECRETS = {"bot_token": "xoxb-never-stored-anywhere"}


@agent
async def token_reader(run: Run) -> str:
    """Says how many characters its token has."""
    return f"{len(await run.secret('bot_token'))} characters"


@agent
async def token_asker(run: Run) -> AsyncIterator[Any]:
    """Asks once, then says the token of the answer."""
    if len(run.history) == 1:
        yield run.ask("And now?")
    else:
        await asyncio.sleep(0.3)
        yield await run.secret("bot_token")


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The rows of the usage history that are written behind an answer."""
    rows: list[Any] = []
    monkeypatch.setattr(execution, "record", rows.append)
    return rows


def executed(person: Person, agent: str, **more: Any) -> Task:
    values: dict[str, Any] = {"message": message(), "secrets": SECRETS, "agent": agent} | more
    return shown(ask(person, Execute(**values)))


def facts(task_id: str, **more: str) -> dict[str, str]:
    return {"task_id": task_id, "correlation_id": task_id, "channel": "", "outcome": "executed"} | more


def usage() -> dict[str, str]:
    """Return the one row of the usage history."""
    names = ("task_id", "correlation_id", "channel", "outcome")
    return models.Usage.objects.values(*names).get()  # type: ignore[return-value]


def test_the_task_its_secrets_and_its_usage_are_one_change(
    owner: Person, late: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[type[Work[Any]]] = []
    do_many = Create.do_many.__func__  # type: ignore[attr-defined]

    def noted(cls: type[Create], items: Any) -> Any:
        assert [(bool(item.secret), bool(item.usage)) for item in items] == [(True, True)]
        assert not models.RunSecret.objects.exists()
        results = do_many(cls, items)
        assert (models.RunSecret.objects.count(), models.Usage.objects.count()) == (1, 1)
        writes.append(cls)
        return results

    monkeypatch.setattr(Create, "do_many", classmethod(noted))
    task = executed(owner, "token-reader", metadata={"zone": {"channel": "C1", "correlation_id": "corr-1"}})
    assert writes == [Create]
    assert usage() == facts(task.id, channel="C1", correlation_id="corr-1")
    assert late == []


def text_of(task: Task) -> str:
    return "".join(part.text or "" for artifact in task.artifacts for part in artifact.parts)


def test_its_agent_reads_the_secrets(owner: Person) -> None:
    task = executed(owner, "token-reader")
    assert task.status.state is TaskState.COMPLETED
    assert text_of(task) == "26 characters"
    assert usage() == facts(task.id)


def test_each_message_of_a_task_has_secrets_of_its_own(owner: Person) -> None:
    task = executed(owner, "token-asker")
    assert task.status.state is TaskState.INPUT_REQUIRED
    said = message(task_id=task.id)
    first = ask(owner, Execute(message=said, secrets={"bot_token": "of the answer"}, return_immediately=True))
    assert shown(first).id == task.id
    # The same message again, with another token, changes nothing.
    done = executed(owner, "token-asker", message=said, secrets={"bot_token": "another"})
    assert (done.status.state, text_of(done)) == (TaskState.COMPLETED, "of the answer")
    assert models.RunSecret.objects.count() == 2


def test_a_refused_message_stores_no_secrets_and_changes_none(owner: Person) -> None:
    said = message()
    task = executed(owner, "token-reader", message=said)
    before = list(models.RunSecret.objects.values_list("key", "sealed"))
    for again in (message(task_id=task.id), replace(said, task_id="nobody's"), message(task_id="nobody's")):
        with pytest.raises(errors.Error):
            executed(owner, "token-reader", message=again, secrets={"bot_token": "another"})
    assert list(models.RunSecret.objects.values_list("key", "sealed")) == before
    assert len(before) == 1


def test_a_message_whose_key_was_forgotten_has_secrets_of_its_own(owner: Person, settings: Any) -> None:
    said = message()
    settings.A2A_KEY_HOURS = 0
    tasks = {executed(owner, "token-reader", message=said, secrets={"bot_token": "x" * n}).id for n in (3, 5)}
    read = [shown(ask(owner, GetTask(id=id))) for id in sorted(tasks)]
    assert [text_of(task) for task in read] == ["3 characters", "5 characters"]


def test_a_message_that_is_sent_again_is_a_call_of_its_own_and_keeps_its_secrets(
    owner: Person, late: list[Any]
) -> None:
    said = message()
    first = executed(owner, "token-reader", message=said)
    again = executed(owner, "token-reader", message=said, secrets={"bot_token": "another"})
    assert again.id == first.id
    assert [(row.task_id, row.correlation_id) for row in late] == [(first.id, first.id)]
    key = run_secrets.key_of(first.id, said.message_id)
    assert models.RunSecret.objects.get().key == key


def test_a_refused_call_has_its_reason_in_the_history(owner: Person, late: list[Any]) -> None:
    with pytest.raises(errors.UnknownAgent):
        executed(owner, "nobody")
    assert [(row.task_id, row.outcome) for row in late] == [("", errors.UnknownAgent.reason)]
    assert not models.RunSecret.objects.exists()


def test_a_refused_call_with_many_skipped_attachments_adds_a_short_row(owner: Person, late: list[Any]) -> None:
    """The quota counts no row of the history, and no limit but that of a body counts the attachments."""
    name, size = "n" * 1_000, {"size": 10**12}
    parts = (Part(text="hello"), *(Part(url="https://x/y", filename=name, metadata=size) for _ in range(1_000)))
    with pytest.raises(errors.UnknownAgent):
        executed(owner, "nobody", message=replace(message(), parts=parts))
    (row,) = late
    assert len(row.skipped) < execution.SKIPPED + 100
    assert row.skipped.startswith(f"{name[:100]}: the attachment has {10**12} bytes, and may have ")
    assert row.skipped.endswith("; and 994 more")


def test_usage_that_the_database_refuses_fails_no_task(owner: Person, late: list[Any]) -> None:
    channel = "C" * 300  # more than its column takes on PostgreSQL
    task = executed(owner, "token-reader", metadata={"zone": {"channel": channel}})
    assert task.status.state is TaskState.COMPLETED
    assert models.Usage.objects.count() + len(late) == 1
