"""Cancellation of remote tasks whose tasks here have ended."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

import httpx
from django.db.models import QuerySet

from a2a.client import Client, ClientError, errors
from a2a.run import Failure
from a2a.states import TERMINAL
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.models import RelayedTask
from tasks_app.outbound.dialling import Blocked, Unknown
from tasks_app.relays import kept
from tasks_app.relays.registration import RelayOptions, relays
from tasks_app.relays.remotes import client_of, credentials_of, open_client

log = logging.getLogger(__name__)
BATCH = 100
"""Remote tasks that one round cancels."""
GIVE_UP = timedelta(days=1)
"""The time after the end of a task for which the cancellation of its remote task is tried again."""
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
    """Return the rows of tasks that have ended before their remote tasks."""
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


def find_open() -> list[RelayedTask]:
    """Return the rows of tasks that have ended before their remote tasks, up to BATCH."""
    return bridge.do(DoSlowly(lambda: list(_open_rows().select_related("task").order_by("pk")[:BATCH])))


async def settle_all(rows: Sequence[RelayedTask], http: httpx.AsyncClient) -> None:
    """Cancel the remote tasks of rows. Those that cannot be canceled now are tried again, for GIVE_UP."""
    options = {relay.name: relay for relay in relays()}
    clients: dict[str, Client] = {}
    for row in rows:
        relay, error = options.get(row.relay), None
        try:
            if relay is not None:
                if relay.name not in clients:
                    clients[relay.name] = open_client(relay, http, await credentials_of(relay.name, http))
                await end(row, clients[relay.name])
        except (ClientError, Blocked, Unknown, Failure) as problem:
            error = problem
        if relay is None or (error and clock.now() - row.task.status_at > GIVE_UP):
            await kept.close(row.task_id)
            log.warning("task %s: its remote task %s was not canceled: %s", row.task_id, row.remote_id, error)
