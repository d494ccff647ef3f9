"""The operation that sends a message: it begins a task, continues one, or gets a direct reply (A2A 1.0, 3.1.1, 3.1.2).

The answer comes at once, after a wait, or as a stream.
"""

from contextlib import nullcontext
from functools import partial
from time import monotonic

from msgspec.structs import replace

from a2a.acting import arguments
from a2a.agents import Agent
from a2a.answers import Answer
from a2a.errors import BudgetExceeded, InvalidParams, RateLimited, Unavailable
from a2a.preferences import Preferences
from a2a.requests import SendMessage
from a2a.run import Run
from a2a.types import Role
from tasks_app import clock
from tasks_app.callers.access import check_right, check_tenant
from tasks_app.callers.scopes import WRITE_WEBHOOKS
from tasks_app.database.errands import insist
from tasks_app.database.rows import KeyRow
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import FindKey, KeyTarget, Release, Reserve
from tasks_app.event_log.conversation import conversation_of
from tasks_app.files import deletion_of, has_large, run_files
from tasks_app.ids import own_context, uuid7
from tasks_app.limits.accounts import account
from tasks_app.limits.budgets import Charge
from tasks_app.limits.quotas import quota
from tasks_app.memory.entries import holder_for
from tasks_app.memory.runs import RunMemory
from tasks_app.operations.admission import charge
from tasks_app.operations.advances import Advance, advances, give_back
from tasks_app.operations.attachments import check_references, store_files
from tasks_app.operations.capabilities import PUSH
from tasks_app.operations.choose_agent import choose_agent
from tasks_app.operations.creation import create_reply, create_task
from tasks_app.operations.fitness import fit
from tasks_app.operations.follow_up import follow_up
from tasks_app.operations.large import compute
from tasks_app.operations.operation import Context, Done, Follow, Grant, RunQuick
from tasks_app.operations.plan import Plan, with_ids
from tasks_app.operations.registration import check_address
from tasks_app.operations.repeat import MAX_ID, fingerprint, key_of, repeat, wait_for
from tasks_app.runner.quick import is_late, when_over

MAX_MODES = 100
"""Media types that a caller may name as accepted."""


async def send(request: SendMessage, context: Context) -> Grant:
    """Check the message, then begin a conversation with it, or add it to its task."""
    _check(request, context)
    if not request.message.message_id:
        # A language without message ids: no second message is the same as this one.
        request = replace(request, message=replace(request.message, message_id=uuid7()))
    if request.message.task_id is not None:
        return await follow_up(request, context, request.message.task_id)
    check_tenant(context.caller, request.tenant)
    agent = choose_agent(request, context)
    context.exchange.about_agent(agent.name)
    preferences = fit(request, agent, context)
    # The fingerprint covers the content and the agent, but not how the caller wants to wait.
    digest = await compute(context, fingerprint, request.message, agent.name)
    plan = _plan(request, context, agent, preferences, digest)
    arguments(plan.run)  # Refuse a message that does not fit the agent's inputs before there is a task.
    try:
        quota.check(plan.key.owner_id)
        with nullcontext() if plan.quick else account.new_work(plan.key.owner_id, agent.name):
            outcome = await _begin(plan)
    except (BudgetExceeded, RateLimited, Unavailable) as error:
        # An unavailable database may have stored the message all the same.
        if plan.files and not isinstance(error, Unavailable):
            await deletion_of(plan.files)
            plan.files = []
        # No limit refuses a message that was accepted before: its caller may not have had the answer.
        target = await FindKey(owner_id=plan.key.owner_id, key=plan.key.key)
        if target is None:
            raise
        outcome = target
    if isinstance(outcome, KeyTarget):
        # The key may be that of this very send, which was stored after all. Its rows refer to the files.
        is_own = (outcome.task_id, outcome.reply_id) == (plan.key.task_id, plan.key.turn_id)
        if plan.files and not is_own:
            await deletion_of(plan.files)
        return await repeat(request, context, outcome, plan.key.fingerprint)
    return _grant(request, plan, outcome)


async def _begin(plan: Plan) -> Answer | KeyTarget:
    """Store the conversation. Return the answer, or what the key stands for if the message was sent before."""
    request = plan.request
    await charge(plan)
    costs = plan.quick and plan.agent.cost is not None
    if request.push_config or has_large(request.message.parts) or costs:
        # Look up the key first, so that a message sent again stores no files, registers no address, and costs nothing,
        # whether a stored budget pays for the agent or its operator.
        target = await FindKey(owner_id=plan.key.owner_id, key=plan.key.key)
        if target is not None:
            return target
        if request.push_config:
            await check_address(request.push_config)
        await store_files(plan)
    if not plan.quick:
        return await create_task(plan, ())
    if plan.charge is None:
        return await _run_quickly(plan)
    if (advance := await advances.find(plan.charge)) is not None:
        return await _run_with_advance(plan, plan.charge, advance)
    return await _run_with_reservation(plan, plan.charge)


