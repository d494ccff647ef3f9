"""The rows of relayed tasks: which remote task has which message, and whether it may go on.

The position in a row is written with the events of the task (event_log), all else here. The first remote task that is
stored for a message stays, even if two runs have sent the message: both then follow the same one.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from django.db import transaction
from django.db.models import Case, F, TextField, Value, When

from tasks_app.database.outages import persist
from tasks_app.database.work import Do, DoSlowly
from tasks_app.models import RelayedTask

WAITER = "a relay"
"""The name in the log of what waits for the database."""
Result = TypeVar("Result")


async def _write(function: Callable[[], Result]) -> Result:
    return await persist(Do(function), WAITER)


async def find(task_id: str) -> RelayedTask | None:
    """Return the row of a task; None before its first message was sent."""
    return await persist(DoSlowly(lambda: RelayedTask.objects.filter(pk=task_id).first()), WAITER)


def find_open(owner_id: int, remote_id: str) -> list[str]:
    """Return the ids of the owner's tasks behind which is this remote task, as far as it may go on."""
    if not remote_id.isprintable():  # No such id is stored, and PostgreSQL raises an error for U+0000.
        return []
    rows = RelayedTask.objects.filter(is_open=True, remote_id=remote_id, task__owner_id=owner_id)
    return list(rows.order_by("pk").values_list("pk", flat=True))


async def note_sending(task_id: str, relay: str, message_id: str) -> None:
    """Store that a message is about to be sent."""
    await _write(partial(_note_sending, task_id, relay, message_id))


def _note_sending(task_id: str, relay: str, message_id: str) -> None:
    with transaction.atomic():
        _make(task_id, relay)
        RelayedTask.objects.filter(pk=task_id).update(sending=message_id)


async def accept(task_id: str, relay: str, message_id: str, remote_id: str, remote_context: str) -> RelayedTask:
    """Store the remote task that has accepted a message, unless one is stored for it. Return the row."""
    return await _write(partial(_accept, task_id, relay, message_id, remote_id, remote_context))


def _accept(task_id: str, relay: str, message_id: str, remote_id: str, remote_context: str) -> RelayedTask:
    with transaction.atomic():
        _make(task_id, relay)
        RelayedTask.objects.filter(pk=task_id).exclude(message_id=message_id).update(
            relay=relay,
            remote_id=remote_id,
            remote_context=remote_context,
            message_id=message_id,
            sending=message_id,
            # The position stays as long as the remote task does: its events are numbered on.
            position=Case(When(remote_id=remote_id, then=F("position")), default=Value(""), output_field=TextField()),
            is_open=True,
        )
        return RelayedTask.objects.get(pk=task_id)


def _make(task_id: str, relay: str) -> None:
    RelayedTask.objects.bulk_create([RelayedTask(task_id=task_id, relay=relay)], ignore_conflicts=True)


async def close(task_id: str) -> None:
    """Store that the remote task has ended."""
    await _write(lambda: RelayedTask.objects.filter(pk=task_id).update(is_open=False))
