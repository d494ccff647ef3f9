"""Batches whose commit ends in doubt: the connection is lost just before the commit, or just after it."""

from threading import get_ident
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from a2a.errors import Error
from a2a.states import TaskState
from a2a.types import Task
from tasks_app.batches.rows import Begin
from tasks_app.database.errors import Busy
from tasks_app.models import Batch, BatchItem
from tasks_app.models import Task as Row
from tests.conftest import Person
from tests.operations.batching import ended, execute, results

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def lose(monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    """Lose the connection at the first commit of a batch."""
    save, commit = Batch.save, BaseDatabaseWrapper._commit  # type: ignore[attr-defined]
    threads = list[int]()

    def save_first(batch: Batch, **options: Any) -> None:
        save(batch, **options)
        if not threads:
            threads.append(get_ident())

    def lose_first(connection: Any) -> None:
        is_lost = threads == [get_ident()]
        if after or not is_lost:
            commit(connection)
        if is_lost:
            threads.clear()
            threads.append(0)
            raise OperationalError("the connection was lost")

    monkeypatch.setattr(Batch, "save", save_first)
    monkeypatch.setattr(BaseDatabaseWrapper, "_commit", lose_first)


def execute_until_answered(who: Person, *items: str) -> Task:
    """Begin a batch, and once more if the answer is an error, as a client does."""
    try:
        return execute(who, *items)
    except (Error, OperationalError):
        return execute(who, *items)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_batch_whose_connection_is_lost_at_its_commit_is_begun_once(
    owner: Person, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    settings.A2A_OWNER_BATCHES = 1
    lose(monkeypatch, after=after)
    batch = execute_until_answered(owner, "a", "b")
    task = ended(owner, batch.id)
    assert task.status.state is TaskState.COMPLETED
    assert [result["output"] for result in results(task)] == [["a"], ["b"]]
    assert (Batch.objects.count(), BatchItem.objects.count()) == (1, 2)
    assert Row.objects.filter(agent="form-coroutine").count() == 2


def test_a_batch_that_is_stored_behind_the_time_of_its_call_is_the_answer(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Begin.do_many

    def be_late(items: Any) -> Any:
        return [Busy(1) for _ in begin(items)]

    monkeypatch.setattr(Begin, "do_many", be_late)
    batch = execute(owner, "a")
    assert Batch.objects.get().pk == batch.id
