"""The doctor finds files that rows name and the storage lacks, a storage that is away, and a disk that is full."""

import shutil
from typing import NamedTuple

import pytest
from django.db import connection

from a2a.types import Part
from tasks_app.database.tables import FILES
from tasks_app.doctor import Examination, Finding, examine, files
from tasks_app.files.storage import path_of, storage
from tasks_app.files.storing import store_large_parts
from tasks_app.models import File

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


def stored(count: int = 1) -> list[str]:
    """Return the ids of files of a task."""
    rows = store_large_parts(tuple(Part(raw=bytes(20_000)) for _ in range(count)), "t-1").rows
    with connection.cursor() as cursor:
        FILES.write(cursor, rows)
    return [row.id for row in rows]


def findings(limit: int | None = None) -> list[Finding]:
    return [found for found in examine(limit, Examination()) if found.kind != "log"]


def test_a_file_that_is_not_in_the_storage_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PAGE", 2)
    ids = sorted(stored(5))
    assert findings() == []
    storage().delete(path_of(ids[0]))
    (found,) = findings()
    assert (found.kind, found.subject) == ("file", ids[0])
    assert "t-1" in found.problem
    assert findings(limit=4) == [], "only the newest are looked for"


def test_a_file_of_a_deleted_task_is_no_finding() -> None:
    (id,) = stored()
    storage().delete(path_of(id))
    File.objects.update(holder="")
    assert findings() == []


def test_a_file_whose_task_is_deleted_meanwhile_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    stored()

    def delete(_: str) -> bool:
        File.objects.update(holder="")
        return False

    monkeypatch.setattr(storage(), "exists", delete)
    assert findings() == []


def test_very_many_missing_files_are_named_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST", 3)
    for id in stored(5):
        storage().delete(path_of(id))
    assert len(findings()) == 3


def test_a_storage_that_does_not_answer_is_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    stored(3)

    def fail(_: str) -> bool:
        raise OSError("the bucket is away")

    monkeypatch.setattr(storage(), "exists", fail)
    (found,) = findings()
    assert (found.kind, found.subject) == ("file", "files")
    assert "the bucket is away" in found.problem


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(("free", "kinds"), [(0, ["disk"]), (99_999_999, ["disk"]), (100_000_000, [])])
def test_a_disk_that_is_almost_full_is_found(monkeypatch: pytest.MonkeyPatch, free: int, kinds: list[str]) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(10**12, 10**12 - free, free))
    assert [found.kind for found in findings()] == kinds
