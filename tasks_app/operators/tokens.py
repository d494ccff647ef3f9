"""Tokens of operators: secrets by which programs use the operators' API, each in the name of one user, for some days.

They are no API keys of callers: neither opens the doors of the other. A token is bound to the password that its user
had when it was made, as a session is. So a new password ends it, however the password is set.
"""

import secrets
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.signals import pre_save
from django.dispatch import receiver

from tasks_app import clock
from tasks_app.callers.access import FindStored, digests
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoApart
from tasks_app.models import OperatorToken
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.refusals import ActRefused

PREFIX = "tdo_"
"""The beginning of every token, so that scanners of leaked secrets find them."""
DAYS, MOST_DAYS = 90, 366
"""The usual and the longest life of a token."""
USE_SECONDS = 60
"""Seconds between two recorded uses of a token. Recording every use would write a row for each."""


class TokenRefused(ActRefused):
    """Raised if no token can be made for a user. The sentence says why, and what to do."""


class FindOperatorTokens(FindStored, frozen=True):
    """Finds which of some digests are those of tokens of operators. It waits for no reads of callers: operators need
    their API when those hang."""

    lane = "health"

    @classmethod
    def stored(cls, all_digests: set[str]) -> frozenset[str]:
        """Return the digests of stored tokens among these."""
        return frozenset(OperatorToken.objects.filter(digest__in=all_digests).values_list("digest", flat=True))


def make_token(
    user: Any, name: str, days: int, by: Operator, *, administers: bool = False
) -> tuple[OperatorToken, str]:
    """Make a token for a user, and record the act. Return its row and the token, which cannot be read again.

    Only a token that administers may do what gives rights, whatever the roles of its user.

    Raises TokenRefused.
    """
    token, now = PREFIX + secrets.token_urlsafe(32), clock.now()
    with transaction.atomic():
        # Another operator may have disabled the user since the request began, and a token that is made after that would
        # be valid as soon as the user is enabled again.
        if refusal := find_refusal(User.objects.select_for_update(no_key=True).get(pk=user.pk)):
            raise TokenRefused(refusal)
        row = OperatorToken.objects.create(
            user=user,
            name=name,
            prefix=token[:8],
            digest=digests(token)[0],
            password_digest=user.get_session_auth_hash(),
            created_at=now,
            expires_at=now + timedelta(days=days),
            administers=administers,
        )
        after = {"user": user.get_username(), "expires_at": row.expires_at, "administers": administers}
        record_acts(by, "make", Change(row, {}, after))
    return row, token


def find_refusal(user: Any) -> str:
    """Return why a user can have no token; empty if they can."""
    name = user.get_username()
    if not user.is_active or not user.is_staff:
        return f"{name} is not an active operator: `manage.py a2a users enable {name}` makes them one."
    if user.is_superuser:
        return (
            f"{name} is a superuser, and a token would be a second password to everything: make a user with a role for "
            "it, as in `manage.py a2a users make robot --role operator --all-tenants`."
        )
    return ""


def is_stored(token: str) -> bool:
    """Return whether there is such a token, even if it has expired or was revoked.

    A lane looks it up, together with others: a page opens a connection of its own, which a wrong token is not worth.
    Call it on no lane, which could wait for itself.
    """
    return _has_form(token) and bool(bridge.do(FindOperatorTokens(digests(token))))


async def look_up(token: str) -> OperatorToken | None:
    """Return the row of a token as find_token() does, on a loop. Wrong tokens are looked up together: a flood of them
    must not fill the lane of the checks of the service."""
    if not _has_form(token) or not await bridge.ask(FindOperatorTokens(digests(token))):
        return None
    return await bridge.ask(DoApart(partial(find_token, token)))


def find_token(token: str) -> OperatorToken | None:
    """Return the row of a token with its user; None for one that is unknown, expired or revoked, or whose user may
    have none any more or has another password. Record the use."""
    if not _has_form(token):
        return None
    row = OperatorToken.objects.select_related("user").filter(digest__in=digests(token), revoked_at=None).first()
    now = clock.now()
    if row is None or row.expires_at <= now or find_refusal(row.user):
        return None
    if row.password_digest not in _digests_of(row.user):
        return None
    _record_use(row, now)
    return row


def _has_form(token: str) -> bool:
    return token.startswith(PREFIX) and len(token) <= 128


def revoke(row: OperatorToken, by: Operator) -> bool:
    """Revoke a token from now on, and record the act. Return False if it was revoked before."""
    with transaction.atomic():
        now = clock.now()
        if not OperatorToken.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=now):
            return False
        row.revoked_at = now
        record_acts(by, "revoke", Change(row, {"revoked_at": None}, {"revoked_at": now}))
    return True


def revoke_all(user: User) -> int:
    """Revoke the tokens of a user; return their number."""
    return OperatorToken.objects.filter(user=user, revoked_at=None).update(revoked_at=clock.now())


def _digests_of(user: User) -> tuple[str, ...]:
    """Return the digests of a user's password, under this SECRET_KEY and under the former ones."""
    return (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())


@receiver(pre_save, sender=User, dispatch_uid="tokens")
def _keep_tokens(instance: User, update_fields: frozenset[str] | None, **_: Any) -> None:
    """Keep the tokens of a user whose old password is hashed anew, as a login does after an update of Django.

    Django then saves the hash alone, and has no new password to announce. Tokens of earlier passwords stay ended.
    """
    # A missing attribute counts as a new password, so that a change of Django may end tokens, but never keeps them.
    if update_fields != frozenset({"password"}) or getattr(instance, "_password", "") is not None:
        return
    if stored := User.objects.filter(pk=instance.pk).first():
        tokens = OperatorToken.objects.filter(user=instance, password_digest__in=_digests_of(stored))
        tokens.update(password_digest=instance.get_session_auth_hash())


def _record_use(row: OperatorToken, now: datetime) -> None:
    late = Q(used_at=None) | Q(used_at__lt=now - timedelta(seconds=USE_SECONDS))
    OperatorToken.objects.filter(late, pk=row.pk).update(used_at=now)
