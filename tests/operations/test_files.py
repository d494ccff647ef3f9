"""Files: what is large is stored apart, belongs to its task, is never stored twice, and goes when its task goes."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, storages
from django.core.management import call_command
from django.db import DataError

from a2a.errors import IdempotencyConflict, InvalidParams, Unavailable
from a2a.files import MARK, SCHEME, id_of, is_stored
from a2a.requests import GetTask
from a2a.types import Part, PushConfig, Task
from tasks_app import clock, event_log
from tasks_app.admin.timeline import build_lines
from tasks_app.database.bridge import bridge
from tasks_app.files import path_of, sweep
from tasks_app.files.deleting import OWNER, Orphans, delete_unused
from tasks_app.files.storage import DoWithFiles, load
from tasks_app.files.storing import store_large_parts
from tasks_app.models import DirectReply, File
from tasks_app.models import Event as EventRow
from tasks_app.models import Task as TaskRow
from tasks_app.upkeep import sweeps
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask, data, message, send, sent, shown, text_of
from tests.operations.rows import LONG_AGO, creation, forget, wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]

BIG = bytes(range(256)) * 400
PDF = Part(raw=BIG, filename="report.pdf", media_type="application/pdf")


@pytest.fixture(autouse=True, params=["folder", "memory"])
def _storage(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> None:
    backends = {
        "folder": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}},
        "memory": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    }
    settings.STORAGES = {**settings.STORAGES, "files": backends[request.param]}


def stored() -> set[str]:
    """The paths in the storage."""
    try:
        days = storages["files"].listdir("")[0]
    except FileNotFoundError:
        return set()
    return {f"{day}/{name}" for day in days for name in storages["files"].listdir(day)[1]}


def rows() -> set[str]:
    return {path_of(row.id) for row in File.objects.all()}


def only(task: Task) -> Part:
    """The one part of its one artifact."""
    (artifact,) = task.artifacts
    (part,) = artifact.parts
    return part


# ------------------------------------------------------------------ storing


def test_a_large_part_is_stored_once_and_referred_to_everywhere(owner: Person) -> None:
    task = sent(owner, message(parts=(PDF,)), "echo")
    said, made = task.history[0].parts[0], only(task)
    assert said == made
    assert (said.raw, said.filename, said.media_type) == (None, "report.pdf", "application/pdf")
    assert said.url
    assert load(said.url) == BIG
    row = File.objects.get()
    assert (row.id, row.holder, row.name, row.media_type) == (id_of(said.url), task.id, "report.pdf", "application/pdf")
    assert row.size == len(BIG)
    assert stored() == rows()
    sizes = [len(event.payload) for event in EventRow.objects.filter(task_id=task.id)]
    assert max(sizes) < 1_000


def test_a_small_part_stays_where_it_is(owner: Person, settings: Any) -> None:
    exactly = bytes(settings.A2A_INLINE_BYTES)
    assert only(sent(owner, message(parts=(Part(raw=exactly),)), "echo")).raw == exactly
    assert is_stored(only(sent(owner, message(parts=(Part(raw=exactly + b"1"),)), "echo")))
    assert stored() == rows()
    assert len(rows()) == 1


def test_an_agent_reads_what_it_was_sent_and_gives_what_it_makes(owner: Person) -> None:
    parts = (PDF, Part(raw=b"small", filename="s"), Part(data={"sizes": [50_000], "name": "x.zip"}))
    task = sent(owner, message(parts=parts), "files")
    assert [part.text for said in task.history for part in said.parts if part.text] == [
        f"report.pdf: {len(BIG)} bytes, {sum(BIG) % 251}",
        f"s: 5 bytes, {sum(b'small') % 251}",
    ]
    made = only(task)
    assert made.url
    assert (made.filename, load(made.url)) == ("x.zip", bytes(50_000))
    assert {row.holder for row in File.objects.all()} == {task.id}
    assert stored() == rows()


def test_a_media_type_that_is_too_long_for_a_row_is_that_of_any_bytes(owner: Person) -> None:
    kind = "a" * 100 + "/" + "b" * 100 + "; " + "c" * 20 + "=" + "d" * 100
    parts = (Part(raw=BIG, filename="x", media_type=kind), Part(data={"sizes": [50_000], "kind": kind}))
    task = sent(owner, message(parts=parts), "files")
    assert task.status.state == "completed"
    assert [row.media_type for row in File.objects.all()] == ["application/octet-stream"] * 2
    assert only(task).media_type == kind


def test_an_agent_in_a_thread_reads_too(owner: Person) -> None:
    assert text_of(sent(owner, message(parts=(PDF, Part(raw=b"1"))), "files-in-a-thread")) == f"{len(BIG)} bytes1 bytes"


def test_a_quick_agent_reads_and_makes_files_before_anything_is_stored(owner: Person) -> None:
    made = only(sent(owner, message(parts=(PDF,)), "quick-files"))
    assert made.url
    assert load(made.url) == BIG
    assert len(rows()) == 2
    assert stored() == rows()


def test_the_files_of_a_direct_reply_belong_to_the_reply(owner: Person) -> None:
    said = message(parts=(Part(text="reply"), PDF), context_id="c")
    reply = send(owner, said, "quick-files").message
    assert reply
    assert is_stored(reply.parts[0])
    row = DirectReply.objects.get()
    assert {file.holder for file in File.objects.all()} == {row.id}
    assert SCHEME in row.message
    assert SCHEME in row.reply
    assert send(owner, said, "quick-files").message == reply
    assert stored() == rows()


def test_the_next_message_of_a_task_brings_files_too(owner: Person) -> None:
    task = sent(owner, "one", "asks")
    done = sent(owner, message(parts=(Part(text="two"), Part(data=BIG.hex()))), "echo")
    assert done.artifacts
    with pytest.raises(Exception, match="content type"):
        sent(owner, message(parts=(PDF,), task_id=task.id))
    task = sent(owner, data({"sizes": []}), "asks-for-files")
    done = sent(owner, message(parts=(PDF,), task_id=task.id))
    assert text_of(done) == f"{len(BIG)} bytes"
    assert {row.holder for row in File.objects.all()} == {task.id}
    assert stored() == rows()


# -------------------------------------------------------------- not twice


def test_the_same_message_again_stores_nothing_and_another_file_is_a_conflict(owner: Person) -> None:
    said = message(parts=(PDF,))
    task = sent(owner, said, "echo")
    before = stored()
    assert sent(owner, said, "echo") == task
    other = message(message_id=said.message_id, parts=(Part(raw=BIG[::-1], filename=PDF.filename),))
    with pytest.raises(IdempotencyConflict):
        send(owner, other, "echo")
    task = sent(owner, "go", "asks-for-files")
    follow_up = message(parts=(PDF,), task_id=task.id)
    done = sent(owner, follow_up)
    assert sent(owner, follow_up) == done
    assert len(stored()) == len(before) + 1
    assert stored() == rows()


def test_two_that_send_it_at_once_leave_one_file(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    said = message(parts=(PDF,))
    task = sent(owner, said, "echo")
    # As if the first had been committed just after the second looked.
    found = event_log.find_key_many
    blind = iter([lambda items: [None for _ in items]])

    def look(items: Any) -> Any:
        return next(blind, found)(items)

    monkeypatch.setattr(event_log.FindKey, "do_many", look)
    assert sent(owner, said, "echo") == task
    assert stored() == rows()
    assert len(rows()) == 1


# -------------------------------------------------------------------- limits


@pytest.mark.parametrize(("limit", "words"), [("A2A_FILE_BYTES", "a file may"), ("A2A_TASK_FILE_BYTES", "of a task")])
def test_what_is_too_large_is_named_and_not_stored(owner: Person, settings: Any, limit: str, words: str) -> None:
    setattr(settings, limit, len(BIG) - 1)
    with pytest.raises(InvalidParams) as refused:
        send(owner, message(parts=(Part(text="look"), PDF)), "echo")
    ((field, sentence),) = refused.value.violations
    assert field == "message.parts[1]"
    assert words in sentence
    assert str(len(BIG) - 1) in sentence
    assert not TaskRow.objects.exists()
    assert not stored()


def test_a_message_whose_webhook_is_refused_stores_no_file(owner: Person) -> None:
    task = sent(owner, "go", "asks-for-files")
    webhook = PushConfig(url="https://10.0.0.1/", language="a2a-1.0")
    for said in (message(parts=(PDF,), task_id=task.id), message(parts=(PDF,))):
        with pytest.raises(InvalidParams):
            send(owner, said, "asks-for-files", push_config=webhook)
    assert not stored()


def test_an_operator_sees_links_and_no_reference(owner: Person, capsys: pytest.CaptureFixture[str]) -> None:
    task = sent(owner, message(parts=(PDF,)), "echo")
    call_command("tasks", "show", task.id)
    printed = capsys.readouterr().out
    (newest, *_), _ = build_lines(TaskRow.objects.get(), exchanges=False)
    for told in (printed, newest["payload"]):
        assert "/files/" in told
        assert "signature=" in told
        assert MARK.decode() not in told


def test_all_files_of_a_task_count_together(owner: Person, settings: Any) -> None:
    settings.A2A_TASK_FILE_BYTES = len(BIG) + 1
    task = sent(owner, message(parts=(PDF, Part(data={"sizes": [50_000]}))), "files")
    assert task.status.state == "failed"
    assert "Reference" in text_of_status(task)
    assert {row.size for row in File.objects.filter(holder=task.id)} == {len(BIG)}
    assert stored() == rows()


def test_an_agent_that_fails_leaves_the_files_that_it_made(owner: Person) -> None:
    task = sent(owner, message(parts=(Part(text="fail"), Part(data={"sizes": [50_000]}))), "files")
    assert task.status.state == "failed"
    assert only(task).url
    assert stored() == rows()


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


def test_a_caller_cannot_refer_to_a_file(owner: Person) -> None:
    mine = sent(owner, message(parts=(PDF,)), "echo")
    url = only(mine).url
    assert url
    with pytest.raises(InvalidParams) as refused:
        send(owner, message(parts=(Part(text="this"), Part(url=url))), "echo")
    assert refused.value.violations[0][0] == "message.parts[1]"


# --------------------------------------------------------------- forgetting


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Nobody sweeps then but the test."""
    sweeps.sweeper.stop()
    moment = datetime.now(UTC) + timedelta(days=days)
    monkeypatch.setattr(clock, "now", lambda: moment)


