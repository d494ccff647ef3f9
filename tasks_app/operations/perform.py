"""The table of operations and what drives them."""

from collections.abc import Awaitable
from functools import partial
from typing import Any, assert_never

from a2a.answers import Result
from a2a.errors import TaskNotFound
from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    GetExtendedCard,
    GetPushConfig,
    GetTask,
    ListPushConfigs,
    ListTasks,
    Request,
    SendMessage,
    StreamMessage,
    SubscribeToTask,
)
from a2a.states import TaskState
from tasks_app.callers import access
from tasks_app.callers.access import Caller, check_scope
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, DoSlowly
from tasks_app.event_log.readers import readers
from tasks_app.models import Task
from tasks_app.operations import cards, messages, push_configs, tasks
from tasks_app.operations.capabilities import EXTENDED_CARD, PUSH, STREAMING
from tasks_app.operations.shape import Await, Context, Done, Follow, Left, Operation, RunQuick, Steps, Wait
from tasks_app.operations.waiting import wait_on
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.runner.quick import play_quickly

OPERATIONS: dict[type[Request], Operation] = {
    SendMessage: Operation(messages.send, access.WRITE),
    StreamMessage: Operation(messages.send, access.WRITE, STREAMING),
    GetTask: Operation(tasks.get, access.READ),
    ListTasks: Operation(tasks.list_tasks, access.READ),
    CancelTask: Operation(tasks.cancel, access.CANCEL),
    SubscribeToTask: Operation(tasks.subscribe, access.READ, STREAMING),
    CreatePushConfig: Operation(push_configs.create, access.WRITE, PUSH),
    GetPushConfig: Operation(push_configs.get, access.READ, PUSH),
    ListPushConfigs: Operation(push_configs.list_configs, access.READ, PUSH),
    DeletePushConfig: Operation(push_configs.delete, access.WRITE, PUSH),
    GetExtendedCard: Operation(cards.extended_card, access.READ, EXTENDED_CARD),
}


def check_may(caller: Caller, kind: type[Request]) -> None:
    """Raises MissingScope, and the error of a capability that is switched off."""
    operation = OPERATIONS[kind]
    check_scope(caller, operation.scope)
    if operation.capability:
        operation.capability.check()


async def perform(request: Request, context: Context) -> Result | Follow | Wait:
    """Grants a request; a wait that outlasts the context's patience is returned as it is. Raises the errors of
    a2a/errors.py, and Left."""
    # Before the work: it may be done before anybody waits for it.
    readers.bind()
    outcome = await _drive(OPERATIONS[type(request)].steps(request, context), context)
    match outcome:
        case Done(result):
            return result
        case Wait():
            return await wait_on(outcome, context)
        case Follow():
            return outcome
        case _:
            assert_never(outcome)


async def _drive(steps: Steps, context: Context) -> Done | Wait | Follow:
    try:
        item = next(steps)
        while True:
            try:
                value = await _result(item, context)
            except Left:
                raise
            except Exception as error:  # noqa: BLE001  # the operation decides
                item = steps.throw(error)
            else:
                item = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # what the generator returned
    finally:
        steps.close()  # Of a caller who left nothing is counted as in flight, however long the error is kept.


def _result(item: Any, context: Context) -> Awaitable[Any]:
    match item:
        case RunQuick(run):
            return play_quickly(run)
        case Await(start):
            return start()
        case _:
            return bridge.ask(item, left=context.left)


def perform_now(request: Request, context: Context) -> Result:
    """The synchronous half, for threads: the admin and commands. It neither waits nor follows."""
    check_may(context.caller, type(request))
    steps = OPERATIONS[type(request)].steps(request, context)
    try:
        item: Any = next(steps)
        while True:
            try:
                value = bridge.do(item)
            except Exception as error:  # noqa: BLE001  # the operation decides
                item = steps.throw(error)
            else:
                item = steps.send(value)
    except StopIteration as end:
        if isinstance(end.value, Done):
            return end.value.result
        raise TypeError(f"{type(request).__name__} waits or streams; use perform") from None


def cancel_for_operator(task_id: str, by: Operator) -> None:
    """Cancel anybody's task, in its owner's name, and write it down as the operator's act. Raises TaskNotFound and
    TaskNotCancelable."""
    found = bridge.do(DoSlowly(lambda: Task.objects.select_related("owner", "tenant").filter(pk=task_id).first()))
    if found is None:
        raise TaskNotFound(taskId=task_id)
    owner = Caller(
        tenant_id=found.tenant_id, tenant=found.tenant.name, owner_id=found.owner_id, name=found.owner.name,
        scopes=frozenset({"*"}),
    )  # fmt: skip
    perform_now(CancelTask(id=task_id), Context(caller=owner, actor=f"operator:{by.name}"[:64]))
    change = Change(found, {"state": found.state}, {"state": TaskState.CANCELED.value})
    bridge.do(Do(partial(record_acts, by, "cancel", change)))
