"""Send: a new task, the next turn of one, or a bare reply; waiting, at once, or as a stream (A2A 1.0, 3.1.1, 3.1.2)."""

import hashlib
from contextlib import nullcontext
from typing import Any

import orjson
from django.conf import settings
from django.db import IntegrityError
from msgspec.structs import replace

from a2a.acting import arguments
from a2a.agents import Agent, registry
from a2a.answers import Answer
from a2a.dialects.json.json_1_0 import decode_message, encode_message
from a2a.errors import IdempotencyConflict, InvalidParams, RateLimited, TaskNotFound, Unavailable, UnknownAgent
from a2a.events import MessageAdded
from a2a.requests import SendMessage, StreamMessage
from a2a.run import Run, Wants
from a2a.states import INTERRUPTED, TERMINAL, TaskState
from a2a.types import Message, Role, Status
from tasks_app import clock
from tasks_app.callers.access import check_tenant, for_agents, sight
from tasks_app.callers.account import account
from tasks_app.database.rows import KeyRow
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import Append, Appended, FindKey, Full, Head, Known, ReadTask, TaskRead, change, seq_of_message
from tasks_app.event_log.conversation import conversation_of
from tasks_app.files import StoredParts, deletion_of, has_large, run_files
from tasks_app.ids import own_context, uuid7
from tasks_app.models import Turn
from tasks_app.operations.attachments import check_references, digested, drop, keep_files, kept_of
from tasks_app.operations.capabilities import PUSH
from tasks_app.operations.creation import Plan, create_task, create_turn
from tasks_app.operations.fitness import fit
from tasks_app.operations.push_configs import check_address, check_room, webhook_row
from tasks_app.operations.shape import Context, Done, Follow, RunQuick, Steps, Wait
from tasks_app.operations.tasks import as_of, check_growth, ended, find
from tasks_app.runner.quick import Played

MAX_ID = 255
"""Characters of a context id or message id that are stored as they are."""
MAX_MODES = 100


def send(request: SendMessage, context: Context) -> Steps:
    """Checks the message, then goes the way of a new conversation or of one that has a task."""
    _check(request)
    message = request.message
    if message.task_id is not None:
        return (yield from _continue(request, context, message.task_id))
    check_tenant(context.caller, request.tenant)
    agent = choose_agent(request, context)
    wants = fit(request, agent, context)
    plan = _plan(request, context, agent, wants)
    arguments(plan.run)  # A message that does not fit the agent's inputs makes no task.
    try:
        with nullcontext() if plan.quick else account.new_work(plan.key.owner_id, agent.name):
            made = yield from _made(plan)
    except (RateLimited, Unavailable):
        # What was accepted before is never refused: its answer may have been lost.
        made = yield FindKey(owner_id=plan.key.owner_id, key=plan.key.key)
        if made is None:
            raise
    if isinstance(made, Known):
        if plan.files:
            yield deletion_of(plan.files)
        return (yield from _again(request, context, made, plan.key.fingerprint))
    return _outcome(request, plan, made)


def _made(plan: Plan):  # type: ignore[no-untyped-def]  # a part of a generator
    """Stores what the message makes; the answer, or Known if the message is not new."""
    request = plan.request
    if request.push_config or has_large(request.message.parts):
        known = yield FindKey(owner_id=plan.key.owner_id, key=plan.key.key)
        if known is not None:
            return known
        if request.push_config:
            yield from check_address(request.push_config)
        yield from keep_files(plan)
    return (yield from _quickly(plan)) if plan.quick else (yield from create_task(plan, ()))


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


def choose_agent(request: SendMessage, context: Context) -> Agent:
    """The agent of the address, else the one or the skill that the metadata names, else the default. Raises
    UnknownAgent: an unknown name is never a silent default."""
    metadata = request.metadata or {}
    if context.agent is not None:
        return _known(registry.get(context.agent), agent=context.agent)
    if "agent" in metadata:
        name = _text(metadata["agent"], "metadata.agent")
        return _known(registry.get(name), agent=name)
    if "skill" in metadata:
        skill = _text(metadata["skill"], "metadata.skill")
        return _known(registry.with_skill(skill), skill=skill)
    return _known(registry.get(settings.A2A_DEFAULT_AGENT), agent=settings.A2A_DEFAULT_AGENT)


def _known(found: Agent | None, **asked: str) -> Agent:
    if found is None:
        raise UnknownAgent(**{name: value[:64] for name, value in asked.items()})
    return found


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidParams((field, "must be a string"))
    return value


