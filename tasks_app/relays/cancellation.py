"""Cancellation of remote tasks whose tasks here have ended."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import QuerySet

from a2a.client import Client, ClientError, errors
from a2a.failures import Failure
from a2a.states import TERMINAL
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.masking import mask_text
from tasks_app.models import RelayedTask
from tasks_app.outbound.policy import Blocked, Unknown
from tasks_app.relays import relayed_tasks
from tasks_app.relays.options import RelayOptions, relays
from tasks_app.relays.remotes import SECONDS, client_of, credentials_of, guarded_http, open_client
from tasks_app.relays.translation import CREDENTIALS

log = logging.getLogger(__name__)
BATCH = 100
"""Remote tasks that one round cancels."""
GIVE_UP = timedelta(days=1)
"""The time after the end of a task for which the cancellation of its remote task is tried again."""
ENDED = [state.value for state in TERMINAL]
_places: dict[str, str] = {}
"""The last row of each relay that a round of this process has taken. The next round goes on behind it: rows whose
cancellations always fail take turns with all others."""
_under_way: set[asyncio.Task[None]] = set()
"""References to tasks under way: a loop has only weak ones."""


def cancel_soon(task_id: str, relay: RelayOptions) -> None:
    """Cancel the remote task of a task that was canceled, on the running loop, without waiting for it."""
    work = asyncio.get_running_loop().create_task(_cancel_task(task_id, relay))
    _under_way.add(work)
    work.add_done_callback(_under_way.discard)


async def _cancel_task(task_id: str, relay: RelayOptions) -> None:
    try:
        if row := await bridge.ask(DoSlowly(lambda: _open_rows().filter(pk=task_id).first())):
            await end(row, await client_of(relay))
    except Exception as error:  # noqa: BLE001  # the routine tries again
        log.warning("task %s: its remote task was not canceled: %s", task_id, error)


def _open_rows() -> QuerySet[RelayedTask]:
    """Return the rows of tasks that have ended before their remote tasks."""
    return RelayedTask.objects.filter(is_open=True, task__state__in=ENDED)


async def end(row: RelayedTask, client: Client) -> None:
    """Cancel the remote task of a row, and store that there is nothing more to do. Raises ClientError, Blocked and
    Unknown for what may pass: credentials that are refused may be replaced."""
    level, outcome = logging.INFO, "was canceled"
    try:
        await client.cancel_task(row.remote_id)
    except (errors.TaskNotFound, errors.TaskNotCancelable):
        outcome = "had ended"
    except errors.ServerError as error:
        if error.retryable or isinstance(error, CREDENTIALS):
            raise
        level, outcome = logging.WARNING, f"cannot be canceled: {mask_text(str(error))}"
    await relayed_tasks.close(row.task_id)
    log.log(level, "task %s: its remote task %s %s", row.task_id, row.remote_id, outcome)


def find_open() -> list[RelayedTask]:
    """Return the next rows of tasks that have ended before their remote tasks, up to BATCH of each relay."""
    return bridge.do(DoSlowly(_find_open))


def _find_open() -> list[RelayedTask]:
    names = _open_rows().order_by("relay").values_list("relay", flat=True).distinct()
    return [row for name in list(names) for row in _next_rows(name)]


def _next_rows(relay: str) -> list[RelayedTask]:
    place = _places.get(relay, "")
    rows = _open_rows().select_related("task").filter(relay=relay).order_by("pk")
    group = list(rows.filter(pk__gt=place)[:BATCH])
    group += rows.filter(pk__lte=place)[: BATCH - len(group)]
    if group:  # Another process may have closed the last rows meanwhile.
        _places[relay] = group[-1].pk
    return group


async def cancel_all(rows: Sequence[RelayedTask]) -> None:
    """Cancel the remote tasks of rows. Those that cannot be canceled now are tried again, for GIVE_UP.

    All are canceled at once, and each relay has connections of its own: a remote server that never answers delays no
    other.
    """
    options = {relay.name: relay for relay in relays()}
    groups: dict[str, list[RelayedTask]] = {}
    for row in rows:
        groups.setdefault(row.relay, []).append(row)
    await asyncio.gather(*(_cancel_rows(options.get(name), group) for name, group in groups.items()))


async def _cancel_rows(relay: RelayOptions | None, rows: Sequence[RelayedTask]) -> None:
    """Cancel the remote tasks of one relay. Without it they are left alone."""
    errors = await _cancel(relay, rows) if relay else [None] * len(rows)
    for row, error in zip(rows, errors, strict=True):
        if relay is None or (error and clock.now() - row.task.status_at > GIVE_UP):
            await relayed_tasks.close(row.task_id)
            log.warning("task %s: its remote task %s was not canceled: %s", row.task_id, row.remote_id, error)


async def _cancel(relay: RelayOptions, rows: Sequence[RelayedTask]) -> Sequence[Exception | None]:
    """Cancel remote tasks at once; return the error of each."""
    async with guarded_http() as http:
        try:
            client = open_client(relay, http, await credentials_of(relay.name, http))
        except Failure as problem:
            return [problem] * len(rows)
        return await asyncio.gather(*(_try(row, client) for row in rows))


async def _try(row: RelayedTask, client: Client) -> Exception | None:
    try:
        async with asyncio.timeout(SECONDS):
            await end(row, client)
    except (ClientError, Blocked, Unknown, TimeoutError) as problem:
        return problem
    return None
