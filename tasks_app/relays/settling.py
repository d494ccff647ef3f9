"""Cancellation of remote tasks whose tasks here have ended."""

import asyncio
import logging

from django.db.models import QuerySet

from a2a.client import Client, ClientError, errors
from a2a.states import TERMINAL
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.models import RelayedTask
from tasks_app.relays import kept
from tasks_app.relays.registration import RelayOptions
from tasks_app.relays.remotes import client_of

log = logging.getLogger(__name__)
ENDED = [state.value for state in TERMINAL]
_under_way: set[asyncio.Task[None]] = set()
"""References to tasks under way: a loop has only weak ones."""


def settle_soon(task_id: str, relay: RelayOptions) -> None:
    """Cancel the remote task of a task that was canceled, on the running loop, without waiting for it."""
    work = asyncio.get_running_loop().create_task(_settle(task_id, relay))
    _under_way.add(work)
    work.add_done_callback(_under_way.discard)


async def _settle(task_id: str, relay: RelayOptions) -> None:
    try:
        if row := await bridge.ask(DoSlowly(lambda: _open_rows().filter(pk=task_id).first())):
            await end(row, await client_of(relay))
    except Exception as error:  # noqa: BLE001  # the routine tries again
        log.warning("task %s: its remote task was not canceled: %s", task_id, error)


def _open_rows() -> QuerySet[RelayedTask]:
    return RelayedTask.objects.filter(is_open=True, task__state__in=ENDED)


async def end(row: RelayedTask, client: Client) -> None:
    """Cancel the remote task of a row, and store that it has ended. Raises ClientError, Blocked and Unknown."""
    try:
        await client.cancel_task(row.remote_id)
    except ClientError as error:
        if not isinstance(error, errors.ServerError) or error.retryable:
            raise
    await kept.close(row.task_id)
    log.info("task %s: its remote task %s was canceled", row.task_id, row.remote_id)
