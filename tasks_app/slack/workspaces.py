"""Workspaces: found for an event, and the verbs of operators. Each verb records an act in the transaction of its
change. Bot tokens and signing secrets are sealed, and no answer and no log has them."""

import re
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from msgspec import Struct

from tasks_app import clock
from tasks_app.callers.access import Caller, caller_for, check_tenant_of
from tasks_app.callers.principals import find_or_make
from tasks_app.callers.wrong_values import WrongValue
from tasks_app.models import Principal, SlackUser, SlackWorkspace
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.reach import EVERYTHING, Reach
from tasks_app.sealing import Unreadable, seal, unseal
from tasks_app.slack.identity import Identity, identify
from tasks_app.slack.questions import KIND

SCOPES = "tasks:read tasks:write"
"""The scopes of questions by default."""
_TEAM, _USER = re.compile(r"[TE][A-Z0-9]{1,31}"), re.compile(r"[UW][A-Z0-9]{1,31}")
_BOT_TOKEN = re.compile(r"xoxb-[A-Za-z0-9-]{8,240}|xoxe\.xoxb-[A-Za-z0-9-]{8,480}")


class Installation(Struct, frozen=True, kw_only=True):
    """A workspace as the door needs it: its own ids in Slack, its signing secrets, and the caller of its questions."""

    id: int
    team_id: str
    bot_user_id: str
    bot_id: str
    secrets: tuple[str, ...]
    caller: Caller


class NewWorkspace(Struct, frozen=True, kw_only=True):
    """The wish for a workspace. Slack says to which one the bot token belongs."""

    bot_token: str
    principal: str
    tenant: str = "default"
    scopes: str = SCOPES
    agent: str = ""
    signing_secret: str = ""


# ------------------------------------------------------------------ the door


def find(team_id: str) -> Installation | None:
    """Return the workspace of an event; None for one that is unknown or disabled."""
    rows = SlackWorkspace.objects.select_related("principal__tenant")
    row = rows.filter(team_id=team_id, disabled_at__isnull=True).first() if _TEAM.fullmatch(team_id) else None
    if row is None:
        return None
    return Installation(
        id=row.pk,
        team_id=row.team_id,
        bot_user_id=row.bot_user_id,
        bot_id=row.bot_id,
        secrets=_secrets_of([row.signing_secret]),
        caller=caller_of(row, row.principal),
    )


def all_secrets() -> tuple[str, ...]:
    """Return every signing secret, for a request that belongs to no workspace yet."""
    rows = SlackWorkspace.objects.filter(disabled_at__isnull=True).exclude(signing_secret="").order_by("pk")
    return _secrets_of([*rows.values_list("signing_secret", flat=True)[:100], ""])


