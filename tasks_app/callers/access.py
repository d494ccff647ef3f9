"""Who asks: callers from API keys, their scopes, and what they may see. The only place that knows about ownership."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Self

from django.conf import settings
from django.db.models import QuerySet
from msgspec import Struct

from a2a.callers import Caller as AgentsCaller
from a2a.errors import MissingScope, TaskNotFound
from tasks_app import clock
from tasks_app.callers.paths import check_tenant_name
from tasks_app.database.rows import sight_of
from tasks_app.database.work import Work
from tasks_app.models import ApiKey, Principal, Task, Tenant

PREFIX = "tdk_"
SCOPES = READ, WRITE, CANCEL = "tasks:read", "tasks:write", "tasks:cancel"
DEVELOPER, DEVELOPMENT = "developer", "development"
"""The principal and the name of the keys that development servers make; no other key has both."""


class Caller(Struct, frozen=True, kw_only=True):
    """An authenticated principal and what the key it came with may do."""

    tenant_id: int
    tenant: str
    owner_id: int
    name: str
    scopes: frozenset[str]
    key_id: int | None = None
    """The key that it came with; None for an operator who acts in its name."""


def for_agents(caller: Caller) -> AgentsCaller:
    """Return the caller as agents see it."""
    return AgentsCaller(name=caller.name, tenant=caller.tenant, scopes=caller.scopes)


def owner_for_agents(owner_id: int) -> AgentsCaller:
    """Return the sender of a message that an earlier version stored, as agents see it: its scopes are not known."""
    name, tenant = Principal.objects.values_list("name", "tenant__name").get(pk=owner_id)
    return AgentsCaller(name=name, tenant=tenant)


def sight(caller: Caller, task_id: str) -> str:
    """Return the value that grouped statements compare with rows.VISIBLE, so that a group may serve many callers."""
    return sight_of(task_id, caller.tenant_id, caller.owner_id)


def visible(caller: Caller) -> QuerySet[Task]:
    """The tasks that the caller may see: their own."""
    return Task.objects.filter(tenant_id=caller.tenant_id, owner_id=caller.owner_id)


def has_scopes(caller: Caller, scopes: Iterable[str]) -> bool:
    return "*" in caller.scopes or caller.scopes.issuperset(scopes)


def check_scope(caller: Caller, scope: str) -> None:
    """Raises MissingScope."""
    if "*" not in caller.scopes and scope not in caller.scopes:
        raise MissingScope(required=scope, provided=" ".join(sorted(caller.scopes)))


def check_tenant(caller: Caller, tenant: str | None, task_id: str = "") -> None:
    """A tenant that is not the caller's own is as unknown as a task that is not theirs (docs/protocol.md#tenants)."""
    if tenant is not None and tenant != caller.tenant:
        raise TaskNotFound(**({"taskId": task_id} if task_id else {}))


def digests(key: str) -> tuple[str, ...]:
    """The HMACs under which a key may be stored, by the present SECRET_KEY first; fast on purpose, for keys are
    random."""
    secrets_of_ours = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(hmac.digest(secret.encode(), key.encode(), hashlib.sha256).hex() for secret in secrets_of_ours)


class FindCaller(Work[Caller | None], Struct, frozen=True):
    """Find the caller of a key by its digests."""

    lane = "read"
    repeatable = True

    digests: tuple[str, ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Caller | None]:
        return callers_many(items)


def callers_many(items: Sequence[FindCaller]) -> list[Caller | None]:
    """The callers; None for a key that is unknown, revoked or expired."""
    wanted = {digest for item in items for digest in item.digests}
    keys = ApiKey.objects.select_related("principal__tenant").filter(digest__in=wanted)
    found = {key.digest: key for key in keys}
    return [_found([found[digest] for digest in item.digests if digest in found]) for item in items]


def _found(keys: Sequence[ApiKey]) -> Caller | None:
    """The caller behind one key, which may be stored under several secrets: revoked once, it is revoked."""
    if not keys or any(key.revoked_at for key in keys):
        return None
    expires_at = keys[0].expires_at
    return _caller(keys[0]) if expires_at is None or expires_at > clock.now() else None


def _caller(key: ApiKey) -> Caller:
    return Caller(
        tenant_id=key.principal.tenant_id,
        tenant=key.principal.tenant.name,
        owner_id=key.principal_id,
        name=key.principal.name,
        scopes=frozenset(key.scopes.split()),
        key_id=key.pk,
    )


def new_key(
    principal: str,
    *,
    tenant: str = "default",
    name: str = "",
    key: str = "",
    scopes: str = "*",
    expires_at: datetime | None = None,
) -> str:
    """Make a key for the principal, which is made too if new, and return it: it cannot be read again."""
    check_tenant_name(tenant)
    key = key or PREFIX + secrets.token_urlsafe(32)
    home, _ = Tenant.objects.get_or_create(name=tenant)
    owner, _ = Principal.objects.get_or_create(tenant=home, name=principal)
    known = digests(key)
    stored = set(ApiKey.objects.filter(digest__in=known).values_list("digest", flat=True))
    # Under several secrets it may be there more than once: one row stays, which is all that there is to revoke.
    ApiKey.objects.filter(digest__in=[digest for digest in known if digest in stored][1:]).delete()
    ApiKey.objects.update_or_create(
        digest__in=known,
        defaults={
            "digest": known[0],
            "principal": owner,
            "name": name or principal,
            # Of a short key, which only people choose, the beginning would be too much.
            "prefix": key[: min(8, len(key) // 4)],
            "scopes": scopes,
            "expires_at": expires_at,
            "revoked_at": None,
        },
    )
    return key


def revoke(keys: QuerySet[ApiKey]) -> int:
    """Ends the keys from now on; how many were not ended before."""
    return keys.filter(revoked_at=None).update(revoked_at=clock.now())


def development_keys() -> QuerySet[ApiKey]:
    """Return the keys that development servers have made and that were not revoked."""
    keys = ApiKey.objects.filter(principal__tenant__name="default", principal__name=DEVELOPER)
    return keys.filter(name=DEVELOPMENT, revoked_at=None)