def _plan(request: SendMessage, context: Context, agent: Agent, wants: Wants) -> Plan:
    """Ids are made here, before anything is stored, so that a doubtful commit can be tried again."""
    task_id, now = uuid7(), clock.now()
    context_id = request.message.context_id or own_context(task_id)
    # The fingerprint is of what was said and to whom; how the caller wants to wait is not part of it.
    print_of = fingerprint(request.message, agent.name)
    message = _placed(request.message, task_id, context_id)
    return Plan(
        agent=agent,
        request=request,
        context=context,
        run=Run(
            agent, task_id=task_id, context_id=context_id, message=message, history=(message,),
            metadata=request.metadata, wants=wants, files=run_files,
        ),
        key=KeyRow(
            owner_id=context.caller.owner_id, key=key_of(message.message_id), fingerprint=print_of, task_id=task_id,
            turn_id=None, created_at=now,
        ),
        now=now,
        wants=wants,
        quick=agent.is_quick(message),
    )  # fmt: skip


def _placed(message: Message, task_id: str, context_id: str) -> Message:
    """The message with the ids of the task it belongs to."""
    return Message(
        message_id=message.message_id, role=message.role, parts=message.parts, context_id=context_id, task_id=task_id,
        metadata=message.metadata, extensions=message.extensions, reference_task_ids=message.reference_task_ids,
    )  # fmt: skip


def key_of(message_id: str) -> str:
    """Return the key that remembers the message id; where ids are not remembered, a key that nothing asks for again."""
    if not settings.A2A_KEY_HOURS:
        return uuid7()
    return message_id if len(message_id) <= MAX_ID else "sha256:" + hashlib.sha256(message_id.encode()).hexdigest()


