"""Secrets that a caller gives the agent of a message, such as the token of a bot: sealed, apart from all other rows,
and deleted when the agent is done or A2A_SECRET_SECONDS after the message."""

import hashlib
from datetime import timedelta
from functools import partial

import msgspec
from django.conf import settings

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, DoSlowly
from tasks_app.models import RunSecret
from tasks_app.sealing import Unreadable, seal, unseal


def key_of(tenant: str, caller: str, message_id: str) -> str:
    """Return the key of the secrets of a message."""
    return hashlib.sha256(msgspec.json.encode([tenant, caller, message_id])).hexdigest()


def storing_of(key: str, secrets: dict[str, str]) -> Do[None]:
    """Return the work item that stores secrets, in place of earlier ones of the same message."""
    return Do(partial(_store, key, secrets))


def _store(key: str, secrets: dict[str, str]) -> None:
    ends = clock.now() + timedelta(seconds=settings.A2A_SECRET_SECONDS)
    row = RunSecret(key=key, sealed=seal(msgspec.json.encode(secrets).decode()), expires_at=ends)
    RunSecret.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["key"], update_fields=["sealed", "expires_at"]
    )


async def read(key: str) -> dict[str, str]:
    """Return the secrets of a message; none if they are gone or cannot be read any more."""
    row = await bridge.ask(DoSlowly(lambda: RunSecret.objects.filter(pk=key, expires_at__gt=clock.now()).first()))
    try:
        return msgspec.json.decode(unseal(row.sealed), type=dict[str, str]) if row else {}
    except Unreadable:
        return {}


async def delete(key: str) -> None:
    """Delete the secrets of a message."""
    await bridge.ask(Do(lambda: RunSecret.objects.filter(pk=key).delete()))


class RunSecrets:
    """The reader of secrets that agents get with their run."""

    async def read(self, tenant: str, caller: str, message_id: str) -> dict[str, str]:
        return await read(key_of(tenant, caller, message_id))


run_secrets = RunSecrets()
"""The reader for all runs."""
