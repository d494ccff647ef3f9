"""Secrets that a caller gives the agent of a message, such as the token of a bot: sealed, apart from all other rows,
and deleted when the agent is done or A2A_SECRET_SECONDS after the message."""

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Self

import msgspec
from django.conf import settings
from msgspec import Struct

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.rows import SecretRow
from tasks_app.database.work import DoSlowly, Work
from tasks_app.models import RunSecret
from tasks_app.sealing import Unreadable, seal, unseal


def key_of(task_id: str, message_id: str) -> str:
    """Return the key of the secrets of a message of a task."""
    return hashlib.sha256(msgspec.json.encode([task_id, message_id])).hexdigest()


class DeleteSecrets(Work[None], Struct, frozen=True):
    """The secrets of a message to delete."""

    lane = "write"
    repeatable = True

    key: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[None]:
        """Delete all rows in one statement."""
        RunSecret.objects.filter(pk__in=[item.key for item in items]).delete()
        return [None for _ in items]


def row_of(task_id: str, message_id: str, secrets: dict[str, str]) -> SecretRow | None:
    """Return the row of the secrets of a message; None for a message without secrets."""
    if not secrets:
        return None
    ends = clock.now() + timedelta(seconds=settings.A2A_SECRET_SECONDS)
    sealed = seal(msgspec.json.encode(secrets).decode())
    return SecretRow(key=key_of(task_id, message_id), sealed=sealed, expires_at=ends)


async def read(key: str) -> dict[str, str]:
    """Return the secrets of a message; none if they are gone or cannot be read any more."""
    row = await bridge.ask(DoSlowly(lambda: RunSecret.objects.filter(pk=key, expires_at__gt=clock.now()).first()))
    try:
        return msgspec.json.decode(unseal(row.sealed), type=dict[str, str]) if row else {}
    except Unreadable:
        return {}


async def delete(key: str) -> None:
    """Delete the secrets of a message."""
    await bridge.ask(DeleteSecrets(key))


class RunSecrets:
    """The reader of secrets that agents get with their run."""

    async def read(self, task_id: str, message_id: str) -> dict[str, str]:
        return await read(key_of(task_id, message_id))


run_secrets = RunSecrets()
"""The reader for all runs."""
