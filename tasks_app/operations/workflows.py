"""The operations on workflows: enter a phase, execute, read, and send a message in a phase; and capabilities."""

import logging
from collections.abc import Callable
from functools import partial

import orjson
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from msgspec.structs import replace

from a2a.agents import Agent, registry
from a2a.dialects.json.json_1_0 import encode_part
from a2a.errors import Error, UnknownAgent, WorkflowNotFound
from a2a.requests import SendMessage
from a2a.states import TaskState
from a2a.types import Message
from a2a.workflows import (
    PHASES,
    CapabilitiesDocument,
    ExecuteWorkflow,
    GetCapabilities,
    GetWorkflow,
    Phase,
    SendInPhase,
    SetPhase,
    StreamInPhase,
)
from tasks_app.callers.access import Caller, check_tenant, has_right
from tasks_app.callers.permissions import check_permission, is_permitted, may_ask, shows
from tasks_app.callers.scopes import READ
from tasks_app.database.locks import LockRefused
from tasks_app.database.work import Do, DoOwed, DoSlowly, R
from tasks_app.event_log import FindKey, ReadTask
from tasks_app.limits.quotas import quota
from tasks_app.models import PhaseTask, Workflow
from tasks_app.operations.attachments import check_references
from tasks_app.operations.choose_agent import address_agent, choose_agent
from tasks_app.operations.operation import Ask, Context, Done, Follow, Grant, Wait, directly
from tasks_app.operations.repeat import key_of
from tasks_app.operations.send import send
from tasks_app.workflows import log, reading
from tasks_app.workflows.log import Wish

logger = logging.getLogger(__name__)
SETTLED = 100
"""Ends of tasks that are written in one go."""


async def set_phase(request: SetPhase, context: Context) -> Grant:
    """Have a workflow enter a phase. Raises PhaseRefused, PermissionDenied and WorkflowNotFound."""
    check_tenant(context.caller, request.tenant)
    check_permission(context.caller, "phase", request.phase.value)
    wish = Wish(
        name=request.workflow,
        address=_address(context),
        phase=request.phase,
        goes_back=True,
        agent_types=request.agent_types,
        configuration=request.configuration,
        begins_task=False,
    )
    await _reserve(context, request.workflow)
    change = partial(log.enter, wish, context.caller, context.exchange.entry())
    return await _answer(await _write(context, change), context.caller, is_owed=True)


async def execute(request: ExecuteWorkflow, context: Context) -> Grant:
    """Begin the execution of a workflow, which the conductor goes on with.

    Raises PhaseRefused, PermissionDenied and WorkflowNotFound.
    """
    check_tenant(context.caller, request.tenant)
    for phase in (request.phase,) if request.phase else PHASES:
        check_permission(context.caller, "phase", phase.value)
    if request.message is not None:
        check_references(request.message)
    wish = Wish(
        name=request.workflow,
        address=_address(context),
        phase=request.phase,
        goes_back=True,
        agent_types=request.agent_types,
        configuration=request.configuration,
        context_id=request.message.context_id if request.message else None,
    )
    parts = [encode_part(part) for part in request.message.parts] if request.message else []
    message = orjson.dumps(parts).decode() if parts else None
    await _reserve(context, request.workflow)
    entry = context.exchange.entry()
    change = partial(log.execute, wish, context.caller, last=request.phase, message=message, entry=entry)
    return await _answer(await _write(context, change), context.caller, is_owed=True)


async def get(request: GetWorkflow, context: Context) -> Grant:
    """Return a workflow of the caller. Raises WorkflowNotFound."""
    check_tenant(context.caller, request.tenant)
    owner_id = context.caller.owner_id
    row = await DoSlowly(lambda: reading.find(owner_id, request.workflow), owner_id)
    if row is None or not shows(context.caller, context.agent, row.address):
        raise WorkflowNotFound(workflowId=request.workflow)
    await settle_ended(directly, row)
    return await _answer(await DoSlowly(lambda: Workflow.objects.get(pk=row.pk), owner_id), context.caller)