async def _run_with_reservation(plan: Plan, reservation: Charge) -> Answer | KeyTarget:
    """Reserve money for a quick agent, and run it. Whatever happens before its task is stored gives the money back."""
    try:
        plan.share = await Reserve(charge=reservation)
    except BudgetExceeded:
        raise
    except BaseException:
        insist(Release(charge=reservation, spent=0))  # The amount may be reserved in spite of the error.
        raise
    if plan.share < reservation.most:
        plan.run.spending.narrow(plan.share)
    since = monotonic()
    try:
        outcome = await _run_quickly(plan)
    except BaseException:
        # The agent may go on. Until its end its cost is not known.
        when_over(plan.run, lambda: give_back(Release, reservation, plan.final_cost(), since))
        raise
    if isinstance(outcome, KeyTarget):
        give_back(Release, reservation, plan.final_cost(), since)
    return outcome


async def _run_with_advance(plan: Plan, reservation: Charge, advance: Advance) -> Answer | KeyTarget:
    """Run a quick agent whose call draws on an advance. If the call stores no task, the advance settles for it."""
    plan.share, plan.advance = reservation.most, advance.id
    try:
        outcome = await _run_quickly(plan)
    except BaseException:
        if plan.is_writing or is_late(plan.run):
            when_over(plan.run, partial(_leave, plan, advance))
        else:
            advance.leave(plan.final_cost())
        raise
    cost = plan.final_cost()
    if cost > reservation.most:
        advance.exceed(cost - reservation.most)
    advance.leave(0 if isinstance(outcome, Answer) else cost)
    return outcome


def _leave(plan: Plan, advance: Advance) -> None:
    """Note the end of a call that was given up, on any thread."""
    if plan.is_writing:
        advance.leave_in_doubt(plan.key, plan.final_cost())
    else:
        advance.leave_elsewhere(plan.final_cost())


async def _run_quickly(plan: Plan) -> Answer | KeyTarget:
    """Run the quick agent, then store the conversation with its answer at once."""
    if plan.request.message.context_id is not None:
        caller, context_id = plan.context.caller, plan.run.context_id
        read = DoSlowly(lambda: conversation_of(caller.owner_id, context_id, agents=caller.agents), caller.owner_id)
        plan.run.conversation = await read
    try:
        result = await RunQuick(plan.run, plan.key.owner_id)
    except Unavailable:  # The agent had no place for the run. Nothing is stored but the files of the message.
        if plan.files:
            await deletion_of(plan.files)
        raise
    plan.files += result.files
    plan.is_writing = True
    if result.reply is not None:
        return await create_reply(plan, result.reply)
    return await create_task(plan, result.events, result.failure)


def _check(request: SendMessage, context: Context) -> None:
    """Check all that needs no database. Raises InvalidParams, MissingScope and PushNotSupported."""
    message = request.message
    if message.role is not Role.USER:
        raise InvalidParams(("message.role", "must be the user's: a caller does not speak for the agent"))
    if message.context_id is not None and len(message.context_id) > MAX_ID:
        raise InvalidParams(("message.contextId", f"must have {MAX_ID} characters at most"))
    check_references(message)
    if len(request.accepted_output_modes) > MAX_MODES:
        raise InvalidParams(("configuration.acceptedOutputModes", f"must have {MAX_MODES} entries at most"))
    if request.push_config is not None:
        check_right(context.caller, WRITE_WEBHOOKS, context.spelling)
        PUSH.check()


def _plan(request: SendMessage, context: Context, agent: Agent, preferences: Preferences, digest: str) -> Plan:
    """Return the plan of a conversation.

    Its ids are made before anything is stored, so that a write whose commit is in doubt can be tried again.
    """
    task_id, now = uuid7(), clock.now()
    context_id = request.message.context_id or own_context(task_id)
    message = with_ids(request.message, task_id, context_id)
    return Plan(
        agent=agent,
        request=request,
        context=context,
        run=Run(
            agent,
            task_id=task_id,
            context_id=context_id,
            message=message,
            history=(message,),
            metadata=request.metadata,
            preferences=preferences,
            files=run_files,
            memory=RunMemory(holder_for(context.caller, agent.name)),
        ),
        key=KeyRow(
            owner_id=context.caller.owner_id,
            key=key_of(message.message_id),
            fingerprint=digest,
            task_id=task_id,
            turn_id=None,
            created_at=now,
        ),
        now=now,
        preferences=preferences,
        quick=agent.is_quick(message) and not request.queued,
    )


def _grant(request: SendMessage, plan: Plan, answer: Answer) -> Grant:
    """Return the answer to a message that began a conversation, or the wait or the stream that leads to it."""
    document = answer.task
    if plan.streams:
        first = answer.message or plan.first
        if first is None:
            raise TypeError("a message made neither a task nor a reply")
        return Follow(first=first, history_length=request.history_length)
    if document is None or plan.answers_now:
        return Done(answer)
    return wait_for(request, document)
