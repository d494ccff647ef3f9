"""The table of operations, and the functions that perform a request: on a loop or on a thread."""

from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import assert_never

from django.conf import settings

from a2a.answers import Result
from a2a.batches import ExecuteBatch
from a2a.errors import TaskNotFound, Unavailable
from a2a.language import Spelling
from a2a.memory import DeleteMemory, ListMemory, RetrieveMemory, SearchMemory, StoreMemory
from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    Describe,
    EndSharedStream,
    Execute,
    FollowSharedStream,
    FollowTask,
    GetExtendedCard,
    GetPushConfig,
    GetTask,
    Invoke,
    ListPushConfigs,
    ListTasks,
    Negotiate,
    NotifyOfTask,
    Request,
    SendChunk,
    SendMessage,
    SendToSharedStream,
    StartSharedStream,
    StreamInvoke,
    StreamMessage,
    SubscribeToTask,
)
from a2a.states import TaskState
from a2a.workflows import ExecuteWorkflow, GetCapabilities, GetWorkflow, SendInPhase, SetPhase, StreamInPhase
from tasks_app.callers.access import Caller, check_right
from tasks_app.callers.scopes import CANCEL, READ, READ_STREAMS, READ_WEBHOOKS, WRITE, WRITE_STREAMS, WRITE_WEBHOOKS
from tasks_app.database.bridge import VITAL, bridge
from tasks_app.database.work import DoSlowly, Work
from tasks_app.event_log.readers import readers
from tasks_app.limits.rates import SEND_COST
from tasks_app.models import Task
from tasks_app.operations import (
    batches,
    cards,
    descriptions,
    memory,
    notifications,
    shared_streams,
    tasks,
    webhooks,
    workflows,
)
from tasks_app.operations.capabilities import EXTENDED_CARD, PUSH, STREAMING
from tasks_app.operations.execute import execute
from tasks_app.operations.invoke import invoke
from tasks_app.operations.negotiate import negotiate
from tasks_app.operations.operation import Await, CallerLeft, Context, Done, Follow, Grant, Operation, RunQuick, Wait
from tasks_app.operations.send import send
from tasks_app.operations.waiting import RETRY_SECONDS, wait_on
from tasks_app.operators.audit import Change, Operator, act_row
from tasks_app.runner.quick import play_quickly


def scope_of(kind: type[Request]) -> str:
    """Return the scope that a request needs."""
    return OPERATIONS[kind].right.scope


OPERATIONS: dict[type[Request], Operation] = {
    SendMessage: Operation(send, WRITE, cost=SEND_COST),
    StreamMessage: Operation(send, WRITE, STREAMING, cost=SEND_COST),
    Invoke: Operation(invoke, WRITE, cost=SEND_COST),
    StreamInvoke: Operation(invoke, WRITE, STREAMING, cost=SEND_COST),
    Execute: Operation(execute, WRITE, cost=SEND_COST),
    Negotiate: Operation(negotiate, READ),
    GetTask: Operation(tasks.get, READ),
    ListTasks: Operation(tasks.list_tasks, READ, cost=5),
    CancelTask: Operation(tasks.cancel, CANCEL, cost=2),
    SubscribeToTask: Operation(tasks.subscribe, READ, STREAMING, cost=5),
    FollowTask: Operation(tasks.subscribe, READ_WEBHOOKS, STREAMING, cost=5),
    CreatePushConfig: Operation(webhooks.create, WRITE_WEBHOOKS, PUSH, cost=5),
    GetPushConfig: Operation(webhooks.get, READ_WEBHOOKS, PUSH),
    ListPushConfigs: Operation(webhooks.list_configs, READ_WEBHOOKS, PUSH),
    DeletePushConfig: Operation(webhooks.delete, WRITE_WEBHOOKS, PUSH, cost=2),
    StartSharedStream: Operation(shared_streams.start, WRITE_STREAMS, cost=5),
    FollowSharedStream: Operation(shared_streams.follow, READ_STREAMS, STREAMING, cost=5),
    SendToSharedStream: Operation(shared_streams.send_message, WRITE_STREAMS, cost=10),
    SendChunk: Operation(shared_streams.send_chunk, WRITE_STREAMS),
    EndSharedStream: Operation(shared_streams.end, WRITE_STREAMS, cost=2),
    ExecuteBatch: Operation(batches.execute, WRITE, cost=SEND_COST),
    StoreMemory: Operation(memory.store_entry, WRITE, cost=2),
    RetrieveMemory: Operation(memory.retrieve, READ),
    ListMemory: Operation(memory.list_memory, READ, cost=5),
    DeleteMemory: Operation(memory.delete_entry, WRITE, cost=2),
    SearchMemory: Operation(memory.search_memory, READ, cost=5),
    SendInPhase: Operation(workflows.send_in_phase, WRITE, cost=SEND_COST),
    StreamInPhase: Operation(workflows.send_in_phase, WRITE, STREAMING, cost=SEND_COST),
    SetPhase: Operation(workflows.set_phase, WRITE, cost=2),
    ExecuteWorkflow: Operation(workflows.execute, WRITE, cost=SEND_COST),
    GetWorkflow: Operation(workflows.get, READ, cost=2),
    GetCapabilities: Operation(workflows.capabilities, READ),
    NotifyOfTask: Operation(notifications.receive, READ_WEBHOOKS),
    GetExtendedCard: Operation(cards.extended_card, READ, EXTENDED_CARD),
    Describe: Operation(partial(descriptions.describe, scope_of=scope_of), READ),
}


