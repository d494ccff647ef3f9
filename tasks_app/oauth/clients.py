"""OAuth clients: the verbs of operators. Each records an act in the transaction of its change."""

import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.db import transaction
from msgspec import Struct

from tasks_app import clock
from tasks_app.callers.access import check_tenant_of, digests
from tasks_app.callers.principals import find_or_make
from tasks_app.callers.wrong_values import WrongValue
from tasks_app.models import OAuthClient
from tasks_app.models.clients import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, CONFIDENTIAL, PUBLIC
from tasks_app.oauth.secrets import make_secret
from tasks_app.operators.audit import Change, Operator, record_acts

LOOPBACK = ("127.0.0.1", "::1")
"""Hosts to which a redirect may go over http (RFC 8252, 7.3)."""
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""The characters of a scope (RFC 6749, 3.3)."""


class NewClient(Struct, frozen=True, kw_only=True):
    """The values of a new client."""

    name: str
    principal: str
    tenant: str = "default"
    grant: str = CLIENT_CREDENTIALS
    scopes: str
    redirect_uris: Sequence[str] = ()
    public: bool = False


def add(wish: NewClient, operator: Operator) -> tuple[OAuthClient, str]:
    """Store a client, and return it with its secret, which cannot be read again; a public client has none.

    Raises ValueError for values with which no client can work.
    """
    _check(wish)
    secret = "" if wish.public else make_secret()
    with transaction.atomic():
        client = OAuthClient.objects.create(
            principal=find_or_make(wish.tenant, wish.principal),
            client_id=secrets.token_hex(16),
            name=wish.name,
            scopes=" ".join(wish.scopes.split()),
            authorization_grant_type=wish.grant,
            client_type=PUBLIC if wish.public else CONFIDENTIAL,
            redirect_uris=" ".join(wish.redirect_uris),
            digest=digests(secret)[0] if secret else None,
        )
        record_acts(operator, "make", Change(client, {}, describe(client)))
    return client, secret


def change(
    client: OAuthClient, operator: Operator, scopes: str | None = None, redirect_uris: Sequence[str] | None = None
) -> bool:
    """Set the scopes or the redirect URIs of the client, those that are given. Return false if it has them already.

    They hold at once: its tokens have the scopes that are theirs and the client's. Raises ValueError for values with
    which the client could not work, and for one that was revoked.
    """
    with transaction.atomic():
        row = OAuthClient.objects.select_for_update().select_related("principal__tenant").get(pk=client.pk)
        if row.revoked_at:
            raise ValueError("the client was revoked")
        wish = NewClient(
            name=row.name,
            principal=row.principal.name,
            tenant=row.principal.tenant.name,
            grant=row.authorization_grant_type,
            scopes=row.scopes if scopes is None else scopes,
            redirect_uris=row.redirect_uris.split() if redirect_uris is None else redirect_uris,
            public=row.client_type == PUBLIC,
        )
        _check(wish)
        wishes = {"scopes": " ".join(wish.scopes.split()), "redirect_uris": " ".join(wish.redirect_uris)}
        before = {name: getattr(row, name) for name, value in wishes.items() if getattr(row, name) != value}
        after = {name: wishes[name] for name in before}
        if not before:
            return False
        for name, value in after.items():
            setattr(row, name, value)
        row.save(update_fields=list(after))
        record_acts(operator, "change", Change(row, before, after))
    client.refresh_from_db()
    return True


def rotate(client: OAuthClient, operator: Operator, overlap: timedelta) -> str:
    """Give the client a new secret, and return it. The former one is valid for the time of the overlap.

    Raises ValueError for a client without a secret, for one that was revoked, and for an overlap during another one.
    """
    if client.client_type == PUBLIC:
        raise ValueError("a public client has no secret")
    secret = make_secret()
    with transaction.atomic():
        row = OAuthClient.objects.select_for_update().get(pk=client.pk)
        if row.revoked_at:  # Another operator may have revoked it since it was read.
            raise ValueError("the client was revoked")
        now = clock.now()
        # A row has room for two secrets. A form that is submitted twice would end the one that programs still use.
        if overlap and row.former_until and row.former_until > now:
            raise ValueError(
                f"a former secret is valid until {row.former_until:%Y-%m-%d %H:%M} UTC, and another rotation would end "
                "it: wait until then, or rotate with an overlap of 0 hours, which ends both secrets at once"
            )
        row.digest, row.former_digest, row.former_until = digests(secret)[0], row.digest, now + overlap
        row.save(update_fields=["digest", "former_digest", "former_until"])
        record_acts(operator, "rotate", Change(row, {}, {"former_until": row.former_until}))
    client.refresh_from_db()
    return secret


def disable(client: OAuthClient, operator: Operator) -> bool:
    """Refuse the client and its tokens until `enable`. Return false if they were refused already."""
    return _set_time(client, operator, "disable", "disabled_at", clock.now())


def enable(client: OAuthClient, operator: Operator) -> bool:
    """Accept the client and its tokens again. Return false if it was not disabled."""
    return _set_time(client, operator, "enable", "disabled_at", None)


def revoke(client: OAuthClient, operator: Operator) -> bool:
    """Refuse the client for ever, and delete its tokens. Return false if it was revoked already."""
    with transaction.atomic():
        is_new = _set_time(client, operator, "revoke", "revoked_at", clock.now())
        if is_new and settings.A2A_OAUTH:
            for table in ("Grant", "RefreshToken", "AccessToken"):
                apps.get_model("oauth2_provider", table)._default_manager.filter(application_id=client.pk).delete()
    return is_new


def describe(client: OAuthClient) -> dict[str, Any]:
    """Return the columns of a client that operators may see."""
    return {
        "id": client.pk,
        "name": client.name,
        "client_id": client.client_id,
        "principal": client.principal.name,
        "tenant": client.principal.tenant.name,
        "scopes": client.scopes,
        "grant": client.authorization_grant_type,
        "type": client.client_type,
        "redirect_uris": client.redirect_uris.split(),
        "former_secret_until": client.former_until,
        "created_at": client.created_at,
        "disabled_at": client.disabled_at,
        "revoked_at": client.revoked_at,
    }


def _set_time(client: OAuthClient, operator: Operator, verb: str, column: str, time: datetime | None) -> bool:
    """Set or clear a time of a client, if that changes anything."""
    with transaction.atomic():
        row = OAuthClient.objects.select_for_update().select_related("principal__tenant").get(pk=client.pk)
        before = getattr(row, column)
        if row.revoked_at or (before is None) == (time is None):
            return False
        setattr(row, column, time)
        row.save(update_fields=[column])
        record_acts(operator, verb, Change(row, {column: before}, {column: time}))
    client.refresh_from_db()
    return True


def _check(wish: NewClient) -> None:
    """Check that a client of these values can work. Raises ValueError."""
    check_tenant_of(wish.tenant)
    scopes = wish.scopes.split()
    if not scopes or "*" in scopes:
        raise WrongValue(
            "scopes", "the scopes of a client are listed one by one, separated by spaces; there is no * for all"
        )
    if wrong := [scope for scope in scopes if not _SCOPE.fullmatch(scope)]:
        sentence = f"a scope cannot be called {wrong[0]!r}: it has ASCII characters without quotation marks and \\"
        raise WrongValue("scopes", sentence)
    if wish.grant not in {CLIENT_CREDENTIALS, AUTHORIZATION_CODE}:
        raise WrongValue("grant", f"the grant is {CLIENT_CREDENTIALS} or {AUTHORIZATION_CODE}, not {wish.grant!r}")
    if wish.grant == CLIENT_CREDENTIALS and (wish.public or wish.redirect_uris):
        raise ValueError(f"a client of {CLIENT_CREDENTIALS} has a secret and no redirect URI")
    if wish.grant == AUTHORIZATION_CODE and not wish.redirect_uris:
        raise WrongValue("redirect_uris", f"a client of {AUTHORIZATION_CODE} needs a redirect URI")
    for uri in wish.redirect_uris:
        _check_redirect(uri)


def _check_redirect(uri: str) -> None:
    try:
        parts = urlsplit(uri)
        is_usable = bool(parts.hostname) and "@" not in parts.netloc and "#" not in uri and parts.port != 0
    except ValueError:
        is_usable = False
    is_safe = is_usable and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK))
    if not is_safe or not uri.isascii() or not uri.isprintable() or " " in uri:
        raise WrongValue(
            "redirect_uris",
            f"{uri[:200]!r} cannot be a redirect URI: it begins with https://, or with http:// and a loopback address "
            "such as 127.0.0.1, and has no fragment",
        )
