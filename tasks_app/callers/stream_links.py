"""Links to the stream of one task. A link is signed, so it needs no key and no row, and it expires."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Self

import msgspec
from django.conf import settings
from django.core import signing
from msgspec import Struct
from msgspec.structs import replace

from a2a import languages
from a2a.choice import minor, version_error
from a2a.errors import UnsupportedOperation
from a2a.params import Whole, read_whole, write_time
from tasks_app import clock
from tasks_app.callers.access import Caller, caller_for, caller_of, has_right
from tasks_app.callers.credentials import FindAgain, reference_to
from tasks_app.callers.kinds import is_accepted
from tasks_app.callers.scopes import READ
from tasks_app.database.work import Work
from tasks_app.models import ApiKey, Principal

_SALT = "tasks_app.stream_links"
UNSIGNED = "this link was not made by this server for this task, or was changed: make a new one"
EXPIRED = "this link has expired: make a new one"
NO_KEY = "the key or token that made this link is not valid any more: make a new one with another"


class StreamLink(Struct, frozen=True, array_like=True):
    """The permission in a link: to read the stream of one task, as the owner of the task does, for a time."""

    task_id: str
    owner_id: int
    key_id: int | None
    """The key that made the link. The link ends with it. None for a link that an operator made."""
    until: int
    """The time at which it expires, in seconds since 1970."""
    version: str
    """The version of A2A in which the events come."""
    credential: str = ""
    """The credential that made the link, as Caller.credential, if that is no key. The link ends with it."""
    since: float = 0.0
    """The time at which the token of the credential was issued, in seconds since 1970, or else that at which it made
    the link."""

    @property
    def expires_at(self) -> str:
        """The time at which it expires, as in JSON."""
        return write_time(datetime.fromtimestamp(self.until, UTC))

    def describe(self, base: str) -> dict[str, str]:
        """Return the link as answers and commands show it. Its URL begins with the base, and contains all of it."""
        signature = signing.dumps(msgspec.to_builtins(self), salt=_SALT)
        return {"url": f"{base}/links/{self.task_id}?signature={signature}", "expiresAt": self.expires_at}


def make_link(
    task_id: str, owner_id: int, maker: Caller | None, seconds: Whole | None = None, version: str | None = None
) -> StreamLink:
    """Return a link that expires after so many seconds, by default and at most after A2A_LINK_SECONDS.

    Its version is the newest by default. `maker` is the caller who makes it; None for an operator. Raises
    UnsupportedOperation, InvalidParams and VersionNotSupported.
    """
    most: int = settings.A2A_LINK_SECONDS
    if not most:
        raise UnsupportedOperation(detail="this server makes no links: A2A_LINK_SECONDS is 0")
    lifetime = read_whole(seconds, "seconds", 1, most)
    versions = languages.ALL.subscriptions
    number = next(iter(versions)) if version is None else minor(version)
    if number not in versions:
        raise version_error(version or "", [d for d in languages.ALL.dialects if d.version in versions])
    now = clock.now().timestamp()
    until = int(now) + (most if lifetime is None else lifetime)
    if maker is None or maker.key_id is not None:
        return StreamLink(task_id, owner_id, maker.key_id if maker else None, until, number)
    reference = reference_to(maker)
    if reference is None:
        raise UnsupportedOperation(detail="links are made by callers with an API key, a token or a certificate")
    if maker.expires_at is not None:
        until = min(until, int(maker.expires_at))
    return StreamLink(task_id, owner_id, None, until, number, reference.credential, reference.since)


def read_link(task_id: str, signature: str) -> StreamLink:
    """Return the link with this signature. Raises ValueError with a sentence if it does not lead to the task now."""
    try:
        link = msgspec.convert(signing.loads(signature, salt=_SALT), StreamLink)
    except (signing.BadSignature, ValueError):
        raise ValueError(UNSIGNED) from None
    if link.task_id != task_id:
        raise ValueError(UNSIGNED)
    if link.until <= clock.now().timestamp():
        raise ValueError(EXPIRED)
    return link


class FindReader(Work[Caller | None], Struct, frozen=True):
    """Finds the caller of a link, which may read tasks and no more; None if the key that made the link is not valid."""

    lane = "read"
    repeatable = True

    owner_id: int
    key_id: int | None
    credential: str = ""
    since: float = 0.0

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Caller | None]:
        ids = {item.key_id for item in items if item.key_id is not None}
        keys = ApiKey.objects.select_related("principal__tenant").in_bulk(ids) if ids else {}
        owners = {item.owner_id for item in items if item.key_id is None and not item.credential}
        principals = Principal.objects.select_related("tenant").in_bulk(owners) if owners else {}
        references = [item.reference for item in items if item.credential]
        others = dict(zip(references, FindAgain.do_many(references), strict=True)) if references else {}
        return [item._find(keys, principals, others) for item in items]

    @property
    def reference(self) -> FindAgain:
        """The work item that finds the caller who made the link, if that had no key."""
        return FindAgain(self.credential, self.owner_id, self.since, (READ.scope,))

    def _find(
        self, keys: dict[int, ApiKey], principals: dict[int, Principal], others: dict[FindAgain, Caller | None]
    ) -> Caller | None:
        if self.key_id is None and not self.credential:
            owner = principals.get(self.owner_id)
            return caller_for(owner, frozenset({READ.scope})) if owner else None
        row = keys.get(self.key_id or 0) if is_accepted("key") else None
        caller = others[self.reference] if self.credential else caller_of([row] if row else [])
        if caller is None or caller.owner_id != self.owner_id:
            return None
        scopes = frozenset({READ.scope}) if has_right(caller, READ) else frozenset[str]()
        return replace(caller, scopes=scopes, language=None)
