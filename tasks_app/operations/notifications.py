"""The operation on notifications of remote agents: the relays that poll the task look at it at once."""

from functools import partial

from a2a.requests import NotifyOfTask
from tasks_app.callers.access import check_tenant
from tasks_app.database.work import DoSlowly
from tasks_app.operations.operation import Context, Done, Grant
from tasks_app.relays.nudges import nudge
from tasks_app.relays.relayed_tasks import find_open


async def receive(request: NotifyOfTask, context: Context) -> Grant:
    """Nudge the relays of the caller's open tasks behind which is this remote task."""
    caller = context.caller
    check_tenant(caller, request.tenant)
    task_ids = await DoSlowly(partial(find_open, caller.owner_id, request.remote_id), caller.owner_id)
    if task_ids:
        context.exchange.about(task_ids[0])
        nudge(task_ids)
    context.exchange.keep_result(None)
    return Done(None)
