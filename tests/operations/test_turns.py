"""Turns of owners: they are claimed by turns, and within an owner by priority, then age."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from msgspec.structs import replace

from a2a.agents import registry
from a2a.requests import Priority
from a2a.states import TaskState
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.database.tables import TASKS
from tasks_app.event_log import (
    Claim,
    Demand,
    append_many,
    claim,
    claim_postgres,
    claim_sqlite,
    create_many,
    next_after,
    recover,
)
from tasks_app.event_log.queue_postgres import in_turns
from tasks_app.models import Task
from tasks_app.runner.runner import Runner
from tests.conftest import Person
from tests.operations.asking import sent
from tests.operations.rows import addition, creation, status, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
AGENT, OTHER = "tries-twice", "form-coroutine"


def queue(person: Person, name: str, number: int, **more: Any) -> None:
    """Tasks of a person, a second apart."""
    items = [creation(person, f"{name}-{place}", id=f"{name}-{place:04}", **more) for place in range(number)]
    for place, item in enumerate(items):
        assert item.task is not None
        item.task.created_at += timedelta(seconds=place)
    create_many(items)


def claim_tasks(limit: int = 1, **more: Any) -> list[str]:
    """Return the ids of the tasks that a claim gives, without their numbers, sorted."""
    demand = Demand(**({"agents": (AGENT, OTHER), "queues": ("default", "cpu"), "limit": limit} | more))
    return sorted(read.document.id.rpartition("-")[0] for read in claim(Claim(worker="w", demands=(demand,))))


def one_by_one(number: int, **more: Any) -> list[str]:
    """Return the ids of so many tasks that are claimed singly, each after the owner of the last."""
    found, after = [], 0
    for _ in range(number):
        demand = Demand(agents=(AGENT, OTHER), queues=("default",), limit=1, after=after, **more)
        for read in claim(Claim(worker="w", demands=(demand,))):
            found.append(read.document.id)
            after = next_after([read.owner_id], after)
    return found


def test_owners_take_turns_however_many_tasks_one_has(owner: Person, colleague: Person, stranger: Person) -> None:
    queue(owner, "o", 6)
    queue(colleague, "c", 2)
    queue(stranger, "s", 1)
    assert one_by_one(10) == ["o-0000", "c-0000", "s-0000", "o-0001", "c-0001", "o-0002", "o-0003", "o-0004", "o-0005"]


def test_a_claim_of_several_gives_each_owner_as_many(owner: Person, colleague: Person, stranger: Person) -> None:
    queue(owner, "o", 9)
    queue(colleague, "c", 9)
    queue(stranger, "s", 1)
    assert claim_tasks(3) == ["c", "o", "s"]
    assert claim_tasks(6) == ["c"] * 3 + ["o"] * 3
    assert claim_tasks(50) == ["c"] * 5 + ["o"] * 5


def test_within_an_owner_goes_priority_then_age_over_all_agents(owner: Person) -> None:
    queue(owner, "old", 2)
    queue(owner, "new", 2, agent=OTHER)
    Task.objects.filter(id="new-0001").update(priority=5)
    Task.objects.filter(id="old-0001").update(priority=-1)
    assert one_by_one(5) == ["new-0001", "old-0000", "new-0000", "old-0001"]


@pytest.mark.requirement("ACP-21")
def test_an_urgent_task_sent_last_is_claimed_first_among_its_owners(owner: Person, stranger: Person) -> None:
    order = (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.NORMAL, Priority.URGENT)
    ids = [sent(owner, agent=AGENT, priority=priority, return_immediately=True).id for priority in order]
    other = sent(stranger, agent=AGENT, return_immediately=True).id
    turns = [ids[4], other, ids[2], ids[1], ids[3], ids[0]]
    assert one_by_one(7) == (turns if owner.caller.owner_id < stranger.caller.owner_id else [other, ids[4], *turns[2:]])


def test_the_priority_of_a_caller_comes_before_that_of_an_agent(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, priority in ((AGENT, -1000), (OTHER, 1000)):
        own = registry.get(name)
        assert own is not None
        monkeypatch.setitem(registry._agents, name, replace(own, priority=priority))
    asked = [(OTHER, Priority.NORMAL), (AGENT, Priority.HIGH), (OTHER, Priority.HIGH), (OTHER, Priority.LOW)]
    ids = [sent(owner, agent=agent, priority=priority, return_immediately=True).id for agent, priority in asked]
    assert one_by_one(5) == [ids[2], ids[1], ids[0], ids[3]]


def test_the_tasks_of_other_agents_and_queues_are_left(owner: Person, colleague: Person) -> None:
    queue(owner, "o", 3)
    queue(colleague, "c", 3, agent=OTHER)
    Task.objects.filter(id="c-0000").update(queue="cpu")
    assert claim_tasks(9, agents=(OTHER,), queues=("default",)) == ["c", "c"]
    assert claim_tasks(9, queues=("cpu",)) == ["c"]
    assert claim_tasks(9, agents=("nobody",)) == []


def test_an_owner_has_a_share_while_others_wait_and_all_when_none_does(owner: Person, colleague: Person) -> None:
    queue(owner, "o", 9)
    queue(colleague, "c", 2)
    busy = {owner.caller.owner_id: 3}
    assert claim_tasks(4, most=4, busy=busy) == ["c", "c", "o"]
    assert claim_tasks(4, most=4, busy=busy | {owner.caller.owner_id: 4}) == ["o"] * 4, "nobody else waits"


def test_owners_with_their_share_wait_for_owners_without(owner: Person, colleague: Person) -> None:
    queue(owner, "o", 9)
    queue(colleague, "c", 9)
    busy = {owner.caller.owner_id: 4}
    assert claim_tasks(2, most=4, busy=busy) == ["c", "c"]
    assert claim_tasks(2, most=4, busy=busy | {colleague.caller.owner_id: 4}) == ["c", "o"], "each has its share"


def test_newcomers_are_owners_without_a_run_and_get_one_each(
    owner: Person, colleague: Person, stranger: Person
) -> None:
    queue(owner, "o", 3)
    assert claim_tasks(3, newcomers=True, busy={owner.caller.owner_id: 1}) == []
    queue(colleague, "c", 3)
    queue(stranger, "s", 3)
    assert claim_tasks(3, newcomers=True, busy={owner.caller.owner_id: 1}) == ["c", "s"]


def test_a_full_process_has_a_slot_for_an_owner_who_has_none(owner: Person, colleague: Person, settings: Any) -> None:
    settings.A2A_ASYNC_SLOTS = 8
    queue(owner, "o", 20, agent=OTHER)
    runner = Runner()
    while runner._claim()[1]:
        pass
    assert len(runner.running) == 8, "an owner who is alone has all slots"
    queue(colleague, "c", 3, agent=OTHER)
    (run,), _ = runner._claim()
    assert run.read.owner_id == colleague.caller.owner_id
    assert runner._claim()[0] == []
    # A free slot goes to an owner with less than a share.
    runner.running.pop("o-0000")
    runner.running.pop("o-0001")
    (run,), _ = runner._claim()
    assert run.read.owner_id == colleague.caller.owner_id


def test_a_task_that_is_not_due_holds_up_no_other(owner: Person, colleague: Person) -> None:
    queue(owner, "o", 3)
    queue(colleague, "c", 1)
    Task.objects.filter(id__in=["o-0000", "o-0001"]).update(not_before=timezone.now() + timedelta(hours=1))
    assert claim_tasks(9) == ["c", "o"]
    assert claim_tasks(9) == []
    Task.objects.filter(id="o-0000").update(not_before=timezone.now() - timedelta(seconds=1))
    assert claim_tasks() == ["o"]


def test_tasks_with_webhooks_have_their_turn_too(owner: Person, colleague: Person) -> None:
    queue(owner, "o", 4)
    queue(colleague, "c", 4)
    Task.objects.filter(owner_id=colleague.caller.owner_id).update(pushes=True)
    assert claim_tasks(4) == ["c", "c", "o", "o"]


def test_a_claim_in_doubt_fails_and_what_it_got_is_found_by_its_worker(
    owner: Person, colleague: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: Any) -> None:
        raise OperationalError("the connection is closed")

    queue(owner, "o", 2)
    queue(colleague, "c", 2)
    Task.objects.filter(owner_id=colleague.caller.owner_id).update(pushes=True)
    with monkeypatch.context() as patch:
        for module in (claim_postgres, claim_sqlite):
            patch.setattr(module, "write_deliveries", cut)
        with pytest.raises(OperationalError):
            claim_tasks(4)
    at_work = set(Task.objects.filter(state="working").values_list("id", flat=True))
    assert {read.document.id for read in recover("w", set())} == at_work
    claim_tasks(4)
    assert Task.objects.filter(state="working").count() == 4


def test_claims_at_the_same_moment_share_the_tasks_and_none_is_claimed_twice(owner: Person, colleague: Person) -> None:
    queue(owner, "o", 30)
    queue(colleague, "c", 30)
    wish = Claim(worker="w", demands=(Demand(agents=(AGENT,), queues=("default",), limit=10),))
    found = [read.document.id for reads in together(4, lambda _: claim(wish)) for read in reads]
    assert len(found) == len(set(found)) > 10
    assert set(Task.objects.filter(state="working").values_list("id", "fence")) == {(task_id, 1) for task_id in found}


def test_an_agent_has_as_many_runs_as_its_concurrency_over_all_workers(owner: Person, colleague: Person) -> None:
    queue(owner, "o", 5)
    queue(colleague, "c", 5)
    queue(owner, "free", 2, agent=OTHER)
    limits: dict[str, Any] = {"concurrency": {AGENT: 3}}
    assert claim_tasks(2, **limits) == ["c", "o"]
    assert claim_tasks(9, **limits) == ["free", "free", "o"], "one more of the agent, and any number of the other"
    assert claim_tasks(9, **limits) == []
    append_many([addition("o-0000", status(TaskState.COMPLETED), fence=1)])
    assert claim_tasks(9, **limits) == ["o"], "a run has ended"


def test_claims_at_the_same_moment_keep_within_the_concurrency(owner: Person) -> None:
    queue(owner, "o", 40)
    demand = Demand(agents=(AGENT,), queues=("default",), limit=4, concurrency={AGENT: 5})
    together(8, lambda _: claim(Claim(worker="w", demands=(demand,))))
    working = Task.objects.filter(state="working").count()
    # A claim that meets another one may get no task.
    assert working == 5 if not on_postgres() else 4 <= working <= 5


def rows_read(plan: dict[str, Any]) -> float:
    """Return the rows of tasks that a plan has read, in all its nodes."""
    mine = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    below = sum(rows_read(child) for child in plan.get("Plans", ()))
    return float(below + (mine if plan.get("Relation Name") == Task._meta.db_table else 0))


def test_claims_of_any_size_are_one_statement(monkeypatch: pytest.MonkeyPatch, owner: Person) -> None:
    """The database plans a statement for each text: a number of free slots is none of them."""
    if not on_postgres():
        pytest.skip("a claim on SQLite is several statements")
    texts: set[str] = set()
    cursor_of = prepared

    @contextmanager
    def watched() -> Iterator[Any]:
        with cursor_of() as cursor:
            execute = cursor.execute

            def noted(text: str, values: Any = None) -> Any:
                texts.add(text)
                return execute(text, values)

            yield SimpleNamespace(execute=noted, fetchall=cursor.fetchall)

    queue(owner, "o", 1)
    assert claim_tasks(limit=2) == ["o"]
    monkeypatch.setattr(import_module("tasks_app.event_log.claim"), "prepared", watched)
    for limit in (2, 7, 900):
        assert claim_tasks(limit=limit) == []
    assert len(texts) == 1


def test_a_claim_reads_what_it_takes_however_long_the_queue_is(owner: Person, colleague: Person) -> None:
    if not on_postgres():
        pytest.skip("the numbers are read from a plan of PostgreSQL")
    queue(owner, "o", 1)
    queue(colleague, "c", 5)
    many = creation(owner, "many").task
    assert many is not None
    tasks = [replace(many, id=f"many-{place}") for place in range(5_000)]
    demands = [
        Demand(agents=(AGENT, "nobody"), queues=("default",), limit=4),
        Demand(agents=("nobody",), queues=("default",), limit=4),
        Demand(agents=(AGENT,), queues=("default",), limit=4, most=4, busy={owner.caller.owner_id: 4}),
    ]
    try:
        with connection.cursor() as cursor:
            TASKS.write(cursor, tasks)
            cursor.execute("analyze")
            for demand in demands:
                choice = in_turns(demand, 0)
                head = "explain (analyze, format json) with recursive "
                statement = f"{head}{choice.sql} select * from {choice.name}"  # noqa: S608  # our own
                cursor.execute(statement, choice.values)
                (((found,),),) = cursor.fetchall()
                assert rows_read(found["Plan"]) < 50
    finally:
        Task.objects.filter(id__startswith="many-").delete()
