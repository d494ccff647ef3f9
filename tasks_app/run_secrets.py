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
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import SECRETS, SecretRow
from tasks_app.database.work import DoSlowly, Work
from tasks_app.models import RunSecret
from tasks_app.sealing import Unreadable, seal, unseal


def key_of(tenant: str, caller: str, message_id: str) -> str:
    """Return the key of the secrets of a message."""
    return hashlib.sha256(msgspec.json.encode([tenant, caller, message_id])).hexdigest()


class StoreSecrets(Work[None], Struct, frozen=True):
    """The sealed secrets of a message to store, in place of earlier ones of the same message."""

    lane = "write"
    repeatable = True

    row: SecretRow

    def unique(self) -> str:
        return self.row.key

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[None]:
        """Write all rows in one statement, in the order of their keys, so that two processes never wait for each
        other."""
        rows = sorted((item.row for item in items), key=lambda row: row.key)
        with prepared() as cursor:
            SECRETS.write(cursor, rows)
        return [None for _ in items]


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


def row_of(key: str, secrets: dict[str, str]) -> SecretRow:
    """Return the row of the secrets of a message."""
    ends = clock.now() + timedelta(seconds=settings.A2A_SECRET_SECONDS)
    return SecretRow(key=key, sealed=seal(msgspec.json.encode(secrets).decode()), expires_at=ends)


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

    async def read(self, tenant: str, caller: str, message_id: str) -> dict[str, str]:
        return await read(key_of(tenant, caller, message_id))


run_secrets = RunSecrets()
"""The reader for the runs of all queued agents."""


class HeldSecrets(Struct, frozen=True):
    """The secrets of a quick agent, which runs inside the call that brought them: they are stored nowhere."""

    secrets: dict[str, str]

    async def read(self, tenant: str, caller: str, message_id: str) -> dict[str, str]:
        return self.secrets
