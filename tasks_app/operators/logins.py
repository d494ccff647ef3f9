"""A limit on password guessing: wrong logins are counted by user and by address, and each count leads to longer waits.

The counts are rows, so all processes share them. A login counts as wrong before its password is checked, and the count
is taken back if the password was right. Otherwise many simultaneous logins could pass before the first one is counted.
"""

import logging
import math
import unicodedata
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.signals import user_logged_in
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import F, Manager, QuerySet
from django.dispatch import receiver
from django.http import HttpRequest
from django_otp import DEVICE_ID_SESSION_KEY

from tasks_app import clock
from tasks_app.callers.peers import origin_in
from tasks_app.models import WrongLogins
from tasks_app.operators.audit import Change, Operator, record_acts

log = logging.getLogger(__name__)
FIRST_WAIT, LONGEST_WAIT = 30.0, 900.0
"""Seconds of the first wait. Each further wrong login doubles it, up to the longest."""
ADDRESS_FACTOR = 4
"""The tries of an address as a multiple of those of a user, because several people may share an address."""
NAME_LENGTH = 150
"""Characters of a user name that are stored."""
RETENTION = timedelta(days=30)
"""Age of its newest try at which a row is deleted."""
DISTINCT_CHARACTERS = 5
"""Different characters that a password must have."""


class Throttle:
    """The authentication backend before Django's own. It accepts no login; it refuses those that have to wait."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None
    ) -> None:
        """Count the try. Raise PermissionDenied, before any password is checked, if its user or address is locked."""
        if request is not None and username and not begin_login(username, find_address(request)):
            raise PermissionDenied


class LoginForm(AdminAuthenticationForm):
    """The admin's login form, which also tells how long to wait. It answers alike for user names that do not exist."""

    def get_invalid_login_error(self) -> ValidationError:
        """Return the error for a refused login."""
        user = self.cleaned_data.get("username") or ""
        seconds = remaining_wait(user, find_address(self.request) if self.request else "")
        if not seconds:
            return super().get_invalid_login_error()
        return ValidationError(
            f"Too many wrong logins: wait {seconds} seconds before you try again. "
            "An operator with a shell can end the wait with manage.py a2a logins unlock.",
            code="locked",
        )


class VariedPassword:
    """A password rule against long passwords that repeat a few characters."""

    def validate(self, password: str, user: Any = None) -> None:
        """Raise ValidationError for a password with too few different characters."""
        if len(set(password)) < DISTINCT_CHARACTERS:
            raise ValidationError(self.get_help_text(), code="password_not_varied")

    def get_help_text(self) -> str:
        """Return the rule as the form shows it."""
        return f"Your password must have at least {DISTINCT_CHARACTERS} different characters."


def begin_login(user: str, address: str) -> bool:
    """Count a login as wrong before its password is checked. Return False if its user or its address must wait."""
    now = clock.now()
    WrongLogins.objects.filter(last_at__lt=now - RETENTION).delete()
    # Before any row is made: otherwise a locked address could fill the table with made-up names.
    if _refuse_locked(_find_rows(WrongLogins.objects, user, address), now):
        return False
    with transaction.atomic():
        rows = _lock_rows(user, address, now)
        if _refuse_locked(rows, now):
            return False
        for row in rows:
            row.running, row.total, row.last_at = row.running + 1, row.total + 1, now
            row.last_with = _fold_name(address if row.kind == "user" else user)
            seconds = lock_seconds(row.kind, row.running)
            row.locked_until = now + timedelta(seconds=seconds) if seconds else None
            row.save()
    for row in rows:
        if row.locked_until:
            seconds = lock_seconds(row.kind, row.running)
            log.warning("logins of %r are locked for %d s after %d wrong ones", str(row), seconds, row.running)
    return True


def _refuse_locked(rows: list[WrongLogins], now: datetime) -> bool:
    """Count a refused login in those of the rows that are locked. Return whether there are any."""
    locked = [row.pk for row in rows if row.locked_until and row.locked_until > now]
    for pk in locked:  # One by one, in the order in which they are locked elsewhere.
        WrongLogins.objects.filter(pk=pk).update(refused=F("refused") + 1, last_at=now)
    return bool(locked)


def lock_seconds(kind: str, wrong: int) -> float:
    """Return how long a user or an address is locked after this many wrong logins in a row; 0 while tries are left."""
    tries = settings.A2A_LOGIN_TRIES * (ADDRESS_FACTOR if kind == "address" else 1)
    return 0.0 if wrong < tries else min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(wrong - tries, 30))


