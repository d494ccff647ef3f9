"""Tickets: short-lived secrets, each of which opens one WebSocket with the credential of the call that made it.

Browsers use them, because they cannot send headers with a handshake. Only digests are stored, as for keys.
"""

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from math import ceil
from typing import Self

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from msgspec import Struct

from a2a.errors import InvalidTicket, RateLimited
from tasks_app import clock
from tasks_app.callers import key_form
from tasks_app.callers.access import digests
from tasks_app.callers.principals import lock_owners
from tasks_app.database.bridge import bridge
from tasks_app.database.rows import AuditRow
from tasks_app.database.tables import AUDIT
from tasks_app.database.work import LOCKED, Do, GroupResult, Work
from tasks_app.models import SocketTicket

PREFIX = f"{key_form.PREFIX}ticket_"
"""The beginning of tickets. It begins like keys, so that tickets are masked wherever keys are."""
LONGEST = 128
"""Characters of the longest text that is looked up."""


class NewTicket(Struct, frozen=True):
    """A ticket that cannot be read again."""

    ticket: str
    expires_at: datetime


async def issue(owner_id: int, key: tuple[str, ...], entry: AuditRow | None = None) -> NewTicket:
    """Return a new ticket for a key, which is given by its digests, or for another credential, given by a reference.

    The entry of the audit is stored with it. Raises RateLimited and errors of the database.
    """
    return await bridge.ask(IssueTicket(owner_id, key, entry))


async def find_key(ticket: str) -> tuple[str, ...]:
    """Return the digests of the key that an unused ticket stands for, or the reference to another credential.

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


class IssueTicket(Work[NewTicket], Struct, frozen=True):
    """Makes a ticket for a key, which is given by its digests, unless the owner has too many."""

    lane = "write"

    owner_id: int
    key: tuple[str, ...]
    entry: AuditRow | None = None

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[NewTicket]]:
        """Make the tickets of a group together: a caller who asks for many must not delay the writes of others."""
        now = clock.now()
        with transaction.atomic():
            ends = _ends_of(lock_owners({item.owner_id for item in items}), now)
            results: list[GroupResult[NewTicket]] = [
                _new(ends[item.owner_id], now) if item.owner_id in ends else LOCKED for item in items
            ]
            pairs = [(item, new) for item, new in zip(items, results, strict=True) if isinstance(new, NewTicket)]
            SocketTicket.objects.bulk_create(_row(item, new) for item, new in pairs)
            with connection.cursor() as cursor:
                AUDIT.write(cursor, [item.entry for item, _ in pairs if item.entry])
        return results


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


def _ends_of(owners: set[int], now: datetime) -> dict[int, list[datetime]]:
    """Return the ends of each owner's unused tickets, and delete the expired ones."""
    tickets = SocketTicket.objects.filter(owner_id__in=owners)
    ends: dict[int, list[datetime]] = {owner_id: [] for owner_id in owners}
    for owner_id, end in tickets.values_list("owner_id", "expires_at"):
        ends[owner_id].append(end)
    if any(end <= now for of_owner in ends.values() for end in of_owner):
        tickets.filter(expires_at__lte=now).delete()
    return {owner_id: [end for end in of_owner if end > now] for owner_id, of_owner in ends.items()}


def _new(ends: list[datetime], now: datetime) -> NewTicket | RateLimited:
    """Return a new ticket, whose end is added to those of its owner, or the refusal of one too many."""
    most = settings.A2A_OWNER_TICKETS
    if len(ends) >= most:
        wait = max(1, ceil((min(ends) - now).total_seconds()))
        return RateLimited(wait, limit="unused tickets", most=str(most))
    ends.append(now + timedelta(seconds=settings.A2A_TICKET_SECONDS))
    return NewTicket(PREFIX + secrets.token_urlsafe(32), ends[-1])


def _row(item: IssueTicket, new: NewTicket) -> SocketTicket:
    return SocketTicket(
        digest=digests(new.ticket)[0],
        owner_id=item.owner_id,
        key_digests=" ".join(item.key),
        expires_at=new.expires_at,
    )


def _delete(ticket: Iterable[str]) -> bool:
    """Delete the row of an unused ticket by one statement; return whether this one did. Only one of all that race for
    the row does."""
    return _unused(ticket).delete()[0] > 0


def _unused(tickets: Iterable[str]) -> QuerySet[SocketTicket]:
    return SocketTicket.objects.filter(digest__in=list(tickets), expires_at__gt=clock.now())
