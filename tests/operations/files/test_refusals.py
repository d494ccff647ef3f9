"""Files that are too large, or whose storage fails."""

import asyncio
import re
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.files.storage import storages
from django.db import connection

import a2a
from a2a.documents import TaskDocument
from a2a.errors import BudgetExceeded, InvalidParams, RateLimited, Unavailable, UnsupportedOperation
from a2a.types import Part, PushConfig, Task
from tasks_app.database.tables import FILES
from tasks_app.event_log import as_of
from tasks_app.files.storage import MEMORY_SECONDS, outage
from tasks_app.files.storing import store_large_parts
from tasks_app.models import File, Run
from tasks_app.models import Task as TaskRow
from tasks_app.operations.send import create_task
from tasks_app.process.counting import census
from tasks_app.runner import store, writer
from tasks_app.upkeep.processes import troubles
from tests.conftest import Person, until
from tests.operations.asking import data, message, send, sent, streamed
from tests.operations.files.stored import BIG, PDF, only, rows, stored_paths
from tests.operations.money import limit
from tests.operations.reads import beside_reads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@a2a.agent(output_modes=["*/*"])
def makes_in_a_thread(run: a2a.Run, sizes: list[int]) -> Iterator[bytes]:
    """Makes files in a thread."""
    yield from map(bytes, sizes)


@a2a.agent(quick=True, output_modes=["*/*"])
async def makes_quickly(run: a2a.Run, sizes: list[int]) -> Any:
    """Makes files within the call."""
    return run.artifact(*map(bytes, sizes))


@a2a.agent(isolation="process", output_modes=["*/*"])
def makes_apart(run: a2a.Run, sizes: list[int]) -> Iterator[bytes]:
    """Makes files in a process of its own."""
    yield from map(bytes, sizes)


@pytest.mark.parametrize(("limit", "words"), [("A2A_FILE_BYTES", "a file may"), ("A2A_TASK_FILE_BYTES", "of a task")])
def test_a_file_that_is_too_large_is_named_and_not_stored(owner: Person, settings: Any, limit: str, words: str) -> None:
    setattr(settings, limit, len(BIG) - 1)
    with pytest.raises(InvalidParams) as refused:
        send(owner, message(parts=(Part(text="look"), PDF)), "echo")
    ((field, sentence),) = refused.value.violations
    assert field == "message.parts[1]"
    assert words in sentence
    assert str(len(BIG) - 1) in sentence
    assert not TaskRow.objects.exists()
    assert not stored_paths()


def test_a_message_whose_webhook_is_refused_stores_no_file(owner: Person) -> None:
    task = sent(owner, "go", "asks-for-files")
    webhook = PushConfig(url="https://10.0.0.1/", language="a2a-1.0")
    for said in (message(parts=(PDF,), task_id=task.id), message(parts=(PDF,))):
        with pytest.raises(InvalidParams):
            send(owner, said, "asks-for-files", push_config=webhook)
    assert not stored_paths()


def test_a_message_that_a_limit_refuses_stores_no_file(owner: Person, settings: Any) -> None:
    task = sent(owner, "go", "asks-for-files")
    sent(owner, "wait", "waits", return_immediately=True)
    settings.A2A_OWNER_TASKS = 1
    census.count()  # No task is refused before the first count.
    for said in (message(parts=(PDF,), task_id=task.id), message(parts=(PDF,))):
        with pytest.raises(RateLimited):
            send(owner, said, "asks-for-files")
    settings.A2A_OWNER_TASKS, settings.A2A_TASK_MESSAGES = 100, 1
    with pytest.raises(UnsupportedOperation):
        send(owner, message(parts=(PDF,), task_id=task.id))
    settings.A2A_TASK_MESSAGES, settings.A2A_TASK_CHARACTERS = 100, TaskRow.objects.get(pk=task.id).size + 500
    with pytest.raises(UnsupportedOperation):
        send(owner, message(parts=(PDF, Part(text="x" * 500)), task_id=task.id))
    assert not stored_paths()


