"""Batches: what is refused, what their items become, the order of results, partial failure, cancellation, a crash."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from msgspec.structs import replace

from a2a.agents import agent
from a2a.answers import Answer
from a2a.batches import BatchInput
from a2a.dialects.json.json_1_0 import task_of
from a2a.errors import (
    InvalidParams,
    MissingScope,
    PermissionDenied,
    RateLimited,
    TaskNotFound,
    UnknownAgent,
    UnsupportedOperation,
)
from a2a.failures import Failure
from a2a.requests import CancelTask, GetTask, SendMessage, SubscribeToTask
from a2a.run import Run
from a2a.states import TaskState
from tasks_app.batches.rows import BATCH_AGENT, take_turns
from tasks_app.callers.access import caller_for
from tasks_app.callers.rules import Kind, Rule, encode_rules
from tasks_app.limits.rate_limits import cost_of_send, limits
from tasks_app.limits.rates import Rate
from tasks_app.models import Batch, BatchItem, Principal, Task
from tasks_app.operations import Follow, batch_items, batch_keeper, batch_steps
from tasks_app.operations.batch_steps import advance
from tasks_app.operators.permissions import set_permission
from tests.conftest import PATIENCE, SLACK, Person, person, until
from tests.operations.asking import ask, message, sent, shown
from tests.operations.batching import drive, ended, execute, keep_until, results
from tests.operations.money import OPS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@agent(name="half")
async def half(run: Run) -> str:
    """Fails for one word."""
    if run.text == "boom":
        raise Failure("It went wrong.")
    return run.text


@pytest.mark.requirement("SPARC-08")
def test_each_item_becomes_a_task_and_the_results_are_in_order(owner: Person) -> None:
    batch = execute(owner, *(f"item {place}" for place in range(12)), max_concurrent=3, batch_size=5)
    assert batch.status.state is TaskState.WORKING
    task = ended(owner, batch.id)
    assert task.status.state is TaskState.COMPLETED
    assert [result["output"] for result in results(task)] == [[f"item {place}"] for place in range(12)]
    assert [result["index"] for result in results(task)] == list(range(12))
    ids = [result["taskId"] for result in results(task)]
    assert len(set(ids)) == 12
    assert Task.objects.filter(agent="form-coroutine").count() == 12
    assert task.status.message is not None
    assert task.status.message.metadata == {
        "operation": "form-coroutine",
        "progress": {"total": 12, "ended": 12, "failed": 0},
    }
    row = Batch.objects.get()
    assert (row.due_at, row.cursor) == (None, 12)


def test_an_item_may_be_a_task_of_the_caller(owner: Person, stranger: Person) -> None:
    given = sent(owner, "first words", agent="form-coroutine")
    other = sent(stranger, "of another", agent="form-coroutine")
    items = [BatchInput(task_id=id) for id in (given.id, other.id, "unknown")]
    task = ended(owner, execute(owner, *items).id)
    first, foreign, unknown = results(task)
    assert (first["task"], first["output"]) == (given.id, ["first words"])
    made = shown(ask(owner, GetTask(id=first["taskId"])))
    assert made.context_id == given.context_id
    assert made.history[0].reference_task_ids == (given.id,)
    for result, id in ((foreign, other.id), (unknown, "unknown")):
        assert result == {
            "index": result["index"],
            "task": id,
            "state": "failed",
            "error": {"reason": "TASK_NOT_FOUND", "message": "Task not found"},
        }
    assert task.status.state is TaskState.COMPLETED


@pytest.mark.parametrize("agents", [None, frozenset({"form-coroutine"})])
def test_an_item_at_the_address_of_an_agent_is_no_task_of_another(owner: Person, agents: frozenset[str] | None) -> None:
    """The credential of the caller is valid for the whole server, or for this agent alone."""
    names = ("form-coroutine", "half")
    given = [sent(owner, f"words for {name}", agent=name).id for name in names]
    given += [ended(owner, execute(owner, f"batch for {name}", operation=name).id).id for name in names]
    items = [BatchInput(task_id=id) for id in given]
    limited = owner._replace(caller=replace(owner.caller, agents=agents))
    task = ended(owner, execute(limited, *items, address="form-coroutine").id)
    assert [result["state"] for result in results(task)] == ["completed", "failed"] * 2
    for result in results(task)[1::2]:
        assert result["error"]["reason"] == "TASK_NOT_FOUND"
    assert not Task.objects.filter(agent="form-coroutine", history__contains="for half").exists()
    task = ended(owner, execute(owner, *items).id)
    assert [result["state"] for result in results(task)] == ["completed"] * 4


def test_a_bad_item_fails_alone_and_all_bad_items_fail_the_batch(owner: Person) -> None:
    task = ended(owner, execute(owner, "good", "boom", operation="half").id)
    assert [result["state"] for result in results(task)] == ["completed", "failed"]
    assert results(task)[1]["error"]["message"]
    assert task.status.state is TaskState.COMPLETED
    task = ended(owner, execute(owner, "boom", "boom", operation="half").id)
    assert task.status.state is TaskState.FAILED


def test_no_more_items_are_at_work_than_the_call_says(owner: Person) -> None:
    batch = execute(owner, *"abcde", operation="gate", max_concurrent=2, batch_size=5)
    Batch.objects.update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())
    for _ in range(3):
        async_to_sync(advance)(turn)
        assert Task.objects.filter(agent="gate").count() == 2
    ask(owner, CancelTask(id=batch.id))
    assert async_to_sync(advance)(turn) is None
    assert Counter(BatchItem.objects.values_list("state", flat=True)) == {"canceled": 5}
    assert set(Task.objects.filter(agent="gate").values_list("state", flat=True)) == {"canceled"}
    assert Batch.objects.get().due_at is None


def test_a_batch_without_news_keeps_no_other_batch_out(
    owner: Person, stranger: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Execute a batch whose item waits for an answer, where there is room for one batch."""
    monkeypatch.setattr(batch_keeper, "AT_ONCE", 1)
    waits = execute(owner, "hello", operation="asks").id
    other = execute(stranger, "hello").id
    keeper, turns = batch_keeper.Keeper(), list[str]()

    async def keep() -> None:
        async with asyncio.timeout(PATIENCE):
            while turns.count(waits) < 2:
                await keeper.begin_turns()
                turns.extend(turn.id for turn in keeper.turns.values())
                await asyncio.gather(*keeper.turns)

    asyncio.run(keep())
    assert turns[:2] == [waits, other]
    assert Batch.objects.get(pk=waits).due_at is not None


