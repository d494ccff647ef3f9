"""Callers from API keys, the checks of their scopes, and the tasks that they may see."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from datetime import datetime
from time import monotonic
from typing import Any, Self

from django.conf import settings
from django.db.models import QuerySet
from msgspec import Struct

from a2a import languages
from a2a.callers import Caller as AgentsCaller
from a2a.errors import ExpiredKey, MissingScope, TaskNotFound
from a2a.language import Spelling
from tasks_app import clock
from tasks_app.callers.key_form import random_key
from tasks_app.callers.networks import read_networks
from tasks_app.callers.paths import check_tenant_name
from tasks_app.callers.principals import find_or_make
from tasks_app.callers.rules import Rules, rules_of
from tasks_app.callers.scopes import IDENTIFY, Right, has_all, spell, spelled
from tasks_app.callers.wrong_values import WrongValue
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import one_of, sight_of
from tasks_app.database.work import Work
from tasks_app.models import ApiKey, Batch, Principal, Tenant, Workflow

MANY_MISSES = 200
"""The number of unknown keys within a second or two that counts as a flood."""
DEVELOPER, DEVELOPMENT = "developer", "development"
"""The principal and the name of keys that development servers make. No other key has both."""


class Caller(Struct, frozen=True, kw_only=True):
    """An authenticated principal with the scopes of its credential."""

    tenant_id: int
    tenant: str
    owner_id: int
    name: str
    scopes: frozenset[str]
    key_id: int | None = None
    """The key of the call; None for an operator who acts for the principal."""
    language: str | None = None
    """The language that the key is pinned to."""
    credential: str = ""
    """The key, account or user that it was recognised by, as `kind:id`, such as `key:12`; empty for an operator who
    acts for it."""
    reference: str = ""
    """The access token, as `token:7`, to which tickets and links refer in place of the credential, because it ends
    sooner; empty if they refer to the credential."""
    agents: frozenset[str] | None = None
    """The agents at whose addresses the credential is valid; None for the whole server."""
    expires_at: float | None = None
    """The time at which the credential ends, in seconds since 1970; None if it does not end by itself."""
    rules: Rules
    """The rules of the principal and of its tenant about agents, skills, phases and batch operations."""
    issued_at: float | None = None
    """The time at which the token of the call was issued, in seconds since 1970; None without a token."""
    networks: str = ""
    """The networks that calls of the key may come from, separated by spaces; empty for any."""


def for_agents(caller: Caller) -> AgentsCaller:
    """Return the view of the caller that agents get."""
    return AgentsCaller(name=caller.name, tenant=caller.tenant, scopes=spell(caller.scopes), agents=caller.agents)


def owner_for_agents(owner_id: int) -> AgentsCaller:
    """Return the view of an owner that agents get, for messages stored by an earlier version without scopes."""
    name, tenant = Principal.objects.values_list("name", "tenant__name").get(pk=owner_id)
    return AgentsCaller(name=name, tenant=tenant)


def sight(caller: Caller, task_id: str) -> str:
    """Return the value that grouped statements compare with sql.VISIBLE, so that a group may serve many callers."""
    return sight_of(task_id, caller.tenant_id, caller.owner_id)


def has_scopes(caller: Caller, names: Iterable[str]) -> bool:
    """Return whether the caller has all scopes that an agent names."""
    return has_all(caller.scopes, names)


def check_scopes(caller: Caller, names: Iterable[str], spelling: Spelling = "own") -> None:
    """Check that the caller has all scopes that an agent names. Raises MissingScope with the first that is missing."""
    for name in names:
        if not has_all(caller.scopes, (name,)):
            raise _missing(caller, spelled(name, spelling), spelling)


def has_right(caller: Caller, right: Right) -> bool:
    return not right.granted_by.isdisjoint(caller.scopes)


def check_right(caller: Caller, right: Right, spelling: Spelling = "own") -> None:
    """Check that a scope of the caller grants the right. Raises MissingScope, with scopes as the language names them.

    In ACP, every caller needs the right to be identified too.
    """
    if right.granted_by.isdisjoint(caller.scopes):
        raise _missing(caller, right.spelled(spelling), spelling)
    if spelling == "acp" and IDENTIFY.granted_by.isdisjoint(caller.scopes):
        raise _missing(caller, IDENTIFY.acp, spelling)


def _missing(caller: Caller, required: str, spelling: Spelling) -> MissingScope:
    return MissingScope(required=required, provided=" ".join(sorted(spell(caller.scopes, spelling))))


def check_tenant(caller: Caller, tenant: str | None, task_id: str = "") -> None:
    """Check that a tenant is the caller's own. Raises TaskNotFound, as for other callers' tasks
    (docs/protocol.md#tenants)."""
    if tenant is not None and tenant != caller.tenant:
        raise TaskNotFound(**({"taskId": task_id} if task_id else {}))


def digests(key: str) -> tuple[str, ...]:
    """Return the HMACs under which a key may be stored, that of the present SECRET_KEY first.

    A slow password hash is not needed, because keys are random.
    """
    server_secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(hmac.digest(secret.encode(), key.encode(), hashlib.sha256).hex() for secret in server_secrets)


class FindCaller(Work[Caller | None], Struct, frozen=True):
    """Finds the caller that a key belongs to, by the key's digests."""

    lane = "read"
    repeatable = True

    digests: tuple[str, ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Caller | ExpiredKey | None]:
        """Return the callers; None for a key that is unknown or revoked, and the error for one that has expired."""
        return [caller_of(keys) or _expiry(keys) for keys in _rows_of(items)]


class FindStored(Work[frozenset[str]], Struct, frozen=True):
    """Finds which of some digests are those of stored keys. Beside a flood this costs a fraction of FindCaller."""

    lane = "read"
    repeatable = True

    digests: tuple[str, ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[frozenset[str]]:
        stored = cls.stored({digest for item in items for digest in item.digests})
        return [stored.intersection(item.digests) for item in items]

    @classmethod
    def stored(cls, all_digests: set[str]) -> frozenset[str]:
        """Return the digests of stored keys among these."""
        return _stored(all_digests)


def _rows_of(items: Sequence[FindCaller]) -> list[list[ApiKey]]:
    """Return the rows of each key."""
    all_digests = {digest for item in items for digest in item.digests}
    if misses.is_flood() and not _stored(all_digests):
        misses.count(len(items))
        return [[] for _ in items]
    keys = ApiKey.objects.select_related("principal__tenant").filter(digest__in=all_digests)
    rows = {key.digest: key for key in keys}
    if not rows:
        misses.count(len(items))
    return [[rows[digest] for digest in item.digests if digest in rows] for item in items]


def _expiry(keys: Sequence[ApiKey]) -> ExpiredKey | None:
    """Return the error for a key without a caller that was not revoked: the whole key was shown, so its holder may
    hear that it has expired."""
    return ExpiredKey() if keys and not any(key.revoked_at for key in keys) else None


class Misses:
    """The unknown keys that were looked up in the current second, and in the one before."""

    def __init__(self) -> None:
        self.second, self.now, self.before = 0, 0, 0

    def count(self, number: int) -> None:
        self._turn()
        self.now += number

    def is_flood(self) -> bool:
        """Return whether there were many of them."""
        self._turn()
        return self.now + self.before >= MANY_MISSES

    def _turn(self) -> None:
        second = int(monotonic())
        if second != self.second:
            self.before = self.now if second == self.second + 1 else 0
            self.second, self.now = second, 0


misses = Misses()


def _stored(all_digests: set[str]) -> frozenset[str]:
    """Return the digests of stored keys among these. A flood of wrong keys gets no further than this small statement,
    which costs a fraction of the other one."""
    condition, values = one_of("digest", sorted(all_digests))
    with prepared() as cursor:
        cursor.execute(f"select digest from {ApiKey._meta.db_table} where {condition}", values)
        return frozenset(digest for (digest,) in cursor)


def caller_of(keys: Sequence[ApiKey]) -> Caller | None:
    """Return the caller behind the rows of one key; None without a row, and for a key that is revoked or expired.

    A key has several rows if it was stored under several secrets. If one of them is revoked, the key is revoked.
    """
    if not keys or any(key.revoked_at for key in keys):
        return None
    expires_at = keys[0].expires_at
    return _caller(keys[0]) if expires_at is None or expires_at > clock.now() else None


def _caller(key: ApiKey) -> Caller:
    return caller_for(
        key.principal,
        frozenset(key.scopes.split()),
        key_id=key.pk,
        language=key.language,
        credential=f"key:{key.pk}",
        expires_at=key.expires_at.timestamp() if key.expires_at else None,
        networks=key.networks,
    )


def caller_for(principal: Principal, scopes: frozenset[str], **more: Any) -> Caller:
    """Return a caller in the name of a principal, whose tenant is there, with everything that comes from the principal.

    Every credential makes its callers by this function. `more` are the other members of the caller.
    """
    return Caller(
        tenant_id=principal.tenant_id,
        tenant=principal.tenant.name,
        owner_id=principal.pk,
        name=principal.name,
        scopes=scopes,
        rules=rules_of(principal),
        **more,
    )


def caller_of_work(work: Batch | Workflow) -> Caller:
    """Return the caller in whose name a batch or a workflow goes on after its call.

    `work` has its owner, with the tenant. The limits of the call still hold: its scopes, and the agent of its address,
    because its credential may be valid for that agent only.
    """
    agents = None if work.address is None else frozenset({work.address})
    return caller_for(work.owner, frozenset(work.scopes.split()), agents=agents)


def check_language(name: str | None) -> None:
    """Check that a key can be pinned to the language. Raises ValueError."""
    if name is not None and name not in languages.ALL.pinnable:
        names = ", ".join(languages.ALL.pinnable)
        raise WrongValue("language", f"no key can be pinned to {name!r}; the languages are {names}")


def check_tenant_of(name: str) -> None:
    """Check that there is a tenant with this name, or that a new one may have it. Raises ValueError.

    A tenant of an earlier version may have a name that is refused now. Its keys can still be replaced.
    """
    try:
        check_tenant_name(name)
    except ValueError:
        if "\0" in name or not Tenant.objects.filter(name=name).exists():
            raise


def new_key(
    principal: str,
    *,
    tenant: str = "default",
    name: str = "",
    key: str = "",
    scopes: str = "*",
    expires_at: datetime | None = None,
    language: str | None = None,
    networks: str = "",
) -> str:
    """Make a key for the principal, and return it: it cannot be read again. A new principal is made as well.

    Raises ValueError for a tenant's name that no path can hold, a principal's name that is reserved, an unknown
    language, and networks that cannot be read.
    """
    check_tenant_of(tenant)
    check_language(language)
    networks = read_networks(networks)
    key = key or random_key()
    owner = find_or_make(tenant, principal)
    possible = digests(key)
    stored = set(ApiKey.objects.filter(digest__in=possible).values_list("digest", flat=True))
    # The key may be stored under several secrets. One row stays, so that revoking it revokes the key.
    ApiKey.objects.filter(digest__in=[digest for digest in possible if digest in stored][1:]).delete()
    ApiKey.objects.update_or_create(
        digest__in=possible,
        defaults={
            "digest": possible[0],
            "principal": owner,
            "name": name or principal,
            # At most a quarter of the key: a person may have chosen a short one, and eight characters would reveal it.
            "prefix": key[: min(8, len(key) // 4)],
            "scopes": scopes,
            "language": language,
            "networks": networks,
            "expires_at": expires_at,
            "revoked_at": None,
        },
    )
    return key


def revoke(keys: QuerySet[ApiKey]) -> int:
    """Revoke the keys from now on; return how many were not revoked before."""
    return keys.filter(revoked_at=None).update(revoked_at=clock.now())


def development_keys() -> QuerySet[ApiKey]:
    """Return the keys that development servers made, without revoked ones."""
    keys = ApiKey.objects.filter(principal__tenant__name="default", principal__name=DEVELOPER)
    return keys.filter(name=DEVELOPMENT, revoked_at=None)