def remaining_wait(user: str, address: str) -> int:
    """Return the whole seconds until the user may try to log in from the address; 0 if there is no wait."""
    now = clock.now()
    rows = _find_rows(WrongLogins.objects, user, address)
    ends = [row.locked_until for row in rows if row.locked_until and row.locked_until > now]
    return math.ceil((max(ends) - now).total_seconds()) if ends else 0


def unlock(value: str, operator: Operator) -> dict[WrongLogins, bool]:
    """End the wait of a user or an address and restore all its tries.

    Return the rows of the value as they were before, each with whether it was changed: one that has all its tries is
    not, and no act is recorded for it.
    """
    with transaction.atomic():
        rows = WrongLogins.objects.filter(value=_fold_name(value))
        answers = {row: bool(row.running or row.locked_until) for row in rows}
        changed = [row for row, is_changed in answers.items() if is_changed]
        WrongLogins.objects.filter(pk__in=[row.pk for row in changed]).update(running=0, locked_until=None)
        changes = [
            Change(
                row, {"running": row.running, "locked_until": row.locked_until}, {"running": 0, "locked_until": None}
            )
            for row in changed
        ]
        record_acts(operator, "unlock", *changes)
    return answers


@receiver(user_logged_in, dispatch_uid="logins")
def _accept_login(sender: Any, request: HttpRequest | None, user: Any, **_: Any) -> None:
    """Start the times of the session, and accept the password."""
    if request is None:
        return
    # Django keeps the session of a user who logs in once more. A password alone must not renew one that a code has
    # verified.
    request.session.pop(DEVICE_ID_SESSION_KEY, None)
    # The member "proved" is that of proof.py.
    request.session["began"] = request.session["seen"] = request.session["proved"] = clock.now().timestamp()
    accept_login(user.get_username(), find_address(request), is_complete=not settings.A2A_SECOND_FACTOR)


def accept_login(user: str, address: str, *, is_complete: bool) -> None:
    """Take back the wrong login that `begin_login` counted.

    A complete login also forgets the wrong ones of its user. A right password whose code is still to come does not: an
    attacker with the password would get new tries for the code by each.
    """
    now = clock.now()
    with transaction.atomic():
        # Locked: otherwise a wrong login that is counted meanwhile would be forgotten.
        for row in _find_rows(WrongLogins.objects.select_for_update(), user, address):
            if row.kind == "user" and row.running > 1:
                log.warning("%r logged in from %s after %d wrong logins", str(row), address or "?", row.running - 1)
            if row.total <= 1:
                row.delete()
                continue
            row.total, row.right_at = row.total - 1, now
            # A right password clears its user. An address keeps its other wrong logins: an attacker with one account of
            # their own could clear it again and again.
            row.running = 0 if row.kind == "user" and is_complete else max(0, row.running - 1)
            row.locked_until = None
            row.save()


def _find_rows(rows: Manager[WrongLogins] | QuerySet[WrongLogins], user: str, address: str) -> list[WrongLogins]:
    """Return the existing rows of the user and the address, in this order, in which they are locked too."""
    of_user = list(rows.filter(kind="user", value=_fold_name(user)))
    return [*of_user, *rows.filter(kind="address", value=address)] if address else of_user


def _lock_rows(user: str, address: str, now: datetime) -> list[WrongLogins]:
    """Create the missing rows and lock both: the user's first, then the address's, so that no two logins deadlock."""
    values = {"user": _fold_name(user)} | ({"address": address} if address else {})
    return [_lock_row(kind, value, now) for kind, value in values.items()]


def _lock_row(kind: str, value: str, now: datetime) -> WrongLogins:
    while True:
        missing = WrongLogins(kind=kind, value=value, began_at=now, last_at=now)
        WrongLogins.objects.bulk_create([missing], ignore_conflicts=True)
        # A right login deletes a row that counts nothing else, and may do so between the two statements.
        if row := WrongLogins.objects.select_for_update().filter(kind=kind, value=value).first():
            return row


def _fold_name(name: str) -> str:
    """Return one form for all spellings of a name that look alike."""
    return unicodedata.normalize("NFKC", name).casefold().replace("\0", "")[:NAME_LENGTH]


def find_address(request: HttpRequest) -> str:
    """Return the address under which a login is counted, or an empty string if it must not be counted.

    For IPv6 it is the /64 network, because one client usually has all of its addresses. It is empty for a proxy that is
    not trusted: all its users share one address, and a lock on that would keep all of them out.
    """
    return origin_in(request.META)