def fingerprint(message: Message, agent: str | None) -> str:
    """Equal for the same message to the same agent, in whatever dialect it came."""
    if any(part.raw is not None for part in message.parts):
        message = digested(message)
    wire = orjson.dumps([agent, encode_message(message)], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(wire).hexdigest()


def _quickly(plan: Plan):  # type: ignore[no-untyped-def]  # a part of a generator
    """Runs the agent first, then stores everything at once."""
    if plan.request.message.context_id is not None:
        owner, context_id = plan.context.caller.owner_id, plan.run.context_id
        plan.run.conversation = yield DoSlowly(lambda: conversation_of(owner, context_id), owner)
    played: Played = yield RunQuick(plan.run)
    plan.files += played.files
    if played.reply is not None:
        return (yield from create_turn(plan, played.reply))
    return (yield from create_task(plan, played.events, played.failure))


def _outcome(request: SendMessage, plan: Plan, made: Answer) -> Done | Wait | Follow:
    """The answer to a message that made something."""
    document = made.task
    if isinstance(request, StreamMessage):
        first = made.message or plan.created
        if first is None:
            raise TypeError("a message made neither a task nor a reply")
        return Follow(first=first, history_length=request.history_length)
    if document is None or plan.quick or request.return_immediately:
        return Done(made)
    return Wait(
        task_id=document.id, context_id=document.context_id, after=document.seq, history_length=request.history_length
    )


def _again(request: SendMessage, context: Context, known: Known, print_of: str) -> Steps:
    """The message id was used before: the same message gets the same outcome, another one is a conflict."""
    if known.fingerprint != print_of:
        raise IdempotencyConflict(messageId=request.message.message_id[:MAX_ID])
    if known.turn_id is not None:
        turn: Turn | None = yield DoSlowly(
            lambda: Turn.objects.filter(pk=known.turn_id).first(), context.caller.owner_id
        )
        if turn is None:
            # Forgotten before its key, like a task.
            raise TaskNotFound
        if context.exchange:
            context.exchange.row.task_id = context.exchange.row.last_seq = None
            context.exchange.about(None, turn.context_id)
        reply = decode_message(orjson.loads(turn.reply))
        return Follow(first=reply) if isinstance(request, StreamMessage) else Done(Answer(message=reply))
    task_id = known.task_id or ""
    if context.exchange:
        context.exchange.about(task_id)
    history = request.history_length != 0
    read: TaskRead | None = yield ReadTask(task_id=task_id, sight=sight(context.caller, task_id), history=history)
    if read is None:
        raise TaskNotFound(taskId=task_id)
    if context.exchange:
        context.exchange.about(task_id, read.document.context_id, read.document.seq)
    if not isinstance(request, StreamMessage):
        return _wait_or_done(request, read)
    # Its stream begins, as the first time, where the message was stored: not before an older question.
    message_id = request.message.message_id
    stored: int = yield DoSlowly(lambda: seq_of_message(task_id, message_id), context.caller.owner_id)
    seq = min(max(request.after or 1, stored), read.document.seq)
    first = yield from as_of(task_id, read.document.context_id, seq)
    return Follow(first=first or read.document, history_length=request.history_length)


def _wait_or_done(request: SendMessage, read: TaskRead) -> Done | Wait:
    document = read.document
    if request.return_immediately or TaskState(document.state) in TERMINAL | INTERRUPTED:
        return Done(Answer(task=document, history_length=request.history_length))
    return Wait(
        task_id=document.id, context_id=document.context_id, after=document.seq, history_length=request.history_length
    )


def _continue(request: SendMessage, context: Context, task_id: str) -> Steps:
    """The next message of a task: an interrupted one becomes runnable again, a working one hears it in its inbox."""
    caller, message = context.caller, request.message
    key = key_of(message.message_id)
    kept: StoredParts | None = None
    while True:
        head: Head = yield from find(context, task_id, request.tenant)
        agent = registry.get(head.agent)
        wants = fit(request, agent, context) if agent else Wants(caller=for_agents(caller))
        if message.context_id is not None and message.context_id != head.context_id:
            raise InvalidParams(("message.contextId", "is not the context of the task"))
        placed = _placed(message, task_id, head.context_id)
        print_of = fingerprint(placed, None)
        known = yield FindKey(owner_id=caller.owner_id, key=key)
        if known is not None:
            yield from drop(kept)
            return (yield from _again(request, context, known, print_of))
        if TaskState(head.state) in TERMINAL:
            raise ended(head)
        check_growth(head)
        webhook = yield from _webhook(request, context, task_id)
        kept = kept or (yield from kept_of(message, task_id))
        item = _next_turn(
            context, head, replace(placed, parts=kept.parts), key, print_of,
            wants=wants.json(), files=kept.rows, webhook=webhook, pushing=webhook is not None,
        )  # fmt: skip
        check_growth(head, item.size)
        try:
            # An answer to a question is work again.
            with account.new_work(caller.owner_id, head.agent) if item.state else nullcontext():
                appended = yield item
        except (IntegrityError, Full):
            # The same message in another call, or the last webhook that there was room for: found next time round.
            appended = None
        if context.exchange:
            context.exchange.stored(item.exchange)
        if isinstance(appended, Appended):
            return (yield from _continued(request, context, task_id, appended.seq))
        if context.exchange:
            context.exchange.unwritten()


def _next_turn(context: Context, head: Head, message: Message, key: str, print_of: str, **more: Any) -> Append:
    """The message as an event of the task, which becomes runnable by it if it waited; further arguments are those of
    Append."""
    caller, state, now = context.caller, TaskState(head.state), clock.now()
    status = Status(state=TaskState.SUBMITTED, timestamp=now) if state in INTERRUPTED else None
    row, body = context.exchange.halves(None) if context.exchange else (None, None)
    item = change(
        head.task_id, head.context_id, [MessageAdded(message=message, status=status)], now=now, actor=context.actor,
        sight=sight(caller, head.task_id), exchange=row, body=body, tries=-head.tries if status else 0,
        key=KeyRow(
            owner_id=caller.owner_id, key=key, fingerprint=print_of, task_id=head.task_id, turn_id=None, created_at=now
        ),
        **more,
    )  # fmt: skip
    item.sources = [state.value]
    # Looked at again where it is stored: many messages may come at once.
    item.most_size, item.most_messages = settings.A2A_TASK_CHARACTERS, settings.A2A_TASK_MESSAGES
    return item


def _webhook(request: SendMessage, context: Context, task_id: str):  # type: ignore[no-untyped-def]  # a part of a generator
    """The row of the webhook that comes with a message to a task that exists, if one does."""
    if request.push_config is None:
        return None
    yield from check_address(request.push_config)
    row = webhook_row(request.push_config, task_id, clock.now(), context.caller.key_id)
    yield from check_room(request.push_config, row)
    return row


def _continued(request: SendMessage, context: Context, task_id: str, seq: int) -> Steps:
    """The answer to a message that was appended as that event."""
    read: TaskRead = yield ReadTask(task_id=task_id, sight=None, history=request.history_length != 0)
    if context.exchange:
        context.exchange.about(task_id, read.document.context_id, read.document.seq)
    if not isinstance(request, StreamMessage):
        return _wait_or_done(request, read)
    first = yield from as_of(task_id, read.document.context_id, seq)
    return Follow(first=first or read.document, history_length=request.history_length)