async def capabilities(request: GetCapabilities, context: Context) -> Grant:
    """Return what the agent of the address can do, or else the default agent."""
    check_tenant(context.caller, request.tenant)
    agent = address_agent(context)
    names = {phase for own in registry if may_ask(context.caller, own, None) for phase in own.phases}
    return Done(
        CapabilitiesDocument(
            name=agent.name,
            version=agent.version,
            skills=tuple(skill.id for skill in agent.skills if is_permitted(context.caller, "skill", skill.id)),
            phases=tuple(
                phase for phase in PHASES if phase in names and is_permitted(context.caller, "phase", phase.value)
            ),
            input_modes=agent.input_modes,
            output_modes=agent.output_modes,
            streaming=settings.A2A_STREAMING,
            push_notifications=settings.A2A_PUSH,
            task_seconds=agent.timeout,
        )
    )


async def send_in_phase(request: SendInPhase | StreamInPhase, context: Context) -> Grant:
    """Send a message to the agent of its phase, and add its task to its workflow. Raises PhaseRefused."""
    check_tenant(context.caller, request.tenant)
    if request.message.task_id is not None or (request.phase is None and request.workflow is None):
        return await send(request, context)
    if request.workflow is None:
        phase = request.phase or Phase.SPECIFICATION
        check_permission(context.caller, "phase", phase.value)
        return await send(_for_phase(request, context, phase, ()), context)
    if (row := await _earlier(request, context)) is not None:
        return await send(_repeated(request, row), context)
    return await _send_in_workflow(request, context, request.workflow)


async def _earlier(request: SendMessage, context: Context) -> PhaseTask | None:
    """Return the row of the task that this message began before; None for a new message.

    A message that is sent again gets its answer, wherever its workflow has come meanwhile.
    """
    if not request.message.message_id:
        return None
    owner_id = context.caller.owner_id
    target = await FindKey(owner_id=owner_id, key=key_of(request.message.message_id))
    task_id = target.task_id if target else None
    if task_id is None:
        return None
    row: PhaseTask | None = await DoSlowly(lambda: reading.task_with_workflow(task_id), owner_id)
    return row


def _repeated(request: SendMessage, row: PhaseTask) -> SendMessage:
    context_id = request.message.context_id or row.workflow.context_id
    return replace(request, agent=row.agent, message=replace(request.message, context_id=context_id))


async def _send_in_workflow(request: SendInPhase | StreamInPhase, context: Context, name: str) -> Grant:
    caller = context.caller
    if caller.rules:
        check_permission(caller, "phase", (request.phase or await _phase_of(caller, name)).value)
    wish = Wish(name=name, address=_address(context), phase=request.phase, context_id=request.message.context_id)
    row = await _write(context, partial(log.enter, wish, caller, None))
    context.exchange.begin_change()  # The entry comes with the task, or with its refusal.
    phase = request.phase or Phase(row.phase)
    check_permission(caller, "phase", phase.value)  # Another call may have changed the phase meanwhile.
    message = replace(request.message, context_id=request.message.context_id or row.context_id)
    metadata = (request.metadata or {}) | {"sparcPhase": phase.value}
    sending = replace(request, message=message, metadata=metadata)
    if row.address is None:
        sending = _for_phase(sending, context, phase, tuple(orjson.loads(row.agent_types)))
    else:
        sending = replace(sending, agent=row.address)
    agent = choose_agent(sending, context).name
    grant = await send(sending, context)
    if task_id := _task_of(grant):
        await Do(partial(log.add_task, row.pk, phase, task_id, agent))
    return grant


def _address(context: Context) -> str | None:
    """Return the agent of the address of a call; None for that of the whole server. A new workflow belongs there.

    Raises UnknownAgent.
    """
    return None if context.agent is None else address_agent(context).name


async def _phase_of(caller: Caller, name: str) -> Phase:
    """Return the phase that a workflow is in, or would begin with."""
    row = await DoSlowly(lambda: reading.find(caller.owner_id, name), caller.owner_id)
    return Phase(row.phase) if row else Phase.SPECIFICATION