@agent(name="takes-a-moment")
async def takes_a_moment(run: Run) -> str:
    """Answers after a moment."""
    await asyncio.sleep(0.05)
    return run.text


def test_a_batch_with_steady_news_keeps_no_other_batch_out(
    owner: Person, stranger: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Execute a long batch whose items end one after the other, where there is room for one batch."""
    monkeypatch.setattr(batch_keeper, "AT_ONCE", 1)
    long = execute(owner, *["hello"] * 100, operation="takes-a-moment", max_concurrent=1).id
    other = execute(stranger, "hello").id
    keep_until(lambda: Batch.objects.get(pk=other).due_at is None, "the other batch is over")
    assert BatchItem.objects.filter(batch_id=long, state="").exists()


def test_a_batch_of_a_limited_owner_that_gave_its_place_away_ends_soon_when_it_is_canceled(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Execute a batch with an item at work, whose next must wait for minutes, where there is room for one batch."""
    monkeypatch.setattr(batch_keeper, "AT_ONCE", 1)
    monkeypatch.setitem(limits.rules, ("caller", owner.caller.owner_id), Rate(1, cost_of_send()))
    batch, keeper = execute(owner, "one", "two", operation="waits").id, batch_keeper.Keeper()

    async def keep() -> None:
        await keeper.begin_turns()
        await asyncio.gather(*keeper.turns)

    asyncio.run(keep())
    item = Task.objects.exclude(pk=batch).get()
    ask(owner, CancelTask(id=batch))

    def is_canceled() -> bool:
        asyncio.run(keep())
        return Task.objects.get(pk=item.pk).state == TaskState.CANCELED

    until(is_canceled, "the item is canceled", SLACK)


def die_before_the_tasks_are_noted(monkeypatch: pytest.MonkeyPatch, *deaths: bool) -> None:
    """Begin with the batch, and die after the items are sent. `deaths` says whether each step after that dies, too."""
    real, dies = batch_steps.rows.attach, iter([True, *deaths])

    def attach(*values: Any) -> list[str]:
        if next(dies, False):
            raise RuntimeError("the process dies before it has noted the tasks")
        return real(*values)

    monkeypatch.setattr(batch_steps.rows, "attach", attach)
    Batch.objects.update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())
    with pytest.raises(RuntimeError):
        async_to_sync(advance)(turn)


