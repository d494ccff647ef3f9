"""The conductor goes on with workflows: it writes the ends of their tasks, begins the next task of each execution, and
cancels what is left of canceled workflows.

The rows are the queue: a step that is due may be taken by the conductor of any process. The message to the agent of a
phase has the same id in each process, so a step that is taken twice begins one task.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import orjson
from django.utils.crypto import salted_hmac
from msgspec.structs import replace

from a2a.answers import Answer
from a2a.dialects.json.json_1_0 import decode_part
from a2a.errors import Error, RateLimited, TaskNotCancelable, TaskNotFound, Unavailable
from a2a.requests import CancelTask, SendMessage
from a2a.states import TERMINAL
from a2a.types import Message, Role
from a2a.workflows import Phase
from tasks_app.callers.access import Caller, caller_of_work
from tasks_app.callers.permissions import check_permission
from tasks_app.callers.scopes import CANCEL
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, DoSlowly
from tasks_app.event_log import ReadHead
from tasks_app.event_log.rounds import Rounds
from tasks_app.hints import Reached
from tasks_app.limits.rate_limits import cost_of_send, limits
from tasks_app.models import PhaseTask, Workflow
from tasks_app.operations.dispatcher import perform
from tasks_app.operations.operation import Context
from tasks_app.operations.pauses import shorten
from tasks_app.operations.repeat import find_sent
from tasks_app.operations.workflows import agent_of, settle_ended
from tasks_app.workflows import leases
from tasks_app.workflows import log as rows

log = logging.getLogger(__name__)
AT_ONCE = 50
"""Steps that one process takes together."""
WATCHED = 10_000
"""Tasks whose ends one process hears of at once, the newest. It finds the ends of others when it looks again."""


LOCK_SECONDS = 0.25
"""The longest wait for the row of a workflow that another transaction has locked, before its task ends are left."""


class Conductor(Rounds):
    """The conductor of this process, on the loop of its doors."""

    def __init__(self) -> None:
        super().__init__("workflows", self.step)
        self.watched: OrderedDict[str, None] = OrderedDict()
        """Tasks of phases that have not ended, as far as this process knows, the oldest first."""
        self.steps: list[Workflow] = []
        """The steps of the round under way."""

    def hear(self, news: list[Reached]) -> None:
        """Look when a task of a phase has ended. Any thread may call it."""
        if ended := [item.task_id for item in news if item.state in TERMINAL and item.task_id in self.watched]:
            self.call(self._take_in, ended)

    def _take_in(self, ended: list[str]) -> None:
        for task_id in ended:
            self.watched.pop(task_id, None)
        self.wakeup.set()

    def release(self) -> Callable[[], object] | None:
        steps, self.steps = self.steps, []
        return partial(leases.release, steps) if steps else None

    async def step(self) -> int:
        """Write the ends of tasks, take the steps that are due, and cancel the tasks of canceled workflows; return how
        many there were of all three."""
        ended = await settle_ended(partial(bridge.ask, patience=LOCK_SECONDS))
        due = self.steps = await bridge.ask(Do(partial(leases.take_due, AT_ONCE)))
        limited = set[int]()
        for place, row in enumerate(due):
            if row.owner_id not in limited and (pause := await self._take(row)):
                limited.add(row.owner_id)
                await bridge.ask(Do(partial(leases.put_off_owner, row.owner_id, pause, due[place:])))
        self.steps = []
        canceled = 0
        for task in await bridge.ask(DoSlowly(partial(rows.tasks_to_cancel, AT_ONCE))):
            canceled += await _cancel(task)
        if ended or len(due) == AT_ONCE or canceled:
            self.wakeup.set()  # There may be more behind these, and canceled tasks have ends to write.
        return ended + len(due) + canceled

    async def _take(self, row: Workflow) -> float:
        """Begin the next task of an execution. Return the seconds of a pause if its owner has reached a limit, else 0.

        All executions of that owner then wait: if each tried for itself, they would only delay those of other owners.
        Raises nothing but CancelledError.
        """
        try:
            task_id = await _begin(row)
        except RateLimited as error:
            return shorten(error.retry_after)
        except Unavailable as error:
            await bridge.ask(Do(partial(leases.put_off, row.pk, error.retry_after)))
        except Error as error:
            await bridge.ask(Do(partial(rows.stop, row.pk, error.message)))
        except Exception:
            log.exception("the workflow %s waits for another attempt", row.pk)
        else:
            if task_id is not None:
                self._watch(task_id)
        return 0

    def _watch(self, task_id: str) -> None:
        self.watched[task_id] = None
        if len(self.watched) > WATCHED:
            self.watched.popitem(last=False)  # Its end may have come before it was watched, or without a hint.
        self.wakeup.set()  # The task may have ended already.


async def _begin(row: Workflow) -> str | None:
    """Send the message of an execution to the agent of the current phase, and add the task to the phase.

    Return the task; None if another process may have taken the step.
    """
    phase, caller = Phase(row.phase), caller_of_work(row)
    tries = await bridge.ask(Do(partial(leases.tries_of, row)))
    if tries is None:
        return None
    message_id = _message_id(row.pk, phase, tries)
    task_id, agent = await _find_former(caller, message_id) or await _send(row, phase, caller, message_id)
    await bridge.ask(Do(partial(rows.add_task, row.pk, phase, task_id, agent, is_executed=True)))
    return task_id


async def _find_former(caller: Caller, message_id: str) -> tuple[str, str] | None:
    """Return the task and its agent if a process has sent the message and died.

    To send it again would be a conflict if the phase has another agent in this process, as after a deployment.
    """
    target = await find_sent(caller.owner_id, message_id)
    if target is None or target.task_id is None:
        return None
    head = await bridge.ask(ReadHead(task_id=target.task_id, sight=None))
    return (head.task_id, head.agent) if head is not None else None


async def _send(row: Workflow, phase: Phase, caller: Caller, message_id: str) -> tuple[str, str]:
    """Send the message to the agent of the phase; return the task and the agent."""
    check_permission(caller, "phase", phase.value)
    agent = row.address or agent_of(caller, phase, tuple(orjson.loads(row.agent_types))).name
    message = Message(
        message_id=message_id,
        role=Role.USER,
        parts=tuple(decode_part(part) for part in orjson.loads(row.message)),
        context_id=row.context_id,
    )
    metadata = orjson.loads(row.configuration) | {"workflowId": row.name, "sparcPhase": phase.value}
    request = SendMessage(message=message, return_immediately=True, queued=True, agent=agent, metadata=metadata)
    async with limits.paid(caller, cost_of_send()):
        result = await perform(request, Context(caller=caller))
    if not isinstance(result, Answer) or result.task is None:
        raise TypeError("a queued send that returns at once gives a task")
    return result.task.id, agent


async def _cancel(task: PhaseTask) -> bool:
    """Cancel a task of a canceled workflow, and return whether that was done. Raises nothing but CancelledError."""
    # Neither the scopes of the call that executed it nor the permissions of its owner bind the operator.
    caller = replace(caller_of_work(task.workflow), scopes=frozenset({CANCEL.scope}), rules=())
    try:
        await perform(CancelTask(id=task.task_id), Context(caller=caller, actor="conductor"))
    except (TaskNotCancelable, TaskNotFound):
        return False  # It has ended meanwhile.
    except Exception:
        log.exception("the task %s of a canceled workflow waits for another attempt to cancel it", task.task_id)
        return False
    return True


def _message_id(workflow_id: str, phase: Phase, tries: int) -> str:
    """Return the id of the message of a step, the same in each process.

    No caller can compute it, for otherwise the owner could use it first, for another message.
    """
    place = f"{workflow_id}/{phase.value}/{tries}"
    return f"{place}/{salted_hmac('tasks_app.operations.conductor', place, algorithm='sha256').hexdigest()[:32]}"


conductor = Conductor()
"""The conductor of this process."""