def _task_of(grant: Grant) -> str | None:
    """Return the task that a message has begun; None for a direct reply."""
    match grant:
        case Wait(task_id=task_id):
            return task_id
        case Follow(first=first):
            return None if isinstance(first, Message) else first.id
        case Done(result=result):
            task = getattr(result, "task", None)
            return task.id if task else None


def _for_phase(
    request: SendInPhase | StreamInPhase, context: Context, phase: Phase, preferred: tuple[str, ...]
) -> SendInPhase | StreamInPhase:
    """Return the message for the agent of its phase, unless its address or its metadata names an agent or a skill."""
    metadata = request.metadata or {}
    if context.agent is not None or request.agent is not None or {"agent", "skill"} & metadata.keys():
        return request
    return replace(request, agent=agent_of(context.caller, phase, preferred).name)


def agent_of(caller: Caller, phase: Phase, preferred: tuple[str, ...]) -> Agent:
    """Return the agent for a phase: an agent that has the phase, first of all one that is preferred by its name or by a
    skill; else the default agent. Raises UnknownAgent."""
    able = [agent for agent in registry if phase in agent.phases and may_ask(caller, agent, None)]
    for agent in able:
        if agent.name in preferred or any(skill.id in preferred for skill in agent.skills):
            return agent
    default = able[0] if able else registry.get(settings.A2A_DEFAULT_AGENT)
    if default is None or not may_ask(caller, default, None):
        raise UnknownAgent(phase=phase.value)
    return default


async def settle_ended(ask: Ask, workflow: Workflow | None = None) -> int:
    """Write the ends of tasks that have ended, of a workflow or of all, with their results; return their number.

    A task that was deleted before its end was written has failed: its result is lost.
    """
    workflow_id, owner_id = (workflow.pk, workflow.owner_id) if workflow else (None, None)
    ended = await ask(DoSlowly(partial(log.ended_tasks, SETTLED, workflow_id), owner_id))
    count = 0
    for key, task_id in ended:
        try:
            await _settle(ask, key, task_id)
        except LockRefused:
            if workflow_id is not None:
                raise
            # A workflow whose row another transaction has locked must not hold up all others. The next round finds it.
            logger.info("the end of task %s is not written yet: its workflow is locked", task_id)
        except (DatabaseError, InterfaceError, Error):
            raise
        except Exception:
            if workflow_id is not None:
                raise
            # Nor must the workflow of a damaged task.
            logger.exception("the end of task %s could not be written to its workflow", task_id)
        else:
            count += 1
    return count


async def _settle(ask: Ask, key: int, task_id: str) -> None:
    read = await ask(ReadTask(task_id=task_id, sight=None, history=False, is_owed=True))
    state, artifacts = (read.document.state, read.document.artifacts) if read else (TaskState.FAILED, None)
    await ask(Do(partial(log.settle, key, TaskState(state), artifacts)))


async def _answer(row: Workflow, caller: Caller, *, is_owed: bool = False) -> Done:
    """Return the answer with a workflow; `is_owed` is true for the answer to a change. It has the results of the phases
    if the caller may read tasks."""
    kind, with_results = DoOwed if is_owed else DoSlowly, has_right(caller, READ)
    return Done(await kind(partial(reading.document_of, row, with_results=with_results), row.owner_id))


async def _reserve(context: Context, name: str) -> None:
    """Take the bytes of the results that the answer will have, before anything is changed. Raises RateLimited and
    Unavailable."""
    owner_id = context.caller.owner_id
    if has_right(context.caller, READ):
        context.reserve(await DoOwed(lambda: reading.size_of_results(owner_id, name), owner_id))


async def _write(context: Context, change: Callable[[], R]) -> R:
    """Write a change with its entry of the audit. A refusal has an entry of its own, which is stored with the call.

    Raises QuotaReached, and the errors of the change.
    """
    try:
        quota.check(context.caller.owner_id)
        result: R = await Do(change)
    except Error:
        context.exchange.undo()
        raise
    return result
