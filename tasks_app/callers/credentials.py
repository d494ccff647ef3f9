"""Callers by the credential that they were recognised by, for permissions that outlive a call: links and tickets.

The evidence itself is not stored. A link or a ticket refers to the credential instead, as Caller.credential does, or to
the row of the access token, as Caller.reference does.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Self

import msgspec
from django.utils.module_loading import import_string
from msgspec import Struct
from msgspec.structs import replace

from tasks_app import clock
from tasks_app.callers.access import Caller, caller_of
from tasks_app.callers.kinds import is_accepted
from tasks_app.callers.scopes import narrow
from tasks_app.database.work import Work
from tasks_app.models import ApiKey

Finder = Callable[[Sequence[tuple[int, float]]], list[Caller | None]]
"""Returns the callers of credentials by their ids, as of evidence that was valid at these times; None for a credential
that is not valid any more. Their scopes are the most that the credential may have."""
KINDS = {
    "key": "tasks_app.callers.credentials.find_keys",
    "oidc": "tasks_app.callers.service_accounts.find_again",
    "mtls": "tasks_app.callers.service_accounts.find_again",
    "token": "tasks_app.oauth.scheme.find_again",
}
"""The finder of each kind of reference. A caller of another kind gets no tickets, and makes no links."""


class FindAgain(Work[Caller | None], Struct, frozen=True):
    """Finds a caller by its credential; None if that, or the evidence of the call, is not valid any more."""

    lane = "read"
    repeatable = True

    credential: str
    """The credential or the token, as `kind:id`."""
    owner_id: int
    since: float
    """The time at which the evidence was valid, in seconds since 1970."""
    scopes: tuple[str, ...]
    """The scopes of the call."""
    expires_at: float | None = None

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Caller | None]:
        by_kind: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for item in items:
            kind, pk = item.name
            by_kind[kind].append((pk, item.since))
        callers: dict[tuple[str, int, float], Caller | None] = {}
        for kind, ids in by_kind.items():
            find = _finder(kind)
            results = find(ids) if find else [None] * len(ids)
            callers.update(((kind, *one), caller) for one, caller in zip(ids, results, strict=True))
        return [item._cut(callers[*item.name, item.since]) for item in items]

    @property
    def name(self) -> tuple[str, int]:
        """The kind of the credential, and its id."""
        kind, _, pk = self.credential.partition(":")
        return kind, int(pk) if pk.isdecimal() else 0

    def _cut(self, caller: Caller | None) -> Caller | None:
        """Return the caller with the scopes and the end of the call."""
        if caller is None or caller.owner_id != self.owner_id:
            return None
        ends = [end for end in (self.expires_at, caller.expires_at) if end is not None]
        if ends and min(ends) <= clock.now().timestamp():
            return None
        scopes = narrow(frozenset(self.scopes), caller.scopes)
        return replace(caller, scopes=scopes, expires_at=min(ends, default=None))


def reference_to(caller: Caller) -> FindAgain | None:
    """Return the work item that finds a caller again; None if its kind of credential allows none."""
    reference = caller.reference or caller.credential
    if reference.partition(":")[0] not in KINDS:
        return None
    since = clock.now().timestamp() if caller.issued_at is None else caller.issued_at
    return FindAgain(reference, caller.owner_id, since, tuple(sorted(caller.scopes)), caller.expires_at)


def encode(reference: FindAgain) -> str:
    """Return a reference as text without spaces."""
    return msgspec.json.encode(reference).decode()


def decode(text: str) -> FindAgain:
    """Return the reference in a text. Raises ValueError."""
    return msgspec.json.decode(text, type=FindAgain)


def _finder(kind: str) -> Finder | None:
    """Return the finder of a kind; None for an unknown one, and for one that no scheme takes."""
    if kind not in KINDS or not is_accepted(kind):
        return None
    finder: Finder = import_string(KINDS[kind])
    return finder


def find_keys(ids: Sequence[tuple[int, float]]) -> list[Caller | None]:
    """Return the callers of API keys, by the ids of the keys."""
    rows = ApiKey.objects.select_related("principal__tenant").in_bulk({pk for pk, _ in ids})
    return [caller_of([rows[pk]] if pk in rows else []) for pk, _ in ids]
