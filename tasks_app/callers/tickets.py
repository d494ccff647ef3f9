"""Tickets: short-lived secrets, each of which opens one WebSocket connection in the name of an API key.

Browsers use them, because they cannot send headers with a handshake. Only digests are stored, as for keys.
"""

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from math import ceil
from typing import Self

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from msgspec import Struct

from a2a.errors import InvalidTicket, RateLimited
from tasks_app import clock
from tasks_app.callers import access
from tasks_app.callers.access import digests
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, Work
from tasks_app.models import Principal, SocketTicket

PREFIX = f"{access.PREFIX}ticket_"
"""The beginning of tickets. It begins like keys, so that tickets are masked wherever keys are."""
LONGEST = 128
"""Characters of the longest text that is looked up."""


class NewTicket(Struct, frozen=True):
    """A ticket that cannot be read again."""

    ticket: str
    expires_at: datetime


async def issue(owner_id: int, key: tuple[str, ...]) -> NewTicket:
    """Return a new ticket for a key, which is given by its digests. Raises RateLimited and errors of the database."""
    return await bridge.ask(Do(partial(_issue, owner_id, key)))


async def find_key(ticket: str) -> tuple[str, ...]:
    """Return the digests of the key that an unused ticket stands for.

    Strangers may send any ticket, so this only reads. Raises InvalidTicket and errors of the database.
    """
    key = await bridge.ask(FindTicket(digests(ticket))) if len(ticket) <= LONGEST else None
    if key is None:
        raise InvalidTicket
    return key


async def use_up(ticket: str) -> None:
    """Use a ticket up. Raises InvalidTicket if it has been used meanwhile, and errors of the database."""
    if not await bridge.ask(Do(partial(_delete, digests(ticket)))):
        raise InvalidTicket


class FindTicket(Work[tuple[str, ...] | None], Struct, frozen=True):
    """Finds the digests of the key of an unused ticket, by the digests of the ticket."""

    lane = "read"
    repeatable = True

    digests: tuple[str, ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[tuple[str, ...] | None]:
        rows = _unused(digest for item in items for digest in item.digests)
        keys = {row.digest: tuple(row.key_digests.split()) for row in rows}
        return [next((keys[digest] for digest in item.digests if digest in keys), None) for item in items]


def _issue(owner_id: int, key: tuple[str, ...]) -> NewTicket:
    now, most = clock.now(), settings.A2A_OWNER_TICKETS
    ticket = NewTicket(PREFIX + secrets.token_urlsafe(32), now + timedelta(seconds=settings.A2A_TICKET_SECONDS))
    with transaction.atomic():
        # One process at a time counts the tickets of an owner. SQLite has one writer anyway.
        list(Principal.objects.select_for_update(nowait=True, no_key=True).filter(pk=owner_id))
        tickets = SocketTicket.objects.filter(owner_id=owner_id)
        tickets.filter(expires_at__lte=now).delete()
        ends = list(tickets.order_by("expires_at").values_list("expires_at", flat=True)[:most])
        if len(ends) >= most:
            wait = max(1, ceil((ends[0] - now).total_seconds()))
            raise RateLimited(wait, limit="unused tickets", most=str(most))
        SocketTicket.objects.create(
            digest=digests(ticket.ticket)[0],
            owner_id=owner_id,
            key_digests=" ".join(key),
            expires_at=ticket.expires_at,
        )
    return ticket


def _delete(ticket: Iterable[str]) -> bool:
    """Delete the row of an unused ticket by one statement; return whether this one did. Only one of all that race for
    the row does."""
    return _unused(ticket).delete()[0] > 0


def _unused(tickets: Iterable[str]) -> QuerySet[SocketTicket]:
    return SocketTicket.objects.filter(digest__in=list(tickets), expires_at__gt=clock.now())