def _secrets_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the signing secrets in sealed texts, of which an empty one stands for the setting."""
    secrets: dict[str, None] = {}
    for text in texts:
        try:
            secrets[unseal(text) if text else settings.A2A_SLACK_SIGNING_SECRET] = None
        except Unreadable:
            continue
    return tuple(secret for secret in secrets if secret)


def caller_of(row: SlackWorkspace, principal: Principal) -> Caller:
    """Return the caller of a question in the name of a principal."""
    return caller_for(principal, frozenset(row.scopes.split()), credential=f"{KIND}:{row.pk}")


# ----------------------------------------------------------------- operators


def connect(wish: NewWorkspace, operator: Operator, within: Reach = EVERYTHING) -> SlackWorkspace:
    """Ask Slack for the workspace of the bot token, and store it. Raises ValueError."""
    _check(wish)
    return add(wish, identify(wish.bot_token), operator, within)


def add(wish: NewWorkspace, identity: Identity, operator: Operator, within: Reach = EVERYTHING) -> SlackWorkspace:
    """Store a workspace, or give one within the reach new secrets. Raises ValueError for a wish that makes no sense."""
    _check(wish)
    if not _TEAM.fullmatch(identity.team_id):
        raise ValueError("Slack has named no workspace for this bot token")
    with transaction.atomic():
        existing = SlackWorkspace.objects.filter(team_id=identity.team_id)
        if existing.exists() and not within.limit(existing).exists():
            raise ValueError("this workspace of Slack is connected for a tenant outside your reach")
        principal = find_or_make(wish.tenant, wish.principal)
        columns: dict[str, Any] = {
            "name": identity.name,
            "principal": principal,
            "scopes": " ".join(wish.scopes.split()),
            "agent": wish.agent,
            "bot_token": seal(wish.bot_token),
            "signing_secret": seal(wish.signing_secret) if wish.signing_secret else "",
            "bot_user_id": identity.bot_user_id,
            "bot_id": identity.bot_id,
        }
        fresh = columns | {"created_at": clock.now()}
        row, is_new = SlackWorkspace.objects.update_or_create(
            team_id=identity.team_id, defaults=columns, create_defaults=fresh
        )
        record_acts(operator, "make" if is_new else "change", Change(row, {}, _without_users(row)))
    return row


def check(row: SlackWorkspace) -> str:
    """Return what is wrong with the secrets of a workspace; empty if Slack takes its bot token."""
    try:
        token = unseal(row.bot_token)
        if not _secrets_of([row.signing_secret]):
            return "it has no signing secret: set A2A_SLACK_SIGNING_SECRET, or add it again with one"
        team = identify(token).team_id
    except Unreadable:
        return "its bot token cannot be read: SECRET_KEY has changed; add it again"
    except ValueError as error:
        return str(error)
    return "" if team == row.team_id else f"its bot token belongs to the workspace {team}: add it again"


def disable(row: SlackWorkspace, operator: Operator) -> bool:
    """Refuse the events of a workspace, and rest its questions, until `enable`. Return false if they were refused."""
    return _switch(row, operator, "disable", is_off=True)


def enable(row: SlackWorkspace, operator: Operator) -> bool:
    """Take the events of a workspace again. Return false if they were taken."""
    return _switch(row, operator, "enable", is_off=False)


def _switch(row: SlackWorkspace, operator: Operator, verb: str, *, is_off: bool) -> bool:
    with transaction.atomic():
        locked = SlackWorkspace.objects.select_for_update().get(pk=row.pk)
        before = locked.disabled_at
        if (before is not None) == is_off:
            return False
        locked.disabled_at = clock.now() if is_off else None
        locked.save(update_fields=["disabled_at"])
        record_acts(operator, verb, Change(locked, {"disabled_at": before}, {"disabled_at": locked.disabled_at}))
    row.refresh_from_db(fields=["disabled_at"])
    return True


def map_user(
    row: SlackWorkspace, user_id: str, principal: str, tenant: str, operator: Operator, within: Reach = EVERYTHING
) -> None:
    """Give the questions of one user a caller of their own. Raises ValueError.

    The principal may be of another tenant than the workspace. Then the act of the workspace does not name it.
    """
    _check_user(user_id)
    check_tenant_of(tenant)
    with transaction.atomic():
        owner, former = find_or_make(tenant, principal), row.users.filter(user_id=user_id)
        if former.exists() and not within.limit(former).exists():
            raise WrongValue("user", f"the user {user_id} has a caller of a tenant that is not one of yours")
        _record_ends(former.exclude(principal__tenant__in=(owner.tenant_id, row.principal.tenant_id)), operator)
        user, _ = SlackUser.objects.update_or_create(workspace=row, user_id=user_id, defaults={"principal": owner})
        named = {"principal": principal, "tenant": tenant}
        if owner.tenant_id == row.principal.tenant_id:
            record_acts(operator, "map", Change(row, {}, {"user": user_id, **named}))
        else:
            record_acts(operator, "map", Change(row, {}, {"user": user_id}))
            record_acts(operator, "map", Change(user, {}, named))


def unmap_user(row: SlackWorkspace, user_id: str, operator: Operator, within: Reach = EVERYTHING) -> bool:
    """Give the questions of a user the caller of the workspace again. Return false if they had it, or have a caller of
    a tenant beyond the reach."""
    with transaction.atomic():
        users = within.limit(row.users.filter(user_id=user_id))
        _record_ends(users.exclude(principal__tenant=row.principal.tenant_id), operator)
        gone, _ = users.delete()
        if gone:
            record_acts(operator, "unmap", Change(row, {"user": user_id}, {}))
    return bool(gone)


def _record_ends(users: QuerySet[SlackUser], operator: Operator) -> None:
    """Record in the tenant of each user's caller that the user has another one from now on."""
    for user in users.select_for_update(of=("self",), no_key=True).select_related("principal__tenant"):
        named = {"principal": user.principal.name, "tenant": user.principal.tenant.name}
        record_acts(operator, "unmap", Change(user, named, {}))


def users_of(row: SlackWorkspace, within: Reach = EVERYTHING) -> QuerySet[SlackUser]:
    """Return the users with a caller of their own, of tenants within the reach."""
    return within.limit(row.users.select_related("principal__tenant").order_by("pk"))


def describe(row: SlackWorkspace, within: Reach = EVERYTHING) -> dict[str, Any]:
    """Return the columns of a workspace that operators with the reach may see."""
    users = [
        {"user": user.user_id, "principal": user.principal.name, "tenant": user.principal.tenant.name}
        for user in users_of(row, within)[:1_000]
    ]
    return _without_users(row) | {"users": users}


def _without_users(row: SlackWorkspace) -> dict[str, Any]:
    return {
        "id": row.pk,
        "team_id": row.team_id,
        "name": row.name,
        "principal": row.principal.name,
        "tenant": row.principal.tenant.name,
        "scopes": row.scopes,
        "agent": row.agent,
        "has_own_signing_secret": bool(row.signing_secret),
        "bot_user_id": row.bot_user_id,
        "created_at": row.created_at,
        "disabled_at": row.disabled_at,
    }


def _check(wish: NewWorkspace) -> None:
    check_tenant_of(wish.tenant)
    if not _BOT_TOKEN.fullmatch(wish.bot_token):
        # The message does not repeat it: it may be another secret.
        raise WrongValue("bot_token", "a bot token begins with xoxb-: Slack shows it under OAuth & Permissions")
    if not wish.signing_secret and not settings.A2A_SLACK_SIGNING_SECRET:
        raise WrongValue(
            "signing_secret",
            "there is no signing secret: give the workspace one, or set A2A_SLACK_SIGNING_SECRET",
        )
    if wish.signing_secret and not re.fullmatch(r"[A-Za-z0-9]{16,128}", wish.signing_secret):
        raise WrongValue(
            "signing_secret",
            "a signing secret has letters and digits alone: Slack shows it under Basic Information",
        )
    if not wish.scopes.split():
        raise WrongValue("scopes", "the scopes of questions are listed one by one, separated by spaces")


def _check_user(user_id: str) -> None:
    if not _USER.fullmatch(user_id):
        raise WrongValue("user", "the id of a user is like U0123ABCD; Slack shows it in the profile")
