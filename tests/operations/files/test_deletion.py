"""Deletion of files: with their task, again where it broke off, never another's."""

from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, storages
from django.db import DataError

from a2a.requests import GetTask
from a2a.types import Part
from tasks_app import clock, event_log
from tasks_app.database.bridge import FILES_AT_ONCE, bridge
from tasks_app.files import deleting, path_of, sweep
from tasks_app.files.deleting import OWNER, Orphans, Unused
from tasks_app.files.storage import DoWithFiles, load
from tasks_app.files.storing import store_large_parts
from tasks_app.models import File
from tasks_app.models import Task as TaskRow
from tasks_app.upkeep import sweeps
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask, message, send, sent, shown
from tests.operations.files.stored import BIG, PDF, only, rows, stored_paths
from tests.operations.rows import LONG_AGO, creation, forget, wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.fixture(autouse=True)
def at_the_first_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin each test with the first unused file."""
    monkeypatch.setattr(deleting, "unused", Unused())


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Move the clock on. From then on only the test sweeps."""
    sweeps.sweeper.stop()
    moment = datetime.now(UTC) + timedelta(days=days)
    monkeypatch.setattr(clock, "now", lambda: moment)


def test_files_go_when_their_task_goes(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    sent(owner, message(parts=(PDF,)), "echo")
    send(owner, message(parts=(Part(text="reply"), PDF), context_id="c"), "quick-files")
    open_task = sent(owner, "go", "asks-for-files")
    sent(owner, message(parts=(PDF, Part(text="again")), task_id=open_task.id))
    kept = {path_of(row.id) for row in File.objects.filter(holder=open_task.id)}
    assert len(stored_paths()) == 4
    later(monkeypatch, 31)
    forget()
    assert File.objects.filter(holder="").count() == 3
    assert len(stored_paths()) == 4
    sweep()
    assert stored_paths() == rows() == kept
    assert shown(ask(owner, GetTask(id=open_task.id))).history


def test_a_delete_that_broke_off_is_done_again(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    sent(owner, message(parts=(PDF,)), "echo")
    sweeps.sweeper.stop()
    File.objects.update(holder="")
    storages["files"].delete(path_of(File.objects.get().id))  # and then the process died
    sweep()
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
    assert stored_paths() == rows() == {bad}
    assert "cannot be deleted" in caplog.text
    monkeypatch.undo()
    sweep()
    assert stored_paths() == rows() == set()


def unused_files(owner: Person, monkeypatch: pytest.MonkeyPatch, *, stubborn: int) -> list[str]:
    """Make seven unused files, and batches of two. Return the names, in order, that the storage was asked to delete.

    It refuses to delete the first `stubborn` files.
    """
    sweeps.sweeper.stop()
    monkeypatch.setattr(deleting, "BATCH", 2)
    for _ in range(7):
        sent(owner, message(parts=(PDF,)), "echo")
    File.objects.update(holder="")
    refused, asked = sorted(stored_paths())[:stubborn], []
    original = type(storages["files"]).delete

    def delete(self: Any, name: str) -> None:
        asked.append(name)
        if name in refused:
            raise PermissionError(name)
        original(self, name)

    monkeypatch.setattr(type(storages["files"]), "delete", delete)
    return asked


def test_one_sweep_deletes_all_unused_files(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    unused_files(owner, monkeypatch, stubborn=1)
    (first, *_) = sorted(stored_paths())
    sweep()
    assert rows() == stored_paths() == {first}


def test_files_behind_a_batch_that_cannot_be_deleted_go_with_the_next_sweep(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    unused_files(owner, monkeypatch, stubborn=2)
    (first, second, *_) = sorted(stored_paths())
    sweep()
    sweep()
    assert rows() == stored_paths() == {first, second}


def test_a_storage_that_is_away_is_asked_for_one_batch_in_a_sweep(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, paths = unused_files(owner, monkeypatch, stubborn=7), sorted(stored_paths())
    for _ in range(6):
        sweep()
    assert asked == [*paths, *paths[:2]]  # The fifth sweep finds the end.


def test_a_process_that_stops_leaves_unused_files_to_others(owner: Person) -> None:
    sweeps.sweeper.stop()
    sent(owner, message(parts=(PDF,)), "echo")
    File.objects.update(holder="")
    sweep(lambda: True)
    assert len(stored_paths()) == 1


def test_a_storage_that_hangs_holds_up_no_task(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "A2A_LEASE_SECONDS", 30)
    sweeps.sweeper.stop()
    gate, ours = Event(), sweeps.Sweeper()
    for _ in range(FILES_AT_ONCE):
        bridge.put(DoWithFiles(lambda: gate.wait(PATIENCE)))  # a large file, on a slow disk
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
    (lost,) = stored_paths()
    task = sent(owner, message(parts=(PDF,)), "echo")
    assert Orphans().sweep() == 0
    assert lost in stored_paths()
    later(monkeypatch, 1)
    assert Orphans().sweep() == 0
    later(monkeypatch, 2)
    sweep = Orphans().sweep
    assert [sweep(), sweep(), sweep()] == [1, 0, 0]
    assert stored_paths() == rows()
    assert load(only(task).url or "") == BIG


def test_the_files_of_another_database_are_left_alone(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    storages["files"].save(OWNER, ContentFile(b"the first migration of another database"))
    store_large_parts((PDF,))
    later(monkeypatch, 2)
    assert Orphans().sweep() == 0
    assert len(stored_paths()) == 1
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


def test_a_folder_goes_after_its_last_file_in_a_process_that_has_examined_it(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "orphans", ours := Orphans())
    for _ in range(2):
        sent(owner, message(parts=(PDF,)), "echo")
    later(monkeypatch, 2)
    assert (ours.sweep(), ours.examined) == (0, {path.partition("/")[0] for path in stored_paths()})
    File.objects.filter(pk=File.objects.order_by("pk")[0].pk).update(holder="")
    sweep()
    assert ours.examined, "its other file is in the folder"
    File.objects.update(holder="")
    sweep()
    ours.due = 0
    sweep()
    assert stored_paths() == rows() == set()
    if isinstance(storages["files"], FileSystemStorage):
        assert storages["files"].listdir("")[0] == []
