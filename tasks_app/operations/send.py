"""Send: a new task, the next message of one, or a direct reply; waiting, at once, or as a stream.

See A2A 1.0, 3.1.1 and 3.1.2.
"""

from contextlib import nullcontext

from a2a.acting import arguments
from a2a.agents import Agent
from a2a.answers import Answer
from a2a.errors import InvalidParams, RateLimited, Unavailable
from a2a.requests import SendMessage, StreamMessage
from a2a.run import Preferences, Run
from a2a.types import Role
from tasks_app import clock
from tasks_app.callers.access import check_tenant
from tasks_app.callers.accounts import account
from tasks_app.database.rows import KeyRow
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import FindKey, KeyTarget
from tasks_app.event_log.conversation import conversation_of
from tasks_app.files import deletion_of, has_large, run_files
from tasks_app.ids import own_context, uuid7
from tasks_app.operations.attachments import check_references, store_files
from tasks_app.operations.capabilities import PUSH
from tasks_app.operations.choose_agent import choose_agent
from tasks_app.operations.creation import Plan, create_reply, create_task, with_ids
from tasks_app.operations.fitness import fit
from tasks_app.operations.follow_up import follow_up
from tasks_app.operations.operation import Context, Done, Follow, Grant, RunQuick, Wait
from tasks_app.operations.registration import check_address
from tasks_app.operations.repeat import MAX_ID, fingerprint, key_of, repeat

MAX_MODES = 100


async def send(request: SendMessage, context: Context) -> Grant:
    """Check the message, then begin a conversation with it, or add it to its task."""
    _check(request)
    if request.message.task_id is not None:
        return await follow_up(request, context, request.message.task_id)
    check_tenant(context.caller, request.tenant)
    agent = choose_agent(request, context)
    preferences = fit(request, agent, context)
    plan = _plan(request, context, agent, preferences)
    arguments(plan.run)  # A message that does not fit the agent's inputs makes no task.
    try:
        with nullcontext() if plan.quick else account.new_work(plan.key.owner_id, agent.name):
            outcome = await _begin(plan)
    except (RateLimited, Unavailable):
        # What was accepted before is never refused: its answer may have been lost.
        known = await FindKey(owner_id=plan.key.owner_id, key=plan.key.key)
        if known is None:
            raise
        outcome = known
    if isinstance(outcome, KeyTarget):
        if plan.files:
            await deletion_of(plan.files)
        return await repeat(request, context, outcome, plan.key.fingerprint)
    return _grant(request, plan, outcome)


async def _begin(plan: Plan) -> Answer | KeyTarget:
    """Store what begins with the message; return the answer, or KeyTarget if the message is not new."""
    request = plan.request
    if request.push_config or has_large(request.message.parts):
        known = await FindKey(owner_id=plan.key.owner_id, key=plan.key.key)
        if known is not None:
            return known
        if request.push_config:
            await check_address(request.push_config)
        await store_files(plan)
    return await _run_quickly(plan) if plan.quick else await create_task(plan, ())


async def _run_quickly(plan: Plan) -> Answer | KeyTarget:
    """Run the agent first, then store everything at once."""
    if plan.request.message.context_id is not None:
        owner, context_id = plan.context.caller.owner_id, plan.run.context_id
        plan.run.conversation = await DoSlowly(lambda: conversation_of(owner, context_id), owner)
    played = await RunQuick(plan.run)
    plan.files += played.files
    if played.reply is not None:
        return await create_reply(plan, played.reply)
    return await create_task(plan, played.events, played.failure)


def _check(request: SendMessage) -> None:
    """Check what needs no look into the database. Raises InvalidParams and PushNotSupported."""
    message = request.message
    if message.role is not Role.USER:
        raise InvalidParams(("message.role", "must be the user's: a caller does not speak for the agent"))
    if message.context_id is not None and len(message.context_id) > MAX_ID:
        raise InvalidParams(("message.contextId", f"must have {MAX_ID} characters at most"))
    check_references(message)
    if len(request.accepted_output_modes) > MAX_MODES:
        raise InvalidParams(("configuration.acceptedOutputModes", f"must have {MAX_MODES} entries at most"))
    if request.push_config is not None:
        PUSH.check()


def _plan(request: SendMessage, context: Context, agent: Agent, preferences: Preferences) -> Plan:
    """Return the plan of a conversation. Ids are made here, before anything is stored, so that a doubtful commit can be
    tried again."""
    task_id, now = uuid7(), clock.now()
    context_id = request.message.context_id or own_context(task_id)
    # The fingerprint is of what was said and to whom; how the caller wants to wait is not part of it.
    print_of = fingerprint(request.message, agent.name)
    message = with_ids(request.message, task_id, context_id)
    return Plan(
        agent=agent,
        request=request,
        context=context,
        run=Run(
            agent, task_id=task_id, context_id=context_id, message=message, history=(message,),
            metadata=request.metadata, preferences=preferences, files=run_files,
        ),
        key=KeyRow(
            owner_id=context.caller.owner_id, key=key_of(message.message_id), fingerprint=print_of, task_id=task_id,
            turn_id=None, created_at=now,
        ),
        now=now,
        preferences=preferences,
        quick=agent.is_quick(message),
    )  # fmt: skip


def _grant(request: SendMessage, plan: Plan, answer: Answer) -> Grant:
    """Return the answer to a message that began something, or where it comes from."""
    document = answer.task
    if isinstance(request, StreamMessage):
        first = answer.message or plan.created
        if first is None:
            raise TypeError("a message made neither a task nor a reply")
        return Follow(first=first, history_length=request.history_length)
    if document is None or plan.quick or request.return_immediately:
        return Done(answer)
    return Wait(
        task_id=document.id, context_id=document.context_id, after=document.seq, history_length=request.history_length
    )