def test_a_message_that_no_budget_covers_leaves_no_file(owner: Person) -> None:
    limit(owner, 0.25)
    for agent in ("priced", "priced-quick"):
        with pytest.raises(BudgetExceeded):
            send(owner, message(parts=(Part(text="1"), PDF)), agent)
    assert not stored_paths()


def test_a_quick_agent_without_a_thread_leaves_no_file(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(*_: Any) -> None:
        raise Unavailable(1)

    monkeypatch.setattr("tasks_app.operations.dispatcher.play_quickly", busy)
    with pytest.raises(Unavailable):
        send(owner, message(parts=(PDF,)), "echo")
    assert not stored_paths()


def test_the_files_of_a_message_that_was_stored_after_all_stay(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store the message, and have the caller hear that the database is unavailable."""

    async def store_and_fail(plan: Any, events: Any) -> Any:
        assert await create_task(plan, events)
        raise Unavailable

    monkeypatch.setattr("tasks_app.operations.send.create_task", store_and_fail)
    task = sent(owner, message(parts=(PDF,)), "asks-for-files", return_immediately=True)
    assert task.id
    assert len(rows()) == 1
    assert stored_paths() == rows()


def test_a_message_that_was_added_keeps_its_files_whatever_its_caller_reads(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stream to a task at work with a long log, while the caller has as many long reads waiting as it may have."""
    monkeypatch.setattr(as_of, "MOST_EVENTS", 0)
    task, text = sent(owner, "wait", "waits", return_immediately=True), Part(raw=BIG, media_type="text/plain")
    until(lambda: TaskRow.objects.get(pk=task.id).state == "working", "the task is at work")
    follow = beside_reads(owner, settings, lambda: streamed(owner, message(parts=(text,), task_id=task.id)))
    assert isinstance(follow.first, TaskDocument)
    assert follow.first.id == task.id
    assert len(rows()) == 1
    assert stored_paths() == rows()


def test_all_files_of_a_task_count_together(owner: Person, settings: Any) -> None:
    settings.A2A_TASK_FILE_BYTES = len(BIG) + 1
    task = sent(owner, message(parts=(PDF, Part(data={"sizes": [50_000]}))), "files")
    assert task.status.state == "failed"
    assert "Reference" in text_of_status(task)
    assert {row.size for row in File.objects.filter(holder=task.id)} == {len(BIG)}
    assert stored_paths() == rows()


def test_a_file_whose_row_was_written_meanwhile_counts_once(settings: Any) -> None:
    settings.A2A_TASK_FILE_BYTES = 2 * len(BIG)
    stored = store_large_parts((PDF,), "t-1").rows
    with connection.cursor() as cursor:
        FILES.write(cursor, stored)
    assert store_large_parts((PDF,), "t-1", tuple(stored)).rows


def test_a_file_whose_row_is_being_written_counts(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store a second file while the write of the first one is under way."""
    settings.A2A_TASK_FILE_BYTES = 40_000
    write, accept, calls = writer.store, writer.Writer.accept, iter([1])
    begun, done = asyncio.Event(), asyncio.Event()

    async def write_late(*arguments: Any) -> int:
        begun.set()
        await done.wait()
        return await write(*arguments)

    async def accept_meanwhile(*arguments: Any) -> None:
        if next(calls, None):
            await accept(*arguments)
            return
        await begun.wait()
        try:
            await accept(*arguments)
        finally:
            done.set()

    monkeypatch.setattr(writer, "store", write_late)
    monkeypatch.setattr(writer.Writer, "accept", accept_meanwhile)
    assert sent(owner, data({"sizes": [20_001, 20_001]}), "files").status.state == "failed"


def test_an_agent_that_fails_leaves_the_files_that_it_made(owner: Person) -> None:
    task = sent(owner, message(parts=(Part(text="fail"), Part(data={"sizes": [50_000]}))), "files")
    assert task.status.state == "failed"
    assert only(task).url
    assert stored_paths() == rows()


def test_a_storage_that_fails_is_a_server_that_cannot_take_the_call(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(storages["files"]), "_save", full)
    with pytest.raises(Unavailable):
        send(owner, message(parts=(PDF,)), "echo")
    assert not TaskRow.objects.exists()
    monkeypatch.undo()
    assert sent(owner, message(parts=(PDF,)), "echo")


def test_a_storage_that_fails_for_a_moment_fails_no_run(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, faults = type(storages["files"]), [OSError(28, "No space left on device"), TimeoutError()]
    save = kind._save

    def falter(*arguments: Any) -> Any:
        if faults:
            raise faults.pop()
        return save(*arguments)

    monkeypatch.setattr(kind, "_save", falter)
    task = sent(owner, data({"sizes": [50_000]}), "files")
    assert task.status.state == "completed"
    assert stored_paths() == rows()


def test_a_result_that_no_storage_takes_for_a_lease_fails_and_says_so(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(storages["files"]), "_save", Mock(side_effect=OSError(30, "Read-only file system")))
    monkeypatch.setattr(store, "settings", SimpleNamespace(A2A_LEASE_SECONDS=0.1))
    task = sent(owner, data({"sizes": [50_000]}), "files")
    assert task.status.state == "failed"
    assert text_of_status(task).startswith("A file of the result could not be stored. Reference: ")
    assert not rows()


def test_a_quick_agent_whose_file_is_not_stored_says_so_and_the_process_has_a_trouble(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, saves = type(storages["files"]), iter([storages["files"]._save])

    def save_once(_: Any, *arguments: Any) -> Any:
        if save := next(saves, None):
            return save(*arguments)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kind, "_save", save_once)
    task = sent(owner, message(parts=(PDF,)), "quick-files")
    assert task.status.state == "failed"
    assert text_of_status(task).startswith("A file of the result could not be stored. Reference: ")
    assert [sentence for sentence in troubles() if sentence.startswith("files: the storage did not take the last file")]
    monkeypatch.undo()
    assert sent(owner, message(parts=(PDF,)), "quick-files").status.state == "completed"
    assert not [sentence for sentence in troubles() if sentence.startswith("files:")]


def test_a_storage_that_failed_long_ago_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "failed_at", time.monotonic() - MEMORY_SECONDS - 1)
    assert outage.troubles() == []


def test_a_caller_cannot_refer_to_a_file(owner: Person) -> None:
    mine = sent(owner, message(parts=(PDF,)), "echo")
    url = only(mine).url
    assert url
    with pytest.raises(InvalidParams) as refused:
        send(owner, message(parts=(Part(text="this"), Part(url=url))), "echo")
    assert refused.value.violations[0][0] == "message.parts[1]"


def text_of_status(task: Task) -> str:
    assert task.status.message
    return task.status.message.text


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("A2A_FILE_BYTES", 20_000, "a file may have at most 20000 bytes; this one has 20001"),
        ("A2A_TASK_FILE_BYTES", 40_000, "all files of a task together may have at most 40000 bytes, not 40002"),
    ],
)
@pytest.mark.parametrize("agent", ["files", "makes-in-a-thread", "makes-quickly", "makes-apart"])
@pytest.mark.usefixtures("isolation")
def test_the_author_of_too_large_a_file_is_told_the_limit_and_the_line(
    owner: Person, settings: Any, caplog: pytest.LogCaptureFixture, agent: str, name: str, value: int, limit: str
) -> None:
    setattr(settings, name, value)
    task = sent(owner, data({"sizes": [20_001, 20_001]}), agent)
    assert text_of_status(task).startswith("The agent failed. Reference: ")
    (said,) = [record for record in caplog.records if record.name == "tasks_app.runner.failures"]
    sentence = rf'\.py:\d+: agent "{agent}" gives too large a file: {limit}; {name} sets the limit'
    assert re.search(f"{sentence}$", said.getMessage())
    assert said.exc_info is None
    assert re.search(f"{sentence}$", Run.objects.get().traceback)