def test_a_keeper_that_dies_between_any_two_steps_makes_no_item_twice(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = execute(owner, "a", "b", "c")
    die_before_the_tasks_are_noted(monkeypatch, False, True, False)
    task = ended(owner, batch.id)
    assert [result["output"] for result in results(task)] == [["a"], ["b"], ["c"]]
    assert Task.objects.filter(agent="form-coroutine").count() == 3


def test_a_batch_that_is_canceled_cancels_the_items_that_a_dead_keeper_has_sent(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = execute(owner, "a", "b", "c", operation="asks", max_concurrent=2)
    die_before_the_tasks_are_noted(monkeypatch)
    ask(owner, CancelTask(id=batch.id))
    drive(batch.id)
    assert set(Task.objects.values_list("agent", "state")) == {(BATCH_AGENT, "canceled"), ("asks", "canceled")}
    assert BatchItem.objects.filter(state="canceled").count() == 3


def test_items_that_a_frozen_keeper_sends_after_the_end_of_their_batch_are_canceled(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = execute(owner, "a", "b", operation="asks")
    Batch.objects.update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())
    progress, items = batch_steps.rows.look(batch.id), list(BatchItem.objects.order_by("place"))
    ask(owner, CancelTask(id=batch.id))
    drive(batch.id)
    monkeypatch.setattr(batch_steps.rows, "next_items", lambda *_: items)
    assert progress
    async_to_sync(batch_steps._begin)(turn, progress)
    assert sorted(Task.objects.values_list("agent", "state")) == [
        (BATCH_AGENT, "canceled"),
        *[("asks", "canceled")] * 2,
    ]


@pytest.mark.parametrize("is_deleted", [False, True], ids=["changed", "deleted"])
def test_an_item_about_a_task_that_changes_is_found_after_its_keeper_has_died(
    owner: Person, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    given = sent(owner, "as it was", agent="asks")
    batch = execute(owner, BatchInput(task_id=given.id))
    die_before_the_tasks_are_noted(monkeypatch)
    if is_deleted:
        Task.objects.get(pk=given.id).delete()
    else:
        sent(owner, message("as it is", task_id=given.id))
    task = ended(owner, batch.id)
    (result,) = results(task)
    assert (result["state"], result["output"]) == ("completed", ["as it was"])
    assert Task.objects.get(agent="form-coroutine").pk == result["taskId"]


@pytest.mark.requirement("SPARC-12")
def test_permissions_say_which_operations_a_caller_may_execute(owner: Person) -> None:
    principal = Principal.objects.select_related("tenant").get(pk=owner.caller.owner_id)
    principal.rules = encode_rules([Rule(allows=True, kind="operation", pattern="form-*")])
    bound = Person("", caller_for(principal, owner.caller.scopes))
    assert execute(bound, "x")
    with pytest.raises(PermissionDenied) as refusal:
        execute(bound, "x", operation="gate")
    assert refusal.value.facts == {"kind": "operation", "name": "gate"}
    with pytest.raises(MissingScope):
        execute(person("owner", "home", "tasks:read"), "x")


@pytest.mark.parametrize(("kind", "reason"), [("operation", "PERMISSION_DENIED"), ("agent", "UNKNOWN_AGENT")])
def test_a_permission_that_is_taken_away_holds_for_the_items_that_have_not_begun(
    owner: Person, kind: Kind, reason: str
) -> None:
    batch = execute(owner, *"abc", max_concurrent=1, batch_size=1)
    Batch.objects.update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())
    async_to_sync(advance)(turn)
    set_permission(Principal.objects.get(pk=owner.caller.owner_id), kind, "form-coroutine", allows=False, by=OPS)
    until(lambda: async_to_sync(advance)(turn) is None, "the batch is over")
    first, *others = results(shown(ask(owner, GetTask(id=batch.id))))
    assert first["state"] == "completed"
    assert [result["error"]["reason"] for result in others] == [reason] * 2
    assert Task.objects.filter(agent="form-coroutine").count() == 1


@pytest.mark.parametrize("kind", ["operation", "agent"])
def test_an_item_that_a_dead_process_has_sent_is_found_without_the_permission(owner: Person, kind: Kind) -> None:
    batch = execute(owner, "a")
    Batch.objects.update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())
    task_id = async_to_sync(batch_items.send_item)(turn, BatchItem.objects.get())
    set_permission(Principal.objects.get(pk=owner.caller.owner_id), kind, "form-coroutine", allows=False, by=OPS)
    until(lambda: async_to_sync(advance)(turn) is None, "the batch is over")
    (result,) = results(shown(ask(owner, GetTask(id=batch.id))))
    assert (result["state"], result["taskId"]) == ("completed", task_id)


def test_limits_of_a_batch_are_named(owner: Person, settings: LazySettings) -> None:
    settings.A2A_BATCH_ITEMS, settings.A2A_BATCH_CONCURRENT, settings.A2A_OWNER_BATCHES = 3, 5, 1
    for field, items, more in (
        ("tasks", (), {}),
        ("tasks", "abcd", {}),
        ("tasks[0]", (BatchInput(task_id="x" * 65),), {}),
        ("tasks[0]", (BatchInput(message=message(task_id="1")),), {}),
        ("configuration.maxConcurrent", "a", {"max_concurrent": 6}),
        ("configuration.maxConcurrent", "a", {"max_concurrent": 0}),
        ("configuration.batchSize", "a", {"batch_size": 4}),
        ("operation", "a", {"operation": ""}),
    ):
        with pytest.raises(InvalidParams) as refusal:
            execute(owner, *items, **more)
        assert refusal.value.violations[0][0] == field
    with pytest.raises(UnknownAgent):
        execute(owner, "a", operation="nothing")
    first = execute(owner, "a", operation="gate")
    with pytest.raises(RateLimited) as many:
        execute(owner, "a")
    wait = str(many.value.retry_after)
    assert many.value.facts == {"limit": "open batches", "most": "1", "retryAfter": wait}
    ask(owner, CancelTask(id=first.id))
    drive(first.id)
    assert execute(owner, "a")


def test_a_batch_takes_no_message(owner: Person) -> None:
    batch = execute(owner, "a", operation="gate")
    with pytest.raises(UnsupportedOperation) as refusal:
        ask(owner, SendMessage(message=message("more", task_id=batch.id)))
    assert "takes no messages" in refusal.value.facts["detail"]
    assert Task.objects.get(pk=batch.id).agent == BATCH_AGENT


@pytest.mark.parametrize("address", [None, "gate"])
def test_a_batch_is_shown_where_tasks_of_its_agent_are(owner: Person, stranger: Person, address: str | None) -> None:
    batch = execute(owner, "a", operation="gate", address=address)
    limited = owner._replace(caller=replace(owner.caller, agents=frozenset({"gate"})))
    assert shown(ask(limited, GetTask(id=batch.id), agent="gate")).id == batch.id
    assert isinstance(ask(limited, SubscribeToTask(id=batch.id), agent="gate"), Follow)
    with pytest.raises(UnsupportedOperation):
        ask(limited, SendMessage(message=message("more", task_id=batch.id)), agent="gate")
    for who, place in ((owner, "form-coroutine"), (stranger, "gate"), (stranger, None)):
        for request in (GetTask(id=batch.id), SubscribeToTask(id=batch.id), CancelTask(id=batch.id)):
            with pytest.raises(TaskNotFound):
                ask(who, request, agent=place)
    assert shown(ask(limited, CancelTask(id=batch.id), agent="gate")).status.state is TaskState.CANCELED
    assert shown(ask(owner, GetTask(id=batch.id))).status.state is TaskState.CANCELED


def test_the_stored_result_of_an_item_is_bounded(owner: Person, settings: LazySettings) -> None:
    settings.A2A_BATCH_RESULT_CHARACTERS = 5
    task = ended(owner, execute(owner, "short", "much too long").id)
    assert [(result["output"], result.get("truncated")) for result in results(task)] == [(["short"], None), ([], True)]


def test_a_batch_reads_as_any_other_task(owner: Person) -> None:
    batch = execute(owner, "a", metadata={"workflowId": "w"})
    answer = ask(owner, GetTask(id=batch.id))
    assert isinstance(answer, Answer)
    assert answer.task is not None
    assert task_of(answer.task).metadata == {
        "workflowId": "w",
        "batchProcessing": True,
        "operation": "form-coroutine",
    }
