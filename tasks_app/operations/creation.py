"""The work items that store a conversation: its task or its direct reply, with the exchange, in one group."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from a2a.answers import Answer
from a2a.dialects.json.json_1_0 import document
from a2a.events import Event, TaskCreated, apply, fold
from a2a.states import TERMINAL, TaskState
from a2a.types import Message, PushConfig, Status, Task
from tasks_app.database.rows import RunRow
from tasks_app.event_log import Create, CreateAdvanced, CreateCharged, CreateSettled, KeyTarget, deliveries
from tasks_app.ids import uuid7
from tasks_app.limits.budgets import Charge
from tasks_app.limits.draws import Draw
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations.first_rows import event_rows, file_rows, reply_row, task_row
from tasks_app.operations.large import compute
from tasks_app.operations.operation import Await, Context
from tasks_app.operations.plan import Plan
from tasks_app.operations.registration import webhook_row
from tasks_app.run_secrets import row_of
from tasks_app.usage import of_task


async def create_task(plan: Plan, later: Sequence[Event], failure: RunRow | None = None) -> Answer | KeyTarget:
    """Store the task with its first event and the later ones of a quick agent.

    Return the answer, or what the key stands for if the message was sent before.
    """
    context = plan.context
    item, answer = await compute(context, _creation, plan, later, failure)
    return _answer_or_target(context, item, await item, answer)


def _creation(plan: Plan, later: Sequence[Event], failure: RunRow | None) -> tuple[Create, Answer]:
    """Return the work item that stores the task, and the answer."""
    run, context = plan.run, plan.context
    task = Task(
        id=run.task_id,
        context_id=run.context_id,
        status=Status(state=TaskState.SUBMITTED, timestamp=plan.now),
        history=(run.message,),
        metadata=plan.request.metadata,
    )
    events: list[Event] = [TaskCreated(task=task), *later]
    task = fold(task, later)
    final = document(task, len(events), plan.agent.name)
    answer = Answer(task=final, history_length=plan.request.history_length)
    context.exchange.about(task.id, task.context_id, final.seq)
    exchange, body = context.exchange.halves(answer if plan.answers_now else None)
    rows = event_rows(plan, events, exchange.id if exchange else None)
    row = task_row(plan, final, task.status.timestamp, rows)
    files = file_rows(plan, run.task_id)
    entry = context.exchange.entry()
    kind, money = _money(plan, is_over=final.state in TERMINAL)
    item = kind(
        key=plan.key,
        task=row,
        events=rows,
        run=failure,
        exchange=exchange,
        body=body,
        entry=entry,
        files=files,
        **money,
    )
    item.secret = row_of(task.id, run.message.message_id, context.secrets)
    item.usage = context.usage and of_task(context.usage, task.id)
    if plan.request.push_config:
        _add_webhook(plan.request.push_config, item, plan)
    if plan.streams:
        plan.first = document(apply(None, events[0]), 1, plan.agent.name) if later else final
    return item, answer


def _add_webhook(config: PushConfig, item: Create, plan: Plan) -> None:
    """Add the webhook that came with the message, and the deliveries of the first events to it."""
    item.webhook = webhook_row(config, plan.run.task_id, plan.now, plan.context.caller)
    item.deliveries = deliveries(item.webhook.id, config.language, item.events, plan.now, item.webhook.notices)
    if item.deliveries:
        item.webhook.due_at = plan.now
    if item.task:
        item.task.pushes = True


async def create_reply(plan: Plan, reply: Message) -> Answer | KeyTarget:
    """Store a direct reply with its message.

    Return the answer, or what the key stands for if the message was sent before.
    """
    context, reply_id = plan.context, uuid7()
    plan.key.task_id, plan.key.turn_id = None, reply_id
    answer = Answer(message=reply)
    context.exchange.about(None, plan.run.context_id)
    exchange, body = context.exchange.halves(None if plan.streams else answer)
    if (encoding := context.exchange.answer) is not None:
        keep = partial(context.exchange.keep, encoding)
        if len(encoding) > LARGE:
            await Await(lambda: off_loop(keep))
        else:
            keep()
    row, files = reply_row(plan, reply_id, reply), file_rows(plan, reply_id)
    entry = context.exchange.entry()
    kind, money = _money(plan, is_over=True)
    item = kind(key=plan.key, exchange=exchange, body=body, entry=entry, files=files, reply=row, **money)
    return _answer_or_target(context, item, await item, answer)


def _money(plan: Plan, *, is_over: bool) -> tuple[type[Create], dict[str, Any]]:
    """Return the class of the item, and what the item does to stored budgets, if its caller has any."""
    if (charge := plan.charge) is None:
        return Create, {}
    if not plan.quick:
        return CreateCharged, {"charge": charge}
    # What a quick agent has reserved stays reserved while its task waits for an answer.
    if plan.advance:
        return CreateAdvanced, {"charge": charge, "draws": _draws(plan, charge, is_over=is_over)}
    return (CreateSettled, {"charge": charge, "spent": plan.final_cost()}) if is_over else (Create, {})


def _draws(plan: Plan, charge: Charge, *, is_over: bool) -> list[Draw]:
    """Return what the call of a quick agent draws on its advance."""
    moved, spent = 0 if is_over else plan.share, plan.final_cost()
    return [
        Draw(advance=plan.advance, budget_id=id, moved=moved, spent=spent, task=charge.task_id) for id in charge.budgets
    ]


def _answer_or_target(context: Context, item: Create, target: KeyTarget | None, answer: Answer) -> Answer | KeyTarget:
    # For a message that was sent before, none of the rows was written, nor that of the exchange.
    if target is not None:
        context.exchange.undo()
        return target
    context.exchange.confirm(item.exchange)
    if item.usage is not None:
        context.usage = None
    return answer
