"""Keyset paging: both forms of the condition, rows with equal times, and tokens of other lists."""

from datetime import timedelta

import pytest
from django.core import signing
from django.db import connection
from msgspec.structs import replace

from a2a.errors import InvalidParams
from tasks_app.database.keyset import Keyset, Position, fetch_page, older_than
from tasks_app.event_log import create_many
from tasks_app.models import Task
from tasks_app.operations.webhooks import OLDEST_FIRST
from tests.conftest import Person
from tests.operations.rows import creation

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
LIST = Keyset(time="created_at", newest_first=False, salt="test", mismatch="is of another list")


@pytest.fixture
def tasks(owner: Person) -> list[Task]:
    """Return six tasks, each with the time of its neighbour."""
    create_many([creation(owner, f"k{place}") for place in range(6)])
    tasks = list(Task.objects.order_by("id"))
    start = tasks[0].created_at
    for place, task in enumerate(tasks):
        task.created_at = start + timedelta(seconds=place // 2)
    Task.objects.bulk_update(tasks, ["created_at"])
    return tasks


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_from_every_position_are_the_rest_of_the_list(tasks: list[Task], newest_first: bool) -> None:
    keyset = replace(LIST, newest_first=newest_first)
    sign = -1 if newest_first else 1
    ordered = sorted(tasks, key=lambda task: (sign * task.created_at.timestamp(), task.id))
    for place, task in enumerate(ordered, 1):
        position = Position(task.created_at, task.id)
        rest = {other.id for other in ordered[place:]}
        assert set(Task.objects.filter(keyset.after(position)).values_list("id", flat=True)) == rest
        condition, values = keyset.sql_after(position, "t")
        with connection.cursor() as cursor:
            cursor.execute(f"select id from tasks_app_task t where {condition}", values)  # noqa: S608  # our own names
            assert {id for (id,) in cursor.fetchall()} == rest


def test_a_token_leads_back_to_its_position_in_its_own_list_alone(tasks: list[Task]) -> None:
    position = Position(tasks[0].created_at, tasks[0].id)
    token = LIST.encode(position, "mine")
    assert LIST.decode(token, "mine") == position
    for keyset, binding, sentence in (
        (LIST, "another's", "is of another list"),
        (replace(LIST, salt="another kind"), "mine", "is not a token of this server; begin again without one"),
    ):
        with pytest.raises(InvalidParams) as refusal:
            keyset.decode(token, binding)
        assert refusal.value.violations == (("pageToken", sentence),)


def test_a_page_says_whether_there_is_more(tasks: list[Task]) -> None:
    rows = Task.objects.order_by("-id")
    ids = [task.id for task in tasks][::-1]
    page, more = fetch_page(rows, 4)
    assert ([task.id for task in page], more) == (ids[:4], True)
    page, more = fetch_page(older_than(rows, page[-1].id), 2)
    assert ([task.id for task in page], more) == (ids[4:], False)


def test_a_token_that_lists_of_webhooks_had_before_is_of_no_list() -> None:
    token = signing.TimestampSigner(salt="webhooks").sign_object(["task", "2026-01-01T00:00:00+00:00", "id"])
    with pytest.raises(InvalidParams) as refusal:
        OLDEST_FIRST.decode(token, "task")
    assert refusal.value.violations == (("pageToken", "is not a token of this server; begin again without one"),)