def cost_of(kind: type[Request]) -> int:
    """Return what a request costs its caller under a rate limit."""
    costs: dict[str, int] = settings.A2A_OPERATION_COSTS
    return costs.get(kind.__name__, OPERATIONS[kind].cost) if costs else OPERATIONS[kind].cost


def authorize(kind: type[Request], caller: Caller, spelling: Spelling = "own") -> None:
    """Check the caller's right and the operation's capability. Raises MissingScope, and the error of the capability.

    Doors call it before they decode params, so that a caller without the right learns nothing else.
    """
    operation = OPERATIONS[kind]
    check_right(caller, operation.right, spelling)
    if operation.capability:
        operation.capability.check()


async def perform(request: Request, context: Context) -> Result | Follow | Wait:
    """Perform a request. A wait that lasts longer than the context's patience is returned as a Wait.

    Raises the errors of a2a/errors.py, and CallerLeft.
    """
    kind = type(request)
    authorize(kind, context.caller, context.spelling)
    if kind.changes and readers.draining:
        raise Unavailable(retry_after=RETRY_SECONDS)
    # Before the work, which may end before the wait for it begins.
    readers.bind()
    grant = await _drive(OPERATIONS[kind].function(request, context), context)
    match grant:
        case Done(result):
            return result
        case Wait():
            return await wait_on(grant, context)
        case Follow():
            return grant
        case _:
            assert_never(grant)


async def _drive(operation: Coroutine[object, object, Grant], context: Context) -> Grant:
    """Run an operation on a loop. Exceptions of a step, apart from CallerLeft, are raised at its await."""
    try:
        step = operation.send(None)
        while True:
            try:
                value = await _value_of(step, context)
            except CallerLeft:
                raise
            except Exception as error:  # noqa: BLE001  # the operation decides
                step = operation.throw(error)
            else:
                step = operation.send(value)
    except StopIteration as end:
        grant: Grant = end.value
        return grant
    finally:
        # When the caller has left, this ends the operation's `with` blocks at once, such as its count of new work.
        # Otherwise they would last as long as the exception, whose traceback refers to the operation.
        operation.close()


def _value_of(step: object, context: Context) -> Awaitable[object]:
    """Return an awaitable of the value that the operation waits for. Raises TypeError for any other await."""
    value: Awaitable[object]
    match step:
        case Work():
            value = bridge.ask(step, departure=context.departure, on_delay=context.end_turn)
            if step.lane in VITAL:
                return value
        case RunQuick(run, owner_id):
            value = play_quickly(run, owner_id)
        case Await(start):
            value = start()
        case _:
            raise TypeError(f"an operation awaits {step!r}: it may await work items, Await and RunQuick")
    # A slow step has limits of its own, and would hold up the further calls of its owner.
    return value if context.turn is None else context.turn.wait_outside(value)


def perform_now(request: Request, context: Context) -> Result:
    """Perform a request on a thread, for the admin and commands. It neither waits nor streams."""
    authorize(type(request), context.caller)
    grant = _drive_now(OPERATIONS[type(request)].function(request, context))
    if isinstance(grant, Done):
        return grant.result
    raise TypeError(f"{type(request).__name__} waits or streams; use perform")


def _drive_now(operation: Coroutine[object, object, Grant]) -> Grant:
    """Run an operation on a thread without a loop, where it may await work items only."""
    try:
        step = operation.send(None)
        while True:
            try:
                if not isinstance(step, Work):
                    raise TypeError(f"an operation awaits {step!r}: on a thread it may await work items only")
                value = bridge.do(step)
            except Exception as error:  # noqa: BLE001  # the operation decides
                step = operation.throw(error)
            else:
                step = operation.send(value)
    except StopIteration as end:
        grant: Grant = end.value
        return grant
    finally:
        operation.close()


def cancel_for_operator(task_id: str, by: Operator, *further: Change) -> None:
    """Cancel a task of any owner, with the owner as caller, and record it as the operator's act in the same
    transaction, with further changes of rows of the same tenant.

    Raises TaskNotFound and TaskNotCancelable.
    """
    task = bridge.do(DoSlowly(lambda: Task.objects.select_related("owner", "tenant").filter(pk=task_id).first()))
    if task is None:
        raise TaskNotFound(taskId=task_id)
    owner = Caller(
        tenant_id=task.tenant_id,
        tenant=task.tenant.name,
        owner_id=task.owner_id,
        name=task.owner.name,
        scopes=frozenset({"*"}),
        rules=(),  # The rules of the owner do not bind the operator.
    )
    change = Change(task, {"state": task.state}, {"state": TaskState.CANCELED.value})
    acts = tuple(act_row(by, "cancel", each, task.tenant_id) for each in (change, *further))
    perform_now(CancelTask(id=task_id), Context(caller=owner, actor=f"operator:{by.name}"[:64], acts=acts))