def test_files_go_when_their_task_goes(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    sent(owner, message(parts=(PDF,)), "echo")
    send(owner, message(parts=(Part(text="reply"), PDF), context_id="c"), "quick-files")
    open_task = sent(owner, "go", "asks-for-files")
    sent(owner, message(parts=(PDF, Part(text="again")), task_id=open_task.id))
    kept = {path_of(row.id) for row in File.objects.filter(holder=open_task.id)}
    assert len(stored()) == 4
    later(monkeypatch, 31)
    forget()
    assert File.objects.filter(holder="").count() == 3
    assert len(stored()) == 4
    while delete_unused():
        pass
    assert stored() == rows() == kept
    assert shown(ask(owner, GetTask(id=open_task.id))).history


def test_a_delete_that_broke_off_is_done_again(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    sent(owner, message(parts=(PDF,)), "echo")
    sweeps.sweeper.stop()
    File.objects.update(holder="")
    storages["files"].delete(path_of(File.objects.get().id))  # and then the process died
    delete_unused()
    assert not File.objects.exists()


def test_a_storage_that_cannot_delete_holds_up_nothing_and_is_asked_again(
    owner: Person, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    sent(owner, message(parts=(PDF,)), "echo")
    sent(owner, message(parts=(PDF,)), "echo")
    sweeps.sweeper.stop()
    File.objects.update(holder="")
    bad = path_of(File.objects.order_by("id")[0].id)
    original = type(storages["files"]).delete

    def stubborn(self: Any, name: str) -> None:
        if name == bad:
            raise PermissionError(name)
        original(self, name)

    monkeypatch.setattr(type(storages["files"]), "delete", stubborn)
    sweep()
    assert stored() == rows() == {bad}
    assert "cannot be deleted" in caplog.text
    monkeypatch.undo()
    sweep()
    assert stored() == rows() == set()


def test_a_storage_that_hangs_holds_up_no_task(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "A2A_LEASE_SECONDS", 30)
    sweeps.sweeper.stop()
    gate, ours = Event(), sweeps.Sweeper()
    bridge.put(DoWithFiles(lambda: gate.wait(PATIENCE)))  # somebody's large file, on a slow disk
    bridge.do(creation(owner, "k", agent="nobody"))
    try:
        for _ in range(3):
            bridge.do(wish(agents=("nobody",)))
            TaskRow.objects.update(lease_until=LONG_AGO, attempt=0)
            ours.run_round()
            assert TaskRow.objects.get().state == "submitted"
        deleting = ours.deleting
        assert deleting
        assert deleting.is_alive(), "the storage hangs still"
    finally:
        gate.set()
    deleting.join(PATIENCE)
    ours.delete_files()
    assert ours.deleting is not deleting, "the next time it is asked again"
    ours.stop()


def test_a_transaction_that_is_undone_leaves_bytes_for_a_day(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:

    def refused(items: Any) -> Any:
        raise DataError("no")

    monkeypatch.setattr(event_log.Create, "do_many", refused)
    with pytest.raises(DataError):
        send(owner, message(parts=(PDF,)), "echo")
    monkeypatch.undo()
    (lost,) = stored()
    task = sent(owner, message(parts=(PDF,)), "echo")
    assert Orphans().sweep() == 0
    assert lost in stored()
    later(monkeypatch, 1)
    assert Orphans().sweep() == 0
    later(monkeypatch, 2)
    sweep = Orphans().sweep
    assert [sweep(), sweep(), sweep()] == [1, 0, 0]
    assert stored() == rows()
    assert load(only(task).url or "") == BIG


def test_the_files_of_another_database_are_left_alone(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    storages["files"].save(OWNER, ContentFile(b"the first migration of another database"))
    store_large_parts((PDF,))
    later(monkeypatch, 2)
    assert Orphans().sweep() == 0
    assert len(stored()) == 1
    storages["files"].delete(OWNER)
    storages["files"].save(OWNER, ContentFile(b""))  # Its writer was killed.
    assert Orphans().sweep() == 1
    with storages["files"].open(OWNER) as file:
        assert file.read()
    assert Orphans().sweep() == 0


def test_a_folder_of_which_nothing_is_left_goes_too(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    store_large_parts((PDF,))
    later(monkeypatch, 2)
    assert Orphans().sweep() == 1
    if isinstance(storages["files"], FileSystemStorage):
        assert storages["files"].listdir("")[0] == []


def text_of_status(task: Task) -> str:
    assert task.status.message
    return task.status.message.text


def test_the_log_says_why_a_file_could_not_be_kept(owner: Person, settings: Any, caplog: Any) -> None:
    settings.A2A_FILE_BYTES = 20_000
    with caplog.at_level(logging.ERROR):
        sent(owner, data({"sizes": [20_001]}), "files")
    assert "a file may have at most 20000 bytes; this one has 20001" in caplog.text
