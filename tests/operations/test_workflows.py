"""Workflows: the order of their phases, the routing of messages, executions, results that are written once."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import product
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from msgspec.structs import replace

from a2a.agents import registry
from a2a.errors import (
    InvalidParams,
    MissingScope,
    PermissionDenied,
    PhaseRefused,
    RateLimited,
    UnknownAgent,
    WorkflowNotFound,
)
from a2a.states import TERMINAL, TaskState
from a2a.workflows import (
    PHASES,
    ExecuteWorkflow,
    GetCapabilities,
    GetWorkflow,
    Phase,
    PhaseState,
    SendInPhase,
    SetPhase,
    StreamInPhase,
    WorkflowDocument,
    WorkflowState,
    may_enter,
)
from tasks_app.callers.access import caller_of_work
from tasks_app.callers.rules import Rule
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.models import PhaseTask, Task, Workflow
from tasks_app.operations import Context, Follow, perform
from tasks_app.operations.conductor import Conductor
from tasks_app.workflows import leases, log
from tasks_app.workflows.log import Wish
from tests.conftest import PATIENCE, Person, person, until
from tests.operations.asking import ask, message, shown

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
FIRST, SECOND, THIRD, FOURTH, LAST = PHASES


def set_phase(who: Person, phase: Phase, name: str = "w", **more: Any) -> WorkflowDocument:
    found = ask(who, SetPhase(workflow=name, phase=phase, **more))
    assert isinstance(found, WorkflowDocument)
    return found


def limited(who: Person, *agents: str) -> Person:
    """Return the person with a credential that is valid at the addresses of some agents only."""
    return who._replace(caller=replace(who.caller, agents=frozenset(agents)))


def told(story: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return async_to_sync(story)()


async def run_to_its_end(who: Person, name: str = "w") -> WorkflowDocument:
    """Take the steps of executions until the workflow is not executed any more."""
    conductor = Conductor()
    async with asyncio.timeout(PATIENCE):
        while True:
            await conductor.step()
            found = await perform(GetWorkflow(workflow=name), Context(caller=who.caller))
            assert isinstance(found, WorkflowDocument)
            if found.runs_until is None:
                return found
            await asyncio.sleep(0.02)


@pytest.mark.requirement("SPARC-07")
@pytest.mark.parametrize(("current", "requested"), list(product(PHASES, PHASES)))
def test_a_workflow_goes_back_and_on_by_one_and_never_skips(current: Phase, requested: Phase) -> None:
    assert may_enter(current, requested) == (PHASES.index(requested) <= PHASES.index(current) + 1)
    assert may_enter(None, requested) == (requested is FIRST)


@pytest.mark.requirement("SPARC-07")
def test_a_skip_is_refused_with_both_phases(owner: Person) -> None:
    with pytest.raises(PhaseRefused) as beginning:
        set_phase(owner, SECOND)
    assert beginning.value.facts["requestedPhase"] == "pseudocode"
    assert not Workflow.objects.exists()
    assert set_phase(owner, FIRST).phase is FIRST
    with pytest.raises(PhaseRefused) as skip:
        set_phase(owner, LAST)
    assert skip.value.facts == {
        "currentPhase": "specification",
        "requestedPhase": "completion",
        "detail": "Cannot skip intermediate phases",
    }
    for phase in PHASES[1:]:
        assert set_phase(owner, phase).phase is phase
    assert set_phase(owner, SECOND).phase is SECOND


def test_settings_of_a_workflow_are_added_to(owner: Person) -> None:
    set_phase(owner, FIRST, agent_types=("coder",), configuration={"a": 1})
    found = set_phase(owner, SECOND, configuration={"b": 2})
    assert (found.agent_types, found.configuration) == (("coder",), {"a": 1, "b": 2})
    with pytest.raises(InvalidParams):  # It would be small enough alone.
        set_phase(owner, SECOND, configuration={"c": "x" * 65_520})


def test_a_workflow_is_its_owners_alone(owner: Person, stranger: Person) -> None:
    set_phase(owner, FIRST)
    with pytest.raises(WorkflowNotFound):
        ask(stranger, GetWorkflow(workflow="w"))
    assert set_phase(stranger, FIRST).phase is FIRST
    assert Workflow.objects.count() == 2


def test_an_owner_has_so_many_active_workflows(owner: Person, settings: Any) -> None:
    settings.A2A_OWNER_WORKFLOWS = 1
    set_phase(owner, FIRST)
    with pytest.raises(RateLimited):
        set_phase(owner, FIRST, "other")


@pytest.mark.parametrize("kind", [ExecuteWorkflow, SendInPhase])
def test_a_context_too_long_for_a_workflow_is_refused(owner: Person, service: None, kind: Any) -> None:
    with pytest.raises(InvalidParams) as refused:
        ask(owner, kind(workflow="w", phase=FIRST, message=message(context_id="c" * 129)))
    assert refused.value.violations[0][0] == "message.contextId"


@pytest.mark.requirement("SPARC-12")
def test_a_permission_says_which_phases_a_caller_may_use(owner: Person, service: None) -> None:
    limited = person("limited", "home")
    caller = replace(limited.caller, rules=(Rule(allows=True, kind="phase", pattern="spec*"),))
    with pytest.raises(PermissionDenied) as refusal:
        async_to_sync(perform)(SetPhase(workflow="w", phase=SECOND), Context(caller=caller))
    assert refusal.value.facts == {"kind": "phase", "name": "pseudocode"}
    sending = SendInPhase(message=message(), phase=SECOND)
    with pytest.raises(PermissionDenied):
        async_to_sync(perform)(sending, Context(caller=caller))
    assert async_to_sync(perform)(SetPhase(workflow="w", phase=FIRST), Context(caller=caller))


@pytest.mark.requirement("SPARC-17")
def test_a_message_goes_to_the_agent_of_its_phase_and_its_result_to_the_workflow(owner: Person, service: None) -> None:
    task = shown(ask(owner, SendInPhase(message=message("a login"), phase=FIRST, workflow="w")))
    assert task.metadata == {"sparcPhase": "specification"}
    found = ask(owner, GetWorkflow(workflow="w"))
    phase = found.phases[0]
    assert (phase.state, phase.result_task_id, phase.tasks[0].agent) == (PhaseState.COMPLETED, task.id, "specifier")
    assert "specification of a login" in phase.artifacts
    follow = ask(owner, StreamInPhase(message=message(), phase=SECOND, workflow="w"))
    assert isinstance(follow, Follow)
    until(lambda: not Task.objects.exclude(state__in=[*TERMINAL]).exists(), "the task has not ended")
    found = ask(owner, GetWorkflow(workflow="w"))
    assert (found.phase, found.phases[1].tasks[0].agent) == (SECOND, "builder")
    assert "pseudocode after 1" in found.phases[1].artifacts
    assert len(set(Task.objects.values_list("context_id", flat=True))) == 1


@pytest.mark.requirement("SPARC-17")
def test_a_message_without_a_phase_is_for_that_of_its_workflow(owner: Person, service: None) -> None:
    set_phase(owner, FIRST)
    set_phase(owner, SECOND)
    task = shown(ask(owner, SendInPhase(message=message(), workflow="w")))
    assert task.metadata == {"sparcPhase": "pseudocode"}
    earlier = shown(ask(owner, SendInPhase(message=message(), workflow="w", phase=FIRST)))
    found = ask(owner, GetWorkflow(workflow="w"))
    assert (found.phase, found.phases[0].tasks[0].task_id) == (SECOND, earlier.id)
    with pytest.raises(PhaseRefused):
        ask(owner, SendInPhase(message=message(), workflow="w", phase=FOURTH))


def test_a_message_sent_again_has_its_answer_wherever_its_workflow_is(owner: Person, service: None) -> None:
    sending = SendInPhase(message=message(), workflow="w")
    task = shown(ask(owner, sending))
    set_phase(owner, SECOND)
    assert shown(ask(owner, sending)).id == task.id
    assert PhaseTask.objects.count() == 1


def test_agents_that_a_workflow_prefers_come_first(owner: Person, service: None) -> None:
    for phase in PHASES[:4]:
        set_phase(owner, phase, agent_types=("coder",))
    task = shown(ask(owner, SendInPhase(message=message(), workflow="w")))
    assert (task.status.state, Task.objects.get().agent) == (TaskState.REJECTED, "refuser")
    assert ask(owner, GetWorkflow(workflow="w")).phases[3].state is PhaseState.FAILED


@pytest.mark.requirement("SPARC-17", "SPARC-22")
def test_an_execution_goes_through_all_phases_with_one_result_each(owner: Person, service: None) -> None:
    async def story() -> WorkflowDocument:
        request = ExecuteWorkflow(workflow="w", message=message("a login"))
        first = await perform(request, Context(caller=owner.caller))
        again = await perform(request, Context(caller=owner.caller))
        assert isinstance(first, WorkflowDocument)
        assert isinstance(again, WorkflowDocument)
        assert (first.runs_until, again.runs_until) == (LAST, LAST)
        return await run_to_its_end(owner)

    found = told(story)
    assert (found.state, found.phase, found.reason) == (WorkflowState.COMPLETED, LAST, "")
    assert [len(phase.tasks) for phase in found.phases] == [1] * 5
    assert "completion after 4" in found.phases[4].artifacts
    with pytest.raises(PhaseRefused):
        set_phase(owner, LAST)


def test_an_execution_at_the_address_of_an_agent_calls_no_other(owner: Person, service: None) -> None:
    """A token of the agent begins the workflow, and its owner goes on with it at the address of the whole server."""
    one = limited(owner, "builder")

    async def story() -> list[WorkflowDocument]:
        request = ExecuteWorkflow(workflow="w", phase=FIRST, message=message("a login"))
        await perform(request, Context(caller=one.caller, agent="builder"))
        found = [await run_to_its_end(owner)]
        await perform(ExecuteWorkflow(workflow="w", agent_types=("coder",)), Context(caller=owner.caller))
        return [*found, await run_to_its_end(owner)]

    first, last = told(story)
    assert (first.state, first.reason, len(first.phases[0].tasks)) == (WorkflowState.ACTIVE, "", 1)
    assert (last.state, last.reason) == (WorkflowState.COMPLETED, "")
    assert {task.agent for phase in last.phases for task in phase.tasks} == {"builder"}
    assert set(Task.objects.values_list("agent", flat=True)) == {"builder"}
    assert caller_of_work(Workflow.objects.get()).agents == {"builder"}
    assert ask(one, GetWorkflow(workflow="w"), agent="builder") == last


def test_a_message_in_a_workflow_that_names_its_agent_may_be_sent_again(owner: Person, service: None) -> None:
    said = SendInPhase(message=message(), workflow="w", phase=FIRST, metadata={"agent": "builder"})
    task = shown(ask(owner, said))
    assert PhaseTask.objects.get().agent == "builder"
    assert shown(ask(owner, said)).id == task.id


def test_a_message_to_a_workflow_of_an_agent_goes_to_no_other(owner: Person, service: None) -> None:
    ask(owner, SetPhase(workflow="w", phase=FIRST), agent="builder")
    task = shown(ask(owner, SendInPhase(message=message(), workflow="w", metadata={"agent": "specifier"})))
    assert Task.objects.get(pk=task.id).agent == "builder"


@pytest.mark.parametrize("agent", ["specifier", "builder"])
@pytest.mark.parametrize("begun_at", [None, "refuser"])
def test_an_address_of_an_agent_shows_and_changes_no_workflow_of_another(
    owner: Person, service: None, agent: str, begun_at: str | None
) -> None:
    sending = SendInPhase(message=message("secret"), phase=FIRST, workflow="w")
    task = shown(ask(owner, sending, agent=begun_at))
    row = Workflow.objects.values().get()
    requests = (
        GetWorkflow(workflow="w"),
        SetPhase(workflow="w", phase=FIRST, configuration={"a": 1}),
        ExecuteWorkflow(workflow="w", message=message()),
        SendInPhase(message=message(), workflow="w"),
    )
    for who, request in product((owner, limited(owner, agent)), requests):
        with pytest.raises(WorkflowNotFound) as refusal:
            ask(who, request, agent=agent)
        assert refusal.value.facts == {"workflowId": "w"}
    assert Task.objects.get().pk == PhaseTask.objects.get().task_id == task.id
    assert Workflow.objects.values().get() == row
    ask(owner, ExecuteWorkflow(workflow="w", message=message()))
    with pytest.raises(WorkflowNotFound):
        ask(owner, ExecuteWorkflow(workflow="w"), agent=agent)


@pytest.mark.parametrize("scopes", ["tasks:write", "acp:tasks:write"])
def test_a_caller_that_may_only_write_gets_no_results(owner: Person, service: None, scopes: str) -> None:
    task = shown(ask(owner, SendInPhase(message=message("secret"), phase=FIRST, workflow="w")))
    assert ask(owner, GetWorkflow(workflow="w")).phases[0].result_task_id == task.id
    writer = person("owner", "home", scopes=scopes)
    for request in (SetPhase(workflow="w", phase=FIRST), ExecuteWorkflow(workflow="w", message=message())):
        phase = ask(writer, request).phases[0]
        assert (phase.state, phase.artifacts, phase.result_task_id) == (PhaseState.COMPLETED, None, None)
        assert ask(owner, request).phases[0].result_task_id == task.id
    with pytest.raises(MissingScope):
        ask(writer, GetWorkflow(workflow="w"))


def test_no_workflow_begins_at_the_address_of_an_unknown_agent(owner: Person, service: None) -> None:
    for request in (
        SetPhase(workflow="w", phase=FIRST),
        ExecuteWorkflow(workflow="w", message=message()),
        SendInPhase(message=message(), workflow="w", phase=FIRST),
    ):
        with pytest.raises(UnknownAgent):
            ask(owner, request, agent="nobody")
    assert not Workflow.objects.exists()


def test_two_conductors_begin_each_task_once(owner: Person, service: None) -> None:
    async def story() -> WorkflowDocument:
        await perform(ExecuteWorkflow(workflow="w", message=message()), Context(caller=owner.caller))
        found, _ = await asyncio.gather(run_to_its_end(owner), run_to_its_end(owner))
        return found

    assert told(story).state is WorkflowState.COMPLETED
    assert PhaseTask.objects.count() == Task.objects.count() == 5


@pytest.mark.parametrize("agent", [None, "echo"], ids=["the same agents", "other agents"])
def test_a_step_taken_twice_begins_one_task(
    owner: Person, service: None, monkeypatch: pytest.MonkeyPatch, agent: str | None
) -> None:
    """The process that took it first died before it could add the task to the phase."""

    def die(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("the process died")

    async def story() -> WorkflowDocument:
        request = ExecuteWorkflow(workflow="w", phase=FIRST, message=message())
        await perform(request, Context(caller=owner.caller))
        with monkeypatch.context() as patch:
            patch.setattr(log, "add_task", die)
            await Conductor().step()
        assert await bridge.ask(DoSlowly(Task.objects.count)) == 1
        await bridge.ask(DoSlowly(leases.release_all))
        if agent is not None:
            monkeypatch.setattr("tasks_app.operations.conductor.agent_of", lambda *_: registry.get(agent))
        return await run_to_its_end(owner)

    found = told(story)
    assert (found.phases[0].state, Task.objects.count(), PhaseTask.objects.count()) == (PhaseState.COMPLETED, 1, 1)


def test_a_task_that_fails_stops_its_execution_with_the_reason(owner: Person, service: None) -> None:
    async def story() -> WorkflowDocument:
        request = ExecuteWorkflow(workflow="w", agent_types=("coder",), message=message())
        await perform(request, Context(caller=owner.caller))
        return await run_to_its_end(owner)

    found = told(story)
    assert (found.state, found.phase) == (WorkflowState.ACTIVE, FOURTH)
    assert found.reason.endswith("of the phase refinement is rejected.")


def test_the_end_of_a_task_is_written_once(owner: Person, service: None) -> None:
    task = shown(ask(owner, SendInPhase(message=message(), workflow="w")))
    key = PhaseTask.objects.get(task_id=task.id).pk
    write = partial(log.settle, key, TaskState.COMPLETED, "[]")
    assert [write(), write()] == [True, False]


def test_a_damaged_task_holds_up_no_other_workflow(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        set_phase(owner, FIRST, name)
        log.add_task(Workflow.objects.get(name=name).pk, FIRST, f"deleted-{name}", "specifier", is_executed=False)
    first, second = PhaseTask.objects.order_by("pk").values_list("pk", flat=True)
    settle = log.settle

    def refuse(key: int, *values: Any) -> bool:
        if key == first:
            raise ValueError("its result cannot be read")
        return settle(key, *values)

    monkeypatch.setattr(log, "settle", refuse)
    told(Conductor().step)
    assert PhaseTask.objects.get(pk=first).ended_at is None
    assert PhaseTask.objects.get(pk=second).ended_at is not None


def test_a_task_that_was_deleted_stops_its_execution(owner: Person, service: None) -> None:
    """Its owner would wait for it for ever, and the workflow would never be deleted."""
    set_phase(owner, FIRST)
    log.execute(Wish(name="w", phase=None), owner.caller, last=None, message="[]", entry=None)
    row = Workflow.objects.get()
    log.add_task(row.pk, FIRST, "deleted", "specifier", is_executed=True)
    found = ask(owner, GetWorkflow(workflow="w"))
    assert (found.phases[0].state, found.runs_until) == (PhaseState.FAILED, None)
    assert found.reason == "The task deleted of the phase specification is failed."


def test_a_late_process_does_not_hold_up_the_next_execution(owner: Person, service: None) -> None:
    """A process was frozen between the send and its note. The task has ended since, and the owner executes again."""
    wish = Wish(name="w", phase=None)
    row = log.execute(wish, owner.caller, last=FIRST, message="[]", entry=None)
    log.add_task(row.pk, FIRST, "t-1", "specifier", is_executed=True)
    log.settle(PhaseTask.objects.get().pk, TaskState.FAILED, None)
    log.execute(wish, owner.caller, last=FIRST, message=None, entry=None)
    log.add_task(row.pk, FIRST, "t-1", "specifier", is_executed=True)
    row.refresh_from_db()
    assert row.due_at is not None


def test_an_execution_needs_a_message_once(owner: Person) -> None:
    with pytest.raises(InvalidParams):
        ask(owner, ExecuteWorkflow(workflow="w"))
    assert not Workflow.objects.exists()


def test_capabilities_name_the_phases_of_agents(owner: Person, service: None) -> None:
    found = ask(owner, GetCapabilities(), agent="specifier")
    assert (found.name, found.skills, found.phases) == ("specifier", ("specify",), PHASES)
