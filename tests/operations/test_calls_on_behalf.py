"""Messages that operations send in the name of a caller, after its call: they cost as its own, and may do no more."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from msgspec.structs import replace

from a2a.batches import BatchInput, ExecuteBatch
from a2a.errors import (
    MissingScope,
    PermissionDenied,
    RateLimited,
    SharedStreamNotFound,
    TooManyCalls,
    UnknownAgent,
)
from a2a.requests import (
    CancelTask,
    EndSharedStream,
    FollowSharedStream,
    SendChunk,
    SendToSharedStream,
    StartSharedStream,
)
from a2a.shared_streams import ChunkRole
from a2a.types import Part
from a2a.workflows import ExecuteWorkflow, Phase, SendInPhase, SetPhase
from tasks_app import clock
from tasks_app.batches.rows import take_turns
from tasks_app.callers.rules import Rule
from tasks_app.limits.accounts import Account
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import Rate
from tasks_app.models import AgentAnswer, Batch, BatchItem, Task, Workflow
from tasks_app.operations.batch_steps import advance
from tasks_app.operations.conductor import Conductor
from tasks_app.operations.moderator import Moderator
from tests.conftest import Person, person, until
from tests.operations.asking import ask, message, sent, shown, text_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.fixture
def bucket(owner: Person) -> Iterator[None]:
    """Give the owner a bucket of 25 units that does not fill: two messages, and half of a third."""
    limits.rules[("caller", owner.caller.owner_id)] = Rate(0.001, 25)
    yield
    limits.rules.clear()
    limits.forget()


class Full(Account):
    """An account that refuses each new task until it has room."""

    has_room = False

    def new_work(self, owner_id: int, agent: str) -> Any:
        if not self.has_room:
            raise RateLimited(1)
        return super().new_work(owner_id, agent)


@pytest.fixture
def full(bucket: None, monkeypatch: pytest.MonkeyPatch) -> Full:
    account = Full()
    monkeypatch.setattr("tasks_app.operations.send.account", account)
    return account


def rest_of(who: Person) -> int:
    """Return the units that the caller has left."""
    left = 0
    while True:
        try:
            asyncio.run(limits.spend(who.caller, 1))
        except TooManyCalls:
            return left
        left += 1


def due(model: Any) -> None:
    model.objects.filter(due_at__isnull=False).update(due_at="2000-01-01T00:00:00Z")


def batch_of(who: Person, *items: str | BatchInput, **more: Any) -> str:
    inputs = tuple(BatchInput(message=message(one)) if isinstance(one, str) else one for one in items)
    return shown(ask(who, ExecuteBatch(operation=more.pop("operation", "form-coroutine"), items=inputs, **more))).id


# ---------------------------------------------------------------- rate limits


def test_each_item_of_a_batch_costs_a_message(owner: Person, bucket: None) -> None:
    batch_of(owner, *"abcde")
    due(Batch)
    (turn,) = take_turns(1, ())
    step = async_to_sync(advance)(turn)
    assert step is not None
    assert step.pause > 0
    assert Task.objects.filter(agent="form-coroutine").count() == 2
    assert not BatchItem.objects.exclude(error=None).exists()
    assert rest_of(owner) == 5


def test_each_phase_of_an_execution_costs_a_message(owner: Person, bucket: None) -> None:
    ask(owner, ExecuteWorkflow(workflow="w", message=message()))
    conductor = Conductor()
    for _ in range(4):
        due(Workflow)
        async_to_sync(conductor.step)()
        until(lambda: not Task.objects.exclude(state="completed").exists(), "the task has not ended")
    assert Task.objects.count() == 2
    row = Workflow.objects.get()
    assert (row.phase, row.runs_until) == (Phase.ARCHITECTURE, Phase.COMPLETION)
    assert row.due_at is not None
    assert rest_of(owner) == 5


def test_executions_of_a_limited_owner_hold_up_no_other(
    owner: Person, stranger: Person, bucket: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.operations.conductor.AT_ONCE", 3)
    for name in "abcdefg":
        ask(owner, ExecuteWorkflow(workflow=name, message=message(), phase=Phase.SPECIFICATION))
    due(Workflow)
    ask(stranger, ExecuteWorkflow(workflow="w", message=message(), phase=Phase.SPECIFICATION))

    async def go_on() -> None:
        conductor = Conductor()
        conductor.wakeup.set()
        while conductor.wakeup.is_set():
            conductor.wakeup.clear()
            await conductor.step()

    asyncio.run(go_on())
    tasks = Counter(Task.objects.values_list("owner_id", flat=True))
    assert tasks == {owner.caller.owner_id: 2, stranger.caller.owner_id: 1}
    waits = Workflow.objects.filter(due_at__isnull=False).values_list("due_at", flat=True)
    assert (len(waits), len(set(waits))) == (5, 1), "one refusal holds for all of them"


def test_each_answer_of_a_shared_stream_costs_its_author_a_message(
    owner: Person, bucket: None, settings: LazySettings
) -> None:
    settings.A2A_SWEEP_SECONDS = 5
    stream = ask(owner, StartSharedStream(participants=("echo", "form-coroutine", "quick-coroutine")))
    ask(owner, SendToSharedStream(stream_id=stream.id, parts=(Part(text="x"),), role=ChunkRole.USER))

    async def answers() -> None:
        moderator = Moderator()
        await moderator.begin_turns()
        await asyncio.gather(*moderator.turns)

    async_to_sync(answers)()
    assert AgentAnswer.objects.filter(task_id__isnull=False).count() == 2
    (due_at,) = AgentAnswer.objects.filter(task_id=None).values_list("due_at", flat=True)
    assert due_at
    assert due_at <= clock.shared() + timedelta(seconds=5), (
        "it tries again in the next round, whenever the limit passes"
    )
    assert rest_of(owner) == 5


def test_an_item_that_is_refused_for_the_moment_pays_once(owner: Person, full: Full) -> None:
    batch_of(owner, "a")
    due(Batch)
    (turn,) = take_turns(1, ())
    for has_room in (False, False, False, True):
        assert not Task.objects.filter(agent="form-coroutine").exists()
        full.has_room = has_room
        async_to_sync(advance)(turn)
    assert Task.objects.filter(agent="form-coroutine").count() == 1
    assert rest_of(owner) == 15


def test_a_phase_that_is_refused_for_the_moment_pays_once(owner: Person, full: Full) -> None:
    ask(owner, ExecuteWorkflow(workflow="w", message=message(), phase=Phase.SPECIFICATION))
    conductor = Conductor()
    for has_room in (False, False, False, True):
        assert not Task.objects.exists()
        full.has_room = has_room
        due(Workflow)
        async_to_sync(conductor.step)()
    assert Task.objects.count() == 1
    assert rest_of(owner) == 15


def test_an_answer_that_is_refused_for_the_moment_pays_once(owner: Person, full: Full) -> None:
    stream = ask(owner, StartSharedStream(participants=("form-coroutine",)))
    ask(owner, SendToSharedStream(stream_id=stream.id, parts=(Part(text="x"),), role=ChunkRole.USER))

    async def answers() -> None:
        moderator = Moderator()
        await moderator.begin_turns()
        await asyncio.gather(*moderator.turns)

    for has_room in (False, False, False, True):
        assert not Task.objects.exists()
        full.has_room = has_room
        due(AgentAnswer)
        async_to_sync(answers)()
    assert Task.objects.count() == 1
    assert rest_of(owner) == 15


def test_the_cost_is_that_of_the_settings(owner: Person, bucket: None, settings: Any) -> None:
    settings.A2A_OPERATION_COSTS = {"SendMessage": 5}
    batch_of(owner, *"abc", operation="form-coroutine")
    due(Batch)
    (turn,) = take_turns(1, ())
    async_to_sync(advance)(turn)
    assert rest_of(owner) == 10


# --------------------------------------------------------------------- scopes


def test_items_that_are_tasks_need_the_right_to_read_them(owner: Person) -> None:
    task = sent(owner, "a secret", agent="form-coroutine")
    writer = person("owner", "home", "tasks:write")
    with pytest.raises(MissingScope) as refusal:
        batch_of(writer, BatchInput(task_id=task.id))
    assert refusal.value.facts["required"] == "tasks:read"
    assert not Batch.objects.exists()
    assert batch_of(writer, "words of its own")


def test_a_canceled_batch_ends_its_items_whatever_the_scopes_of_its_call(owner: Person) -> None:
    writer = person("owner", "home", "tasks:write")
    batch_id = batch_of(writer, *"ab", operation="gate")
    due(Batch)
    (turn,) = take_turns(1, ())
    async_to_sync(advance)(turn)
    assert Task.objects.filter(agent="gate").count() == 2
    ask(owner, CancelTask(id=batch_id))
    assert async_to_sync(advance)(turn) is None
    assert set(Task.objects.filter(agent="gate").values_list("state", flat=True)) == {"canceled"}


# ---------------------------------------------------- tokens for one agent


@pytest.fixture
def single(owner: Person) -> Person:
    """Give a caller of the owner whose token is for one agent alone."""
    return replace_caller(owner, agents=frozenset({"quick-function"}))


def replace_caller(who: Person, **more: Any) -> Person:
    return Person("", replace(who.caller, **more))


def test_a_token_for_one_agent_reaches_no_other_by_a_batch(single: Person) -> None:
    with pytest.raises(UnknownAgent):
        batch_of(single, "x")
    assert batch_of(single, "x", operation="quick-function")


def test_a_token_for_one_agent_reaches_no_other_by_a_phase(single: Person) -> None:
    with pytest.raises(UnknownAgent):
        ask(single, SendInPhase(message=message(), phase=Phase.SPECIFICATION))


def test_a_token_for_one_agent_brings_no_other_into_a_shared_stream(single: Person, owner: Person) -> None:
    with pytest.raises(UnknownAgent):
        ask(single, StartSharedStream(participants=("form-coroutine",)))
    stream = ask(single, StartSharedStream(participants=("quick-function",)))
    with pytest.raises(UnknownAgent):
        ask(single, StartSharedStream(stream_id=stream.id, participants=("form-coroutine",)))


def test_a_token_for_one_agent_takes_no_part_beside_another(single: Person, owner: Person, colleague: Person) -> None:
    stream = ask(owner, StartSharedStream(participants=("quick-function", "colleague")))
    say = SendToSharedStream(stream_id=stream.id, parts=(Part(text="x"),), role=ChunkRole.USER)
    ask(single, say)
    assert list(AgentAnswer.objects.values_list("agent", flat=True)) == ["quick-function"]
    ask(owner, StartSharedStream(stream_id=stream.id, participants=("form-coroutine",)))
    for request in (
        say,
        SendChunk(stream_id=stream.id, parts=say.parts, role=ChunkRole.USER, sequence=1),
        StartSharedStream(stream_id=stream.id),
        FollowSharedStream(stream_id=stream.id),
        EndSharedStream(stream_id=stream.id, reason=""),
    ):
        with pytest.raises(SharedStreamNotFound):
            ask(single, request)
    for request in (say, FollowSharedStream(stream_id=stream.id)):
        ask(owner, request)


@pytest.mark.parametrize("agent", ["conversation", "conversation-quickly"])
def test_a_token_for_one_agent_learns_nothing_that_others_have_said(owner: Person, agent: str) -> None:
    bound = replace_caller(owner, agents=frozenset({agent}))
    context_id = sent(owner, "secret of another", "form-coroutine").context_id
    assert text_of(sent(bound, message("known here", context_id=context_id), agent)) == ""
    told = text_of(sent(bound, message("more", context_id=context_id), agent))
    assert "known here" in told
    assert "secret of another" not in told
    assert "secret of another" in text_of(sent(owner, message("more", context_id=context_id), agent))


# ---------------------------------------------------------------- permissions


def test_a_message_in_a_forbidden_phase_begins_no_workflow(owner: Person) -> None:
    bound = replace_caller(owner, rules=(Rule(allows=True, kind="phase", pattern="pseudocode"),))
    with pytest.raises(PermissionDenied) as refusal:
        ask(bound, SendInPhase(message=message(), workflow="w"))
    assert refusal.value.facts == {"kind": "phase", "name": "specification"}
    assert not Workflow.objects.exists()
    ask(owner, SetPhase(workflow="w", phase=Phase.SPECIFICATION))
    ask(owner, SetPhase(workflow="w", phase=Phase.PSEUDOCODE))
    assert ask(bound, SendInPhase(message=message(), workflow="w"))
