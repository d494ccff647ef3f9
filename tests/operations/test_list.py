"""List: the caller's tasks, page by page, newest status first."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from a2a.answers import TaskPage
from a2a.errors import InvalidParams, TaskNotFound
from a2a.requests import GetTask, ListTasks
from a2a.states import TaskState
from tasks_app.models import Task
from tasks_app.operations.list_rows import SMALL
from tasks_app.operations.pages import Draft, begin_page
from tests.conftest import Person
from tests.operations.asking import ask, message, page, sent

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def create_tasks(owner: Person, number: int, agent: str = "echo", **more: Any) -> list[str]:
    """Return the ids, newest first."""
    return [sent(owner, message(**more), agent, return_immediately=True).id for _ in range(number)][::-1]


def all_pages(who: Person, size: int, **filters: Any) -> list[str]:
    found: list[str] = []
    token: str | None = None
    while True:
        result = ask(who, ListTasks(page_size=size, page_token=token, **filters))
        assert len(result.tasks) <= size
        found += page(result)
        token = result.next_page_token
        if not token:
            return found


def test_the_newest_status_comes_first(owner: Person) -> None:
    ids = create_tasks(owner, 3)
    result = ask(owner, ListTasks())
    newest = sorted(ids, key=lambda id: (-Task.objects.get(pk=id).status_at.timestamp(), id))
    assert page(result) == newest
    assert (result.total_size, result.next_page_token) == (3, "")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_pages_together_are_the_whole_list_once(owner: Person, size: int) -> None:
    create_tasks(owner, 7)
    times = dict(Task.objects.values_list("id", "status_at"))
    # Equal times are put in order by id.
    Task.objects.update(status_at=Task.objects.earliest("status_at").status_at)
    assert all_pages(owner, size) == sorted(Task.objects.values_list("id", flat=True))
    for id, time in times.items():  # The replay after the test compares the times.
        Task.objects.filter(pk=id).update(status_at=time)


def test_each_caller_sees_their_own_tasks_only(owner: Person, colleague: Person, stranger: Person) -> None:
    mine, theirs = create_tasks(owner, 2), create_tasks(stranger, 1)
    assert (sorted(page(ask(owner, ListTasks()))), page(ask(stranger, ListTasks()))) == (sorted(mine), theirs)
    result = ask(colleague, ListTasks())
    assert (page(result), result.total_size) == ([], 0)


@pytest.mark.requirement("SPARC-05")
def test_filters_narrow_the_list_together(owner: Person) -> None:
    create_tasks(owner, 1)
    (done,) = create_tasks(owner, 1, context_id="here")
    (waiting,) = create_tasks(owner, 1, "form-coroutine", context_id="here")
    assert sorted(page(ask(owner, ListTasks(context_id="here")))) == sorted([done, waiting])
    assert page(ask(owner, ListTasks(context_id="here", state=TaskState.SUBMITTED))) == [waiting]
    assert page(ask(owner, ListTasks(context_id="there"))) == []
    assert page(ask(owner, ListTasks(state=TaskState.FAILED))) == []


def test_since_includes_its_own_moment(owner: Person) -> None:
    create_tasks(owner, 1)
    at = Task.objects.get().status_at
    assert len(page(ask(owner, ListTasks(since=at)))) == 1
    assert page(ask(owner, ListTasks(since=at + timedelta(milliseconds=1)))) == []


def test_a_list_at_the_address_of_an_agent_has_its_tasks_also_if_it_is_gone(owner: Person) -> None:
    (task_id,) = create_tasks(owner, 1)
    Task.objects.update(agent="gone")
    assert page(ask(owner, ListTasks(), agent="gone")) == [task_id]
    assert page(ask(owner, ListTasks(), agent="nobody")) == []


def test_artifacts_are_shown_only_when_asked_for(owner: Person) -> None:
    create_tasks(owner, 1)
    (plain,), (full,) = ask(owner, ListTasks()).tasks, ask(owner, ListTasks(include_artifacts=True)).tasks
    assert plain.artifacts is None
    assert b'"artifacts"' not in plain.json()
    assert b'"artifacts"' in full.json()


def test_the_list_shows_tasks_as_of_their_last_event(owner: Person) -> None:
    (id,) = create_tasks(owner, 1, "form-coroutine")
    sent(owner, message("another", task_id=id), return_immediately=True)
    (shown,) = ask(owner, ListTasks()).tasks
    assert '"another"' in shown.history


def test_an_address_lists_the_tasks_of_its_agent(owner: Person) -> None:
    (echoed,) = create_tasks(owner, 1)
    create_tasks(owner, 1, "bench")
    assert page(ask(owner, ListTasks(), agent="echo")) == [echoed]


def test_a_foreign_tenant_has_no_list(owner: Person) -> None:
    with pytest.raises(TaskNotFound):
        ask(owner, ListTasks(tenant="abroad"))


def test_a_token_belongs_to_its_caller_and_its_filters(owner: Person, colleague: Person, stranger: Person) -> None:
    create_tasks(owner, 3, context_id="here")
    token = ask(owner, ListTasks(page_size=1, context_id="here")).next_page_token
    assert len(page(ask(owner, ListTasks(page_size=5, context_id="here", page_token=token)))) == 2
    others = [
        (colleague, {"context_id": "here"}),
        (stranger, {"context_id": "here"}),
        (owner, {}),
        (owner, {"context_id": "there"}),
    ]
    for who, filters in others:
        with pytest.raises(InvalidParams) as told:
            ask(who, ListTasks(page_token=token, **filters))
        assert told.value.violations[0][0] == "pageToken"


def test_a_token_that_was_tampered_with_is_refused(owner: Person) -> None:
    create_tasks(owner, 2)
    token = ask(owner, ListTasks(page_size=1)).next_page_token
    for wrong in ("x", token[:-1], token + "x", token.swapcase(), "a:b:c", "é"):
        with pytest.raises(InvalidParams) as told:
            ask(owner, ListTasks(page_token=wrong))
        assert told.value.violations[0][0] == "pageToken"


def test_totals_are_bounded_but_never_below_what_is_there(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.operations.list_totals.EXACT", 2)
    create_tasks(owner, 4)
    assert ask(owner, ListTasks(page_size=1)).total_size >= 3


def test_a_page_ends_at_two_million_bytes(owner: Person) -> None:
    ids = [sent(owner, message(char * 900_000), "echo", return_immediately=True).id for char in "abc"][::-1]
    first = ask(owner, ListTasks())
    assert (page(first), bool(first.next_page_token)) == (ids[:2], True)
    second = ask(owner, ListTasks(page_token=first.next_page_token))
    assert (page(second), second.next_page_token, second.total_size) == (ids[2:], "", 3)
    whole = ask(owner, ListTasks(include_artifacts=True))
    assert page(whole) == ids[:1]
    assert bytes(whole.tasks[0].json()) == bytes(ask(owner, GetTask(id=ids[0])).task.json())


def test_large_and_small_tasks_of_a_page_are_whole(owner: Person) -> None:
    ids = [sent(owner, message("x" * size), "echo", return_immediately=True).id for size in (10, 30_000, 20, 50_000)]
    listed = ask(owner, ListTasks(include_artifacts=True))
    assert page(listed) == ids[::-1]
    alone = [ask(owner, GetTask(id=id)).task for id in ids[::-1]]
    assert list(listed.tasks) == [replace(task, agent="") for task in alone], "lists do not look up agents"


def test_large_tasks_are_not_read_beside_the_lists_of_others(owner: Person) -> None:
    sent(owner, message("hello"), "echo", return_immediately=True)
    assert isinstance(begin_page(ListTasks(), owner.caller, None), TaskPage)
    large = sent(owner, message("x" * SMALL), "echo", return_immediately=True)
    draft = begin_page(ListTasks(), owner.caller, None)
    assert isinstance(draft, Draft)
    assert draft.rows[0].history is None
    assert draft.finish() == ask(owner, ListTasks())
    Task.objects.filter(pk=large.id).delete()
    assert page(draft.finish()) == page(ask(owner, ListTasks())), "a task that was deleted since is left out"


def test_a_page_ends_at_bytes_whatever_the_characters(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [sent(owner, message("\N{SNOWMAN}" * 2_000), "echo", return_immediately=True).id for _ in range(3)][::-1]
    monkeypatch.setattr("tasks_app.operations.list_rows.PAGE_BYTES", 14_000)
    assert page(ask(owner, ListTasks())) == ids[:2]


def test_a_history_that_is_not_shown_does_not_end_a_page(owner: Person) -> None:
    ids = [sent(owner, message("x" * 900_000), "echo", return_immediately=True).id for _ in range(3)][::-1]
    with CaptureQueriesContext(connection) as queries:
        listed = ask(owner, ListTasks(history_length=0))
    assert (page(listed), listed.next_page_token) == (ids, "")
    assert not any('"history"' in query["sql"] for query in queries)


def test_a_task_whose_size_nobody_has_counted_is_not_read_beside_others(owner: Person) -> None:
    """A version without the column stores tasks with the size 0, however large they are."""
    ids = create_tasks(owner, 3)
    size = Task.objects.get(pk=ids[1]).size
    Task.objects.filter(pk=ids[1]).update(size=0)
    draft = begin_page(ListTasks(page_size=3, include_artifacts=True), owner.caller, None)
    assert isinstance(draft, Draft)
    assert [row.is_large for row in draft.rows] == [False, True, False]
    assert page(ask(owner, ListTasks(page_size=3, include_artifacts=True))) == ids
    Task.objects.filter(pk=ids[1]).update(size=size)
